package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/shelf"
)

const servedPlan = `
name: served
data: {set: synthetic-traffic, samples: 1000}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 10, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: parameter-server, consistency: {kind: ssp, bound: 2}}
nodes: [{name: s, role: server}, {name: w, role: worker, count: 3, compute: {step: 100ms}}]
network: {default: {delay: 5ms}}
evaluate: {every: 500ms}
detect: 500ms
stop: {time: 10s}
schedule: [{at: 2s, node: w2, do: pause, for: 1s}, {at: 4s, cut: w1, for: 500ms}]
`

// ranks is the same plan with an all-reduce, in which a node crashes.
var ranks = strings.NewReplacer("{name: s, role: server}, ", "", "name: served", "name: ranks",
	"parameter-server, consistency: {kind: ssp, bound: 2}", "all-reduce",
	"do: pause, for: 1s", "do: restart, for: 2s").Replace(servedPlan)

// neighbours is the same plan with d-psgd, and nobody goes.
var neighbours = strings.NewReplacer("{name: s, role: server}, ", "", "name: served", "name: neighbours",
	", role: worker", "", "parameter-server, consistency: {kind: ssp, bound: 2}", "d-psgd").Replace(servedPlan)

// averaged is the same plan with federated averaging.
var averaged = strings.NewReplacer("name: served", "name: averaged", "role: worker", "role: client",
	"parameter-server, consistency: {kind: ssp, bound: 2}", "federated, local: {steps: 4}").Replace(servedPlan)

func parse(t testing.TB, text string) *experiment.Plan {
	t.Helper()
	p, err := experiment.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// watch makes the runs of a drill of a plan of one point.
func watch(t testing.TB, text string) (*Watch, *experiment.Point) {
	t.Helper()
	points, err := parse(t, text).Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Make(t.Context(), &points[0], shelf.New("", 1, nil), 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w, &points[0]
}

func TestEveryInvariantHoldsAndIsWatched(t *testing.T) {
	watched := map[string]bool{}
	for _, text := range []string{servedPlan, ranks, neighbours, averaged} {
		w, _ := watch(t, text)
		for _, v := range Check(w) {
			if v.Broken != "" {
				t.Errorf("%s: %s", v.Name, v.Broken)
			}
			watched[v.Name] = watched[v.Name] || v.Watched
		}
	}
	for _, i := range Invariants() {
		if !watched[i.Name] {
			t.Errorf("%s is not watched", i.Name)
		}
	}
}

// first is the first event of a kind of a node from an instant on, or of any node.
func first(t testing.TB, w *Watch, kind actors.EventKind, node int, from time.Duration) *world.Recorded {
	t.Helper()
	for i := range w.Run.Events {
		if e := &w.Run.Events[i]; e.Kind == kind && e.At >= from && e.Node == node {
			return e
		}
	}
	t.Fatalf("no event %s of node %d", kind, node)
	return nil
}

// violation does to a run of a plan what must not happen.
type violation struct {
	plan  string
	plant func(w *Watch)
}

func violations(t *testing.T) map[string]violation {
	const s, w1, w2 = 0, 1, 2
	return map[string]violation{
		"no-panic": {servedPlan, func(w *Watch) {
			w.Calm.Failure = fmt.Errorf("node w1: %w", &world.Panic{Reason: "out of luck", Where: "here"})
		}},
		"digest-repeats": {servedPlan, func(w *Watch) { w.Again.Digest = "0" }},
		"resume-repeats": {servedPlan, func(w *Watch) { w.Resumed.Digest = "0" }},
		"messages-conserved": {servedPlan, func(w *Watch) {
			w.Run.Stage.Network.Edge(s, w1).Deliver(1, 0) // a message that nobody sent
		}},
		"handled-once":    {servedPlan, func(w *Watch) { w.Calm.Audit.Disorder = "a message was handed over twice" }},
		"no-dead-letters": {servedPlan, func(w *Watch) { w.Run.Outcome.DeadLetters = 1 }},
		"clocks-monotone": {servedPlan, func(w *Watch) {
			e := first(t, w, actors.StepDone, w1, 5*time.Second)
			e.Step--
		}},
		"versions-monotone": {servedPlan, func(w *Watch) {
			first(t, w, actors.UpdateApplied, s, 5*time.Second).Version = 1
		}},
		"gone-are-silent": {servedPlan, func(w *Watch) {
			e := first(t, w, actors.StepDone, w2, 3*time.Second)
			e.At = 2900 * time.Millisecond
		}},
		"staleness-bound": {servedPlan, func(w *Watch) {
			for i := range w.Run.Events { // one round more than there may be, while w2 is paused
				if e := &w.Run.Events[i]; e.Node == w1 && e.Kind == actors.StepDone && e.At > 2500*time.Millisecond {
					e.Step += 2
				}
			}
		}},
		"progress": {servedPlan, func(w *Watch) {
			var before []world.Recorded
			w.Run.Data.Steps = 0
			for _, e := range w.Run.Events {
				if e.At < w.Recovered {
					before = append(before, e)
					if e.Kind == actors.StepDone {
						w.Run.Data.Steps++
					}
				}
			}
			w.Run.Events = before
		}},
		"models-finite": {servedPlan, func(w *Watch) { w.Run.Models[0].Params[3] = float32(math.NaN()) }},
		"ranks-equal": {ranks, func(w *Watch) {
			p := w.Run.Models[2].Params
			p[7] = math.Float32frombits(math.Float32bits(p[7]) ^ 1)
		}},
		"steps-counted": {servedPlan, func(w *Watch) { w.Run.Data.Steps++ }},
	}
}

// ledgerViolations are those found in a ledger run.
func ledgerViolations() map[string]violation {
	return map[string]violation{
		"averages-between": {ranks, func(w *Watch) { w.Count.Models[1].Params[40] = level - 2 }},
		"means-weighed":    {averaged, func(w *Watch) { w.Count.Models[0].Params[40]++ }},
		"nothing-left":     {servedPlan, func(w *Watch) { w.Run.Audit.Forgotten = "2 tensors" }},
		"damage-refused":   {servedPlan, func(w *Watch) { w.Damaged = "both are refused" }},
		"sums-preserved": {neighbours, func(w *Watch) {
			for _, m := range w.Count.Models {
				for i, v := range m.Params {
					m.Params[i] = level + (v-level)*0.8
				}
			}
		}},
		"updates-once": {servedPlan, func(w *Watch) {
			w.Count.Models[0].Params[40] = level + float32(stepped(w.Count, w.Count.End)[40%3]) + 1
		}},
	}
}

func TestEachInvariantBreaksOnAPlantedViolation(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	planted := violations(t)
	maps.Copy(planted, ledgerViolations())
	for _, i := range Invariants() {
		p, known := planted[i.Name]
		if !known {
			t.Errorf("no violation of %s is planted", i.Name)
			continue
		}
		w, _ := watch(t, p.plan)
		p.plant(w)
		if watched, broken := i.Check(w); broken == "" || !watched {
			t.Errorf("%s: a planted violation is not noticed", i.Name)
		}
		for _, v := range Check(w) {
			if v.Broken != "" && v.Name != i.Name && i.Name != "clocks-monotone" && i.Name != "gone-are-silent" {
				t.Errorf("a violation of %s breaks %s: %s", i.Name, v.Name, v.Broken)
			}
		}
	}
	w, _ := watch(t, servedPlan)
	w.Run.Failure = errors.New("it failed")
	if _, broken := Progress.Check(w); !strings.Contains(broken, "it failed") {
		t.Errorf("a run that failed: %q", broken)
	}
}

// A fault-free run that trains nothing breaks the invariant.
func TestProgressIsBrokenIfNoUpdateChangesAModel(t *testing.T) {
	w, _ := watch(t, strings.Replace(servedPlan, "rate: 0.1", "rate: 0", 1))
	if watched, broken := Progress.Check(w); !watched || !strings.Contains(broken, "no update changed a judged model") {
		t.Errorf("watched %v, broken %q", watched, broken)
	}
}

// until leaves of a run's steps those before an instant.
func until(t *experiment.Trial, end time.Duration) {
	t.Events = slices.DeleteFunc(t.Events, func(e world.Recorded) bool {
		return e.Kind == actors.StepDone && e.At >= end
	})
}

// A run that makes no steps after its last fault breaks the invariant, unless the undisturbed one
// stands still to its end as well: with steps of 100 ms, 8 waits of which fit into the last 5 s but
// not 8 of a second.
func TestAWaitThatTheEndOfARunCutsShortCountsAsOne(t *testing.T) {
	w, _ := watch(t, servedPlan)
	until(w.Run, w.Recovered)
	if watched, broken := Progress.Check(w); !watched || broken == "" {
		t.Error("no step after the last fault is not noticed")
	}
	until(w.Calm, w.Calm.End-time.Second)
	if watched, broken := Progress.Check(w); watched || broken != "" {
		t.Errorf("the undisturbed run makes no step in its last second either, and the run is watched: %q", broken)
	}
	if longest := longestStep(w.Calm); longest > 500*time.Millisecond {
		t.Errorf("a step of the undisturbed run took %v", longest)
	}
}

// An update is recorded when its work is done, after the model that has it may have been judged. By
// how much later is not known where the undisturbed run is too short for a step.
func TestAnUpdateAtTheEndOfAShortRunMayBeInAModel(t *testing.T) {
	w, _ := watch(t, ranks)
	until(w.Calm, 0)
	last := slices.IndexFunc(w.Run.Events, func(e world.Recorded) bool {
		return e.Kind == actors.UpdateApplied && e.At > w.Run.Judged/2
	})
	w.Run.Judged = w.Run.Events[last].At - 1
	w.Run.Models[0].Params = slices.Clone(w.Run.Models[0].Params)
	w.Run.Models[0].Params[7]++
	w.Run.Models[0].Node = w.Run.Events[last].Node
	if _, broken := RanksEqual.Check(w); broken != "" {
		t.Errorf("a model with an update that is recorded after it was judged: %s", broken)
	}
}

func TestAnInvariantThatCannotBeCheckedIsBroken(t *testing.T) {
	var none []int
	blind := Invariant{"blind", "", func(*Watch) (bool, string) { return none[len(none)+3] == 0, "" }}
	v := Check(&Watch{}, blind)
	if !v[0].Watched || !strings.Contains(v[0].Broken, "cannot be checked: panic: runtime error: index out of range") {
		t.Errorf("%+v", v)
	}
}

// fragile is an architecture whose actors cannot be placed.
type fragile struct{ train.Architecture }

func (fragile) Kind(*train.Task, train.Place) actors.Kind { panic("no place") }

func TestAPanicBeneathTheActorsIsTheVerdict(t *testing.T) {
	points, err := parse(t, servedPlan).Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	points[0].Spec.Architecture = fragile{points[0].Spec.Architecture}
	w, err := Make(t.Context(), &points[0], shelf.New("", 1, nil), 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := Check(w)
	if len(v) != 1 || v[0].Name != "no-panic" || !strings.HasPrefix(v[0].Broken, "panic: no place, in drill.fragile") {
		t.Errorf("%+v", v)
	}
}

// A ledger run records exactly which updates were applied: a parameter of a parameter server counts
// its worker's steps, except one that may be under way. A peer's parameter counts its shares of the
// peers' steps; the shares of all peers add up to 1.
func TestALedgerRunCountsTheSteps(t *testing.T) {
	w, _ := watch(t, servedPlan)
	steps := stepped(w.Count, w.Count.End)
	for i, v := range w.Count.Models[0].Params {
		if missing := steps[i%3] + level - float64(v); missing < 0 || missing > 1 {
			t.Fatalf("parameter %d is %v after %v steps", i, v, steps[i%3])
		}
	}
	w, _ = watch(t, neighbours)
	sum := 0.0
	for _, m := range w.Count.Models {
		for i := range 3 {
			sum += float64(m.Params[i]) - level
		}
	}
	all := stepped(w.Count, w.Count.End)
	if total := all[0] + all[1] + all[2]; math.Abs(sum-total) > 3 || total < 200 {
		t.Errorf("the peers have gained %v in %v steps", sum, total)
	}
	for _, m := range w.Count.Models { // some count for more than others, though not all together
		for i, v := range m.Params {
			m.Params[i] = v + []float32{12, -6, -6}[i%3]
		}
	}
	if _, broken := SumsPreserved.Check(w); broken == "" {
		t.Error("a peer that counts for more than others is not noticed")
	}
	// A step is lost from now and then: what was taken in falls behind by more than is under way.
	w, _ = watch(t, servedPlan)
	for i := range w.Count.Models[0].Params {
		w.Count.Models[0].Params[i] -= 4
	}
	if _, broken := UpdatesOnce.Check(w); broken == "" {
		t.Error("gradients that were lost are not noticed")
	}
}

// A run is saved while the end of a pause is to come of a node that has crashed in it.
func TestARunGoesOnWhereANodeHasCrashedInAPause(t *testing.T) {
	w, _ := watch(t, strings.NewReplacer("{at: 2s, node: w2, do: pause, for: 1s}, {at: 4s, cut: w1, for: 500ms}",
		"{at: 1s, node: w2, do: pause, for: 8s}, {at: 2s, node: w2, do: restart, for: 5s}").Replace(servedPlan))
	if w.SavedAt < 2*time.Second || w.SavedAt > 7*time.Second {
		t.Fatalf("saved at %v", w.SavedAt)
	}
	if watched, broken := ResumeRepeats.Check(w); !watched || broken != "" {
		t.Error(watched, broken)
	}
}

// Whichever bit of a checkpoint is flipped, it is refused.
func TestADamagedCheckpointIsRefused(t *testing.T) {
	w, _ := watch(t, servedPlan)
	for seed := range uint64(100) {
		if broken, err := damaged(w.Resumed.Saved, time.Second, seed); broken != "" || err != nil {
			t.Errorf("seed %d: %s, %v", seed, broken, err)
		}
	}
}

// Where links lose messages they are sent again, each by some fault or before the first.
func TestRepeatsAreCounted(t *testing.T) {
	w, p := watch(t, servedPlan)
	if r := sum(w, p, 1); r.Undisturbed.Repeats != 0 || r.Run.Repeats != 0 || r.Faults[1].Repeats != 0 {
		t.Errorf("where no message is lost, %d and %d were sent again", r.Run.Repeats, r.Undisturbed.Repeats)
	}
	w, p = watch(t, strings.NewReplacer("{delay: 5ms}", "{delay: 5ms, loss: {probability: 10%, kind: drop}}").
		Replace(servedPlan))
	r := sum(w, p, 1)
	if int64(r.Run.Repeats) < r.Run.Messages/20 || int64(r.Undisturbed.Repeats) < r.Undisturbed.Messages/20 {
		t.Errorf("of %d and %d messages %d and %d were sent again", r.Run.Messages, r.Undisturbed.Messages,
			r.Run.Repeats, r.Undisturbed.Repeats)
	}
	before := between(w.Run.Audit.Repeats, 0, r.Faults[0].At) - between(w.Calm.Audit.Repeats, 0, r.Faults[0].At)
	all := int64(r.Run.Repeats - r.Undisturbed.Repeats)
	if of := r.Faults[0].Repeats + r.Faults[1].Repeats; before != 0 || of != all {
		t.Errorf("%d more were sent again before the faults, and %d by them, of %d", before, of, all)
	}
}

func TestAGoroutineThatIsLeftIsNoticed(t *testing.T) {
	stop, ended := make(chan struct{}), make(chan struct{})
	what := Left(t.Context(), func(context.Context) {
		go func() {
			defer close(ended)
			<-stop
		}()
	})
	if !strings.Contains(what, "1 goroutines, in") || !strings.Contains(what, "TestAGoroutineThatIsLeft") {
		t.Errorf("told is %q", what)
	}
	close(stop)
	<-ended
	if what := Left(t.Context(), func(context.Context) {
		done := make(chan struct{})
		go close(done)
		<-done
	}); what != "" {
		t.Errorf("one that has ended is told as %q", what)
	}
}

// TestCostsOfAPause compares with what follows from the plan: nobody is told of a pause, the node
// makes its next step when it is over, and with local training what is lost is its length.
func TestCostsOfAPause(t *testing.T) {
	text := strings.NewReplacer("{name: s, role: server}, ", "", ", role: worker", "",
		"{kind: parameter-server, consistency: {kind: ssp, bound: 2}}", "{kind: local}",
		", {at: 4s, cut: w1, for: 500ms}", ", {at: 6s, node: w3, do: crash}").Replace(servedPlan)
	w, p := watch(t, text)
	r := sum(w, p, 1)
	pause, crash := r.Faults[0], r.Faults[1]
	if pause.Noticed != nil || pause.Served == nil || *pause.Served < 1 || *pause.Served > 1.15 ||
		pause.Samples < 90 || pause.Samples > 110 || pause.Updates != pause.Samples/10 {
		t.Errorf("a pause of 1 s, of steps of 100 ms and 10 samples, costs %+v", pause)
	}
	if crash.Noticed == nil || *crash.Noticed != 0.5 || crash.Served == nil || *crash.Served > 0.15 ||
		crash.Samples < 370 || crash.Samples > 410 {
		t.Errorf("a crash 4 s before the end costs %+v", crash)
	}
	if g := r.Goodput; g.Undisturbed-g.Counted < 470 || g.Undisturbed-g.Counted > 520 || g.Lost != 0 {
		t.Errorf("goodput %+v", g)
	}
}

func TestADrillWritesItsReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drill")
	told := 0.0
	d, err := Run(t.Context(), parse(t, servedPlan), Options{Out: dir, Progress: func(p experiment.Progress) {
		if p.Share < told || p.Share > 1 {
			t.Errorf("after %v the share is %v", told, p.Share)
		}
		told = p.Share
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := d.Points[0]
	text, err := os.ReadFile(filepath.Join(dir, "drill.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read Report
	if err := json.Unmarshal(text, &read); err != nil || read.Run.Digest != r.Run.Digest || len(read.Faults) != 2 ||
		len(read.Invariants) != len(Invariants()) || told < 0.9 {
		t.Errorf("%v, share %v, %s", err, told, text)
	}
	for _, name := range []string{"drill.png", "drill.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Error(name, err)
		}
	}
	var b strings.Builder
	r.Invariants[1].Broken = "the digests are 1 and 2"
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"2 s: pause of w2 until 3 s", "4 s: cut of w1 until 4.5 s", "goodput ", "BROKEN",
		"the digests are 1 and 2", "not watched"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is not in\n%s", part, b.String())
		}
	}
	if err := d.Err(); err == nil || err.Error() != "broken: digest-repeats (the digests are 1 and 2); seed 1" {
		t.Error(err)
	}
	if broken := r.Broken(); len(broken) != 1 || broken[0].Name != "digest-repeats" {
		t.Errorf("%+v", broken)
	}
}

func TestASweepIsDrilledAtEachPointThatHasFaults(t *testing.T) {
	dir, told := filepath.Join(t.TempDir(), "drill"), 0.0
	sweep := servedPlan + "sweep: {train.batch: [5, 10], schedule: [{label: none, value: []}, " +
		"{label: pause, value: [{at: 2s, node: w2, do: pause, for: 1s}]}]}\n"
	o := Options{Out: dir, Progress: func(p experiment.Progress) {
		if p.Share < told || p.Share > 1 || p.Total != 2*stages {
			t.Errorf("after %v the progress is %+v", told, p)
		}
		told = p.Share
	}}
	d, err := Run(t.Context(), parse(t, sweep), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Points) != 2 || d.Unhurt != 2 || d.Points[1].Point.String() != "train.batch=10; schedule=pause" ||
		d.Points[0].Run.Digest == d.Points[1].Run.Digest {
		t.Fatalf("%+v", d)
	}
	text, err := os.ReadFile(filepath.Join(dir, "drill.json"))
	var read []Report
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || len(read) != 2 || read[1].Point.String() != d.Points[1].Point.String() {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "drill-2.png")); err != nil {
		t.Error(err)
	}
	d.Points[1].Invariants[1].Broken = "the digests are 1 and 2"
	var b strings.Builder
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Points drilled: 2. Invariants broke at 1 of them. Not drilled: 2, which have no faults.",
		"point 2: train.batch=10; schedule=pause"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is not in\n%s", part, b.String())
		}
	}
	const broken = "train.batch=10; schedule=pause: broken: digest-repeats (the digests are 1 and 2); seed 1"
	if err := d.Err(); err == nil || err.Error() != broken {
		t.Error(err)
	}
	o.Where, o.Out, o.Progress = []string{"batch=10"}, filepath.Join(t.TempDir(), "one"), nil
	if d, err = Run(t.Context(), parse(t, sweep), o); err != nil || len(d.Points) != 1 || d.Unhurt != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestWhatCannotBeDrilledIsAnInputError(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(servedPlan, "schedule:", "# ", 1):                                "nothing to drill",
		strings.Replace(servedPlan, "schedule:", "sweep: {train.batch: [5, 10]}\n# ", 1): "nothing to drill",
		servedPlan + "faults: {slow: {mtbf: 1m, nodes: x, factor: 2, for: 1s}}\n": "there is no node, group or role " +
			"named \"x\"",
	} {
		_, err := Run(t.Context(), parse(t, text), Options{Out: t.TempDir()})
		var input *refusal.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an input error with %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := Run(ctx, parse(t, servedPlan), Options{Out: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("an interrupted drill has written something")
	}
}
