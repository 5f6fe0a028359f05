package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/driver/drivertest"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: hierarchical-server, sites: {near: [a, b], far: [c]}, wait: true}
nodes:
  - {name: top, role: root}
  - {name: near, role: site}
  - {name: far, role: site}
  - {name: a, role: worker, compute: {step: 2ms}}
  - {name: b, role: worker, compute: {step: 3ms}}
  - {name: c, role: worker, compute: {step: 2ms}}
network: {default: {delay: 1ms}, links: [{between: [top, far], delay: 150ms}]}
evaluate: {every: 15 steps}
stop: {steps: 15}
`

// spied is the architecture with a look at what its actors receive.
type spied struct {
	hierarchy
	task    *train.Task
	receive func(node string, message any)
}

func (s *spied) Kind(task *train.Task, place train.Place) actors.Kind {
	s.task = task
	kind := s.hierarchy.Kind(task, place)
	return func(env actors.Env) (actor.Actor, error) {
		a, err := kind(env)
		return actor.ReceiveFunc(func(ctx actor.Context) {
			s.receive(place.Name, ctx.Message())
			a.Receive(ctx)
		}), err
	}
}

// run runs a plan and returns its report, its first run's final parameters, and the task.
func run(t *testing.T, clock driver.Clock, receive func(node string, message any), set ...string) (*driver.Report,
	[]float32, *train.Task) {
	t.Helper()
	s := &spied{receive: receive}
	c := catalog.Default()
	c.Architectures.Add(catalog.Define("hierarchical-server", "", func() hierarchy { return hierarchy{Every: 1} },
		func(_ *catalog.Catalog, h *hierarchy) (train.Architecture, error) {
			s.hierarchy = *h
			return s, h.Validate()
		}))
	p, err := driver.Parse("small.yaml", []byte(small), set...)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	report, err := driver.Run(context.Background(), p, driver.Options{Catalog: c, Out: out, Clock: clock, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return report, model(t, out), s.task
}

// model reads the final parameters of the first run of a record.
func model(t *testing.T, out string) []float32 {
	t.Helper()
	f, err := os.Open(filepath.Join(out, "runs", "0000", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	params, _, _, err := safetensors.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return params
}

func ignore(string, any) {}

// joint trains one model in one loop: each step is on the batches of all workers put together.
func joint(t *testing.T, task *train.Task, steps int) []float32 {
	t.Helper()
	params := task.Initial()
	method := task.Method.New(len(params))
	inputs, all := task.Model.Inputs(), len(task.Workers)*task.Batch
	workspace, gradient := task.Model.NewWorkspace(all), make([]float32, len(params))
	x, y := make([]float32, all*inputs), make([]int32, all)
	for step := range steps {
		n := 0
		for i, name := range task.Workers {
			sampler, err := datasets.NewSampler(task.Train, task.Shards[i], task.Batch, task.Seed, name)
			if err != nil {
				t.Fatal(err)
			}
			n += sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x[n*inputs:], y[n:])
		}
		if n != all {
			t.Fatalf("step %d has %d samples of %d", step, n, all)
		}
		workspace.Gradient(params, gradient, nn.Batch{X: x, Y: y})
		method.Step(params, params, gradient)
	}
	return params
}

// distance is the largest difference of two vectors' values.
func distance(a, b []float32) (d float64) {
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}

// The fifth step of the third worker ends the run: the root has taken in four rounds then, and will
// have the fifth only after the slow link, so that a machine that is a tenth of a second late
// changes nothing.
func TestWaitingSitesEqualOneProcessOnTheJointBatchInBothWorlds(t *testing.T) {
	_, virtual, task := run(t, driver.Virtual, ignore)
	want := joint(t, task, 4)
	if d := distance(virtual, want); d > 1e-6 || distance(want, task.Initial()) < 1e-2 {
		t.Errorf("a parameter differs by %g from one process, which moved by %g", d, distance(want, task.Initial()))
	}
	if _, live, _ := run(t, driver.Real, ignore); !slices.Equal(virtual, live) {
		t.Errorf("a parameter in real time differs by %g from virtual time", distance(virtual, live))
	}
}

// A resumed run ends with the model of an uninterrupted run.
func TestInterruptedSitesGoOnWhereTheyWere(t *testing.T) {
	set := []string{"architecture.every=2", "train.optimizer={kind: adam, rate: 0.01}"}
	_, want, _ := run(t, driver.Virtual, ignore, set...)
	p, err := driver.Parse("small.yaml", []byte(small), append(set, "checkpoint={every: 150ms}")...)
	if err != nil {
		t.Fatal(err)
	}
	report := drivertest.Resumed(t, p, driver.Options{Catalog: withHierarchy()})
	if got := model(t, report.Dir); !slices.Equal(got, want) {
		t.Errorf("a parameter differs by %g from the uninterrupted run", distance(got, want))
	}
}

// account keeps what a site's workers have pushed and what the site has sent to the root.
type account struct {
	pushed [][]float64 // of each round, the sum of the gradients
	open   int         // pushes of the last round
	sent   []float64   // the sum of the changes
	rounds uint64      // that they are made of
}

func add(sum []float64, values []float32) []float64 {
	if sum == nil {
		sum = make([]float64, len(values))
	}
	for i, v := range values {
		sum[i] += float64(v)
	}
	return sum
}

func (a *account) push(gradient []float32, workers int) {
	if a.open == 0 {
		a.pushed = append(a.pushed, nil)
	}
	a.pushed[len(a.pushed)-1] = add(a.pushed[len(a.pushed)-1], gradient)
	a.open = (a.open + 1) % workers
}

func TestNoGradientIsLostOrCountedTwiceWithoutWaiting(t *testing.T) {
	workers := map[string]int{"near": 2, "far": 1}
	nodes := []string{"top", "near", "far"}
	accounts := map[string]*account{"near": {}, "far": {}}
	exchanges, stale := 0, 0
	_, params, task := run(t, driver.Virtual, func(node string, message any) {
		m, ok := message.(*protos.Message)
		if !ok {
			return
		}
		switch head := m.Head.(type) {
		case *protos.Push:
			accounts[node].push(m.Tensors[0].Data, workers[node])
		case *Exchange:
			a := accounts[nodes[head.Node]]
			a.sent, a.rounds = add(a.sent, m.Tensors[0].Data), head.Rounds
			if head.Version < uint64(exchanges) {
				stale++
			}
			exchanges++
		}
	}, "architecture.wait=false", "architecture.every=3", "stop.steps=600", "evaluate.every=600 steps",
		"network.links.top-far.delay=20ms")
	want := add(nil, task.Initial())
	for name, a := range accounts {
		learnt := make([]float64, len(want))
		for _, sum := range a.pushed[:a.rounds] {
			for i := range sum {
				learnt[i] -= 0.2 * sum[i] / float64(workers[name])
			}
		}
		for i := range learnt {
			if d := math.Abs(learnt[i] - a.sent[i]); d > 1e-5 {
				t.Fatalf("%s: the changes of parameter %d are %g, its %d rounds make %g", name, i, a.sent[i], a.rounds,
					learnt[i])
			}
			want[i] += float64(workers[name]) / 3 * a.sent[i]
		}
		if a.rounds < 50 {
			t.Errorf("%s: only %d rounds were exchanged", name, a.rounds)
		}
	}
	for i := range want {
		if math.Abs(want[i]-float64(params[i])) > 1e-5 {
			t.Fatalf("parameter %d of the root is %g, all changes make it %g", i, params[i], want[i])
		}
	}
	if stale == 0 || stale == exchanges {
		t.Errorf("%d of %d changes were stale: nothing is shown of sites that go on", stale, exchanges)
	}
}

func TestDigestsDependOnTheSeedAndNotOnProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, wait := range []string{"true", "false"} {
		set := []string{"stop.steps=150", "architecture.every=2", "architecture.wait=" + wait}
		var digests []string
		for _, processors := range []int{1, 2} {
			runtime.GOMAXPROCS(processors)
			report, _, _ := run(t, driver.Virtual, ignore, set...)
			digests = append(digests, report.Runs[0].Digest)
		}
		report, _, _ := run(t, driver.Virtual, ignore, append(set, "seed=6")...)
		if digests[0] != digests[1] || digests[0] == report.Runs[0].Digest {
			t.Errorf("wait %s: digests %s on 1 and 2 processors, %s of another seed", wait, digests,
				report.Runs[0].Digest)
		}
	}
}

func TestErrorsSayWhereAndWhy(t *testing.T) {
	for set, want := range map[string]string{
		"every: 0}": "small.yaml:6:83: architecture.every: 0 is out of range; accepted is 1 or more",
		"evry: 2}":  `architecture.evry: unknown key "evry"; did you mean every?`,
	} {
		p, err := driver.Parse("small.yaml", []byte(strings.Replace(small, "wait: true}", set, 1)))
		if err == nil {
			_, err = p.Resolved(withHierarchy())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", set, err, want)
		}
	}
	for sites, want := range map[string]string{
		"{near: [a, b], far: []}":       "architecture.sites: site far has no workers",
		"{near: [a, b], far: [c, a]}":   "architecture.sites: worker a is named twice, at far and at near",
		"{near: [a, b], far: [d]}":      "architecture.sites: d is not a node of the role worker",
		"{near: [a, b], top: [c]}":      "architecture.sites: top is not a node of the role site",
		"{near: [a], far: [c]}":         "architecture.sites: worker b is missing in sites",
		"{near: [a, b, c]}":             "architecture.sites: site far is missing in sites",
		"{near: {workers: a}, far: []}": "architecture.sites.near: found a map where a list is expected",
	} {
		text := strings.Replace(small, "{near: [a, b], far: [c]}", sites, 1)
		p, err := driver.Parse("small.yaml", []byte(text))
		if err == nil {
			_, err = driver.Run(context.Background(), p,
				driver.Options{Catalog: withHierarchy(), Out: filepath.Join(t.TempDir(), "out")})
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "small.yaml:6:") {
			t.Errorf("%s: error %v, want line 6 and %q", sites, err, want)
		}
	}
}

func TestRunEndsWithTheReasonWhenSomebodyGoes(t *testing.T) {
	for _, node := range []string{"b", "far"} {
		p, err := driver.Parse("small.yaml", []byte(small),
			fmt.Sprintf("schedule=[{at: 320ms, node: %s, do: crash}]", node), "detect=10ms")
		if err == nil {
			_, err = driver.Run(context.Background(), p,
				driver.Options{Catalog: withHierarchy(), Out: filepath.Join(t.TempDir(), "out")})
		}
		if want := fmt.Sprintf("node %s has gone; this architecture needs all of its nodes", node); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestPlansOfThisFolderRun(t *testing.T) {
	for _, plan := range []string{"plan.yaml", "flat.yaml"} {
		p, err := driver.Load(plan, "stop.epochs=0.2", "repeats=1")
		if err == nil {
			_, err = driver.Run(context.Background(), p,
				driver.Options{Catalog: withHierarchy(), Out: filepath.Join(t.TempDir(), "out")})
		}
		if err != nil {
			t.Errorf("%s: %v", plan, err)
		}
	}
}
