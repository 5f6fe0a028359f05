package federated_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// stage is a server at position 0 and its clients, led by the test's own coordinator.
type stage struct {
	task     *train.Task
	arch     federated.Architecture
	steps    []time.Duration // of each client; nil for 10 ms each
	schedule []world.NodeChange
	absent   []int
	link     link.Config
	reliable bool
	rounds   int           // after which the run ends
	time     time.Duration // after which it ends, if no rounds are given
	threads  int
	watch    func(name string, a actor.Actor) // is shown all actors, unless it is nil
	server   func(actors.Env) actor.Actor     // in the place of the architecture's, unless it is nil
	edges    []string                         // names of aggregators, behind the clients
	watched  *steps                           // of a node; nil for none

	models             [][]float32 // after each round
	ended              []time.Duration
	updates            [][]int       // whose updates each version has taken in
	stale              [][]uint64    // how old these were
	passed             map[int][]int // whose updates each aggregator has taken in
	missed, unanswered float64
	told               map[string]map[int]float64 // the latest measurements by their names and nodes
	stepped            []int                      // by node
	digest             uint64
}

var _ world.Observer = (*stage)(nil)

// newTask is a small network on clouds, for clients of other numbers of samples.
func newTask(samples ...int) *train.Task {
	return simtest.Task(simtest.Perceptron(12, 5, 3), samples, 8, optim.SGD{Rate: optim.Constant(0.1)})
}

// Observe implements [world.Observer].
func (s *stage) Observe(at time.Duration, node int, e actors.Event) {
	if s.watched != nil && e.Kind == actors.StepDone && node == s.watched.node {
		s.watched.at = append(s.watched.at, at)
	}
	if e.Kind == actors.Measured {
		if s.told[e.Name] == nil {
			s.told[e.Name] = map[int]float64{}
		}
		s.told[e.Name][node] = e.Value
	}
	switch {
	case e.Kind == actors.UpdateApplied && node > 0:
		s.passed[node] = append(s.passed[node], e.Origin)
	case e.Kind == actors.UpdateApplied:
		for int(e.Version) > len(s.updates) {
			s.updates, s.stale = append(s.updates, nil), append(s.stale, nil)
		}
		s.stale[e.Version-1] = append(s.stale[e.Version-1], e.Staleness)
		s.updates[e.Version-1] = append(s.updates[e.Version-1], e.Origin)
	case e.Kind == actors.StepDone:
		s.stepped[node]++
	case e.Name == federated.Missed:
		s.missed = e.Value
	case e.Name == federated.Unanswered:
		s.unanswered = e.Value
	}
}

// coordinator starts everybody, announces who comes and goes, and keeps the model of each round.
type coordinator struct {
	*stage
	env     actors.Env
	control world.Control
	view    protos.View
}

func (c *coordinator) Receive(ctx actor.Context) {
	members := c.env.View().Members
	switch m := ctx.Message().(type) {
	case *actor.Started:
		for i := range members {
			if members[i].Present {
				ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
			}
		}
		if c.rounds == 0 {
			c.env.After(c.time, "end")
		}
	case string:
		c.control.Finish()
	case world.MemberChange:
		c.change(ctx, m)
	case *protos.Message:
		switch head := m.Head.(type) {
		case *protos.RoundDone:
			c.ended = append(c.ended, c.env.Now())
			ctx.Send(members[0].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: head.Round}))
		case *protos.Snapshot:
			c.models = append(c.models, slices.Clone(m.Tensors[0].Data))
			if len(c.models) == c.rounds {
				c.control.Finish()
			}
		}
		m.Release()
	}
}

func (c *coordinator) change(ctx actor.Context, m world.MemberChange) {
	node := int32(m.Node)
	c.view.Number++
	c.view.Absent = slices.DeleteFunc(c.view.Absent, func(i int32) bool { return i == node })
	if !m.Present {
		c.view.Absent = append(c.view.Absent, node)
		slices.Sort(c.view.Absent)
	}
	head := func() *protos.View {
		return &protos.View{Number: c.view.Number, Absent: slices.Clone(c.view.Absent)}
	}
	c.control.Announce(head())
	for i := range c.env.View().Members {
		if m := &c.env.View().Members[i]; m.Present {
			ctx.Send(m.PID, protos.NewMessage(head()))
		}
	}
	if m.Present {
		ctx.Send(c.env.View().Members[m.Node].PID, protos.NewMessage(&protos.Start{View: c.view.Number, Joins: true}))
	}
}

func (s *stage) try(tb testing.TB) error {
	tb.Helper()
	s.models, s.ended, s.updates, s.stale = nil, nil, nil, nil
	s.stepped = make([]int, 1+len(s.task.Workers)+len(s.edges))
	s.missed, s.unanswered, s.told, s.passed = 0, 0, map[string]map[int]float64{}, map[int][]int{}
	d := &world.Deployment{Seed: s.task.Seed, Strict: true, Observer: s, Schedule: s.schedule,
		Detect: time.Millisecond, Lossy: s.link.Loss.Drop, Reliable: s.reliable}
	names, hub := []string{"hub"}, s.arch.Kind(s.task, train.Place{Role: federated.RoleServer})
	if s.server != nil {
		hub = func(env actors.Env) (actor.Actor, error) { return s.server(env), nil }
	}
	d.Nodes = []world.Node{{Name: "hub", Role: federated.RoleServer, Profile: world.Profile{Cores: 1, Speed: 1e12},
		Kind: watched(hub, "hub", s.watch)}}
	for i, name := range s.task.Workers {
		step := 10 * time.Millisecond
		if s.steps != nil {
			step = s.steps[i]
		}
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: federated.RoleClient,
			Profile: world.Profile{Cores: 1, Speed: 1e12, Step: step}, Absent: slices.Contains(s.absent, i+1),
			Kind: watched(s.arch.Kind(s.task, train.Place{Node: i + 1, Name: name, Role: federated.RoleClient}), name,
				s.watch)})
		names = append(names, name)
	}
	for _, name := range s.edges {
		place := train.Place{Node: len(d.Nodes), Name: name, Role: federated.RoleAggregator}
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: place.Role,
			Profile: world.Profile{Cores: 1, Speed: 1e12}, Absent: slices.Contains(s.absent, place.Node),
			Kind: watched(s.arch.Kind(s.task, place), name, s.watch)})
		names = append(names, name)
	}
	absent := make([]int32, len(s.absent))
	for i, node := range s.absent {
		absent[i] = int32(node)
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return &coordinator{stage: s, env: env, control: control, view: protos.View{Number: 1, Absent: absent}}, nil
	}
	network := link.New(d.Seed, append(names, actors.Coordinator))
	if s.link.Delay == nil {
		s.link.Delay = link.Uniform{Min: time.Millisecond, Max: 3 * time.Millisecond}
	}
	network.SetDefault(s.link)
	w, err := sim.New(sim.Config{Deployment: d, Network: network, Threads: s.threads})
	if err != nil {
		return err
	}
	result, err := w.Run(context.Background())
	s.digest = result.Digest
	return err
}

func (s *stage) run(tb testing.TB) [][]float32 {
	tb.Helper()
	if err := s.try(tb); err != nil {
		tb.Fatal(err)
	}
	if s.rounds > 0 && len(s.models) != s.rounds {
		tb.Fatal("the run ended early")
	}
	return s.models
}

// watched shows the actor that a kind makes.
func watched(kind actors.Kind, name string, watch func(string, actor.Actor)) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		a, err := kind(env)
		if watch != nil {
			watch(name, a)
		}
		return a, err
	}
}
