package holders_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/holders"
	"github.com/gradwire/gradwire/cluster/registry/host"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// cluster is a few processes in one, whose network and clock are made up. Each has a member of the
// registry. It must be used within a bubble of synctest.
type cluster struct {
	t        *testing.T
	mu       sync.Mutex
	all      map[string]*process
	dir      string
	lost     float64 // share of messages
	builds   map[string]string
	cut      map[[2]string]bool
	founder  string                  // process that may found another registry
	cutAt    time.Time               // when a test cut a connection
	absent   map[string]bool         // as the others see it
	arrivals map[[2]string]time.Time // of the latest message between two processes
	*rand.Rand
}

// process is one of them, in its present life.
type process struct {
	*holders.Service
	registry *host.Host
	c        *cluster
	name     string
	life     uint64
	stop     context.Context
	end      context.CancelFunc
	work     sync.WaitGroup
	unfit    error
	disk     *badDisk
	mu       sync.Mutex
	carries  map[string]string // folder of each submission that is carried out here
	done     map[string]bool   // those that have ended here
	holders  map[string][]string
	notes    []string
	adopted  int
	term     uint64 // of the latest

	replaced int // holders, by this process
	lines    []string
}

func newCluster(t *testing.T, seed uint64, names ...string) *cluster {
	c := &cluster{t: t, all: map[string]*process{}, dir: t.TempDir(), cut: map[[2]string]bool{},
		absent: map[string]bool{}, arrivals: map[[2]string]time.Time{}, Rand: rand.New(rand.NewPCG(seed, 1))}
	for _, name := range names {
		c.start(name)
	}
	if len(names) > 0 {
		c.voters(min(5, max(1, (len(names)-1)|1)))
	}
	return c
}

// start begins the next life of a process.
func (c *cluster) start(name string) *process {
	p := &process{c: c, name: name, life: 1, carries: map[string]string{}, done: map[string]bool{},
		holders: map[string][]string{}, disk: &badDisk{}}
	p.stop, p.end = context.WithCancel(context.Background())
	c.mu.Lock()
	if before := c.all[name]; before != nil {
		p.life = before.life + 1
		p.done, p.replaced, p.disk = before.done, before.replaced, before.disk
	}
	c.mu.Unlock()
	p.openRegistry()
	p.Service = holders.New(holders.Config{
		Heard: p.heard, Registry: func() holders.Registry { return p.registry },
		Note: p.note, Has: p.has, Intact: p.intact,
		Process: name, Incarnation: p.life, Stop: p.stop, Out: p.out(), Others: p.others, Build: p.build,
		Gone: p.gone, Silent: p.silent, Send: p.send, Disk: p.disk,
		Open: p.open, Begin: p.work.Go, Ready: p.ready, Adopt: p.adopt, Drop: p.drop, Held: p.held,
		Log: p.log,
	})
	c.mu.Lock()
	c.all[name] = p
	c.mu.Unlock()
	p.Remember()
	p.work.Go(p.Work)
	return p
}

// kill ends the present life of a process.
func (c *cluster) kill(name string) {
	p := c.at(name)
	p.end()
	p.work.Wait()
	if err := p.registry.Close(); err != nil {
		c.t.Error(err)
	}
}

// openRegistry opens the process's member of the registry.
func (p *process) openRegistry() {
	dir := filepath.Join(p.c.dir, "registry")
	var err error
	if err = os.MkdirAll(dir, 0o750); err == nil {
		p.registry, err = host.Open(host.Config{
			Process: p.name, Incarnation: p.life, MayFound: p.c.founds(p.name), File: filepath.Join(dir, p.name),
			Others: p.others, Send: func(to string, f *protos.RegistryFrame) { p.send(to, f) },
		})
	}
	if err != nil {
		p.c.t.Fatal(err)
	}
}

// founds reports whether a process is the first of the cluster.
func (c *cluster) founds(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all) == 0 || name == c.founder
}

// voters waits until a number of processes vote in the registry.
func (c *cluster) voters(n int) {
	c.t.Helper()
	for range 600 {
		for name := range c.all {
			p := c.at(name)
			if s := p.registry.Status(); p.stop.Err() == nil && s.Leads && len(s.Voters) == n {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("the registry does not get %d voters within half a minute", n)
}

// leave has a process take its leave.
func (c *cluster) leave(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.at(name).Leave(ctx)
	_ = c.at(name).registry.Leave(ctx) // without a quorum it leaves all the same
	c.kill(name)
}

func (c *cluster) at(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name]
}

// close ends all processes.
func (c *cluster) close() {
	for name := range c.all {
		c.kill(name)
	}
}

// reaches reports whether what one process sends gets to another one now.
func (c *cluster) reaches(from, to string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, b := c.all[from], c.all[to]
	return a.stop.Err() == nil && b.stop.Err() == nil && !c.cut[[2]string{from, to}] && !c.cut[[2]string{to, from}]
}

func (p *process) build(name string) string {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.c.builds[name]
}

func (p *process) out() string { return filepath.Join(p.c.dir, p.name) }

func (p *process) others() (names []string) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	for name, other := range p.c.all {
		if name != p.name && other.stop.Err() == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// gone is what the others see at once; a connection that is cut is silent.
func (p *process) gone(name string, life uint64) bool {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	other := p.c.all[name]
	return life != 0 && other.life != life || other.stop.Err() != nil || p.c.absent[name]
}

func (p *process) silent(name string, life uint64) bool {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.c.absent[name] && p.c.all[name].life == life
}

func (p *process) heard(name string) time.Time {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.c.cut[[2]string{p.name, name}] || p.c.cut[[2]string{name, p.name}] || p.c.all[name].stop.Err() != nil {
		return p.c.cutAt
	}
	return time.Now()
}

func (p *process) send(to string, m proto.Message) {
	p.c.mu.Lock()
	lost := p.c.Float64() < p.c.lost
	pair := [2]string{p.name, to}
	arrival := time.Now().Add(time.Duration(p.c.Int64N(int64(100 * time.Millisecond))))
	if last := p.c.arrivals[pair]; !arrival.After(last) { // in order, as over a connection
		arrival = last.Add(time.Microsecond)
	}
	p.c.arrivals[pair] = arrival
	p.c.mu.Unlock()
	if lost || !p.c.reaches(p.name, to) {
		return
	}
	p.work.Go(func() {
		time.Sleep(time.Until(arrival)) // of the bubble's clock
		if p.c.reaches(p.name, to) {
			p.c.at(to).receive(p.name, m)
		}
	})
}

func (p *process) receive(from string, m proto.Message) {
	switch m := m.(type) {
	case *protos.Leaving:
		p.Receive(from, m)
	case *protos.RegistryFrame:
		p.registry.Receive(m)
	}
}

func (p *process) open(_ context.Context, to string) (net.Conn, error) {
	if !p.c.reaches(p.name, to) {
		return nil, errors.New("it is not there")
	}
	here, there := net.Pipe()
	p.c.at(to).Take(there, p.name)
	return here, nil
}

func (p *process) ready(_ context.Context, plan *protos.HeldPlan, dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.unfit, p.disk.fault("ready")); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Join(dir, "runs"), 0o750),
		os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan.Submitted.Text), 0o640))
}

// suits says why a process can carry nothing out, if it cannot.
func (p *process) suits(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfit = err
}

func (p *process) adopt(plan *protos.HeldPlan, term uint64, _ string) *protos.Submission {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.term = term
	if p.done[plan.Id] {
		return ended(plan.Id)
	}
	p.carries[plan.Id] = plan.Folder
	p.adopted++
	return nil
}

func (p *process) held(id string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders[id] = names
	p.replaced++
}

// note writes a line into the log of a submission.
func (p *process) note(id, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, text)
	p.c.t.Logf("%s: submission %s: %s", p.name, id, text)
}

// log appends a line to the log of the process.
func (p *process) log(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
	p.c.t.Log(p.name + ": " + p.lines[len(p.lines)-1])
}

// noted reports whether the log of a submission has a line with a text.
func (p *process) noted(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.notes, func(line string) bool { return strings.Contains(line, text) })
}

// has reports whether a submission has ended here, with a record.
func (p *process) has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := os.Stat(filepath.Join(p.out(), p.carries[id]))
	return p.done[id] && err == nil
}

// intact returns an error if the plan of a record is missing.
func (p *process) intact(id string) error {
	folder := p.folder(id)
	if folder == "" {
		return nil
	}
	_, err := os.Stat(filepath.Join(p.out(), folder, "plan.yaml"))
	return err
}

// ended is how all submissions end here.
func ended(id string) *protos.Submission { return &protos.Submission{Id: id, State: "done"} }

// finish writes the summary of a record, and ends the submission.
func (p *process) finish(ctx context.Context, id string) error {
	err := os.WriteFile(filepath.Join(p.out(), p.folder(id), "summary.json"), []byte("by "+p.name), 0o640)
	return errors.Join(err, p.End(ctx, id, ended(id)))
}

func (p *process) drop(id, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.carries, id)
	delete(p.done, id)
}

// folder is that of a submission that is carried out here; empty if it is not.
func (p *process) folder(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carries[id]
}

// submit has a process carry a submission out.
func (p *process) submit(id string) (names []string, note string) {
	p.c.t.Helper()
	plan := &protos.HeldPlan{Id: id, At: time.Now().UnixNano(), Folder: "plan-" + id,
		Submitted: &protos.SubmitPlan{Text: "name: " + id}}
	if err := p.ready(p.stop, plan, filepath.Join(p.out(), plan.Folder)); err != nil {
		p.c.t.Fatal(err)
	}
	names, note, err := p.Hold(p.stop, plan)
	if err != nil {
		p.c.t.Fatal(err)
	}
	if names != nil {
		p.mu.Lock()
		p.carries[id] = plan.Folder
		p.mu.Unlock()
	}
	return names, note
}

// make makes the next run of a submission, and returns its number; the error is that of Commit.
func (p *process) make(ctx context.Context, id string) (run int, err error) {
	folder := filepath.Join(p.out(), p.folder(id))
	for run = 0; ; run++ {
		dir := filepath.Join(folder, "runs", fmt.Sprintf("%04d", run))
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
			continue
		}
		text := fmt.Appendf(nil, "%d by %s %d", run, p.name, p.life)
		if err := errors.Join(os.MkdirAll(dir, 0o750), os.WriteFile(filepath.Join(dir, "model"), text, 0o640),
			os.WriteFile(filepath.Join(dir, "run.json"), text, 0o640)); err != nil {
			return run, err
		}
		return run, p.Commit(ctx, id)
	}
}

// text is what a run of a submission holds here.
func (p *process) text(id string, run int) string {
	dir := filepath.Join(p.out(), p.folder(id), "runs", fmt.Sprintf("%04d", run))
	text, _ := os.ReadFile(filepath.Join(dir, "run.json"))
	model, _ := os.ReadFile(filepath.Join(dir, "model"))
	if string(text) != string(model) {
		return fmt.Sprintf("%q with model %q", text, model)
	}
	return string(text)
}

// successor waits until another process carries a submission out.
func (c *cluster) successor(id, before string) *process {
	c.t.Helper()
	for range 600 {
		for name := range c.all {
			if p := c.at(name); name != before && p.stop.Err() == nil && p.folder(id) != "" {
				return p
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("nobody has taken submission %s over within half a minute", id)
	return nil
}

// copies are the folders of copies that a process has.
func (c *cluster) copies(name string) (all []string) {
	entries, _ := os.ReadDir(filepath.Join(c.dir, name, ".held-"+name))
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

func TestNoteNamesItsFaultBesideAnUnknownKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1)
		defer c.close()
		dir := filepath.Join(c.dir, "a", ".held-a")
		path := filepath.Join(dir, "1.json")
		err := errors.Join(
			os.MkdirAll(dir, 0o700),
			os.WriteFile(path, []byte("{\"surprise\": 1,\n\"term\": -1}"), 0o600),
		)
		if err != nil {
			t.Fatal(err)
		}
		want := path + `: line 2: key "term" is the number -1; a whole number of 0 or more is accepted`
		if lines := c.start("a").lines; !slices.Equal(lines, []string{want}) {
			t.Errorf("%q, want %q", lines, want)
		}
	})
}

func TestAnotherHolderGoesOnWithAllFinishedRunsWhenAProcessDies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c", "d")
		defer c.close()
		a := c.at("a")
		names, note := a.submit("1")
		if len(names) != 3 || names[0] != "a" || note != "" {
			t.Fatalf("held by %v, %q", names, note)
		}
		for want := range 3 {
			if run, err := a.make(t.Context(), "1"); err != nil || run != want {
				t.Fatalf("run %d, %v", run, err)
			}
		}
		killed := time.Now()
		c.kill("a")
		b := c.successor("1", "a")
		took := time.Since(killed)
		t.Logf("%s goes on after %v", b.name, took)
		if took > 6*time.Second || !slices.Contains(names, b.name) {
			t.Errorf("process %s goes on after %v", b.name, took)
		}
		if run, err := b.make(t.Context(), "1"); err != nil || run != 3 || b.text("1", 2) != "2 by a 1" {
			t.Errorf("run %d, %v; run 2 is %q", run, err, b.text("1", 2))
		}
		if err := b.finish(t.Context(), "1"); err != nil {
			t.Error(err)
		}
		a = c.start("a")
		time.Sleep(10 * time.Second)
		if a.adopted > 0 || a.Holds("1") || a.Copy("1") == nil {
			t.Errorf("a: %+v, copies %v", a.carries, c.copies("a"))
		}
		if left, err := filepath.Glob(filepath.Join(c.dir, "a", "plan-*")); err != nil || len(left) > 0 {
			t.Errorf("a has %v, %v", left, err)
		}
	})
}

func TestSubmissionIsHeldByThoseThatCanCarryItOutOrTheNoteSaysWhyNot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b")
		defer c.close()
		if names, note := c.at("a").submit("1"); names != nil || !strings.Contains(note, "takes three processes, and "+
			"the cluster has 2") {
			t.Errorf("held by %v, %q", names, note)
		}
		for i, name := range []string{"c", "d", "e"} {
			p := c.start(name)
			if i < 2 {
				p.suits(errors.New("no such file"))
			}
			names, note := c.at("a").submit(name)
			switch {
			case i < 2 && (len(names) != 3 || names[1] != "b" || !strings.Contains(note, "copies 2 of 3, "+names[2]+
				": no such file")):
				t.Errorf("held by %v, %q", names, note)
			case i == 2 && (len(names) != 3 || note != "" || slices.Contains(names, "c") || slices.Contains(names, "d")):
				t.Errorf("held by %v, %q", names, note)
			}
		}
		time.Sleep(5 * time.Second)
		if left := c.copies("b"); len(left) != 3 {
			t.Errorf("b has copies of %v", left)
		}
	})
}

func TestSilentProcessKeepsItsSubmissionAndNothingCountsMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		c.mu.Lock()
		c.cut[[2]string{"a", "b"}], c.cut[[2]string{"a", "c"}] = true, true
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := a.make(ctx, "1"); !errors.Is(err, holders.ErrUncommitted) {
			t.Errorf("a run counts that nobody else has: %v", err)
		}
		c.mu.Lock()
		clear(c.cut)
		c.mu.Unlock()
		time.Sleep(5 * time.Second) // in which a hears of the registry's leader
		if run, err := a.make(t.Context(), "1"); err != nil || run != 1 {
			t.Errorf("run %d, %v", run, err)
		}
		if b, c := c.at("b"), c.at("c"); b.adopted+c.adopted > 0 {
			t.Error("another process has taken over")
		}
	})
}

// An absent owner may only be paused: it has not died of its submission.
func TestAbsentOwnerIsReplacedAndFindsSoWhenItIsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		if err := a.Attempt(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.cut[[2]string{"a", "b"}], c.cut[[2]string{"a", "c"}], c.absent["a"] = true, true, true
		c.mu.Unlock()
		b := c.successor("1", "a")
		if dead := b.Deaths("1"); len(dead) > 0 {
			t.Errorf("an absent process counts as dead: %v", dead)
		}
		c.mu.Lock()
		clear(c.cut)
		clear(c.absent)
		c.mu.Unlock()
		if _, err := a.make(t.Context(), "1"); !errors.Is(err, holders.ErrElsewhere) {
			t.Errorf("the earlier owner's run counts: %v", err)
		}
		if run, err := b.make(t.Context(), "1"); err != nil {
			t.Errorf("run %d, %v", run, err)
		}
		if dead := b.Deaths("1"); len(dead) > 0 || a.term >= b.term {
			t.Errorf("dead %v; terms %d and %d", dead, a.term, b.term)
		}
	})
}

func TestProcessThatComesBackGoesOnIfNobodyHas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("a").submit("1")
		if _, err := c.at("a").make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} { // as when the power fails
			c.kill(name)
		}
		for _, name := range []string{"c", "b", "a"} {
			c.start(name)
		}
		p := c.successor("1", "")
		if run, err := p.make(t.Context(), "1"); err != nil || run != 1 || p.text("1", 0) != "0 by a 1" {
			t.Errorf("run %d, %v; run 0 is %q", run, err, p.text("1", 0))
		}
	})
}

// All logs of the registry are lost, and another one is founded: the submission goes on.
func TestSubmissionGoesOnInANewRegistry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("a").submit("1")
		if _, err := c.at("a").make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			c.kill(name)
		}
		if err := os.RemoveAll(filepath.Join(c.dir, "registry")); err != nil {
			t.Fatal(err)
		}
		c.founder = "b"
		for _, name := range []string{"b", "c", "a"} {
			c.start(name)
		}
		p := c.successor("1", "")
		if run, err := p.make(t.Context(), "1"); err != nil || run != 1 || p.text("1", 0) != "0 by a 1" {
			t.Errorf("run %d, %v; run 0 is %q", run, err, p.text("1", 0))
		}
	})
}

// An owner pauses until another process has ended its submission: its record becomes a copy of that
// of the other one.
func TestOwnerThatPausesUntilTheEndGetsACopy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		c.mu.Lock()
		c.cut[[2]string{"a", "b"}], c.cut[[2]string{"a", "c"}], c.absent["a"] = true, true, true
		c.mu.Unlock()
		b := c.successor("1", "a")
		if err := b.finish(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.mu.Lock()
		clear(c.cut)
		clear(c.absent)
		c.mu.Unlock()
		time.Sleep(20 * time.Second)
		if a.folder("1") != "" || a.Copy("1") == nil || b.Lacking("1") != nil {
			t.Errorf("a carries %q out, and has %v; lacking %v", a.folder("1"), c.copies("a"), b.Lacking("1"))
		}
	})
}

// The process dies between the others' note that the submission has ended and its own.
func TestProcessThatHasEndedASubmissionKeepsItsRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		a := c.at("a")
		a.submit("1")
		path := filepath.Join(a.out(), ".held-a", "1.json")
		note, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		only := func(name string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			clear(c.cut)
			for _, other := range []string{"b", "c"} {
				c.cut[[2]string{"a", other}] = other != name
			}
		}
		only("b")
		a.done["1"] = true
		if err := a.finish(t.Context(), "1"); err != nil || !c.at("c").Holds("1") {
			t.Fatal(err)
		}
		c.kill("a")
		if err := os.WriteFile(path, note, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // in which c wants to go on, and hears that there is nothing to do
		c.mu.Lock()
		clear(c.cut)
		c.mu.Unlock()
		a = c.start("a")
		time.Sleep(10 * time.Second)
		if !a.done["1"] || a.Holds("1") || c.at("c").Holds("1") || c.at("c").adopted > 0 {
			t.Errorf("a has ended it: %v; held by a: %v, c: %v", a.done["1"], a.Holds("1"), c.at("c").Holds("1"))
		}
	})
}

func TestCopyGoesNowhereElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		for _, bad := range []func(*protos.CopyHead){
			func(h *protos.CopyHead) { h.From = "c" },
			func(h *protos.CopyHead) { h.Plan.Id = "../x" },
			func(h *protos.CopyHead) { h.Plan.Id = ".." },
			func(h *protos.CopyHead) { h.Plan.Id = "" },
			func(h *protos.CopyHead) { h.Plan.Folder = "../.." },
			func(h *protos.CopyHead) { h.Plan.Folder = "" },
			func(h *protos.CopyHead) { h.Plan = nil },
		} {
			head := &protos.CopyHead{From: "a", Version: &protos.Version{Term: 1}, Whole: true,
				Plan: &protos.HeldPlan{Id: "1", Folder: "plan-1", Holders: []string{"a", "b", "c"}}}
			bad(head)
			here, there := net.Pipe()
			c.at("b").Take(there, "a")
			if err := request.Write(here, head); err != nil {
				t.Fatal(err)
			}
			if err := request.Read(bufio.NewReader(here), &protos.CopyAnswer{}); !errors.Is(err, io.EOF) {
				t.Errorf("%v is answered, %v", head, err)
			}
		}
		if left, err := os.ReadDir(filepath.Join(c.dir, "b")); err == nil && len(left) > 0 {
			t.Errorf("b has %v", left)
		}
	})
}
