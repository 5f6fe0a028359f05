package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// patience bounds each wait for an undisturbed cluster. It is long because a busy machine is
	// slow.
	patience = 5 * time.Minute
	// endPatience bounds the end of a process after SIGTERM: 20 s, plus a margin for a busy
	// machine.
	endPatience = time.Minute
	// look is the time between two polls of a condition.
	look = 50 * time.Millisecond
)

// process is one process of a cluster: its successive incarnations, address and disk.
type process struct {
	c       *cluster
	name    string
	address string
	disk    string // folder with the folder of records

	change sync.Mutex // held by a fault while it starts, stops or ends the process

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed at the end of the incarnation
	wanted  bool          // the process restarts if it ends by itself
	asked   bool          // the programme ends this incarnation on purpose
	paused  bool
	other   bool  // the next incarnation runs the other build
	printed int64 // length of the log at the start of this incarnation
	changes int   // number of changes to the process that affect its answers
	lost    bool  // a fault has deleted records from its disk
	spoiled bool  // the disk rejects writes now
	handed  bool  // the disk has rejected writes at some time
}

// records returns the process's folder of records.
func (p *process) records() string { return filepath.Join(p.disk, "records") }

func (p *process) logPath() string { return p.c.path("log-" + p.name + ".txt") }

// start starts an incarnation. If it ends by itself, the next incarnation starts automatically.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	return p.launch()
}

// launch starts an incarnation; p.mu is held.
func (p *process) launch() error {
	out, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	info, err := out.Stat()
	if err != nil {
		return err
	}
	program := p.c.program
	if p.other {
		program = p.c.path("other-build")
	}
	args := []string{program, "node", "--name", p.name, "--bind", p.address, "--identity", p.c.path("id-" + p.name),
		"--join", strings.Join(p.c.addresses(), ","), "--out", p.records()}
	if p.c.island != nil {
		args = append([]string{"ip", "netns", "exec", p.c.island.space(p.name)}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // the test's own executable
	cmd.Env = append(os.Environ(), asProgram+"=1", "GRADWIRE_JOIN=", "GRADWIRE_IDENTITY=")
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.c.dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.ended, p.printed, p.asked, p.paused = cmd, make(chan struct{}), info.Size(), false, false
	p.changes++
	p.c.waits.Go(func() { p.wait(cmd, p.ended) })
	return nil
}

// wait waits for the end of an incarnation, reports an end that the programme did not cause, and
// starts the next incarnation.
func (p *process) wait(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait()
	p.mu.Lock()
	p.changes++
	asked, spoiled := p.asked, p.spoiled
	words := p.said()
	if !asked {
		switch status := cmd.ProcessState; {
		case strings.Contains(words, poisonMark):
			p.c.died(p.name)
		case spoiled:
			p.c.event("%s ended because its disk rejects writes: %v", p.name, status)
		default:
			p.c.broken("no-panic", "process %s ended by itself, with %v", p.name, status)
		}
	}
	p.mu.Unlock()
	p.checkOutput(words)
	close(ended)
	if !asked {
		time.Sleep(300 * time.Millisecond) // the restart delay of a supervisor
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted && p.cmd == cmd && !p.c.closing.Load() {
		if err := p.launch(); err != nil {
			p.c.failed(err)
		}
	}
}

// checkOutput reports a panic in the output of an incarnation.
func (p *process) checkOutput(words string) {
	words = strings.ReplaceAll(words, poisonMark, "")
	for _, mark := range []string{"panic: ", "fatal error: ", "SIGSEGV", "[recovered]"} {
		if at := strings.Index(words, mark); at >= 0 {
			p.c.broken("no-panic", "process %s: %.300s", p.name, words[at:])
			return
		}
	}
}

// said returns the output of the latest incarnation.
func (p *process) said() string {
	text, err := os.ReadFile(p.logPath())
	if err != nil || int64(len(text)) < p.printed {
		return ""
	}
	return string(text[p.printed:])
}

// ready reports whether the running incarnation has joined the cluster.
func (p *process) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up() && strings.Contains(p.said(), "ready at ")
}

// up reports whether an incarnation is running; p.mu is held.
func (p *process) up() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// hasLost reports whether a fault has deleted the process's records.
func (p *process) hasLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// end sends a signal that ends the running incarnation, and waits for its end. The next
// incarnation does not start automatically.
func (p *process) end(sig syscall.Signal) {
	p.mu.Lock()
	p.wanted = false
	if !p.up() {
		p.mu.Unlock()
		return
	}
	p.asked = true
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	began := time.Now()
	_ = cmd.Process.Signal(sig)
	bound := time.NewTimer(endPatience)
	defer bound.Stop()
	select {
	case <-ended:
		if took := time.Since(began); took > 5*time.Second {
			p.c.event("%s took %v to end", p.name, took.Round(time.Millisecond))
		}
	case <-bound.C:
		p.c.broken("sigterm-ends", "process %s has not ended %v after %v", p.name, endPatience, sig)
		_ = cmd.Process.Signal(syscall.SIGQUIT) // dumps the goroutines to the log
		time.Sleep(time.Second)
		_ = cmd.Process.Kill()
		<-ended
	}
}

// halt pauses or resumes the process, and reports whether that changed its state.
func (p *process) halt(paused bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.up() || p.paused == paused {
		return false
	}
	p.paused = paused
	p.changes++
	sig := syscall.SIGCONT
	if paused {
		sig = syscall.SIGSTOP
	}
	return p.cmd.Process.Signal(sig) == nil
}

// state returns a number that changes with the process's state, and whether the process can
// answer.
func (p *process) state() (changes int, answers bool) {
	ready := p.ready()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes, ready && !p.paused && !p.asked
}

// cluster is the processes of a programme, with the events and violations so far.
type cluster struct {
	programme *programme
	dir       string
	program   string // the executable of the processes
	processes []*process
	island    *island // nil without root
	began     time.Time
	waits     sync.WaitGroup // goroutines that wait for ends of incarnations
	closing   atomic.Bool

	mu         sync.Mutex
	events     []string
	violations []violation
	failure    error // error of the test itself
	deaths     int   // aborts by a poisonous plan
	stop       context.CancelFunc
	dropped    map[[2]string]int // active faults, by receiver and sender of the dropped packets
}

// violation is a broken invariant, with an explanation.
type violation struct{ invariant, how string }

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) process(name string) *process {
	i := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == name })
	return c.processes[i]
}

func (c *cluster) addresses() (all []string) {
	for _, p := range c.processes {
		all = append(all, p.address)
	}
	return all
}

// event records an event with its time.
func (c *cluster) event(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, fmt.Sprintf("%7.2fs  %s", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...)))
}

// broken records a violation and ends the programme.
func (c *cluster) broken(invariant, format string, args ...any) {
	how := fmt.Sprintf(format, args...)
	c.event("BROKEN %s: %s", invariant, how)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, violation{invariant, how})
	c.stop()
}

// mostDeaths is the number of times that a poisonous plan with one node may abort a process: two
// processes attempt the plan, and each attempt may abort the node's process twice.
const mostDeaths = 4

// died records that a poisonous plan has aborted a process.
func (c *cluster) died(name string) {
	c.event("a poisonous plan aborts %s", name)
	c.mu.Lock()
	c.deaths++
	n := c.deaths
	c.mu.Unlock()
	if n > mostDeaths {
		c.broken("poison-ends", "a poisonous plan aborted processes %d times, want at most %d", n, mostDeaths)
	}
}

// poisoned returns how often a poisonous plan has aborted a process.
func (c *cluster) poisoned() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaths
}

// failed ends the programme because the test itself cannot go on.
func (c *cluster) failed(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = errors.Join(c.failure, err)
	c.stop()
}

// newCluster creates the identities, disks and networks of a programme, and starts its processes.
func newCluster(ctx context.Context, p *programme, dir string) (*cluster, context.Context, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &cluster{programme: p, dir: dir, stop: stop, began: time.Now(), dropped: map[[2]string]int{}}
	var err error
	if c.program, err = os.Executable(); err != nil {
		return c, ctx, err
	}
	if rooted() {
		if c.island, err = newIsland(p.Names); err != nil {
			return c, ctx, err
		}
	}
	if err := c.otherBuild(); err != nil {
		return c, ctx, err
	}
	for i, name := range p.Names {
		one := &process{c: c, name: name, address: fmt.Sprintf("127.0.%d.%d:7946", os.Getpid()%250, i+2),
			disk: c.path("disk-" + name)}
		if c.island != nil {
			one.address = c.island.address(i) + ":7946"
		}
		c.processes = append(c.processes, one)
	}
	if err := c.prepare(ctx); err != nil {
		return c, ctx, err
	}
	for _, one := range c.processes {
		if err := one.start(); err != nil {
			return c, ctx, err
		}
	}
	return c, ctx, c.settled(ctx)
}

// rooted reports whether this process may create networks and disks.
func rooted() bool { return unprivileged() == nil }

// unprivileged returns the reason why this process may not create networks and disks; nil if it
// may.
var unprivileged = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "gradwire-disk-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(dir) }()
	if err := mount("-t", "tmpfs", "tmpfs", dir); err != nil {
		return err
	}
	_ = exec.Command("umount", dir).Run() //nolint:gosec // made above
	i, err := newIsland([]string{"x"})
	if err == nil {
		i.remove()
	}
	return err
})

// prepare creates identities and disks.
func (c *cluster) prepare(ctx context.Context) error {
	commands := [][]string{{"init", c.path("ca")},
		{"issue", c.path("ca"), "--operator", "--out", c.path("operator")}}
	for _, p := range c.processes {
		commands = append(commands, []string{"issue", c.path("ca"), "--node", p.name, "--out", c.path("id-" + p.name)})
		if err := os.Mkdir(p.disk, 0o700); err != nil {
			return err
		}
		if rooted() {
			if err := mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", p.disk); err != nil {
				return err
			}
		}
	}
	for _, args := range commands {
		if code, _, errs := gradwire(ctx, append([]string{"identity"}, args...)...); code != 0 {
			return fmt.Errorf("identity %v: %s", args, errs)
		}
	}
	return nil
}

func mount(args ...string) error {
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil { //nolint:gosec // of this test
		return fmt.Errorf("mount %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// otherBuild writes a copy of this program with another checksum and the same behaviour.
func (c *cluster) otherBuild() error {
	own, err := os.ReadFile(c.program)
	if err != nil {
		return err
	}
	return os.WriteFile(c.path("other-build"), append(own, 0), 0o700) //nolint:gosec // a program
}

// settled waits until all processes see each other.
func (c *cluster) settled(ctx context.Context) error {
	return c.await(ctx, "a cluster of all processes", func() bool {
		for _, p := range c.processes {
			if !p.ready() {
				return false
			}
			_, out, _ := c.ask(ctx, []string{p.address}, "nodes")
			if strings.Count(out, "  up  ")+strings.Count(out, "  here  ") != len(c.processes) {
				return false
			}
		}
		return true
	})
}

// await waits until a condition holds.
func (c *cluster) await(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no %s within %v", what, patience))
	defer cancel()
	for !condition() {
		if rest(ctx, look) != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask runs a command of an operator against some addresses.
func (c *cluster) ask(ctx context.Context, addresses []string, args ...string) (code int, out, errs string) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	return gradwire(ctx, append(slices.Clone(args), "--join", strings.Join(addresses, ","), "--identity",
		c.path("operator"))...)
}

// close ends all processes, and removes their disks and networks.
func (c *cluster) close() {
	c.closing.Store(true)
	c.stop()
	for _, p := range c.processes {
		p.mu.Lock()
		p.wanted, p.asked = false, true
		if p.up() {
			_ = p.cmd.Process.Kill()
		}
		p.mu.Unlock()
	}
	c.waits.Wait()
	for _, p := range c.processes {
		if rooted() {
			_ = exec.Command("umount", "-l", p.disk).Run() //nolint:gosec // of this test
		}
	}
	if c.island != nil {
		c.island.remove()
	}
}

// tails returns the last lines of each process's output.
func (c *cluster) tails(lines int) string {
	var b strings.Builder
	for _, p := range c.processes {
		text, _ := os.ReadFile(p.logPath())
		all := bytes.SplitAfter(text, []byte("\n"))
		fmt.Fprintf(&b, "--- %s\n%s\n", p.name, bytes.Join(all[max(0, len(all)-lines):], nil))
	}
	return b.String()
}
