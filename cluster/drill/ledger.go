package drill

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// level is what every parameter of a ledger run begins at: a power of two far above 0, so that
// what averaging loses is seen, and a float32 counts exactly on from it.
const level = 1024

// count has a task's steps count: each adds 1 to those parameters, every n-th, that belong to its
// worker, one of n. Where it cannot be told whose samples a batch has, there is one class of
// parameters for all.
func count(t *train.Task) {
	m := &ledger{Model: t.Model, classes: len(t.Workers), owner: make([]int32, t.Train.Len())}
	if t.Sparse == nil {
		m.classes = 1
	}
	seen := 0
	for rank, shard := range t.Shards {
		for _, row := range shard {
			m.owner[row] = int32(rank % m.classes)
		}
		seen += len(shard)
	}
	if seen > t.Train.Len() { // a sample may be in several shards
		m.classes = 1
		clear(m.owner)
	}
	t.Model, t.Method = m, optim.SGD{Rate: optim.Constant(1)}
}

// ledger is a model of the same size and work as another. Its gradients count steps, so that parameters
// record which updates they hold.
type ledger struct {
	nn.Model
	classes int
	owner   []int32 // the class of each sample
}

func (c *ledger) Init(params []float32, _ *rand.Rand) {
	for i := range params {
		params[i] = level
	}
}

func (c *ledger) NewWorkspace(batch int) nn.Workspace {
	return &counter{c.Model.NewWorkspace(batch), c}
}

type counter struct {
	nn.Workspace
	of *ledger
}

func (c *counter) Gradient(_, grad []float32, b nn.Batch) (loss float64) {
	class := 0
	if c.of.classes > 1 {
		class = int(c.of.owner[b.Rows[0]])
	}
	clear(grad)
	for i := class; i < len(grad); i += c.of.classes {
		grad[i] = -1
	}
	return 1
}

// classes is how many classes of parameters the steps of a ledger run count in.
func classes(t *experiment.Trial) int { return t.Stage.Task.Model.(*ledger).classes }

// stepped are the steps of a ledger run up to an instant, by their class.
func stepped(t *experiment.Trial, until time.Duration) []float64 {
	class := make([]int, len(t.Stage.Names))
	n := classes(t)
	for rank, node := range t.Stage.Workers() {
		class[node] = rank % n
	}
	steps := make([]float64, n)
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == actors.StepDone && e.At <= until {
			steps[class[e.Node]]++
		}
	}
	return steps
}

// rounding bounds the relative error of sums in a ledger run.
const rounding = 1e-3

// conserved is what the architecture of a run says that it keeps.
func conserved(t *experiment.Trial) train.Conserved {
	if a, ok := t.Stage.Point.Spec.Architecture.(train.Conserving); ok {
		return a.Conserves()
	}
	return train.Conserved{}
}

func averagesBetween(w *Watch) (bool, string) {
	t := w.Count
	if t.Failure != nil {
		return true, "the run in which steps count could not go on: " + t.Failure.Error()
	}
	if !conserved(t).Between || len(t.Models) == 0 {
		return false, ""
	}
	steps := 0.0
	for _, n := range stepped(t, t.End) {
		steps += n
	}
	const off = rounding * level
	for _, m := range t.Models {
		for i, v := range m.Params {
			if v := float64(v); !(v >= level-off && v <= level+steps+off) {
				return true, fmt.Sprintf("parameter %d of node %s is %v, after %v steps from %v on", i,
					t.Stage.Names[m.Node], v, steps, level)
			}
		}
	}
	return true, ""
}

func sumsPreserved(w *Watch) (bool, string) {
	t := w.Count
	keeps := conserved(t)
	if !keeps.Sum || comesOrGoes(t) || t.Failure != nil || len(t.Models) != len(t.Stage.Workers()) {
		return false, ""
	}
	steps := stepped(t, t.Judged)
	masses := make([]mass, len(steps))
	for class := range masses {
		into := &masses[class]
		if keeps.Weighted {
			into = &masses[0]
		}
		into.steps += steps[class]
		gained, spread := gain(t, class)
		if into.gained += gained; !keeps.Alone {
			into.spread += spread
		}
	}
	n := float64(len(t.Models))
	for i := range masses {
		s := &masses[i]
		// The models are of one instant, at which nodes are at different steps: some have averaged
		// what others are about to.
		pending := n * (2 + s.spread/2)
		if math.Abs(s.gained-s.steps) > pending+n*rounding*level {
			return true, fmt.Sprintf("all models together have gained %.1f in %v steps of some, with %.1f under way "+
				"at most", s.gained, s.steps, pending)
		}
	}
	return true, ""
}

// mass is the amount of some steps in the models of a ledger run, and their spread.
type mass struct{ gained, spread, steps float64 }

// gain is what all models have gained of a class, and how far one is from another.
func gain(t *experiment.Trial, class int) (gained, spread float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, m := range t.Models {
		v := float64(m.Params[class]) - level
		gained, low, high = gained+v, min(low, v), max(high, v)
	}
	return gained, high - low
}

func updatesOnce(w *Watch) (bool, string) {
	if again := recordedAgain(w.Run); again != "" {
		return true, again
	}
	t := w.Count
	keeps := conserved(t)
	if !keeps.Once || t.Failure != nil || len(t.Models) == 0 {
		return false, ""
	}
	n := classes(t)
	all, before := stepped(t, t.End), stepped(t, t.Judged-longestCharge(w))
	lives := make([]float64, n)
	for rank, node := range t.Stage.Workers() {
		lives[rank%n]++
		for _, c := range t.Stage.Deployment.Schedule {
			if c.Node == node && c.Ends() {
				lives[rank%n]++
			}
		}
	}
	pending := float64(keeps.Pending)
	for _, m := range t.Models {
		for i, v := range m.Params {
			class := i % n
			taken := float64(v) - level
			if taken > all[class] {
				return true, fmt.Sprintf("parameter %d has taken in %v gradients of %v steps", i, taken, all[class])
			}
			if taken < before[class]-lives[class]*pending {
				return true, fmt.Sprintf("parameter %d has taken in %v gradients of %v steps, and at most %v are "+
					"under way or were lost with their worker", i, taken, before[class], lives[class]*pending)
			}
		}
	}
	return true, ""
}

// recordedAgain says which gradient a run's events have twice; empty if none.
func recordedAgain(t *experiment.Trial) string {
	taken := map[sim.Push]bool{}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind != actors.UpdateApplied || e.Push == 0 {
			continue
		}
		p := pushOf(e)
		if taken[p] {
			return fmt.Sprintf("at %v: push %d of node %s to shard %d is recorded once more", e.At, p.Number,
				t.Stage.Names[p.Worker], p.Shard)
		}
		taken[p] = true
	}
	return ""
}
