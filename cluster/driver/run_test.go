package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

func TestDigestDependsOnPlanAndSeedOnly(t *testing.T) {
	first := run(t, load(t, small), driver.Options{Jobs: 1})
	if len(first.Runs) != 4 || !first.Complete {
		t.Fatalf("%d runs, complete: %v", len(first.Runs), first.Complete)
	}
	want, wantFiles := digests(first), files(t, first.Dir)
	for _, o := range []driver.Options{{Jobs: 1}, {Jobs: 2}, {Jobs: 7}, {Strict: true}} {
		r := run(t, load(t, small), o)
		equal(t, fmt.Sprintf("digests of %+v", o), want, digests(r))
		equal(t, fmt.Sprintf("files of %+v", o), wantFiles, files(t, r.Dir))
	}
	for _, procs := range []int{1, 2} {
		before := runtime.GOMAXPROCS(procs)
		r := run(t, load(t, small), driver.Options{})
		runtime.GOMAXPROCS(before)
		equal(t, fmt.Sprintf("digests with %d processors", procs), want, digests(r))
	}
	seen := map[string]bool{}
	for _, d := range want {
		seen[d] = true
	}
	for _, d := range digests(run(t, load(t, small, "seed=100"), driver.Options{})) {
		if seen[d] {
			t.Errorf("two runs have the digest %s", d)
		}
		seen[d] = true
	}
}

func TestNetworkThatEmulatesNothingIsOneWithoutDelays(t *testing.T) {
	bare := run(t, load(t, small, "network=none"), driver.Options{})
	equal(t, "digests", digests(run(t, load(t, small, "network={default: {delay: 0ms}}"), driver.Options{})),
		digests(bare))
	if plan := string(read(t, bare.Dir, "plan.yaml")); !strings.Contains(plan, "\nnetwork: none\n") {
		t.Errorf("the record says\n%s", plan)
	}
}

func TestLinkThatIsAddedMovesNoOtherStream(t *testing.T) {
	one := run(t, load(t, small, "sweep={}", "repeats=1"), driver.Options{})
	more := strings.Replace(small, "  links:\n",
		"  links:\n    - {between: [near, far], delay: {kind: normal, mean: 1s, std: 100ms}}\n", 1)
	two := run(t, load(t, more, "sweep={}", "repeats=1"), driver.Options{})
	equal(t, "digests", digests(one), digests(two))
}

func TestContinuedPlanLeavesTheSameFilesAsAnUninterruptedOne(t *testing.T) {
	whole := run(t, load(t, small), driver.Options{Jobs: 1})
	dir := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := driver.Options{Out: dir, Jobs: 1, Progress: func(p driver.Progress) {
		if p.Finished != nil && p.Done == 2 {
			cancel()
		}
	}}
	r, err := driver.Run(ctx, load(t, small), o)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if len(r.Runs) != 2 || r.Complete || r.RunsPlanned != 4 {
		t.Fatalf("%d of %d runs are kept, complete: %v", len(r.Runs), r.RunsPlanned, r.Complete)
	}
	if s, err := record.ReadSummary(dir); err != nil || s.Complete || len(s.Runs) != 2 {
		t.Errorf("summary.json of the interrupted plan: %d runs, complete: %v, %v", len(s.Runs), s.Complete, err)
	}
	fresh := 0
	r = run(t, load(t, small), driver.Options{Out: dir, Continue: true, Jobs: 2, Progress: func(p driver.Progress) {
		if p.Finished != nil {
			fresh++
		}
	}})
	if fresh != 2 || !r.Complete {
		t.Errorf("%d runs were made to complete it, complete: %v", fresh, r.Complete)
	}
	equal(t, "digests", digests(whole), digests(r))
	equal(t, "files", files(t, whole.Dir), files(t, dir))

	again := run(t, load(t, small), driver.Options{Out: dir, Continue: true,
		Progress: func(p driver.Progress) { t.Errorf("progress %+v of nothing", p) }})
	equal(t, "digests of what was complete", digests(whole), digests(again))
}

func TestContinuingAnotherPlanIsRefused(t *testing.T) {
	r := run(t, load(t, small, "sweep={}", "repeats=1"), driver.Options{})
	before := files(t, r.Dir)
	_, err := try(t, load(t, small, "sweep={}", "repeats=1", "train.batch=33"),
		driver.Options{Out: r.Dir, Continue: true})
	var input *driver.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "made by another plan") ||
		!strings.Contains(err.Error(), "33") {
		t.Errorf("got %v", err)
	}
	equal(t, "files", before, files(t, r.Dir))
}

func TestCancellationAfterTheLastRunIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := driver.Run(ctx, load(t, small, "sweep={}", "repeats=1"),
		driver.Options{Out: filepath.Join(t.TempDir(), "out"), Progress: func(p driver.Progress) {
			if p.Done == p.Total {
				cancel()
			}
		}})
	if err != nil {
		t.Error(err)
	}
}

func TestProgressRisesToTheWhole(t *testing.T) {
	last := -1.0
	finished := 0
	run(t, load(t, small), driver.Options{Jobs: 1, Progress: func(p driver.Progress) {
		if p.Share < last-1e-9 || p.Share > 1+1e-9 || p.Total != 4 {
			t.Errorf("share %v after %v of %d runs", p.Share, last, p.Total)
		}
		last = p.Share
		if p.Finished != nil {
			finished++
			if p.Done != finished {
				t.Errorf("%d done after %d finished", p.Done, finished)
			}
		}
	}})
	if finished != 4 || math.Abs(last-1) > 1e-9 {
		t.Errorf("%d finished, share %v", finished, last)
	}
}

// solo is an architecture of the tests' own: every node trains alone.
type solo struct{ after int }

func (solo) Roles() []train.Role {
	return []train.Role{{Name: "loner", Doc: "trains alone", Trains: true, Holds: true, Min: 1}}
}

func (s solo) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		local, err := task.NewLocal(env)
		params, optimizer, steps := env.Tensors().Copy(task.Initial()), task.Method.New(task.Model.Params()), 0
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *train.Gradient:
				local.Done(m)
				params = env.Tensors().Writable(params)
				optimizer.Step(params.Data, params.Data, m.Values.Data)
				m.Values.Release()
				if steps++; steps == s.after {
					panic("out of ideas")
				}
				local.Begin(params.Retain())
			case *protos.Message:
				switch head := m.Head.(type) {
				case *protos.Start:
					local.Begin(params.Retain())
				case *protos.TakeSnapshot:
					train.AnswerSnapshot(ctx, env, head, params, uint64(steps))
				}
				m.Release()
			}
		}), err
	}
}

// withSolo is a catalog that knows solo; settings.fails is the step after which it panics.
func withSolo() *catalog.Catalog {
	type settings struct {
		Fails int `plan:"fails"`
	}
	c := catalog.Default()
	c.Architectures.Add(catalog.Define("solo", "every node alone", func() settings { return settings{} },
		func(_ *catalog.Catalog, s *settings) (train.Architecture, error) { return solo{s.Fails}, nil }))
	return c
}

const alone = `name: alone
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: solo}
nodes: [{name: me, compute: {step: 1ms}}]
evaluate: {every: 20 steps}
stop: {steps: 60}
`

func TestArchitectureOfAUsersOwnRunsInBothWorlds(t *testing.T) {
	c := withSolo()
	virtual := run(t, load(t, alone), driver.Options{Catalog: c})
	timed := run(t, load(t, alone), driver.Options{Catalog: c, Clock: driver.Real})
	if virtual.Clock != driver.Virtual || timed.Clock != driver.Real || timed.Runs[0].Clock != "real" {
		t.Errorf("clocks %v and %v", virtual.Clock, timed.Clock)
	}
	if v, r := virtual.Traces[0].Curve[0], timed.Traces[0].Curve[0]; v.Accuracy != r.Accuracy || v.Loss != r.Loss {
		t.Errorf("the initial model is judged %v and %v", v, r)
	}
	if got := virtual.Runs[0]; got.Steps != 60 || got.Evaluations != 4 || got.Messages != 0 || got.Duration != 0.06 {
		t.Errorf("virtual run: %+v", got)
	}
	if got := timed.Runs[0]; got.Digest != "" || got.Steps < 60 {
		t.Errorf("real run: %+v", got)
	}
}

func TestFailureNamesRunPointSeedAndNodeAndKeepsWhatIsFinished(t *testing.T) {
	c := withSolo()
	text := alone + "repeats: 2\nsweep: {architecture.fails: [0, 30]}\n"
	r, err := try(t, load(t, text), driver.Options{Catalog: c, Jobs: 1})
	if err == nil {
		t.Fatal("no failure")
	}
	var input *driver.InputError
	if errors.As(err, &input) {
		t.Errorf("a failing actor is no mistake of the input: %v", err)
	}
	for _, want := range []string{"run 2 (architecture.fails = 30, seed 1): ", "node me", "panic: out of ideas",
		"run_test.go"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	// The other runs are made, and those that failed are in the record as such, with what was found
	// of them.
	var outcomes []record.Outcome
	for _, run := range r.Runs {
		outcomes = append(outcomes, run.Outcome)
	}
	equal(t, "outcomes", []record.Outcome{record.Done, record.Done, record.Failed, record.Failed}, outcomes)
	if r.Complete {
		t.Error("a record with failed runs is called complete")
	}
	failed := r.Runs[2]
	if i := failed.Incidents; len(i) != 1 || i[0].At != 0.03 ||
		i[0].What != "node me, actor me/loner: panic: out of ideas" || failed.Steps != 30 {
		t.Errorf("the failed run: %+v", failed)
	}
	// Those that failed are made again, each under its number.
	again, err := try(t, load(t, text), driver.Options{Catalog: c, Jobs: 1, Out: r.Dir, Continue: true})
	if err == nil || again == nil || len(again.Runs) != 4 || again.Runs[2].Number != 2 || again.Runs[3].Number != 3 {
		t.Fatalf("%+v, %v", again, err)
	}
	if _, err := record.ReadSummary(r.Dir); err != nil {
		t.Error(err)
	}
}

func TestFailureInRealTimeIsToldAsInVirtualTime(t *testing.T) {
	_, err := try(t, load(t, alone, "architecture.fails=3"), driver.Options{Catalog: withSolo(), Clock: driver.Real})
	for _, want := range []string{"run 0 (seed 1): ", "node me", "panic: out of ideas"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestEventsAreKeptWhereThePlanSaysSo(t *testing.T) {
	r := run(t, load(t, alone, "record=events"), driver.Options{Catalog: withSolo()})
	text, err := os.ReadFile(filepath.Join(r.Dir, "runs", "0000", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for line := range strings.Lines(string(text)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e["event"] == "step" {
			steps++
		}
	}
	if steps < 60 {
		t.Errorf("%d steps among the events, want 60 and more:\n%.300s", steps, text)
	}
}

func TestPointWithoutASweepAndItsFinalModelAreWhole(t *testing.T) {
	r := run(t, load(t, small, "sweep={}", "repeats=1", "stop.target=10%"), driver.Options{})
	got := r.Runs[0]
	if !got.Reached || got.TimeToTarget == nil || *got.TimeToTarget != 0 && *got.TimeToTarget > got.Duration {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "runs", "0000", "model.safetensors")); err != nil {
		t.Error(err)
	}
	// The resolved plan, read again, is the same plan: it continues the record.
	text, err := os.ReadFile(filepath.Join(r.Dir, "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	again := run(t, load(t, string(text)), driver.Options{Out: r.Dir, Continue: true})
	equal(t, "digests", digests(r), digests(again))
}

func TestVirtualTimeTellsWhatRealTimeWillDo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three seconds of real time")
	}
	text := strings.Replace(small, "stop: {epochs: 2}", "stop: {time: 3s}", 1)
	set := []string{"sweep={}", "repeats=1", "evaluate.every=3s", "data.samples=4000"}
	virtual := run(t, load(t, text, set...), driver.Options{})
	timed := run(t, load(t, text, set...), driver.Options{Clock: driver.Real})
	late := timed.Runs[0].Lateness
	if late == nil || virtual.Runs[0].Lateness != nil {
		t.Fatalf("lateness: %v and %v", late, virtual.Runs[0].Lateness)
	}
	const much = 0.005 // s, as long as a step
	if late.P99 > much {
		t.Skipf("other programs kept this machine %v s late, in the 99th percentile; the run says so", late.P99)
	}
	v, r := float64(virtual.Runs[0].Steps), float64(timed.Runs[0].Steps)
	if math.Abs(r-v) > 0.15*v {
		t.Errorf("%v steps in real time, %v in virtual time", r, v)
	}
}

func TestNodesComeAndGoAndTheTopologyChangesAsThePlanSays(t *testing.T) {
	set := []string{
		"sweep={}", "stop={time: 3s}", "evaluate={every: 200ms, sample: 1}", "network.topology={kind: tree}",
		"detect=100ms",
		"schedule=[{at: 1s, node: near, do: crash}, {at: 2s, node: near, do: join}, {at: 500ms, node: far, do: " +
			"join}, {at: 1500ms, topology: ring}]",
	}
	first := run(t, load(t, small, set...), driver.Options{Jobs: 1})
	second := run(t, load(t, small, set...), driver.Options{Jobs: 2, Strict: true})
	equal(t, "digests", digests(first), digests(second))
	without := run(t, load(t, small, append(set, "schedule=[]")...), driver.Options{})
	for i, r := range first.Runs {
		if all := without.Runs[i]; r.Steps == 0 || r.Steps >= all.Steps*4/5 || r.Steps <= all.Steps/2 {
			t.Errorf("%d steps with a worker away for a third of the time, %d without", r.Steps, all.Steps)
		}
	}
}

func TestTopologyThatCannotBeIsToldBeforeAnythingRuns(t *testing.T) {
	for set, want := range map[string]string{
		"network.topology=hypercube": "network.topology: 3 nodes are no " +
			"hypercube",
		"network.topology={kind: erdos-renyi, probability: 1e-9}": "network.topology: none of 1000 " +
			"random graphs of 3 nodes",
		"schedule=[{at: 1s, topology: {kind: erdos-renyi, probability: 1e-9}}]": "schedule[0].topology: none of 1000 " +
			"random graphs of 3 nodes",
		"schedule=[{at: 1s, node: server, do: join}]": "schedule[0]: before this 0 nodes " +
			"have the role server",
	} {
		dir := filepath.Join(t.TempDir(), "out")
		_, err := try(t, load(t, small, set), driver.Options{Out: dir})
		var input *driver.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", set, err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: there is a folder of results", set)
		}
	}
}

func TestRunsOfOneMomentHaveFoldersOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	seen := map[string]bool{}
	for range 3 { // at least two of them in the same second
		r, err := driver.Run(t.Context(), load(t, small, "sweep={}", "repeats=1"), driver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Dir] = true
	}
	if len(seen) != 3 {
		t.Errorf("folders %v", seen)
	}
}
