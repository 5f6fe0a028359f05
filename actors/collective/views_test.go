package collective_test

import (
	"context"
	"fmt"
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
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/protos"
)

// shuffle draws what happens to the nodes but the first in the first rounds.
func shuffle(random *rand.Rand, nodes int) []world.NodeChange {
	var schedule []world.NodeChange
	for range 3 + random.IntN(5) {
		schedule = append(schedule, world.NodeChange{
			At:   time.Duration(random.IntN(150_000)) * time.Microsecond,
			Node: 1 + random.IntN(nodes-1), Do: world.NodeEvent(1 + random.IntN(3)),
		})
	}
	slices.SortStableFunc(schedule, func(a, b world.NodeChange) int { return int(a.At - b.At) })
	return schedule
}

// Nodes hear of a view at different times, so that messages of views come to them of which they
// have not heard.
func TestRoundsAreBySomeViewAloneWhateverHappensAndWhoeverHearsOfItFirst(t *testing.T) {
	t.Parallel()
	runs := 200
	if simtest.Brief() {
		runs = 40
	}
	landed := 0
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 5))
		n := 2 + random.IntN(4)
		late := make([]time.Duration, n)
		for node := range late {
			late[node] = time.Duration(random.IntN(12_000)) * time.Microsecond
		}
		c := churn{
			task: churnTask(n, momentum(0.05)), schedule: shuffle(random, n), end: 500 * time.Millisecond,
			strict: run%3 == 0,
			architecture: collective.Architecture{Algorithm: algorithms[run%len(algorithms)], Every: 1,
				Reduce: collective.Gradients},
			late: func(node int) time.Duration { return late[node] }, posted: run%2 == 1,
		}
		if node := 1 + random.IntN(n-1); run%2 == 0 {
			c.absent = []int{node}
		}
		if run%5 == 0 {
			c.task, c.architecture.Every, c.architecture.Reduce = churnTask(n, sgd(0.2)), 2, collective.Models
		}
		c.run(t)
		c.explain(t)
		if landed += c.landed; c.again > 0 {
			t.Errorf("run %d: %d chunks had a place after they had come", run, c.again)
		}
	}
	if landed == 0 {
		t.Error("no chunk arrived where it belongs")
	}
}

func TestChurnLeavesTheSameTraceWhateverTheThreads(t *testing.T) {
	for _, a := range algorithms {
		var digests []uint64
		for _, threads := range []int{0, 2} {
			c := churn{
				task: churnTask(5, momentum(0.05)), schedule: shuffle(rand.New(rand.NewPCG(7, 8)), 5),
				end:     300 * time.Millisecond,
				threads: threads, architecture: collective.Architecture{Algorithm: a, Every: 1,
					Reduce: collective.Gradients},
			}
			c.run(t)
			digests = append(digests, c.result.Digest)
		}
		if digests[0] != digests[1] {
			t.Errorf("%s: digests %x", a, digests)
		}
	}
}

func TestWhereAllJoinTheyStartFromTheInitialModel(t *testing.T) {
	c := churn{
		task: churnTask(3, momentum(0.05)), end: 400 * time.Millisecond,
		architecture: collective.Architecture{Algorithm: collective.Ring, Every: 1, Reduce: collective.Gradients},
		schedule: []world.NodeChange{
			{At: 90 * time.Millisecond, Node: 0, Do: world.Leave},
			{At: 91 * time.Millisecond, Node: 1, Do: world.Leave},
			{At: 92 * time.Millisecond, Node: 2, Do: world.Leave},
			{At: 100 * time.Millisecond, Node: 2, Do: world.Join},
			{At: 101 * time.Millisecond, Node: 0, Do: world.Join},
		},
	}
	c.run(t)
	c.views = c.views[4:] // the run starts over with node 2 alone
	if rounds := c.explain(t); len(rounds) < 5 {
		t.Errorf("%d rounds", len(rounds))
	}
}

// voted is a trial with votes beside the dumb second implementation of it.
func voted(t *testing.T, a collective.Algorithm, moved float64, every int) (s *trial, last *past) {
	t.Helper()
	s = &trial{
		task: simtest.Task(simtest.Perceptron(4, 3), sizes[:5], 16, sgd(0.1)), rounds: 12, strict: true,
		architecture: collective.Architecture{Algorithm: a, Every: every, Reduce: collective.Models, Moved: moved},
	}
	models := s.run(t)
	l := newLoop(t, s.task)
	last = &past{joint: s.task.Initial(), models: make([][]float32, 5)}
	for round := range s.rounds {
		last = last.next(l, s.architecture, round, 0, []int{0, 1, 2, 3, 4})
	}
	for node, params := range models {
		if d := distance(params, last.models[node]); !(d < 1e-6) {
			t.Errorf("%s, moved %v, every %d: distance of node %d to one process %.1e", a, moved, every, node, d)
		}
	}
	return s, last
}

func TestModelsAreExchangedOnlyWhenSomebodyHasMovedFarEnough(t *testing.T) {
	const n, params = 5, 15
	costs := map[collective.Algorithm][2]int{ // messages and values of a model
		collective.AllToAll:     {n * (n - 1), n * (n - 1) * params},
		collective.Ring:         {2 * n * (n - 1), 2 * (n - 1) * params},
		collective.Butterfly:    {2*4*2 + 2*1, 2 * (n - 1) * params},
		collective.Tree:         {2 * (n - 1), 2 * (n - 1) * params},
		collective.Hierarchical: {2*(n-2) + 2*2*1, 2 * (n - 1) * params}, // in two sites
	}
	for _, a := range algorithms {
		for _, every := range []int{1, 3} {
			s, last := voted(t, a, 0.1*float64(every), every)
			if last.exchanges == 0 || last.exchanges == s.rounds {
				t.Fatalf("every %d: %d exchanges in %d rounds decide nothing", every, last.exchanges, s.rounds)
			}
			messages, size := int64(0), int64(0)
			for _, e := range s.network.Used() {
				messages += e.Sent
				size += e.SentBytes
			}
			want := int64(costs[a][0] * (s.rounds + last.exchanges))
			payload := int64(4 * costs[a][1] / params * (s.rounds + params*last.exchanges))
			if messages != want || size < payload+40*want || size > payload+120*want {
				t.Errorf("%s: %d messages and %d bytes for %d votes and %d exchanges, want %d and %d beside the heads",
					a, messages, size, s.rounds, last.exchanges, want, payload)
			}
		}
	}
}

func TestFarAwayBoundNeverExchangesAndNearOneAlways(t *testing.T) {
	if _, last := voted(t, collective.Ring, 1e9, 2); last.exchanges != 0 {
		t.Errorf("%d exchanges", last.exchanges)
	}
	if s, last := voted(t, collective.Ring, 1e-9, 2); last.exchanges != s.rounds {
		t.Errorf("%d exchanges in %d rounds", last.exchanges, s.rounds)
	}
}

func TestVotedRoundsAreBySomeViewAloneWheneverANodeCrashesOrJoins(t *testing.T) {
	t.Parallel()
	everywhere(t, 2, 5, func(t *testing.T, a collective.Algorithm, n int) {
		landed := 0
		sweep(n, 2900*time.Microsecond, func(i int, at time.Duration) {
			node := i % n
			c := churn{
				task: churnTask(n, sgd(0.1)), end: 400 * time.Millisecond,
				schedule:     []world.NodeChange{{At: at, Node: node, Do: world.Crash}},
				architecture: collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Models, Moved: 0.08},
				posted:       true,
			}
			if i%2 == 1 {
				c.absent, c.schedule[0].Do = []int{node}, world.Join
			}
			c.run(t)
			c.explain(t)
			if landed += c.landed; c.again > 0 {
				t.Errorf("at %v: %d chunks had a place after they had come", at, c.again)
			}
		})
		if landed == 0 {
			t.Error("no chunk arrived where it belongs")
		}
	})
}

// Node 0 is the root of the tree and the first to finish the first round, at 22.3 ms. Node 1, which
// hears from it 10 ms later, lacks the outcome when node 2 joins and takes node 0's state. Then
// node 0 leaves, and only the one that joined can give node 1 what it lacks.
func TestOutcomeIsHadFromARankThatHasJustJoined(t *testing.T) {
	for name, arch := range map[string]collective.Architecture{
		"gradients":     {Reduce: collective.Gradients},
		"models":        {Reduce: collective.Models},
		"no exchange":   {Reduce: collective.Models, Moved: 1e9},
		"all exchanges": {Reduce: collective.Models, Moved: 1e-9},
	} {
		for _, leaves := range []time.Duration{28 * time.Millisecond, 100 * time.Millisecond} {
			c := churn{
				task: churnTask(3, sgd(0.1)), architecture: arch, end: 300 * time.Millisecond, absent: []int{2},
				schedule: []world.NodeChange{
					{At: 23300 * time.Microsecond, Node: 2, Do: world.Join}, {At: leaves, Node: 0, Do: world.Leave},
				},
				delay: func(from, to int) time.Duration {
					if from == 0 && to == 1 {
						return 10 * time.Millisecond
					}
					return time.Millisecond
				},
			}
			if arch.Moved > 0 && arch.Moved < 1 { // the models follow the votes
				c.schedule[0].At = 33300*time.Microsecond + 2*time.Millisecond
				c.schedule[1].At += 12 * time.Millisecond
			}
			c.architecture.Algorithm, c.architecture.Every = collective.Tree, 1
			if name == "gradients" {
				c.task = churnTask(3, momentum(0.05))
			}
			c.run(t)
			rounds := c.explain(t)
			if !slices.Equal(rounds[0].members, []int{0, 1}) {
				t.Errorf("%s: the first round is by %v: its outcome was lost", name, rounds[0].members)
			}
		}
	}
}

// The wait for a crashed rank is one for its chunk, then one for the others to agree.
func TestSurvivorsWaitUntilTheCrashIsHeardOf(t *testing.T) {
	o := newWaits()
	c := churn{
		task: churnTask(2, sgd(0.1)), end: 60 * time.Millisecond,
		schedule:     []world.NodeChange{{At: time.Millisecond, Node: 1, Do: world.Crash}},
		architecture: collective.Architecture{Algorithm: collective.Tree, Every: 2, Reduce: collective.Gradients},
		observer:     o,
	}
	c.schedule[0].At = 39 * time.Millisecond
	c.run(t)
	// Two steps of 20 ms; the crash at 39 ms is heard of 3.1 ms later, and then node 0 is alone.
	want := map[string]time.Duration{"0 for rank 1": 2100 * time.Microsecond}
	if fmt.Sprint(o.causes) != fmt.Sprint(want) {
		t.Errorf("waits %v, want %v", o.causes, want)
	}
}

// A coordinator that asks for the model when it hears of a step gets one that has taken it in.
func TestModelHasTakenInTheStepsThatTheCoordinatorHasHeardOf(t *testing.T) {
	task := churnTask(3, sgd(0.1))
	for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
		a := collective.Architecture{Algorithm: collective.Ring, Every: 1, Reduce: reduce}
		l := newLoop(t, task)
		p := &past{joint: task.Initial(), models: make([][]float32, 3), optimizer: task.Method.New(15).State()}
		want := [][]float32{p.joint}
		for round := range 4 {
			p = p.next(l, a, round, 0, []int{0, 1, 2})
			want = append(want, p.joint)
		}
		d := &world.Deployment{Seed: 1}
		for i, name := range task.Workers {
			profile := world.Profile{Cores: 1, Speed: 1e6, Step: churnStep} // updates take time
			d.Nodes = append(d.Nodes, world.Node{Name: name, Role: collective.RoleWorker, Site: simtest.Site(i),
				Profile: profile,
				Kind:    a.Kind(task, train.Place{Role: collective.RoleWorker})})
		}
		answers := 0
		d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				members := env.View().Members
				switch m := ctx.Message().(type) {
				case *actor.Started:
					for i := range members {
						ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
					}
				case *protos.Message:
					switch head := m.Head.(type) {
					case *protos.Progress:
						ctx.Send(members[head.Node].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: head.Step}))
					case *protos.Snapshot:
						if x := distance(m.Tensors[0].Data, want[head.Evaluation]); x > 1e-6 {
							t.Errorf("%s: after step %d the model of node %d is %v off, and has %d updates", reduce,
								head.Evaluation, head.Node, x, head.Version)
						}
						if answers++; answers == 12 {
							control.Finish()
						}
					}
				}
			}), nil
		}
		network := link.New(1, append(slices.Clone(task.Workers), actors.Coordinator))
		network.SetDefault(link.Config{Delay: link.Constant{Delay: time.Millisecond}})
		w, err := sim.New(sim.Config{Deployment: d, Network: network})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
