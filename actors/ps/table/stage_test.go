package table_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

// site is a run of servers that hold tables, and of clients that do what a program says.
type site struct {
	tables   []*table.Table
	options  table.Options
	servers  int
	absent   []int // servers that are not there at first
	clients  int
	delay    time.Duration
	jitter   bool // messages overtake each other
	schedule []world.NodeChange
	program  func(u *user)
	seed     uint64
	strict   bool

	spread *shards.Servers // of the shards
	links  *link.Config    // in place of delay and jitter; what they lose is sent again
	overs  int             // clients that end the run when they are over; 0 for all
	digest uint64          // of the run

	actor func(env actors.Env, c *table.Client) actor.Actor // in place of a user
	time  time.Duration                                     // when the run ends; 0 for when users are over
	saves *sim.Checkpoints
	from  []byte // a state to go on from
}

// user is a client that carries a program out.
type user struct {
	*table.Client
	env   actors.Env
	index int // of the client
	ctx   actor.Context
	// done is called with each task that has finished; after it nothing may be open if over.
	done func(d table.Done)
	over bool
	tick func() // is called when a tick arrives
}

// tick is a message of a user to itself.
type tick struct{}

// receive hands the client what is its own.
func (u *user) receive(ctx actor.Context, s *site) {
	u.ctx = ctx
	defer func() { // what a program does in its first message is over with it, too
		if u.over {
			u.over = false
			u.env.Record(actors.Event{Kind: actors.Measured, Name: "over"})
		}
	}()
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		if _, is := ctx.Message().(tick); is {
			u.tick()
		}
		return
	}
	defer m.Release()
	done, own := u.Receive(ctx, m)
	for _, d := range done {
		u.done(d)
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		s.program(u)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, u.env, head, vector(0), 0)
	case *protos.View:
	default:
		if !own {
			actors.Unexpected(u.env, m)
		}
	}
}

// ends finishes a run when all clients are over.
type ends struct {
	left   int
	finish func()
}

func (e *ends) Observe(_ time.Duration, _ int, event actors.Event) {
	if event.Name != "over" {
		return
	}
	if e.left--; e.left == 0 {
		e.finish()
	}
}

// run returns the bytes that all edges between servers and clients have carried.
func (s *site) run(tb testing.TB) (bytes int64, err error) {
	tb.Helper()
	end := &ends{left: cmp.Or(s.overs, s.clients)}
	d := &world.Deployment{Seed: s.seed + 1, Strict: s.strict, Observer: end, Schedule: s.schedule, Detect: 3 * ms,
		Reliable: s.links != nil}
	var names []string
	for i := range s.servers + s.clients {
		n := world.Node{Name: fmt.Sprint("server", i+1), Role: shards.RoleServer, Absent: slices.Contains(s.absent, i),
			Profile: world.Unlimited,
			Kind:    func(env actors.Env) (actor.Actor, error) { return table.NewServer(env, s.tables, s.spread) }}
		if c := i - s.servers; c >= 0 {
			n.Name, n.Role = fmt.Sprint("client", c+1), "client"
			n.Kind = func(env actors.Env) (actor.Actor, error) {
				client, err := table.NewClient(env, s.tables, s.spread, s.options)
				if s.actor != nil {
					return s.actor(env, client), err
				}
				u := &user{Client: client, env: env, index: c, done: func(table.Done) {}}
				return actor.ReceiveFunc(func(ctx actor.Context) { u.receive(ctx, s) }), err
			}
		}
		names = append(names, n.Name)
		d.Nodes = append(d.Nodes, n)
	}
	var result coordinator.Result
	run := coordinator.Run{Policy: coordinator.Policy{Every: coordinator.Interval{Time: time.Hour},
		Time: cmp.Or(s.time, time.Hour)},
		Samples: 1, Holders: []int{s.servers}, Result: &result, Survives: s.spread != nil,
		Evaluate: func([]float32) train.Verdict { return train.Verdict{} }}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		end.finish = control.Finish
		return coordinator.New(run, env, control)
	}
	network := link.New(s.seed+1, append(slices.Clone(names), actors.Coordinator))
	config := link.Config{Delay: link.Constant{Delay: s.delay}}
	if s.jitter {
		config = link.Config{Delay: link.Uniform{Min: 0, Max: 2 * s.delay}, Reorder: true}
	}
	if s.links != nil {
		config = *s.links
	}
	network.SetDefault(config)
	c := sim.Config{Deployment: d, Network: network, Checkpoints: s.saves}
	w, err := sim.New(c)
	if s.from != nil {
		w, err = sim.Restore(c, s.from)
	}
	if err != nil {
		return 0, err
	}
	of, err := w.Run(context.Background())
	s.digest = of.Digest
	for _, c := range network.Used() {
		if int(max(c.Source, c.Destination)) < len(names) {
			bytes += c.SentBytes
		}
	}
	return bytes, err
}

func (s *site) must(tb testing.TB) int64 {
	tb.Helper()
	bytes, err := s.run(tb)
	if err != nil {
		tb.Fatal(err)
	}
	return bytes
}

// movement has servers join and leave while tasks are under way.
var movement = []world.NodeChange{
	{At: 33 * ms, Node: 2, Do: world.Join}, {At: 61 * ms, Node: 0, Do: world.Leave},
	{At: 62 * ms, Node: 3, Do: world.Join}, {At: 75 * ms, Node: 2, Do: world.Leave},
	{At: 91 * ms, Node: 0, Do: world.Join}, {At: 104 * ms, Node: 1, Do: world.Leave},
	{At: 119 * ms, Node: 2, Do: world.Join},
}

func vector(values ...float32) *protos.Tensor { return protos.NewTensor(values) }
