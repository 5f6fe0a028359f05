package gaia

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// stage is some sites, led by the test's own coordinator: first their servers s0, s1, …, then the
// workers.
type stage struct {
	task     *train.Task
	arch     Architecture
	of       []int // the site of each worker
	sites    int
	steps    []time.Duration // of each worker; nil for 10 ms each
	speed    float64         // of servers, in FLOP/s; 0 for one at which nothing takes time
	schedule []world.NodeChange
	absent   []int
	near     link.Config // within a site
	far      link.Config // between sites
	reliable bool
	lossy    bool
	time     time.Duration
	threads  int
	sends    func(s *server, m *protos.Message) // is shown what servers send, unless it is nil
	arrives  func(s *server, m *protos.Message) // what servers get of other sites
	handled  func(s *server, m *protos.Message) // and what they have handled

	servers []*server
	models  [][]float32 // of each site, at the end
	taken   []int       // gradients of each node that a model has taken in
	stepped []int       // steps of each node
	apart   int         // the most steps that a worker was ahead of the slowest
	bytes   int         // of updates between sites
	rounds  int         // the most updates of a site
	digest  uint64
}

var _ world.Observer = (*stage)(nil)

// Observe implements [world.Observer].
func (s *stage) Observe(_ time.Duration, node int, e actors.Event) {
	switch e.Kind {
	case actors.UpdateApplied:
		s.taken[e.Origin]++
		s.rounds = max(s.rounds, int(e.Version))
	case actors.StepDone:
		s.stepped[node]++
		s.apart = max(s.apart, s.stepped[node]-slices.Min(s.stepped[s.sites:]))
	}
}

// coordinator starts everybody, announces who comes and goes, and looks at all models at the end.
type coordinator struct {
	*stage
	env     actors.Env
	control world.Control
	view    protos.View
	looks   int
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
		c.env.After(c.time, "end")
	case string:
		for i := range c.sites {
			ctx.Send(members[i].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: 1, Last: true}))
		}
	case world.MemberChange:
		c.change(ctx, m)
	case *protos.Message:
		if head, ok := m.Head.(*protos.Snapshot); ok {
			c.models[head.Node] = slices.Clone(m.Tensors[0].Data)
			if c.looks++; c.looks == c.sites {
				c.control.Finish()
			}
		}
		m.Release()
	}
}

func (c *coordinator) change(ctx actor.Context, m world.MemberChange) {
	node := int32(m.Node)
	c.view.Number++
	c.view.Absent = slices.DeleteFunc(slices.Clone(c.view.Absent), func(i int32) bool { return i == node })
	if !m.Present {
		c.view.Absent = append(c.view.Absent, node)
		slices.Sort(c.view.Absent)
	}
	head := func() *protos.View { return &protos.View{Number: c.view.Number, Absent: slices.Clone(c.view.Absent)} }
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

// tap is a server whose messages are seen.
type tap struct {
	*server
	stage *stage
}

// spied shows what is sent.
type spied struct {
	actor.Context
	tap *tap
}

func (s spied) Send(to *actor.PID, message any) {
	if m, ok := message.(*protos.Message); ok {
		if _, is := m.Head.(*protos.Mirror); is {
			for _, t := range m.Tensors {
				s.tap.stage.bytes += 4 * len(t.Data)
			}
		}
		if s.tap.stage.sends != nil {
			s.tap.stage.sends(s.tap.server, m)
		}
	}
	s.Context.Send(to, message)
}

func (t *tap) Receive(ctx actor.Context) {
	m, is := ctx.Message().(*protos.Message)
	if is {
		m.Retain(1)
	}
	if is && t.stage.arrives != nil {
		if _, mirrors := m.Head.(*protos.Mirror); mirrors {
			t.stage.arrives(t.server, m)
		}
	}
	t.server.Receive(spied{ctx, t})
	if is {
		if t.stage.handled != nil {
			t.stage.handled(t.server, m)
		}
		m.Release()
	}
}

func (s *stage) try(tb testing.TB) error {
	tb.Helper()
	n := s.sites + len(s.task.Workers)
	s.models, s.taken, s.stepped, s.apart, s.bytes = make([][]float32, s.sites), make([]int, n), make([]int, n), 0, 0
	var absent []int32
	for _, node := range s.absent {
		absent = append(absent, int32(node))
	}
	w := s.world(tb, s, true, func(env actors.Env, control world.Control) (actor.Actor, error) {
		return &coordinator{stage: s, env: env, control: control, view: protos.View{Number: 1, Absent: absent}}, nil
	})
	result, err := w.Run(context.Background())
	s.digest = result.Digest
	return err
}

// world is that of the stage, and is looked at closely, or not at all.
func (s *stage) world(tb testing.TB, observer world.Observer, closely bool,
	coordinate simtest.Coordinate) *sim.World {
	tb.Helper()
	s.servers = make([]*server, s.sites)
	d := &world.Deployment{Seed: s.task.Seed, Strict: closely, Observer: observer, Schedule: s.schedule,
		Detect: time.Millisecond, Bounded: true, Lossy: s.lossy, Reliable: s.reliable, Coordinate: coordinate}
	var names []string
	for i := range s.sites {
		name := fmt.Sprintf("s%d", i)
		names = append(names, name)
		kind := s.arch.Kind(s.task, train.Place{Node: i, Name: name, Role: RoleServer})
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: RoleServer, Site: int32(7 * i),
			Profile: world.Profile{Cores: 1, Speed: cmp.Or(s.speed, 1e12)},
			Kind: func(env actors.Env) (actor.Actor, error) {
				made, err := kind(env)
				if err == nil {
					s.servers[i] = made.(*server)
				}
				if !closely {
					return made, err
				}
				return &tap{s.servers[i], s}, err
			}})
	}
	for i, name := range s.task.Workers {
		step := 10 * time.Millisecond
		if s.steps != nil {
			step = s.steps[i]
		}
		names = append(names, name)
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: RoleWorker, Site: int32(7 * s.of[i]),
			Profile: world.Profile{Cores: 1, Speed: 1e12, Step: step}, Absent: slices.Contains(s.absent, s.sites+i),
			Kind: s.arch.Kind(s.task, train.Place{Node: s.sites + i, Name: name, Role: RoleWorker})})
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: s.network(names), Threads: s.threads})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func (s *stage) network(names []string) *link.Network {
	network := link.New(s.task.Seed, append(names, actors.Coordinator))
	if s.near.Delay == nil {
		s.near.Delay = link.Uniform{Min: time.Millisecond, Max: 3 * time.Millisecond}
	}
	if s.far.Delay == nil {
		s.far.Delay = link.Uniform{Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}
	}
	network.SetDefault(s.near)
	for i := range s.sites {
		for j := range s.sites {
			if i != j {
				network.Set(int32(i), int32(j), s.far)
			}
		}
	}
	return network
}

func (s *stage) run(tb testing.TB) [][]float32 {
	tb.Helper()
	if err := s.try(tb); err != nil {
		tb.Fatal(err)
	}
	return s.models
}

// newStage is a small network on clouds, with these numbers of workers at each site.
func newStage(method train.Task, workers ...int) *stage {
	s := &stage{sites: len(workers), arch: Default(), time: 400 * time.Millisecond}
	var shards []int
	for site, n := range workers {
		for range n {
			s.of, shards = append(s.of, site), append(shards, 24)
		}
	}
	s.task = simtest.Task(simtest.Perceptron(12, 5, 3), shards, 8, method.Method)
	return s
}

// counted is a model with whole parameters, whose gradient is what its worker always has, in whole
// numbers: sums are exact, in any order.
type counted struct{ simtest.Fixed }

func (counted) Init(params []float32, _ *rand.Rand) {
	for i := range params {
		params[i] = float32(40 + 100*(i%3))
	}
}

// count has all samples of worker i be the same whole numbers.
func (s *stage) count(random *rand.Rand) {
	s.task.Model = counted{simtest.Fixed{Model: s.task.Model}}
	for i := range s.task.Workers {
		row := make([]float32, s.task.Train.Inputs)
		for k := range row {
			row[k] = float32(random.IntN(9) - 4)
		}
		for _, sample := range s.task.Shards[i] {
			copy(s.task.Train.X[int(sample)*len(row):], row)
		}
	}
}

// total is the model with all gradients that servers have taken in, of a stage that counts.
func (s *stage) total() []float32 {
	model := s.task.Initial()
	inputs := s.task.Train.Inputs
	for i := range s.task.Workers {
		row := s.task.Train.X[int(s.task.Shards[i][0])*inputs:]
		for k := range model {
			model[k] -= float32(s.taken[s.sites+i]) * row[k%inputs]
		}
	}
	return model
}

// read returns what is in a message between sites.
func read(tb testing.TB, m *protos.Message, params int) (indices []int32, values []float32) {
	tb.Helper()
	n := int(m.Head.(*protos.Mirror).Listed)
	if len(m.Tensors) == 0 {
		return nil, nil
	}
	if n == 0 {
		values = m.Tensors[0].Data
		n = len(values)
	}
	indices = make([]int32, n)
	if err := compress.UnpackIndices(indices, m.Tensors[len(m.Tensors)-1].Data, params); err != nil {
		tb.Fatal(err)
	}
	return indices, values
}

// slow is a far link that carries some bytes a second.
func slow(bytes float64) link.Config {
	return link.Config{Delay: link.Uniform{Min: 20 * time.Millisecond, Max: 60 * time.Millisecond},
		Rate: rate.Constant(bytes)}
}
