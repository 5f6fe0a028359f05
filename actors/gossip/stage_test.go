package gossip_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

// newTask returns a task on random data with the same number of samples for each peer.
func newTask(peers, samples, batch int, layers ...int) *train.Task {
	return simtest.Task(simtest.Perceptron(layers...), slices.Repeat([]int{samples}, peers), batch,
		optim.SGD{Rate: optim.Constant(0.1)})
}

// counting is a method by which each step adds a number to all parameters: the i-th peer of a
// run its i-th. Models start from 0, so that they can be followed by hand.
type counting struct {
	adds []float32
	made int
}

type adder float32

func (c *counting) New(int) optim.Optimizer {
	c.made++
	return adder(c.adds[(c.made-1)%len(c.adds)])
}

func (a adder) Step(dst, params, _ []float32) {
	for i := range params {
		dst[i] = params[i] + float32(a)
	}
}
func (adder) Work(int) float64          { return 0 }
func (adder) State() optim.State        { return optim.State{} }
func (adder) Restore(optim.State) error { return nil }

// zero is a model whose initial parameters are 0.
type zero struct{ nn.Model }

func (zero) Init(params []float32, _ *rand.Rand) { clear(params) }

// countingTask is one whose models are followed by hand.
func countingTask(adds ...float32) *train.Task {
	task := newTask(len(adds), 4, 2, 2, 2)
	task.Model, task.Method = zero{task.Model}, &counting{adds: adds}
	return task
}

// stage lets peers train in virtual time until an instant, at which it looks at all models.
type stage struct {
	task       *train.Task
	rules      gossip.Architecture
	steps      []time.Duration // of each peer; the last one holds for the rest
	edge       link.Delay
	reorder    bool
	links      func(n *link.Network)
	topologies []actors.Graph
	threads    int
	lax        bool // not strict
	observer   world.Observer
	end        time.Duration

	ages    []uint64 // of the models at the end
	result  sim.Result
	network *link.Network
}

func (s *stage) world(t testing.TB, coordinate func(actors.Env, world.Control) (actor.Actor, error)) *sim.World {
	t.Helper()
	w, err := sim.New(s.config(coordinate))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (s *stage) config(coordinate func(actors.Env, world.Control) (actor.Actor, error)) sim.Config {
	d := &world.Deployment{Seed: s.task.Seed, Strict: !s.lax, Observer: s.observer, Topologies: s.topologies,
		Coordinate: coordinate}
	for i, name := range s.task.Workers {
		profile := world.Profile{Cores: 1, Speed: math.Inf(1), Step: s.steps[min(i, len(s.steps)-1)]}
		kind := s.rules.Kind(s.task, train.Place{Node: i, Name: name, Role: gossip.RolePeer})
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: gossip.RolePeer, Profile: profile, Kind: kind})
	}
	s.network = link.New(s.task.Seed, append(slices.Clone(s.task.Workers), actors.Coordinator))
	s.network.SetDefault(link.Config{Delay: s.edge, Reorder: s.reorder})
	if s.links != nil {
		s.links(s.network)
	}
	return sim.Config{Deployment: d, Network: s.network, Threads: s.threads}
}

func (s *stage) run(t testing.TB) [][]float32 {
	t.Helper()
	models := make([][]float32, len(s.task.Workers))
	s.ages = make([]uint64, len(models))
	came := 0
	w := s.world(t, func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			members := env.View().Members
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for i := range members {
					ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
				}
				env.After(s.end, "end")
			case string:
				for i := range members {
					ctx.Send(members[i].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: 1}))
				}
			case *protos.Message:
				if head, ok := m.Head.(*protos.Snapshot); ok {
					models[head.Node], s.ages[head.Node] = slices.Clone(m.Tensors[0].Data), head.Version
					if came++; came == len(members) {
						control.Finish()
					}
				}
				m.Release()
			}
		}), nil
	})
	var err error
	if s.result, err = w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return models
}

// logged is an event with its instant and node.
type logged struct {
	at   time.Duration
	node int
	actors.Event
}

// log keeps all events.
type log []logged

func (l *log) Observe(at time.Duration, node int, event actors.Event) {
	*l = append(*l, logged{at, node, event})
}

// of returns the events of a node, of one kind.
func (l log) of(node int, kind actors.EventKind) (list []logged) {
	for _, e := range l {
		if e.node == node && e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

func constant(d time.Duration) link.Delay { return link.Constant{Delay: d} }

// all chooses all neighbours, after every step.
func all(exchange gossip.Exchange, wait bool) gossip.Architecture {
	return gossip.Architecture{
		Every: 1, Choice: gossip.Choice{By: gossip.Random, Share: 1}, Exchange: exchange, Wait: wait,
		Merge: gossip.Mean, Lead: gossip.NoLead,
	}
}
