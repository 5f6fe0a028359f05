package drill

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/link"
)

// Watch is what invariants are checked on: a run with faults, the same once more, the undisturbed
// one, and the one with faults whose steps count: each adds 1 to every parameter that belongs to
// its worker.
type Watch struct {
	Run, Again, Calm, Count *experiment.Trial
	// Resumed is the run once more in two worlds, the second of which goes on where the first was
	// saved, at SavedAt; nil if it ended before. Unresumed says why it could not be.
	Resumed   *experiment.Trial
	SavedAt   time.Duration
	Unresumed error
	// Damaged says how a damaged checkpoint of that state was taken for whole; empty if it was not.
	Damaged string
	// Left says which goroutines the runs have left; empty if none.
	Left string
	// Panicked is what there was a panic with beneath the actors of a run; nil if there was none.
	// If there was, the runs may be nil.
	Panicked error
	// Recovered is when the last fault was over, as far as faults end, and noticed.
	Recovered time.Duration
}

// Invariant is something that holds in every run, whatever faults it has.
type Invariant struct {
	// Name is a word, and Doc says what holds, in a sentence without a full stop.
	Name, Doc string
	// Check says whether the invariant could be watched in a run, and how it broke; empty if it
	// held.
	Check func(w *Watch) (watched bool, broken string)
}

// The invariants.
var (
	// DigestRepeats watches that a seed gives the same bits again.
	DigestRepeats = Invariant{"digest-repeats",
		"a second run of the same plan and seed has the same messages and models, bit by bit", digestRepeats}
	// MessagesConserved watches every edge, and all together.
	MessagesConserved = Invariant{"messages-conserved",
		"what was sent was delivered, was dropped, or is on its way", messagesConserved}
	// DeadLetters watches messages that found no receiver.
	DeadLetters = Invariant{"no-dead-letters",
		"every message finds its receiver, where no node has gone", deadLetters}
	// ClocksMonotone watches the instants of each node's events and the numbers of its steps.
	ClocksMonotone = Invariant{"clocks-monotone",
		"in a life of a node neither its clock nor the count of its steps goes back, and no step counts twice",
		clocksMonotone}
	// VersionsMonotone watches the updates of each model.
	VersionsMonotone = Invariant{"versions-monotone",
		"in a life of a node the version of its model never goes back", versionsMonotone}
	// GoneAreSilent watches nodes between a crash, or a departure, and a join, and within pauses.
	GoneAreSilent = Invariant{"gone-are-silent",
		"a node does nothing while it is away or paused", goneAreSilent}
	// StalenessBound watches the rounds of the workers of a parameter server with a bound.
	StalenessBound = Invariant{"staleness-bound",
		"no worker is more rounds ahead of the slowest than the consistency allows", stalenessBound}
	// Progress watches what comes after the last fault.
	Progress = Invariant{"progress",
		"the run goes on to its end, and training does after the last fault", progress}
	// ModelsFinite watches the final models.
	ModelsFinite = Invariant{"models-finite", "every parameter of every final model is finite", modelsFinite}
	// RanksEqual watches the final models of an all-reduce of gradients.
	RanksEqual = Invariant{"ranks-equal",
		"ranks of an all-reduce of gradients as they are that have made as many updates have the same model, bit " +
			"by bit",
		ranksEqual}
	// StepsCounted watches the record.
	StepsCounted = Invariant{"steps-counted", "the record counts the steps that happened, each once", stepsCounted}
	// ResumeRepeats watches a run that is saved at an instant.
	ResumeRepeats = Invariant{"resume-repeats",
		"a run that is saved and goes on in another world has the messages and models of one that is not, bit by bit",
		resumeRepeats}
	// AveragesBetween watches a run in which each step adds 1.
	AveragesBetween = Invariant{"averages-between",
		"averaging makes no parameter less than the least nor more than the greatest that go into it",
		averagesBetween}
	// SumsPreserved watches it where nobody comes or goes and the sum of all models is kept: the
	// averages are by a doubly stochastic matrix.
	SumsPreserved = Invariant{"sums-preserved",
		"averaging over all, over neighbours or over pairs keeps the sum of all models", sumsPreserved}
	// UpdatesOnce watches it where gradients count in full.
	UpdatesOnce = Invariant{"updates-once",
		"a parameter server takes in each gradient once, loses none of a worker that stays, and records none twice",
		updatesOnce}
)

// HandledOnce watches all messages but control, whatever the architecture, by numbers that they get
// at the door and that no session knows.
var HandledOnce = Invariant{"handled-once",
	"where delivery is reliable, each message from a life of a node to another is handed over once, in the order of " +
		"sending, and none between two is missing",
	handledOnce}

func handledOnce(w *Watch) (watched bool, broken string) {
	for _, t := range []*experiment.Trial{w.Run, w.Again, w.Calm, w.Count} {
		if t.Stage.Deployment.Reliable && t.Audit.Handled > 0 {
			if watched = true; t.Audit.Disorder != "" {
				return true, t.Audit.Disorder
			}
		}
	}
	return watched, ""
}

// Invariants returns all of them, in the order in which they are told.
func Invariants() []Invariant {
	return []Invariant{NoPanic, DigestRepeats, MessagesConserved, HandledOnce, DeadLetters, ClocksMonotone,
		VersionsMonotone, GoneAreSilent, StalenessBound, Progress, ModelsFinite, RanksEqual, StepsCounted,
		ResumeRepeats, DamageRefused, AveragesBetween, SumsPreserved, MeansWeighed, UpdatesOnce, NothingLeft}
}

// Verdict is what became of an invariant in a drill.
type Verdict struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Watched is false where the plan has nothing that the invariant is about.
	Watched bool `json:"watched"`
	// Broken says how it broke; empty if it held.
	Broken string `json:"broken,omitempty"`
}

// Check checks invariants on what was watched; without any, all. Of runs with a panic beneath the
// actors it returns the verdict on [NoPanic] alone.
func Check(w *Watch, invariants ...Invariant) (verdicts []Verdict) {
	if len(invariants) == 0 {
		invariants = Invariants()
	}
	if w.Panicked != nil {
		invariants = []Invariant{NoPanic}
	}
	for i := range invariants {
		verdicts = append(verdicts, invariants[i].verdict(w))
	}
	return verdicts
}

func digestRepeats(w *Watch) (bool, string) {
	if w.Run.Digest != w.Again.Digest {
		return true, fmt.Sprintf("the digests are %s and %s", w.Run.Digest, w.Again.Digest)
	}
	return true, ""
}

func resumeRepeats(w *Watch) (bool, string) {
	switch {
	case w.Unresumed != nil:
		return true, w.Unresumed.Error()
	case w.Resumed == nil:
		return false, ""
	case w.Resumed.Digest != w.Run.Digest:
		return true, fmt.Sprintf("the digests are %s and, saved at %v, %s", w.Run.Digest, w.SavedAt, w.Resumed.Digest)
	}
	return true, ""
}

func messagesConserved(w *Watch) (bool, string) {
	underway, names := int64(0), w.Run.Stage.Names
	for _, e := range w.Run.Stage.Network.Used() {
		underway += e.InFlight()
		if e.InFlight() < 0 {
			to := "others"
			if e.Destination >= 0 {
				to = names[e.Destination]
			}
			return true, fmt.Sprintf("from %s to %s %d messages were sent, %d delivered and %d dropped",
				names[e.Source], to, e.Sent, e.Delivered, e.Dropped)
		}
	}
	if known := w.Run.Outcome.InFlight; known != underway {
		return true, fmt.Sprintf("%d messages were sent that were neither delivered nor dropped, and %d are on "+
			"their way", underway, known)
	}
	return true, ""
}

func deadLetters(w *Watch) (bool, string) {
	d := w.Run.Stage.Deployment
	if slices.ContainsFunc(d.Schedule, func(c world.NodeChange) bool { return c.Ends() }) {
		return false, ""
	}
	if n := w.Run.Outcome.DeadLetters; n > 0 {
		return true, fmt.Sprintf("%d messages found no receiver, and no node has gone", n)
	}
	return true, ""
}

// lives calls event with each event of a node, and begins with each node that has joined, in the
// order in which it happened.
func lives(t *experiment.Trial, begins func(node int), event func(e *world.Recorded) (broken string)) string {
	schedule := t.Stage.Deployment.Schedule
	for i := range t.Events {
		e := &t.Events[i]
		for len(schedule) > 0 && schedule[0].At <= e.At {
			if schedule[0].Do == world.Join {
				begins(schedule[0].Node)
			}
			schedule = schedule[1:]
		}
		if e.Node < 0 || e.Node >= len(t.Stage.Deployment.Nodes) {
			continue
		}
		if broken := event(e); broken != "" {
			return fmt.Sprintf("at %v: node %s: %s", e.At, t.Stage.Names[e.Node], broken)
		}
	}
	return ""
}

func clocksMonotone(w *Watch) (bool, string) {
	n := len(w.Run.Stage.Names)
	last, steps, fresh := make([]time.Duration, n), make([]uint64, n), make([]bool, n)
	return true, lives(w.Run, func(node int) { fresh[node] = true }, func(e *world.Recorded) string {
		if e.Kind != actors.StepDone {
			return "" // control messages are handled while a node is busy with what it has recorded
		}
		before, step := last[e.Node], steps[e.Node]
		last[e.Node] = e.At
		if e.At < before {
			return fmt.Sprintf("its clock went back from %v", before)
		}
		steps[e.Node] = e.Step
		if !fresh[e.Node] && e.Step <= step {
			return fmt.Sprintf("its step %d came after its step %d", e.Step, step)
		}
		fresh[e.Node] = false
		return ""
	})
}

func versionsMonotone(w *Watch) (watched bool, broken string) {
	a, ok := w.Run.Stage.Point.Spec.Architecture.(train.Sharded)
	if ok && a.InShards(holders(w.Run)) {
		return false, "" // each shard has versions of its own
	}
	versions := make([]uint64, len(w.Run.Stage.Names))
	broken = lives(w.Run, func(node int) { versions[node] = 0 }, func(e *world.Recorded) string {
		if e.Kind != actors.UpdateApplied {
			return ""
		}
		watched = true
		before := versions[e.Node]
		versions[e.Node] = e.Version
		if e.Version < before {
			return fmt.Sprintf("version %d of its model came after version %d", e.Version, before)
		}
		return ""
	})
	return watched, broken
}

// holders is how many nodes of a run hold a model.
func holders(t *experiment.Trial) (n int) {
	for _, r := range t.Stage.Point.Spec.Roles {
		if r.Holds {
			n++
		}
	}
	return n
}

// goneAreSilent leaves a node the time of a step: what its handler charges at its end may reach
// beyond.
func goneAreSilent(w *Watch) (bool, string) {
	d := w.Run.Stage.Deployment
	since, until := make([]time.Duration, len(d.Nodes)), make([]time.Duration, len(d.Nodes))
	for i := range d.Nodes {
		if d.Nodes[i].Absent {
			until[i] = link.Forever
		}
	}
	schedule, slack := d.Schedule, longestCharge(w)
	broken := lives(w.Run, func(int) {}, func(e *world.Recorded) string {
		for ; len(schedule) > 0 && schedule[0].At <= e.At; schedule = schedule[1:] {
			c := &schedule[0]
			switch {
			case c.Node >= len(since):
			case c.Do == world.Pause:
				since[c.Node], until[c.Node] = c.At, max(until[c.Node], c.At+c.For)
			case c.Do == world.Join:
				until[c.Node] = 0
			case c.Do == world.Crash:
				since[c.Node], until[c.Node] = c.At, link.Forever
			}
		}
		switch {
		case e.Kind != actors.StepDone && e.Kind != actors.UpdateApplied && e.Kind != actors.Merged:
			return ""
		case e.At > since[e.Node]+slack && e.At < until[e.Node]:
			return fmt.Sprintf("it is away or paused since %v, and there was an event %s", since[e.Node], e.Kind)
		}
		return ""
	})
	return len(d.Schedule) > 0, broken
}

func stalenessBound(w *Watch) (bool, string) {
	a, ok := w.Run.Stage.Point.Spec.Architecture.(train.Bounded)
	if !ok || comesOrGoes(w.Run) {
		return false, ""
	}
	bound, each, bounded := a.RoundsAhead()
	if !bounded {
		return false, ""
	}
	workers, rounds := w.Run.Stage.Workers(), make([]uint64, len(w.Run.Stage.Names))
	for _, threads := range w.Run.Stage.Task.Threads {
		if threads > 1 {
			return false, "" // a team's round has as many steps
		}
	}
	return true, lives(w.Run, func(int) {}, func(e *world.Recorded) string {
		if e.Kind != actors.StepDone {
			return ""
		}
		rounds[e.Node] = e.Step / uint64(each)
		slowest := uint64(math.MaxUint64)
		for _, n := range workers {
			slowest = min(slowest, rounds[n])
		}
		if ahead := rounds[e.Node] - slowest; ahead > bound+1 {
			return fmt.Sprintf("it has finished %d rounds more than the slowest, and %d are allowed", ahead,
				bound+1)
		}
		return ""
	})
}

// comesOrGoes reports whether a node of a run did.
func comesOrGoes(t *experiment.Trial) bool {
	return slices.ContainsFunc(t.Stage.Deployment.Schedule,
		func(c world.NodeChange) bool { return c.Do != world.Pause })
}

// longestStep is the longest time from one step of a node to its next.
func longestStep(t *experiment.Trial) (longest time.Duration) {
	last := make([]time.Duration, len(t.Stage.Names))
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == actors.StepDone {
			longest, last[e.Node] = max(longest, e.At-last[e.Node]), e.At
		}
	}
	return longest
}

// longestCharge bounds the time that a handler of a run spends on its work: a step of the
// undisturbed run, or all of it if it is too short for one, or that many times as long as a node is
// slow.
func longestCharge(w *Watch) time.Duration {
	factor := 1.0
	for i := range w.Run.Stage.Deployment.Nodes {
		for _, s := range w.Run.Stage.Deployment.Nodes[i].Profile.Slowdowns {
			factor = max(factor, s.Factor)
		}
	}
	return time.Duration(factor * float64(cmp.Or(longestStep(w.Calm), w.Calm.End)))
}

// longestWait is the longest time from one step of a worker to its next, or to the end of the run:
// a message that is lost several times in a row may have everybody wait to the end of a short run.
func longestWait(t *experiment.Trial) time.Duration {
	longest, last := longestStep(t), make([]time.Duration, len(t.Stage.Names))
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == actors.StepDone {
			last[e.Node] = e.At
		}
	}
	for _, node := range t.Stage.Workers() {
		longest = max(longest, t.End-last[node])
	}
	return longest
}

// patience is how many times the longest wait of the undisturbed run may pass after the last fault
// before a step must come.
const patience = 8

func progress(w *Watch) (bool, string) {
	if w.Run.Failure != nil {
		return true, "the run could not go on: " + w.Run.Failure.Error()
	}
	least := patience * longestWait(w.Calm)
	if why := w.Calm.Unproductive(); why != "" && least < w.Calm.End { // the run is long enough for a verdict
		return true, "the run without faults makes no progress: " + why
	}
	after := w.Recovered + least
	if after >= w.Run.End || tooFew(w.Run, w.Recovered) || tooFew(w.Run, w.Run.End) {
		return false, ""
	}
	for i := range w.Run.Events {
		if e := &w.Run.Events[i]; e.Kind == actors.StepDone && e.At > w.Recovered {
			return true, ""
		}
	}
	return true, fmt.Sprintf("no node made a step from %v, when the last fault was over, to the end at %v", w.Recovered,
		w.Run.End)
}

// tooFew reports whether fewer nodes of a role are there at an instant than its architecture needs:
// a peer of gossip learning that is left alone learns nothing.
func tooFew(t *experiment.Trial, at time.Duration) bool {
	there := map[string]int{}
	for node, role := range t.Stage.Point.Spec.Roles {
		if t.Stage.Deployment.Present(node, at) {
			there[role.Name]++
		}
	}
	return slices.ContainsFunc(t.Stage.Point.Spec.Architecture.Roles(),
		func(r train.Role) bool { return there[r.Name] < r.Min })
}

func modelsFinite(w *Watch) (bool, string) {
	for _, m := range w.Run.Models {
		for i, v := range m.Params {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return true, fmt.Sprintf("parameter %d of node %s is %v", i, w.Run.Stage.Names[m.Node], v)
			}
		}
	}
	return len(w.Run.Models) > 0, ""
}

func ranksEqual(w *Watch) (watched bool, broken string) {
	if a, ok := w.Run.Stage.Point.Spec.Architecture.(train.Ranked); !ok || !a.EqualRanks() {
		return false, ""
	}
	versions, unsure := make([]uint64, len(w.Run.Stage.Names)), make([]bool, len(w.Run.Stage.Names))
	slack := longestCharge(w)                        // an update takes a while, and its event is at the end of that
	begins := func(node int) { unsure[node] = true } // with a model of which no event tells
	_ = lives(w.Run, begins, func(e *world.Recorded) string {
		switch {
		case e.Kind != actors.UpdateApplied:
		case e.At <= w.Run.Judged:
			versions[e.Node], unsure[e.Node] = e.Version, false
		case e.At <= w.Run.Judged+slack:
			unsure[e.Node] = true
		}
		return ""
	})
	first := map[uint64]int{}
	for i, m := range w.Run.Models {
		if unsure[m.Node] {
			continue
		}
		k, known := first[versions[m.Node]]
		if !known {
			first[versions[m.Node]] = i
			continue
		}
		watched = true
		other := w.Run.Models[k]
		same := slices.EqualFunc(m.Params, other.Params,
			func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
		if !same {
			return true, fmt.Sprintf("nodes %s and %s have made %d updates, and have other models",
				w.Run.Stage.Names[other.Node], w.Run.Stage.Names[m.Node], versions[m.Node])
		}
	}
	return watched, ""
}

func stepsCounted(w *Watch) (bool, string) {
	steps := uint64(0)
	for i := range w.Run.Events {
		if w.Run.Events[i].Kind == actors.StepDone {
			steps++
		}
	}
	if steps != w.Run.Data.Steps {
		return true, fmt.Sprintf("%d steps happened, and %d were counted", steps, w.Run.Data.Steps)
	}
	return true, ""
}
