package collective_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/protos"
)

// terrain is a network of workers, of which layout and network say the same.
type terrain struct {
	task    *train.Task
	workers []train.Station
	lines   [][]train.Line
}

// newTerrain puts n workers of a model of params parameters, a multiple of 5, into several sites.
func newTerrain(n, params, sites int) *terrain {
	shards := slices.Repeat([]int{16}, n)
	g := &terrain{task: simtest.Task(simtest.Perceptron(params/5-1, 5), shards, 16, sgd(0.01)),
		workers: make([]train.Station, n), lines: make([][]train.Line, n)}
	for i := range n {
		g.workers[i] = train.Station{Site: int32(i * sites / n), Step: stepTime, Speed: math.Inf(1)}
		g.lines[i] = make([]train.Line, n)
	}
	return g
}

// each sets every line.
func (g *terrain) each(line func(from, to int) train.Line) *terrain {
	for i := range g.lines {
		for j := range g.lines[i] {
			g.lines[i][j] = line(i, j)
		}
	}
	return g
}

func (g *terrain) layout() train.Layout {
	return train.Layout{Params: g.task.Model.Params(), Workers: g.workers, Sites: true,
		Line: func(from, to int) train.Line { return g.lines[from][to] }}
}

// weigh returns what the algorithms cost by formula, and the one that auto takes.
func (g *terrain) weigh(t testing.TB) (costs []time.Duration, chosen collective.Algorithm) {
	t.Helper()
	a := collective.Default()
	a.Algorithm = collective.Auto
	made, c, err := a.Choose(g.layout(), false)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range c.Options {
		if o.Word != string(algorithms[i]) {
			t.Fatalf("option %d is %s, want %s", i, o.Word, algorithms[i])
		}
		costs = append(costs, o.Time)
	}
	return costs, made.(collective.Architecture).Algorithm
}

// arrivals notes when each round is over at its last rank.
type arrivals struct {
	of   []int // rounds by node
	over []time.Duration
}

func (a *arrivals) Observe(at time.Duration, node int, e actors.Event) {
	if e.Kind != actors.StepDone || a.of[node] == len(a.over) {
		return
	}
	a.over[a.of[node]] = max(a.over[a.of[node]], at)
	a.of[node]++
}

// run returns the virtual time at which each of some rounds is over at all ranks; their steps take
// stepTime.
func (g *terrain) run(t testing.TB, a collective.Algorithm, rounds int) []time.Duration {
	t.Helper()
	return g.play(t, collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients}, rounds)
}

// play is run for any architecture.
func (g *terrain) play(t testing.TB, architecture collective.Architecture, rounds int) []time.Duration {
	t.Helper()
	seen := &arrivals{of: make([]int, len(g.workers)), over: make([]time.Duration, rounds)}
	d := &world.Deployment{Seed: 1, Observer: seen, Bounded: true}
	n := link.New(1, append(slices.Clone(g.task.Workers), actors.Coordinator))
	for i, w := range g.workers {
		d.Nodes = append(d.Nodes, world.Node{Name: g.task.Workers[i], Role: collective.RoleWorker, Site: w.Site,
			Profile: world.Profile{Cores: 1, Speed: w.Speed, Step: stepTime},
			Kind:    architecture.Kind(g.task, train.Place{Role: collective.RoleWorker})})
		n.SetUplink(int32(i), rate.Constant(w.Uplink))
		n.SetDownlink(int32(i), rate.Constant(w.Downlink))
		for j, l := range g.lines[i] {
			n.Set(int32(i), int32(j), link.Config{Delay: link.Constant{Delay: l.Delay}, Rate: rate.Constant(l.Rate),
				Overhead: l.Overhead})
		}
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for _, m := range env.View().Members {
					ctx.Send(m.PID, protos.NewMessage(&protos.Start{View: 1}))
				}
				env.After(time.Second, "look")
			case string:
				if slices.Min(seen.of) == rounds {
					control.Finish()
				} else {
					env.After(time.Second, "look")
				}
			case *protos.Message:
				m.Release()
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: n})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return seen.over
}

// apiece is what a round adds to its step, after the first four.
func apiece(over []time.Duration) time.Duration {
	last := len(over) - 1
	return (over[last]-over[3])/time.Duration(last-3) - stepTime
}

// The heads of messages are what the formula does not know exactly: some bytes, but also which of
// two messages is the first that would arrive at a downlink at one instant.
func TestCostIsWhatARoundTakesInVirtualTime(t *testing.T) {
	uniform := func(l train.Line) func(_, _ int) train.Line { return func(_, _ int) train.Line { return l } }
	for name, c := range map[string]struct {
		line   train.Line
		worker train.Station
		within float64
	}{
		"delays alone":   {train.Line{Delay: 20 * time.Millisecond}, train.Station{}, 1e-9},
		"rates of links": {train.Line{Delay: time.Millisecond, Rate: 1e5, Overhead: 100}, train.Station{}, 0.01},
		"uplinks":        {train.Line{Delay: 5 * time.Millisecond}, train.Station{Uplink: 1e5}, 0.01},
		"downlinks":      {train.Line{Delay: 5 * time.Millisecond}, train.Station{Downlink: 1e5}, 0.12},
		"both":           {train.Line{Delay: time.Millisecond}, train.Station{Uplink: 1e5, Downlink: 5e4}, 0.01},
		"sums":           {train.Line{}, train.Station{Speed: 1e6}, 1e-9},
	} {
		for _, n := range []int{1, 2, 3, 6, 8, 13} {
			g := newTerrain(n, 5000, min(n, 3)).each(uniform(c.line))
			for i := range g.workers {
				w := &g.workers[i]
				w.Uplink, w.Downlink = c.worker.Uplink, c.worker.Downlink
				if c.worker.Speed > 0 {
					w.Speed = c.worker.Speed
				}
			}
			update := time.Duration(2 * 5000 / g.workers[0].Speed * 1e9) // of the model, by the mean of the gradients
			costs, _ := g.weigh(t)
			for i, a := range algorithms {
				took := apiece(g.run(t, a, 8)) - update
				if off := math.Abs(float64(costs[i] - took)); off > c.within*float64(took) {
					t.Errorf("%s over %d ranks, %s: %v by formula, %v in virtual time", a, n, name, costs[i], took)
				}
			}
		}
	}
}

// region is a random network of unequal workers and lines: sites with delays between them, and
// rates where a plan may have them.
func region(random *rand.Rand) *terrain {
	between := func(low, high float64) float64 { return low * math.Pow(high/low, random.Float64()) }
	g := newTerrain(2+random.IntN(11), 5*(4+random.IntN(2000)), 1+random.IntN(4))
	up, down, rated := random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(3) == 0
	for i := range g.workers {
		w := &g.workers[i]
		w.Speed = between(1e7, 1e10)
		if w.Site = int32(random.IntN(4)); up {
			w.Uplink = between(1e5, 1e8)
		}
		if down {
			w.Downlink = between(1e5, 1e8)
		}
	}
	var far [4][4]time.Duration
	for i := range far {
		for j := range far[i] {
			far[i][j] = time.Duration(between(1e6, 2e8))
		}
		far[i][i] = time.Duration(between(1e4, 1e6))
	}
	return g.each(func(from, to int) train.Line {
		l := train.Line{Delay: far[g.workers[from].Site][g.workers[to].Site]}
		if rated {
			l.Rate = between(1e5, 1e8)
		}
		return l
	})
}

func TestAutoTakesTheFastestOrOneThatIsNearlyAsFast(t *testing.T) {
	const rounds = 30
	networks := 60
	if testing.Short() {
		networks = 12
	}
	random := rand.New(rand.NewPCG(20, 33))
	fastest, worst := 0, 1.0
	chosen := map[collective.Algorithm]int{}
	for range networks {
		g := region(random)
		_, auto := g.weigh(t)
		took := make([]float64, len(algorithms))
		for i, a := range algorithms {
			over := g.run(t, a, rounds)
			took[i] = float64(over[rounds-1] - rounds*stepTime)
		}
		regret := took[slices.Index(algorithms, auto)] / slices.Min(took)
		if regret == 1 {
			fastest++
		}
		worst = max(worst, regret)
		chosen[auto]++
	}
	t.Logf("%d of %d networks: the fastest; worst %.3f times the fastest; chosen %v", fastest, networks, worst, chosen)
	if fastest < networks*19/20 || worst > 1.02 {
		t.Errorf("of %d networks auto takes the fastest %d times, at worst one of %.3f times its time", networks,
			fastest, worst)
	}
}

func TestLinksThatTakeForEverCostMoreThanOthers(t *testing.T) {
	g := newTerrain(4, 5000, 2).each(func(from, to int) train.Line {
		if from == 0 && to == 2 { // which is on the way of all-to-all and hierarchical alone
			return train.Line{Rate: 1e-9}
		}
		return train.Line{Delay: time.Millisecond}
	})
	for i := range g.workers {
		g.workers[i].Step = math.MaxInt64
	}
	costs, _ := g.weigh(t)
	if year := 365 * 24 * time.Hour; slices.Min(costs) < year {
		t.Errorf("of steps that take for ever: %v", costs)
	}
	for i := range g.workers {
		g.workers[i].Step = 0
	}
	if _, chosen := g.weigh(t); chosen != collective.Ring {
		t.Errorf("%s goes by a link that takes for ever", chosen)
	}
}
