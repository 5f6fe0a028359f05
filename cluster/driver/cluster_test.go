package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
	"github.com/gradwire/gradwire/protos"
)

// testCluster is a cluster of processes that are goroutines of this one.
type testCluster struct {
	t       *testing.T
	ca, dir string
	seed    string
	serving sync.WaitGroup
}

func newCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{t: t, dir: t.TempDir()}
	c.ca = filepath.Join(c.dir, "ca")
	if err := identity.Init(c.ca); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.serving.Wait)
	return c
}

func (c *testCluster) identity(name string, role identity.Role) *identity.Identity {
	c.t.Helper()
	dir := filepath.Join(c.dir, name)
	if _, err := os.Stat(dir); err != nil {
		if err := identity.Issue(c.ca, dir, identity.Subject{Name: name, Role: role}); err != nil {
			c.t.Fatal(err)
		}
	}
	id, err := identity.Load(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// serve starts a process, and returns what ends it and waits for its end.
func (c *testCluster) serve(name string, change ...func(*driver.NodeConfig)) (end func()) {
	c.t.Helper()
	ready, over := make(chan string, 1), make(chan error, 1)
	config := driver.NodeConfig{
		Bind: "127.0.0.1:0", Identity: c.identity(name, identity.Node), Out: filepath.Join(c.dir, "records"), Cores: 1,
		Ready: func(address string) { ready <- address },
	}
	if c.seed != "" {
		config.Seeds = []string{c.seed}
	}
	for _, change := range change {
		change(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.serving.Go(func() { over <- driver.Serve(ctx, config) })
	select {
	case address := <-ready:
		if c.seed == "" {
			c.seed = address
		}
	case err := <-over:
		cancel()
		c.t.Fatalf("node %s: %v", name, err)
	}
	ended := sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			c.t.Errorf("node %s: %v", name, err)
		}
	})
	c.t.Cleanup(cancel)
	return ended
}

// client connects with a role.
func (c *testCluster) client(role identity.Role) *driver.Client {
	c.t.Helper()
	client, err := driver.Connect(c.t.Context(), []string{c.seed}, c.identity("my-"+string(role), role))
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// gathered is a cluster of processes that see each other, until the test ends.
func gathered(t *testing.T, names ...string) (*testCluster, *driver.Client) {
	t.Helper()
	c := newCluster(t)
	for _, name := range names {
		t.Cleanup(c.serve(name))
	}
	client := c.client(identity.Operator)
	c.gather(client, len(names))
	return c, client
}

// gather waits until the seed sees as many processes.
func (c *testCluster) gather(client *driver.Client, n int) {
	c.t.Helper()
	for c.t.Context().Err() == nil {
		nodes, err := client.Nodes(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if len(nodes) == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// result submits a plan, waits for its end and fetches its record.
func (c *testCluster) result(client *driver.Client, text string, set ...string) (record.Summary, string) {
	c.t.Helper()
	id, err := client.Submit(c.t.Context(), load(c.t, text, set...), driver.SubmitOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.end(client, id)
}

func (c *testCluster) end(client *driver.Client, id string) (record.Summary, string) {
	c.t.Helper()
	return c.ends(client, id, driver.Done)
}

// ends waits until a submission has ended, which it must as the state says, and fetches its record.
func (c *testCluster) ends(client *driver.Client, id, state string) (record.Summary, string) {
	c.t.Helper()
	s, summary, dir := c.ended(client, id)
	if s.State != state && (state != driver.Done || s.State != driver.Degraded || !recordtest.OnlyLate(summary)) {
		c.t.Fatalf("%+v, want %s\n%s", s, state, c.logOf(client, id))
	}
	return summary, dir
}

// ended waits until a submission has ended, and fetches its record.
func (c *testCluster) ended(client *driver.Client, id string) (driver.Submission, record.Summary, string) {
	c.t.Helper()
	s, err := client.Watch(c.t.Context(), id, func(driver.Submission) {})
	if err != nil {
		c.t.Fatal(err)
	}
	dir := filepath.Join(c.t.TempDir(), "fetched")
	if err := client.Fetch(c.t.Context(), id, dir); err != nil {
		c.t.Fatal(err)
	}
	summary, err := record.ReadSummary(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return s, summary, dir
}

// alternating is a plan whose result does not depend on time: server and worker take turns, and when
// the last step ends the run, its gradient is still in flight for 100 ms.
const alternating = `name: turns
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: parameter-server}
nodes: [{name: server, role: server}, {name: worker, role: worker, compute: {step: 20ms}}]
network: {default: {delay: 100ms}}
evaluate: {every: 6 steps}
stop: {steps: 12}
`

// ring is a plan in which a peer's model depends on its number of steps alone. Each is looked at
// when it has finished a fourth one, 180 ms before the next. Its model is so large that peers have
// memory ready for their pieces.
const ring = `name: ring
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 150, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: watched-ring}
nodes: [{name: peer, count: 3, compute: {step: 100ms}}]
network: {default: {delay: 20ms}}
evaluate: {every: 4 steps}
stop: {steps: 9}
`

// watched has the all-reduce of ring, which counts the chunks that arrive where they belong.
func watched(landed *atomic.Int64) *catalog.Catalog {
	c := catalog.Default()
	c.Architectures.Add(catalog.Define("watched-ring", "all-reduce over a ring", func() struct{} { return struct{}{} },
		func(*catalog.Catalog, *struct{}) (train.Architecture, error) {
			return watchedRing{collective.Architecture{Algorithm: collective.Ring, Every: 1,
				Reduce: collective.Gradients}, landed}, nil
		}))
	return c
}

type watchedRing struct {
	collective.Architecture
	landed *atomic.Int64
}

func (a watchedRing) Kind(task *train.Task, place train.Place) actors.Kind {
	inner := a.Architecture.Kind(task, place)
	return func(env actors.Env) (_ actor.Actor, err error) {
		w := &watchedWorker{Env: env, landed: a.landed}
		w.Actor, err = inner(w)
		return w, err
	}
}

// watchedWorker counts the chunks that arrive in the memory that a worker has posted.
type watchedWorker struct {
	actor.Actor
	actors.Env
	landed *atomic.Int64
	posted map[*float32]bool // where places begin
}

func (w *watchedWorker) Post(memory *protos.Tensor, places iter.Seq[actors.Place]) {
	w.Env.Post(memory, places)
	w.posted = map[*float32]bool{}
	if memory == nil {
		return
	}
	for p := range places {
		w.posted[unsafe.SliceData(memory.Data[p.Low:p.High])] = true
	}
}

func (w *watchedWorker) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*protos.Message); ok && len(m.Tensors) == 1 &&
		w.posted[unsafe.SliceData(m.Tensors[0].Data)] {
		w.landed.Add(1)
	}
	w.Actor.Receive(ctx)
}

func TestClusterTrainsTheModelOfVirtualTime(t *testing.T) {
	// A question that memberlist has asked waits for its answer.
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
		goleak.IgnoreTopFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
	c := newCluster(t)
	var landed atomic.Int64
	for _, name := range []string{"a", "b", "c"} {
		defer c.serve(name, func(n *driver.NodeConfig) { n.Catalog = watched(&landed) })()
	}
	client := c.client(identity.Operator)
	c.gather(client, 3)
	summary, dir := c.result(client, alternating)
	virtual := run(t, load(t, alternating), driver.Options{})
	got, want := summary.Runs[0], virtual.Runs[0]
	if got.Clock != "cluster" || got.Steps != want.Steps || got.Evaluations != want.Evaluations ||
		got.FinalAccuracy != want.FinalAccuracy || got.Messages != want.Messages {
		t.Errorf("on the cluster\n%+v, in virtual time\n%+v", got, want)
	}
	const model = "runs/0000/model.safetensors"
	if !bytes.Equal(read(t, dir, model), read(t, virtual.Dir, model)) {
		t.Error("the models differ")
	}
	if diff := cmp.Diff(read(t, virtual.Dir, "plan.yaml"), read(t, dir, "plan.yaml")); diff != "" {
		t.Error(diff)
	}
	early := strings.Replace(alternating, "6 steps}", "6 steps, target: 99%, early: true}", 1)
	summary, _ = c.result(client, early)
	virtual = run(t, load(t, early), driver.Options{})
	if e := summary.Runs[0].Early; e == nil || e.Partial == 0 || *e != *virtual.Runs[0].Early ||
		summary.Runs[0].FinalAccuracy != want.FinalAccuracy {
		t.Errorf("on the cluster, of a part of the test set: %+v, in virtual time %+v", e, virtual.Runs[0].Early)
	}
	_, dir = c.result(client, ring)
	order := map[string]int{"peer1": 0, "peer2": 1, "peer3": 2, "coordinator": 3}
	var from []int
	for line := range strings.Lines(string(read(t, dir, "links.csv"))) {
		if i, known := order[strings.Split(line, ",")[3]]; known {
			from = append(from, i)
		}
	}
	if len(from) < 6 || !slices.IsSorted(from) {
		t.Errorf("links begin at the nodes %v, not in their order", from)
	}
	if landed.Load() == 0 {
		t.Error("no chunk arrived where it belongs")
	}
	virtual = run(t, load(t, ring), driver.Options{Catalog: watched(&landed)})
	if diff := cmp.Diff(losses(t, virtual.Dir), losses(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// losses returns the losses of every node's models, by node and step, except the last ones.
func losses(t *testing.T, dir string) map[string]record.Float {
	t.Helper()
	reader, err := record.NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, data, err := reader.Run(0).Read()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]record.Float{}
	for _, m := range data.Models {
		key := fmt.Sprint(m.Node, m.Step)
		if _, seen := at[key]; !seen && (m.Step == 4 || m.Step == 8) {
			at[key] = m.Loss
		}
	}
	if len(at) != 6 {
		t.Errorf("losses %v", at)
	}
	return at
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// long is a run that ends only if somebody ends it.
const long = `name: long
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes:
  - {name: server, role: server}
  - {name: w, role: worker, count: 2, compute: {step: 5ms}}
evaluate: {every: 50ms}
stop: {time: 1h}
`

func TestRunGoesOnWithoutItsDriverUntilAnOperatorStopsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.serve("a")()
	defer c.serve("b")()
	operator, guest := c.client(identity.Operator), c.client(identity.Client)
	c.gather(operator, 2)
	gone, leave := context.WithCancel(t.Context())
	id, err := guest.Submit(gone, load(t, long), driver.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guest.Watch(gone, id, func(s driver.Submission) {
		if s.State == driver.Running {
			leave()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("watching ended with %v", err)
	}
	var where map[string]string
	for seen := 0; seen < 3; seen++ { // it makes progress
		s, err := operator.Status(t.Context(), id[:4])
		if err != nil || s.State != driver.Running && s.State != driver.Waiting || s.By != "my-client" {
			t.Fatalf("%+v, %v", s, err)
		}
		where = s.Placement
	}
	for len(where) == 0 {
		s, err := operator.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		where = s.Placement
	}
	if where["server"] == "" || where["w1"] == where["server"] && where["w2"] == where["server"] {
		t.Errorf("placed at %v", where)
	}
	early := filepath.Join(t.TempDir(), "early")
	expectInput(t, operator.Fetch(t.Context(), id, early),
		"run "+id+" is running; its record can be fetched when it has ended")
	if _, err := os.Stat(early); err == nil {
		t.Error("a folder for nothing")
	}
	if err := guest.Stop(t.Context(), id); err == nil || !strings.Contains(err.Error(),
		"has role client and may not stop submissions, which takes role operator") {
		t.Errorf("a client stops: %v", err)
	}
	if err := operator.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s, err := operator.Watch(t.Context(), id, func(driver.Submission) {})
	if err != nil || s.State != driver.Stopped || !strings.Contains(s.Error, "stopped by my-operator") {
		t.Errorf("%+v, %v", s, err)
	}
	var log []string
	if err := operator.Logs(t.Context(), id, true, func(line string) { log = append(log, line) }); err != nil ||
		len(log) < 3 {
		t.Errorf("%v in\n%s", err, strings.Join(log, "\n"))
	}
}

func TestWrongRolesAreRefused(t *testing.T) {
	c := newCluster(t)
	defer c.serve("a")()
	node := c.client(identity.Node)
	if _, err := node.Submit(t.Context(), load(t, long), driver.SubmitOptions{}); err == nil ||
		!strings.Contains(err.Error(), "has role node and may not submit plans, which takes role operator") {
		t.Errorf("a node submits: %v", err)
	}
	err := driver.Serve(t.Context(), driver.NodeConfig{Bind: "127.0.0.1:0",
		Identity: c.identity("o", identity.Operator), Seeds: []string{c.seed}})
	expectInput(t, err, "the identity of o has the role operator; a node needs the role node")
	other := newCluster(t)
	if _, err := driver.Connect(t.Context(), []string{c.seed}, other.identity("o", identity.Operator)); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("an operator of another cluster: %v", err)
	}
}

func TestWhatTheClusterCannotHostIsRefusedBeforeAnythingStarts(t *testing.T) {
	t.Setenv("GRADWIRE_DATA", "") // or nodes would find real data sets
	c := newCluster(t)
	data := t.TempDir()
	defer c.serve("a", func(n *driver.NodeConfig) { n.Data = data })()
	defer c.serve("other", func(n *driver.NodeConfig) { n.Catalog = withSolo() })()
	client := c.client(identity.Operator)
	c.gather(client, 2)
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("0,1\n1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "good.csv"), []byte("time_s,delay_s\n0,0.001\n1,0.001\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(data, "link.csv")); err != nil {
		t.Fatal(err)
	}
	trace := func(file string) string {
		return fmt.Sprintf("network.default.delay={kind: trace, file: %q}", file)
	}
	for _, x := range []struct {
		set, want string
		place     []string
	}{
		{set: "data={set: nsl-kdd}", want: "data set nsl-kdd: KDDTrain+.txt"},
		{set: "model.layers=[93, 4]", want: "plans/long.yaml:3:8: model: the model tells 4 classes apart"},
		{set: "architecture.kind=solo", want: "unknown architecture \"solo\""},
		{set: trace(secret), want: "the trace cannot be read: openat " + secret + ": path escapes from parent; node a"},
		{set: trace("../secret.csv"), want: "path escapes from parent; node a reads the files of a plan only"},
		{set: trace("link.csv"), want: " (--data): copy the file there, and name it by its path in that folder"},
		{place: []string{"w1=nowhere"},
			want: "node w1 is to live on process nowhere, which is not in the cluster; there are a, other"},
		{place: []string{"worker=zone:eu"},
			want: "node w1 is to live on a process with label zone=eu, and there is none"},
		{place: []string{"nobody=a"}, want: "placement of nobody: the plan has no node, group or role of this name"},
		{place: []string{"w1"}, want: `placement "w1"; accepted are WHAT=PROCESS and WHAT=LABEL:VALUE`},
		{place: []string{"w1=other"}, want: "process other: its catalog ("},
	} {
		var sets []string
		if x.set != "" {
			sets = []string{x.set}
		}
		p, err := driver.Parse("plans/long.yaml", []byte(long), sets...)
		if err == nil {
			_, err = client.Submit(t.Context(), p, driver.SubmitOptions{Place: x.place})
		}
		expectInput(t, err, x.want)
	}
	if runs, err := client.Submissions(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, "records", "[^.]*")); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
	if s, _ := c.result(client, long, "stop={steps: 20}", trace("good.csv")); s.Runs[0].Steps < 20 {
		t.Errorf("nothing was done: %+v", s.Runs)
	}
}

func TestNodeThatLeavesTakesItsWorkersAndTheRunGoesOn(t *testing.T) {
	c := newCluster(t)
	defer c.serve("a")()
	leave := c.serve("w2")
	client := c.client(identity.Operator)
	c.gather(client, 2)
	id, err := client.Submit(t.Context(), load(t, long, "stop={time: 3s}"), driver.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := errors.New("it has begun")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := client.Logs(ctx, id, true, func(line string) {
		if strings.HasSuffix(line, "%") {
			cancel(began)
		}
	}); !errors.Is(err, began) {
		t.Fatal(err)
	}
	leave()
	s, dir := c.end(client, id)
	gone := slices.DeleteFunc(slices.Clone(s.Runs[0].Incidents), func(i record.Incident) bool {
		return i.Harm == record.ToTimes // on a busy machine
	})
	if s.Runs[0].Duration < 2.9 || len(gone) != 1 {
		t.Fatalf("%+v", s.Runs[0])
	}
	left, before := gone[0].At, uint64(0)
	for line := range strings.Lines(string(read(t, dir, "curve.csv"))) {
		var at float64
		var steps uint64
		cells := strings.SplitN(line, ",", 4) // run, point, seed
		if _, err := fmt.Sscanf(cells[len(cells)-1], "%g,%d,", &at, &steps); err == nil && at < left+1 {
			before = steps
		}
	}
	if before == 0 || s.Runs[0].Steps <= before {
		t.Errorf("%d steps, of which %d up to a second after %.1f s, when a worker left", s.Runs[0].Steps, before, left)
	}
	if updates := string(read(t, dir, "updates.csv")); !strings.Contains(updates, "w2") {
		t.Error(updates)
	}
}

func TestRunWaitsForAProcessThatNodesMustLiveOnAndThenFailsAndNamesIt(t *testing.T) {
	c := newCluster(t)
	const absence = time.Second
	defer c.serve("a", func(n *driver.NodeConfig) { n.Absence = absence })()
	leave := c.serve("b")
	client := c.client(identity.Operator)
	c.gather(client, 2)
	id, err := client.Submit(t.Context(), load(t, alternating, "repeats=50", "network.default.delay=1ms"),
		driver.SubmitOptions{Place: []string{"worker=b"}})
	if err != nil {
		t.Fatal(err)
	}
	finished := errors.New("a run has finished")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := client.Logs(ctx, id, true, func(line string) {
		if strings.Contains(line, " done: seed ") {
			cancel(finished)
		}
	}); !errors.Is(err, finished) {
		t.Fatal(err)
	}
	left := time.Now()
	leave()
	const where = "node worker is to live on process b, which is not in the cluster; there are a"
	s, _, _ := c.ended(client, id)
	if s.State != driver.Failed || !strings.Contains(s.Error, where) || time.Since(left) < absence {
		t.Errorf("%v after b has left: %+v", time.Since(left), s)
	}
	if log := c.logOf(client, id); strings.Count(log, "waits for a place for each node: "+where) != 1 {
		t.Error(log)
	}
}

func TestInsecureClusterIsForLoopbackAddressesThatAskForIt(t *testing.T) {
	plain := func(n *driver.NodeConfig) { n.Identity, n.Insecure, n.Name = nil, true, "plain" }
	c := newCluster(t)
	end := c.serve("plain", plain)
	client, err := driver.Connect(t.Context(), []string{c.seed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.Submit(t.Context(), load(t, long, "stop={steps: 20}"), driver.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := client.Status(t.Context(), id); err != nil || !s.Insecure {
		t.Errorf("%+v, %v", s, err)
	}
	if s, _ := c.end(client, id); !s.Runs[0].Insecure {
		t.Errorf("not in the record: %+v", s.Runs[0])
	}
	end()
	expectInput(t, driver.Serve(t.Context(), driver.NodeConfig{Name: "x", Bind: "127.0.0.1:0"}),
		"a node needs an identity")
	for _, name := range []string{"x", ""} {
		for _, bind := range []string{"0.0.0.0:0", "0.0.0.0"} {
			open := driver.NodeConfig{Name: name, Bind: bind, Insecure: true}
			expectInput(t, driver.Serve(t.Context(), open), "loopback")
		}
	}
	if _, err := driver.Connect(t.Context(), []string{"192.0.2.1:1"}, nil); err == nil || !strings.Contains(err.Error(),
		"loopback") {
		t.Errorf("insecure to another machine: %v", err)
	}
}

func TestNodesListsTheTimeoutOfEachNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.serve("a")()
	defer c.serve("b", func(n *driver.NodeConfig) { n.NodeTimeout = 7 * time.Second })()
	client := c.client(identity.Client)
	want := map[string]float64{"a": driver.DefaultNodeTimeout.Seconds(), "b": 7}
	await(t, "the timeouts", func() error {
		nodes, err := client.Nodes(t.Context())
		listed := map[string]float64{}
		for _, n := range nodes {
			listed[n.Name] = n.Timeout
		}
		if err == nil && !maps.Equal(listed, want) {
			err = fmt.Errorf("the timeouts are %v, want %v", listed, want)
		}
		return err
	})
}

func TestRoundTripsOfAllPairsAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.serve("a")()
	defer c.serve("b")()
	client := c.client(identity.Client)
	c.gather(client, 2)
	for t.Context().Err() == nil {
		trips, err := client.RoundTrips(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(trips) == 2 && len(trips["a"]) == 1 && len(trips["b"]) == 1 { // heartbeats have come back
			there, back := trips["a"]["b"], trips["b"]["a"]
			if there <= 0 || back <= 0 {
				t.Errorf("on one machine %v", trips)
			}
			if there <= 1 && back <= 1 { // longer while the first heartbeats meet a busy machine
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
