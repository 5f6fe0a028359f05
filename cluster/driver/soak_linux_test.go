package driver_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
)

var soak = flag.Duration("soak", 0, "how long TestSoak… go on, which are skipped without; 10m to be sure")

// The test's own program is the process of a node where these are set: its name, address, seed and
// folder of records.
const (
	childName = "DRIVER_TEST_NAME"
	childBind = "DRIVER_TEST_BIND"
	childSeed = "DRIVER_TEST_SEED"
	childOut  = "DRIVER_TEST_OUT"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childName); name != "" {
		os.Exit(childNode(name))
	}
	flag.Parse()
	// Tests that say t.Parallel mostly wait, for others than the processor, unless that is busy.
	sideBySide := "8"
	if slowdown() > 2 {
		sideBySide = "3"
	}
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// slowdown is how many times as long as on an idle machine a computation takes here and now.
func slowdown() float64 {
	const slices, rounds = 200, 200_000
	least, began, x := time.Hour, time.Now(), uint64(1)
	for range slices {
		slice := time.Now()
		for range rounds {
			x = x*6364136223846793005 + 1
		}
		least = min(least, time.Since(slice))
	}
	runtime.KeepAlive(x)
	return float64(time.Since(began)) / float64(slices*least)
}

// childNode is a node until its standard input ends. It prints what it has to tell.
func childNode(name string) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err := driver.Serve(ctx, driver.NodeConfig{
		Name: name, Bind: os.Getenv(childBind), Seeds: []string{os.Getenv(childSeed)}, Insecure: true,
		Out:   os.Getenv(childOut),
		Ready: func(string) { fmt.Println("ready") }, Log: func(line string) { fmt.Println(line) },
	})
	if err != nil {
		fmt.Println("ended:", err)
		return 1
	}
	return 0
}

// child is a node in a separate process, seen from the test.
type child struct {
	t          *testing.T
	name, bind string
	seed, out  string
	cmd        *exec.Cmd
	leash      io.Closer
	reading    sync.WaitGroup
	ready      chan struct{}

	mu    sync.Mutex
	lines []string
}

// address is one that is free, so that a node can come back to it.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (c *child) start() {
	c.t.Helper()
	c.cmd = exec.Command(os.Args[0]) //nolint:gosec // the test itself
	c.cmd.Env = append(os.Environ(), childName+"="+c.name, childBind+"="+c.bind, childSeed+"="+c.seed,
		childOut+"="+c.out)
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.leash, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	ready := make(chan struct{})
	c.ready = ready
	c.reading.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() == "ready" {
				close(ready)
			}
			c.mu.Lock()
			c.lines = append(c.lines, s.Text())
			c.mu.Unlock()
		}
	})
}

// await waits until the node is part of the cluster.
func (c *child) await() {
	c.t.Helper()
	select {
	case <-c.ready:
	case <-time.After(time.Minute):
		c.t.Fatalf("node %s is not ready after a minute: %v", c.name, c.said(""))
	}
}

func (c *child) kill() {
	if c.cmd.ProcessState != nil {
		return
	}
	_ = c.cmd.Process.Kill()
	c.reading.Wait()
	_ = c.leash.Close()
	_ = c.cmd.Wait()
}

// said are the lines with a part.
func (c *child) said(part string) (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		if strings.Contains(line, part) {
			found = append(found, c.name+": "+line)
		}
	}
	return found
}

// colony is a node in this process and others in separate processes.
type colony struct {
	t        *testing.T
	client   *driver.Client
	seed     string
	children []*child
}

// found begins a cluster with the node a, which lives in this process, and children.
func found(t *testing.T, children int) *colony {
	t.Helper()
	if *soak == 0 {
		t.Skip("takes as long as -soak says")
	}
	dir := t.TempDir()
	ready, over := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		over <- driver.Serve(ctx, driver.NodeConfig{
			Name: "a", Bind: "127.0.0.1:0", Insecure: true, Out: filepath.Join(dir, "a"),
			Ready: func(address string) { ready <- address },
		})
	}()
	c := &colony{t: t}
	select {
	case c.seed = <-ready:
	case err := <-over:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	var err error
	if c.client, err = driver.Connect(t.Context(), []string{c.seed}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range children {
		one := &child{t: t, name: string(rune('b' + i)), bind: address(t), seed: c.seed}
		one.out = filepath.Join(dir, one.name)
		one.start()
		t.Cleanup(one.kill)
		c.children = append(c.children, one)
	}
	for _, one := range c.children {
		one.await()
	}
	c.gather(children + 1)
	return c
}

// gather waits until the node of this process sees as many.
func (c *colony) gather(n int) {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		nodes, err := c.client.Nodes(c.t.Context())
		switch {
		case err != nil:
			c.t.Fatal(err)
		case len(nodes) == n:
			return
		case time.Now().After(end):
			c.t.Fatalf("%d nodes after a minute, want %d: %+v", len(nodes), n, nodes)
		}
	}
}

// inUse is what this process has in use when nothing goes on in it.
type inUse struct {
	goroutines, descriptors int
	heap                    uint64
}

// alone ends all children and tells what this process has in use then.
func (c *colony) alone() inUse {
	c.t.Helper()
	for _, one := range c.children {
		one.kill()
	}
	c.gather(1)
	for { // runs under way must end: nobody is left to take part
		runs, err := c.client.Submissions(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if len(runs) == 0 || runs[len(runs)-1].Over() {
			break
		}
		if err := c.client.Stop(c.t.Context(), runs[len(runs)-1].ID); err != nil {
			c.t.Log(err)
		}
	}
	var now inUse
	for last := -1; now.goroutines != last; { // until it changes no more
		last = now.goroutines
		time.Sleep(2 * time.Second)
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			c.t.Fatal(err)
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now = inUse{runtime.NumGoroutine(), len(all), m.HeapAlloc}
	}
	return now
}

// brief is a run that takes half a second if nobody is killed.
const brief = `name: brief
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: gossip}
nodes: [{name: w, count: 5, compute: {step: 5ms}}]
evaluate: {every: 100ms}
stop: {time: 500ms}
`

// tally is how often something was done.
type tally struct{ connects, kills, submitted, done, refused, failed int }

// shake connects, kills, lets rejoin and submits at random.
func (c *colony) shake(length time.Duration, r *rand.Rand) (n tally) {
	c.t.Helper()
	plans := []*driver.Plan{load(c.t, brief), load(c.t, brief, "architecture={kind: all-reduce}")}
	for end := time.Now().Add(length); time.Now().Before(end); {
		switch k := r.IntN(10); {
		case k < 4:
			one, err := driver.Connect(c.t.Context(), []string{c.seed}, nil)
			if err != nil {
				c.t.Fatal(err)
			}
			if _, err := one.Nodes(c.t.Context()); err != nil {
				c.t.Fatal(err)
			}
			one.Close()
			n.connects++
		case k < 8:
			one := c.children[r.IntN(len(c.children))]
			one.kill()
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // at random it is noticed or not
			one.start()
			one.await()
			n.kills++
		default:
			id, err := c.client.Submit(c.t.Context(), plans[r.IntN(len(plans))], driver.SubmitOptions{})
			if err != nil { // a process that takes part is not back yet
				n.refused++
				continue
			}
			n.submitted++
			if r.IntN(2) == 0 {
				continue // it goes on by itself
			}
			ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
			s, err := c.client.Watch(ctx, id, func(driver.Submission) {})
			cancel()
			switch {
			case err != nil:
				c.t.Fatalf("run %s: %v", id, errors.Join(err, context.Cause(ctx)))
			case s.State == driver.Done:
				n.done++
			default:
				n.failed++
				c.t.Log(s.Error)
			}
		}
	}
	return n
}

func TestSoakOfConnectsKillsAndRejoinsLeavesNothingBehind(t *testing.T) {
	c := found(t, 4)
	r := rand.New(rand.NewPCG(1, 2))
	c.shake(*soak/5, r) // what is kept once, or up to a bound
	before := c.alone()
	for _, one := range c.children {
		one.start()
		one.await()
	}
	c.gather(len(c.children) + 1)
	n := c.shake(*soak, r)
	after := c.alone()
	t.Logf("%v: %+v; in use %+v before, %+v after", *soak, n, before, after)
	if after.goroutines > before.goroutines || after.descriptors > before.descriptors {
		stacks := make([]byte, 1<<20)
		t.Errorf("goroutines or descriptors are left over\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	// Of each run its state and log are kept, and of packets some 2 MB that prove them to be new.
	if most := before.heap + 8<<20 + uint64(n.submitted)*20<<10; after.heap > most {
		t.Errorf("the heap has grown from %d to %d bytes", before.heap, after.heap)
	}
}

// native computes on all cores all the time.
const native = `name: native
data: {set: synthetic-traffic, samples: 4000}
model: {kind: mlp, layers: [93, 256, 128, 5]}
train: {batch: 128}
architecture: {kind: gossip}
nodes: [{name: w, count: 8, compute: native}]
evaluate: {every: 5s}
`

func TestSoakOfComputingProcessesLosesNobody(t *testing.T) {
	c := found(t, 7)
	id, err := c.client.Submit(t.Context(), load(t, native, fmt.Sprintf("stop={time: %v}", *soak)),
		driver.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2**soak+time.Minute)
	defer cancel()
	s, err := c.client.Watch(ctx, id, func(driver.Submission) {})
	if err != nil || s.State != driver.Done {
		t.Fatalf("%+v, %v", s, err)
	}
	var alarms []string
	err = c.client.Logs(t.Context(), id, false, func(line string) {
		if strings.Contains(line, "without ") || strings.Contains(line, "is silent") {
			alarms = append(alarms, "a: "+line)
		}
	})
	for _, one := range c.children {
		for _, what := range []string{" failed", " is gone", "ended:"} {
			alarms = append(alarms, one.said(what)...)
		}
	}
	dir := filepath.Join(t.TempDir(), "fetched")
	if err := errors.Join(err, c.client.Fetch(t.Context(), id, dir)); err != nil {
		t.Fatal(err)
	}
	t.Logf("8 processes on %d cores computed for %v: %d false alarms", runtime.NumCPU(), *soak, len(alarms))
	if len(alarms) > 0 {
		t.Errorf("false alarms:\n%s", strings.Join(alarms, "\n"))
	}
}
