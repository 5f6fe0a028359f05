package membership

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	saturation = flag.Duration("saturation", 10*time.Second,
		"how long all cores compute while false alarms are counted")
	soak = flag.Duration("soak", 2*time.Second,
		"how long a process joins and is killed while what is left over is counted")
	pace = flag.Int("pace", 4,
		"how many times faster than usual the protocol goes where tests wait for it; 1 measures what users get")
)

// process is a child's process, seen from the test.
type process struct {
	name, address string
	incarnation   uint64
	cmd           *exec.Cmd
	stdin         io.WriteCloser
	lines         chan string
}

// spawn starts a child that lives as long as the test, or until it is killed. Without an address,
// the child gets a new one.
func spawn(t *testing.T, name, address, seed string, pace, busy int) *process {
	t.Helper()
	p := launch(t, name, address, seed, pace, busy)
	t.Cleanup(p.kill)
	return p
}

// launch starts a child that is the caller's to kill.
func launch(t *testing.T, name, address, seed string, pace, busy int) *process {
	t.Helper()
	if address == "" {
		address = loopback()
	}
	p := &process{name: name, incarnation: uint64(time.Now().UnixNano()), lines: make(chan string, 1000)}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childName+"="+name, childBind+"="+address, childSeed+"="+seed,
		childIncarnation+"="+strconv.FormatUint(p.incarnation,
			10), childBusy+"="+strconv.Itoa(busy), childPace+"="+strconv.Itoa(pace))
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	p.address = p.line(t)
	return p
}

// kill ends the process by SIGKILL, and returns when it is gone.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	for range p.lines { // until its output ends
	}
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	select {
	case l, ok := <-p.lines:
		if ok {
			return l
		}
		t.Fatalf("process %s ended", p.name)
	case <-time.After(patienceOfTests):
		t.Fatalf("process %s says nothing", p.name)
	}
	return ""
}

// heard returns when the process heard this about another, which must be the next it says.
func (p *process) heard(t *testing.T, kind Kind, about *process) time.Time {
	t.Helper()
	l := p.line(t)
	what, at, _ := strings.Cut(l, "@")
	if want := fmt.Sprintf("%s %s %d", kind, about.name, about.incarnation); what != want {
		t.Fatalf("process %s says %q, want %q", p.name, what, want)
	}
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, ns)
}

// sees returns how many nodes the process says that it sees, whatever it has heard before.
func (p *process) sees(t *testing.T) int {
	t.Helper()
	if _, err := fmt.Fprintln(p.stdin); err != nil {
		t.Fatal(err)
	}
	for {
		if number, ok := strings.CutPrefix(p.line(t), "sees "); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
}

// spawnAll starts processes that have all heard of each other.
func spawnAll(t *testing.T, n, pace, busy int) []*process {
	t.Helper()
	var all []*process
	for i := range n {
		seed := ""
		if i > 0 {
			seed = all[0].address
		}
		all = append(all, spawn(t, fmt.Sprintf("p%d", i), "", seed, pace, busy))
	}
	for _, p := range all {
		for range n - 1 {
			if l := p.line(t); !strings.HasPrefix(l, "joined") {
				t.Fatalf("process %s says %q", p.name, l)
			}
		}
	}
	return all
}

func TestKilledProcessIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	const size, rounds = 8, 5
	all := spawnAll(t, size, *pace, 0)
	var first, last, every []float64
	for i := range rounds {
		j := size - 1 - i%(size-1) // not the seed
		victim := all[j]
		killed := time.Now()
		victim.kill()
		others := slices.Delete(slices.Clone(all), j, j+1)
		var times []float64
		for _, p := range others {
			times = append(times, p.heard(t, Failed, victim).Sub(killed).Seconds())
		}
		slices.Sort(times)
		first, last, every = append(first, times[0]), append(last, times[size-2]), append(every, times...)
		all[j] = spawn(t, victim.name, "", all[0].address, *pace, 0)
		for _, p := range others {
			p.heard(t, Returned, all[j])
			if l := all[j].line(t); !strings.HasPrefix(l, "joined") {
				t.Fatalf("process %s says %q", victim.name, l)
			}
		}
	}
	for _, times := range [][]float64{first, last, every} {
		slices.Sort(times)
	}
	t.Logf("%d processes at pace %d, %d killed: heard by the first after %.2f to %.2f s, by the last after %.2f to "+
		"%.2f s, in the median %.2f s",
		size, *pace, rounds, first[0], first[rounds-1], last[0], last[rounds-1], every[len(every)/2])
	if worst := last[rounds-1]; worst > 20/float64(*pace) {
		t.Errorf("a killed process was noticed after %.1f s", worst)
	}
}

func TestStoppedProcessFailsAndReturnsAsItWas(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	all := spawnAll(t, 3, *pace, 0)
	stopped := time.Now()
	if err := all[2].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, p := range all[:2] {
		t.Logf("%s heard of it after %v", p.name, p.heard(t, Failed, all[2]).Sub(stopped))
	}
	continued := time.Now()
	if err := all[2].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, p := range all[:2] {
		t.Logf("%s heard of its return after %v", p.name, p.heard(t, Returned, all[2]).Sub(continued))
	}
	for _, p := range all {
		eventually(t, p.name+" sees all three", func() bool { return p.sees(t) == 3 })
	}
}

// Every process computes on all cores; nobody may be taken for dead.
func TestSaturatedProcessesAreNotTakenForDead(t *testing.T) {
	if brief() {
		t.Skip("takes long, and all cores; GRADWIRE_LENGTHY=1 runs it")
	}
	all := spawnAll(t, 8, 1, runtime.NumCPU())
	time.Sleep(*saturation) // what is measured is that nothing happens in this time
	alarms := 0
	for _, p := range all {
		for len(p.lines) > 0 {
			l := <-p.lines
			t.Logf("process %s says %q", p.name, l)
			if strings.HasPrefix(l, "failed") {
				alarms++
			}
		}
	}
	t.Logf("8 processes on %d cores, each with %d computing goroutines, %v: %d false alarms", runtime.NumCPU(),
		runtime.NumCPU(), *saturation, alarms)
	if alarms > 0 {
		t.Errorf("%d false alarms", alarms)
	}
}

// load is what a process has in use.
type load struct {
	goroutines, descriptors int
	heap                    uint64
}

func measure(t *testing.T) load {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no list of open descriptors here")
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return load{runtime.NumGoroutine(), len(all), m.HeapAlloc}
}

// A process joins, is killed and joins again, over and over; those who watch keep nothing of it.
func TestKilledProcessesLeaveNothingBehind(t *testing.T) {
	length, warm := *soak, 20
	if testing.Short() {
		length, warm = time.Second, 2
	}
	watchers := cluster(t, 2, nil)
	var victim *process
	t.Cleanup(func() {
		if victim != nil {
			victim.kill()
		}
	})
	address, died := "", false
	rounds := 0
	round := func() {
		p := launch(t, "victim", address, watchers[rounds%2].address, 1, 0)
		victim, address = p, p.address
		for _, w := range watchers {
			if e := w.next(); died {
				if e.Kind != Failed {
					t.Fatalf("%s heard that the victim %s, want failed", w.name, e.Kind)
				}
				e = w.next()
				if e.Kind != Returned || e.Member.Meta.Incarnation != p.incarnation {
					t.Fatalf("%s heard of %+v, want the return of %d", w.name, e, p.incarnation)
				}
			}
		}
		p.kill()
		died = true
		rounds++
	}
	for range warm {
		round()
	}
	before := measure(t)
	for end := time.Now().Add(length); time.Now().Before(end); {
		round()
	}
	var after load
	eventually(t, "goroutines and descriptors are as before", func() bool {
		after = measure(t)
		return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors
	})
	t.Logf("%d times: %+v before, %+v after", rounds-warm, before, after)
	const nonces = 2 * maxNonces * 32 // bytes, for each watcher
	if after.heap > before.heap+2*nonces {
		t.Errorf("the heap has grown from %d to %d bytes", before.heap, after.heap)
	}
}
