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
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/actors/world/worldtest"
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
	program  func(index int) program // by client: makes its program
	seed     uint64
	strict   bool

	spread *shards.Servers // of the shards
	links  *link.Config    // in place of delay and jitter; what they lose is sent again
	overs  int             // clients that end the run when they are over; 0 for all
	digest uint64          // of the run

	time  time.Duration // end of the run; 0 for the end of the users' programs
	saves *sim.Checkpoints
	from  *state.Saved // checkpoint to resume from; nil for a new run

	replaced bool    // the run replaces actors by restored ones
	share    float64 // share of messages before which their actor is replaced
	times    int     // replacements so far
}

// program is the behaviour of a user.
type program interface {
	state.Declared
	start(u *user)
	// done handles a finished task. If it sets u.over, no task may be open.
	done(u *user, d table.Done)
	// tick handles a tick.
	tick(u *user)
	// value returns the user's answer to a request for a snapshot.
	value() float32
}

// quiet is a program that does nothing.
type quiet struct{}

func (quiet) State(*state.State)     {}
func (quiet) start(*user)            {}
func (quiet) done(*user, table.Done) {}
func (quiet) tick(*user)             {}
func (quiet) value() float32         { return 0 }

// starter is a program that acts only at the start.
type starter struct {
	quiet
	act func(u *user)
}

func (p *starter) start(u *user) { p.act(u) }

// atStart returns a program for all clients that calls act at the start.
func atStart(act func(u *user)) func(int) program {
	return func(int) program { return &starter{act: act} }
}

// user is an actor that runs a program with its client.
type user struct {
	*table.Client
	program program
	env     actors.Env
	index   int           // index among the clients
	ctx     actor.Context // context of the current message
	over    bool          // the program ends with the current message
}

// State declares the client and the program.
func (u *user) State(s *state.State) {
	s.Part("client", u.Client)
	s.Part("program", u.program)
}

// tick is a timer message that a user sends to itself.
type tick struct{}

var _ = state.Register[tick]("table_test.tick")

// State declares nothing: a tick has no fields.
func (*tick) State(*state.State) {}

// Receive implements [actor.Actor].
func (u *user) Receive(ctx actor.Context) {
	u.ctx = ctx
	defer func() { // a program can end in its first message, too
		if u.ctx = nil; u.over {
			u.over = false
			u.env.Record(actors.Event{Kind: actors.Measured, Name: "over"})
		}
	}()
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		if _, is := ctx.Message().(tick); is {
			u.program.tick(u)
		}
		return
	}
	defer m.Release()
	done, own := u.Client.Receive(ctx, m)
	for _, d := range done {
		u.program.done(u, d)
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		u.program.start(u)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, u.env, head, vector(u.program.value()), 0)
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
	for i := range s.servers + s.clients {
		n := world.Node{Name: fmt.Sprint("server", i+1), Role: shards.RoleServer, Absent: slices.Contains(s.absent, i),
			Profile: world.Unlimited,
			Kind:    func(env actors.Env) (actor.Actor, error) { return table.NewServer(env, s.tables, s.spread) }}
		if c := i - s.servers; c >= 0 {
			n.Name, n.Role = fmt.Sprint("client", c+1), "client"
			n.Kind = func(env actors.Env) (actor.Actor, error) {
				client, err := table.NewClient(env, s.tables, s.spread, s.options)
				return &user{Client: client, program: s.program(c), env: env, index: c}, err
			}
		}
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
	var r *worldtest.Replacements
	if s.replaced {
		r = worldtest.Replace(tb.(*testing.T), d, s.share)
	}
	network := link.New(s.seed+1, d.Names())
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
	if s.digest = of.Digest; r != nil {
		s.times = r.Times
	}
	for _, c := range network.Used() {
		if int(max(c.Source, c.Destination)) < len(d.Nodes) {
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

// runReplaced runs a scenario without replacements, and again with actors that are replaced by restored
// ones: before every message, and at random. It checks that the runs have the same digest, carry the
// same bytes and end with the same error.
func runReplaced(t *testing.T, scenario func() *site) (bytes int64, err error) {
	t.Helper()
	s := scenario()
	s.replaced = true
	bytes, err = s.run(t)
	for _, share := range []float64{1, 0.05} {
		again := scenario()
		again.replaced, again.share = true, share
		b, e := again.run(t)
		if b != bytes || again.digest != s.digest || fmt.Sprint(e) != fmt.Sprint(err) ||
			share == 1 && again.times == 0 {
			t.Errorf("%d bytes, digest %x and error %v after %d replacements, want %d, %x and %v", b, again.digest, e,
				again.times, bytes, s.digest, err)
		}
	}
	return bytes, err
}

// movement has servers join and leave while tasks are under way.
var movement = []world.NodeChange{
	{At: 33 * ms, Node: 2, Do: world.Join}, {At: 61 * ms, Node: 0, Do: world.Leave},
	{At: 62 * ms, Node: 3, Do: world.Join}, {At: 75 * ms, Node: 2, Do: world.Leave},
	{At: 91 * ms, Node: 0, Do: world.Join}, {At: 104 * ms, Node: 1, Do: world.Leave},
	{At: 119 * ms, Node: 2, Do: world.Join},
}

func vector(values ...float32) *protos.Tensor { return protos.NewTensor(values) }
