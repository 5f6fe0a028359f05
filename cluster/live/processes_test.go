package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// A test binary that finds seatVariable in its environment is one process of a cluster, with
// one node of a run in it: the actor of an architecture in a world, which a node of the
// transport connects with the others. Computing a gradient takes no time, links have no
// delay, and nobody coordinates: what is left is what the messages cost.
const seatVariable = "GRADWIRE_LIVE_SEAT"

// seat is what a process of a cluster is told to be.
type seat struct {
	Architecture string // parameterServer, or the algorithm of an all-reduce
	Processes    int
	Index        int    // of this process and of its node
	Values       int    // parameters of the model
	Segment      int    // of a ring, values of a message at most
	Identity     string // folder; empty without TLS
}

// parameterServer is the architecture whose node 0 is the server.
const parameterServer = "parameter server"

// order is what a process is told to do: to connect, to make steps, or to exchange as
// many vectors over bare connections.
type order struct {
	Nodes []string // addresses of all
	Bare  []string // of those for bare connections
	Steps int
	Raw   int
	Begin time.Time // when the steps do, in all processes alike: there is time to wake up until then
}

// answer is what a process says when it is ready, and after each order.
type answer struct {
	Node, Bare string
	Total      time.Duration   // of the steps or exchanges
	Rounds     []time.Duration // of an all-reduce, of each
}

// TestMain is also where the processes of a cluster begin.
func TestMain(m *testing.M) {
	text := os.Getenv(seatVariable)
	if text == "" {
		os.Exit(runTests(m))
	}
	var s seat
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.sit()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "process %d: %v\n", s.Index, err)
		os.Exit(1)
	}
}

// runTests runs the tests, and fails if a world of one is left after all.
func runTests(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil { // tests that wait for a standstill
		panic(err)
	}
	code := m.Run()
	if others := leftOver(); code == 0 && others != "" {
		fmt.Fprintln(os.Stderr, "left after the tests:", others)
		code = 1
	}
	return code
}

// sit is the life of a process. It ends when its input does.
func (s *seat) sit() error {
	say, hear := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	c := &cluster{seat: s}
	if err := c.listen(); err != nil {
		return err
	}
	if err := say.Encode(answer{Node: c.node.Address(), Bare: c.bare.Addr().String()}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for begun := false; ; begun = true {
		var o order
		if err := hear.Decode(&o); err != nil {
			return nil // whoever gave the orders is gone
		}
		var a answer
		var err error
		switch {
		case len(o.Nodes) > 0:
			err = c.connect(o)
		case !begun:
			return errors.New("an order before there are connections")
		case o.Raw > 0:
			a.Total, err = c.raw(o.Raw)
		case o.Steps > 0:
			c.running.Do(func() { go c.world.Run(ctx) }) //nolint:errcheck // it ends with the process
			// No timer is as exact as a barrier, and who begins late keeps the others waiting.
			time.Sleep(time.Until(o.Begin) - time.Millisecond)
			for time.Now().Before(o.Begin) {
			}
			a = c.actor.steps(o.Steps)
		}
		if err == nil {
			err = say.Encode(a)
		}
		if err != nil {
			return err
		}
	}
}

// cluster is what a process has of it.
type cluster struct {
	seat    *seat
	pool    protos.TensorPool
	node    *transport.Node
	bare    net.Listener
	partner net.Conn
	placed  atomic.Pointer[live.World]
	world   *live.World
	actor   *swift
	running sync.Once
}

func (c *cluster) name(i int) string { return fmt.Sprintf("n%d", i) }

func (c *cluster) listen() (err error) {
	var id *identity.Identity
	if c.seat.Identity != "" {
		if id, err = identity.Load(c.seat.Identity); err != nil {
			return err
		}
	}
	c.node, err = transport.Listen(transport.Config{
		Name: c.name(c.seat.Index), Incarnation: 1, Address: "127.0.0.1:0", Identity: id, Tensors: &c.pool,
		Receive: func(_ transport.Peer, f *wire.Frame) { c.placed.Load().Deliver(c.seat.Index, f) },
		Posted: func(f *wire.Frame, tensor, values int) *protos.Tensor {
			return c.placed.Load().Posted(c.seat.Index, f, tensor, values)
		},
	})
	if err != nil {
		return err
	}
	if c.bare, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	go func() {
		for {
			near, err := c.bare.Accept()
			if err != nil {
				return
			}
			go echo(near, c.seat.Values)
		}
	}()
	return nil
}

// echo sends vectors back.
func echo(c net.Conn, values int) {
	b := make([]byte, 4*values)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// raw exchanges vectors with the first process over a bare connection.
func (c *cluster) raw(n int) (time.Duration, error) {
	if c.partner == nil {
		return 0, nil
	}
	b := make([]byte, 4*c.seat.Values)
	began := time.Now()
	for range n {
		if _, err := c.partner.Write(b); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(c.partner, b); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func (c *cluster) connect(o order) (err error) {
	if c.seat.Index > 0 {
		if c.partner, err = net.Dial("tcp", o.Bare[0]); err != nil {
			return err
		}
	}
	if err := c.place(); err != nil {
		return err
	}
	for i := range c.seat.Index {
		if err := c.node.Connect(c.name(i), o.Nodes[i]); err != nil {
			return err
		}
	}
	for up := 0; up < c.seat.Processes-1; runtime.Gosched() {
		up = 0
		for _, p := range c.node.Peers() {
			if p.State == transport.Up {
				up++
			}
		}
	}
	return nil
}

// place makes the world, in which one node lives.
func (c *cluster) place() (err error) {
	s := c.seat
	set := &datasets.Set{Inputs: 1, Classes: []string{"a", "b"}}
	task := &train.Task{Model: still(s.Values), Train: set, Test: set, Batch: 1,
		Method: optim.SGD{Rate: optim.Constant(1e-6)}}
	var architecture train.Architecture = ps.Architecture{Scale: ps.Sum}
	if s.Architecture != parameterServer {
		architecture = collective.Architecture{Algorithm: collective.Algorithm(s.Architecture), Segment: s.Segment,
			Every: 1, Reduce: collective.Gradients}
		task.Method = still(s.Values)
	}
	d, names := &world.Deployment{Bounded: true, Reliable: true}, []string(nil)
	for i := range s.Processes {
		role := ps.RoleWorker
		if s.Architecture == parameterServer && i == 0 {
			role = ps.RoleServer
		} else {
			task.Workers, task.Shards = append(task.Workers, c.name(i)), append(task.Shards, []int32{int32(set.Len())})
			set.X, set.Y = append(set.X, 0), append(set.Y, 0)
		}
		names = append(names, c.name(i))
		kind := architecture.Kind(task, train.Place{Node: i, Name: names[i], Role: role})
		d.Nodes = append(d.Nodes, world.Node{Name: names[i], Role: role, Profile: world.Unlimited,
			Kind: func(env actors.Env) (_ actor.Actor, err error) {
				c.actor = &swift{Env: env, server: role == ps.RoleServer, up: make(chan struct{}),
					done: make(chan answer, 1)}
				c.actor.inner, err = kind(c.actor)
				return c.actor, err
			}})
	}
	c.world, err = live.New(live.Config{
		Deployment: d, Network: link.New(1, append(names, actors.Coordinator)),
		Hosted: func(node int) bool { return node == s.Index }, Carrier: c,
	})
	if err != nil {
		return err
	}
	c.placed.Store(c.world)
	return c.world.Place()
}

var _ live.Carrier = (*cluster)(nil)

func (c *cluster) Send(node int, p *wire.Packet) error { return c.node.SendPacket(c.name(node), p) }

func (c *cluster) Changed(world.MemberChange) error { return nil }
func (c *cluster) Halt()                            {}

// still is the number of parameters of a model whose gradient is always one, and a method that
// changes nothing.
type still int

func (s still) Inputs() int                                              { return 1 }
func (s still) Classes() int                                             { return 2 }
func (s still) Params() int                                              { return int(s) }
func (s still) Tensors() []nn.Tensor                                     { return nil }
func (s still) Init([]float32, *rand.Rand)                               {}
func (s still) Work(int) float64                                         { return 0 }
func (s still) NewWorkspace(int) nn.Workspace                            { return s }
func (s still) Evaluate([]float32, nn.Batch) (float64, int)              { return 0, 0 }
func (s still) Samples(_ []float32, _, _ []int32) *nn.Samples            { return nil }
func (s still) Logits(_ []float32, _ *nn.Samples, _, _ int, _ []float32) {}
func (s still) New(int) optim.Optimizer                                  { return stillOptimizer{} }

// Gradient fills the vector only where another one had been.
func (s still) Gradient(_, gradient []float32, _ nn.Batch) float64 {
	if gradient[0] != 1 || gradient[len(gradient)-1] != 1 {
		for i := range gradient {
			gradient[i] = 1
		}
	}
	return 0
}

type stillOptimizer struct{}

// Step looks at the mean of all gradients, which are ones.
func (stillOptimizer) Step(dst, params, mean []float32) {
	copy(dst, params)
	for _, i := range []int{0, len(mean) / 3, len(mean) / 2, len(mean) - 1} {
		if mean[i] != 1 {
			panic(fmt.Sprintf("value %d of the mean of ones is %v", i, mean[i]))
		}
	}
}
func (stillOptimizer) Work(int) float64          { return 0 }
func (stillOptimizer) State() optim.State        { return optim.State{} }
func (stillOptimizer) Restore(optim.State) error { return nil }

// swift stands around an actor and is its Env, in which a step takes no time: its result is
// the actor's next message. The actor makes as many steps as it is told to.
type swift struct {
	actors.Env
	inner  actor.Actor
	server bool
	up     chan struct{} // closed when orders are taken
	done   chan answer
	system *actor.ActorSystem
	self   *actor.PID

	result   any // of the step that is to be told to the actor
	left     int // steps of the order
	began    time.Time
	told     time.Time    // when the actor was last told a result
	charges  [2]time.Time // the latest
	measured answer
}

// steps tells an actor how many steps to make.
type steps int

// steps makes steps, and returns how long they took: of a round of an all-reduce, from the
// gradient to the mean; of all steps, to the parameters for the next.
func (s *swift) steps(n int) answer {
	<-s.up
	if s.server {
		return answer{}
	}
	s.system.Root.Send(s.self, steps(n))
	return <-s.done
}

func (s *swift) Compute(job actors.Job) { s.result = job.Do() }

func (s *swift) Charge(work float64) {
	s.charges = [...]time.Time{s.charges[1], time.Now()}
	s.Env.Charge(work)
}

// Record sees the end of a round. The mean is there at the charge before the optimiser's.
func (s *swift) Record(e actors.Event) {
	if e.Kind == actors.StepDone {
		s.measured.Rounds = append(s.measured.Rounds, s.charges[0].Sub(s.told))
	}
	s.Env.Record(e)
}

func (s *swift) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.inner.Receive(ctx)
		s.system, s.self = ctx.ActorSystem(), ctx.Self()
		ctx.Send(ctx.Self(), protos.NewMessage(&protos.Start{}))
		close(s.up)
		return
	case steps:
		s.left, s.began, s.measured = int(m), time.Now(), answer{}
	default:
		s.inner.Receive(ctx)
		if s.result == nil {
			return
		}
		if s.left == 0 && !s.began.IsZero() {
			s.measured.Total, s.began = time.Since(s.began), time.Time{}
			s.done <- s.measured
		}
	}
	if s.left > 0 && s.result != nil {
		s.left--
		result := s.result
		s.result, s.told = nil, time.Now()
		ctx.Send(ctx.Self(), result)
	}
}
