package innetwork

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

// setup is switches and the workers of a task in virtual time, led by the test's own coordinator.
type setup struct {
	task     *train.Task
	rules    Architecture
	switches int          // 0 for one
	graph    actors.Graph // nil for the complete one
	schedule []world.NodeChange
	absent   []int
	link     link.Config
	reliable bool
	steps    uint64        // that a worker finishes before the run ends
	time     time.Duration // after which it ends in any case; 0 for an hour
	threads  int
	observer world.Observer
	blind    bool                                             // no models are kept
	tardy    bool                                             // switches hear of everything 20 ms late
	packet   func(head *protos.Aggregate, words []float32)    // is shown what comes to switches, unless it is nil
	intrude  func(*actors.View) (*actor.PID, *protos.Message) // sends something after 100 ms, unless it is nil

	models []map[uint64][]float32 // of each worker, by the steps that they are made of
	result sim.Result
}

// newTask is a small network on clouds, for workers of other numbers of samples.
func newTask(samples ...int) *train.Task {
	return simtest.Task(simtest.Perceptron(12, 5, 3), samples, 8,
		optim.Momentum{Rate: optim.Constant(0.1), Momentum: 0.9})
}

// spy keeps a worker's models.
type spy struct {
	*worker
	setup *setup
	at    int
}

// tap shows what comes to a switch.
type tap struct {
	*aggregator
	setup *setup
}

func (s *tap) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*protos.Message); ok && s.setup.packet != nil {
		if head, ok := m.Head.(*protos.Aggregate); ok && len(m.Tensors) > 0 {
			s.setup.packet(head, m.Tensors[0].Data)
		}
	}
	s.aggregator.Receive(ctx)
}

// over tells the coordinator that the run is, and later what it is to send.
type (
	over  struct{}
	later struct {
		to *actor.PID
		m  *protos.Message
	}
)

func (s *spy) Receive(ctx actor.Context) {
	s.worker.Receive(ctx)
	models := s.setup.models[s.at]
	if !s.setup.blind && models[s.finished] == nil && s.stage != outside && !s.joins {
		models[s.finished] = slices.Clone(s.replica.Params.Data)
	}
}

// coordinator starts everybody and announces who comes and goes.
type coordinator struct {
	*setup
	env     actors.Env
	control world.Control
	view    protos.View
}

// look ends the run with a worker's last step.
func (c *coordinator) look() {
	for _, models := range c.models {
		if models[c.steps] != nil {
			c.control.Finish()
		}
	}
	c.env.After(ms, "look")
}

func (c *coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.tell(ctx, func() proto.Message { return &protos.Start{View: 1} })
		if c.time == 0 {
			c.time = time.Hour
		}
		c.env.After(c.time, over{})
		if c.steps > 0 {
			c.look()
		}
		if c.intrude != nil {
			c.env.After(100*ms, c.intrude)
		}
	case func(*actors.View) (*actor.PID, *protos.Message):
		ctx.Send(m(c.env.View()))
	case later:
		ctx.Send(m.to, m.m)
	case over:
		c.control.Finish()
	case string:
		c.look()
	case world.MemberChange:
		c.change(ctx, m)
	case *protos.Message:
		m.Release()
	}
}

// tell sends all who are there a head.
func (c *coordinator) tell(ctx actor.Context, head func() proto.Message) {
	for _, m := range c.env.View().Members {
		switch {
		case m.Present && m.Role == RoleSwitch && c.tardy:
			c.env.After(20*ms, later{m.PID, protos.NewMessage(head())})
		case m.Present:
			ctx.Send(m.PID, protos.NewMessage(head()))
		}
	}
}

func (c *coordinator) change(ctx actor.Context, m world.MemberChange) {
	node := int32(m.Node)
	c.view.Number++
	c.view.Absent = slices.DeleteFunc(c.view.Absent, func(i int32) bool { return i == node })
	if !m.Present {
		// Its last step may be one that nobody else has finished, and that they make without it.
		if worker := m.Node - max(c.switches, 1); worker >= 0 {
			gone := c.models[worker]
			delete(gone, slices.Max(slices.AppendSeq([]uint64{0}, maps.Keys(gone))))
		}
		c.view.Absent = append(c.view.Absent, node)
		slices.Sort(c.view.Absent)
	}
	head := func() *protos.View {
		return &protos.View{Number: c.view.Number, Absent: slices.Clone(c.view.Absent)}
	}
	c.control.Announce(head())
	c.tell(ctx, func() proto.Message { return head() })
	if m.Present {
		ctx.Send(c.env.View().Members[m.Node].PID, protos.NewMessage(&protos.Start{View: c.view.Number, Joins: true}))
	}
}

func (s *setup) world(tb testing.TB) (*sim.World, error) {
	tb.Helper()
	s.models = nil
	d := &world.Deployment{Seed: s.task.Seed, Strict: !s.blind, Observer: s.observer, Schedule: s.schedule, Detect: ms,
		Lossy: s.link.Loss.Drop, Reliable: s.reliable}
	var names []string
	add := func(name, role string, profile world.Profile, kind actors.Kind) {
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: role, Profile: profile, Kind: kind,
			Absent: slices.Contains(s.absent, len(names))})
		names = append(names, name)
	}
	for i := range max(s.switches, 1) {
		name := fmt.Sprintf("s%d", i)
		kind := s.rules.Kind(s.task, train.Place{Node: i, Name: name, Role: RoleSwitch})
		add(name, RoleSwitch, world.Profile{Cores: 1, Speed: 1e9}, func(env actors.Env) (actor.Actor, error) {
			a, err := kind(env)
			if err != nil {
				return nil, err
			}
			return &tap{a.(*aggregator), s}, nil
		})
	}
	for i, name := range s.task.Workers {
		s.models = append(s.models, map[uint64][]float32{})
		kind := s.rules.Kind(s.task, train.Place{Node: len(names), Name: name, Role: RoleWorker})
		add(name, RoleWorker, world.Profile{Cores: 1, Speed: 1e9, Step: 10 * ms},
			func(env actors.Env) (actor.Actor, error) {
				a, err := kind(env)
				if err != nil {
					return nil, err
				}
				return &spy{a.(*worker), s, i}, nil
			})
	}
	if s.graph != nil {
		d.Topologies = []actors.Graph{s.graph}
	}
	absent := make([]int32, len(s.absent))
	for i, node := range s.absent {
		absent[i] = int32(node)
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return &coordinator{setup: s, env: env, control: control, view: protos.View{Number: 1, Absent: absent}}, nil
	}
	network := link.New(d.Seed, append(names, actors.Coordinator))
	if s.link.Delay == nil {
		s.link.Delay = link.Uniform{Min: ms, Max: 3 * ms}
	}
	network.SetDefault(s.link)
	return sim.New(sim.Config{Deployment: d, Network: network, Threads: s.threads})
}

func (s *setup) try(tb testing.TB) error {
	tb.Helper()
	w, err := s.world(tb)
	if err != nil {
		return err
	}
	s.result, err = w.Run(context.Background())
	return err
}

// run fails unless the run gets to its last step, and all workers have the same models.
func (s *setup) run(tb testing.TB) {
	tb.Helper()
	if err := s.try(tb); err != nil {
		tb.Fatal(err)
	}
	if s.steps > 0 && s.model(s.steps) == nil {
		tb.Fatalf("the run ended before step %d, at %v: %v", s.steps, s.result.Now, s.result.Waits)
	}
	s.same(tb, s.models...)
}

// model is that after a number of steps, or nil.
func (s *setup) model(steps uint64) []float32 {
	for _, models := range s.models {
		if m := models[steps]; m != nil {
			return m
		}
	}
	return nil
}

// same fails unless models have the same bits after as many steps.
func (s *setup) same(tb testing.TB, all ...map[uint64][]float32) {
	tb.Helper()
	common := map[uint64][]float32{}
	for i, models := range all {
		for steps, m := range models {
			if common[steps] == nil {
				common[steps] = m
			}
			for k := range m {
				if math.Float32bits(m[k]) != math.Float32bits(common[steps][k]) {
					tb.Fatalf("parameter %d after %d steps: %v at worker %d, %v elsewhere", k, steps, m[k], i,
						common[steps][k])
				}
			}
		}
	}
}

// treeOf is the topology in which each node has its parent.
func treeOf(parent []int) actors.Graph {
	return simtest.Graph(len(parent), func(i, j int) bool { return parent[j] == i })
}
