package mesh_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/mesh"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// process is one of a test, with its mesh.
type process struct {
	*transport.Node
	mesh    *mesh.Mesh
	pool    protos.TensorPool
	control chan *wire.Frame // that were for no actor of a run
}

func start(t *testing.T, name string, limits transport.Limits) *process {
	t.Helper()
	p := &process{control: make(chan *wire.Frame, 100)}
	p.mesh = mesh.New(mesh.Config{Name: name, Log: t.Logf, Unaddressed: func(_ transport.Peer, f *wire.Frame) {
		c := *f
		p.control <- &c
	}})
	var err error
	p.Node, err = transport.Listen(transport.Config{
		Name: name, Incarnation: 1, Address: "127.0.0.1:0", Tensors: &p.pool, Limits: limits,
		Receive: p.mesh.Receive, Posted: p.mesh.Posted,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.mesh.Use(p.Node)
	t.Cleanup(func() { p.Close() }) //nolint:errcheck // what was under way is lost
	return p
}

// pair are two processes that are connected.
func pair(t *testing.T) (a, b *process) {
	t.Helper()
	a, b = start(t, "a", transport.Limits{}), start(t, "b", transport.Limits{})
	if err := a.Connect("b", b.Address()); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func never(string) bool { return false }

// names are the positions of the nodes of every run.
var names = map[string]int32{"n0": 0, "n1": 1, actors.Coordinator: 2}

// place places the world of a run in a process, whose nodes have these actors.
func place(t *testing.T, r *mesh.Run, receive [2]actor.ReceiveFunc, lead func(world.Control)) *live.World {
	t.Helper()
	d := &world.Deployment{Coordinate: func(_ actors.Env, c world.Control) (actor.Actor, error) {
		lead(c)
		return actor.ReceiveFunc(func(actor.Context) {}), nil
	}}
	nodes := []string{"n0", "n1"}
	for i, name := range nodes {
		d.Nodes = append(d.Nodes, world.Node{
			Name: name, Role: "peer", Profile: world.Unlimited,
			Kind: func(actors.Env) (actor.Actor, error) { return receive[i], nil },
		})
	}
	w, err := live.New(live.Config{
		Deployment: d, Network: link.New(1, append(nodes, actors.Coordinator)), Hosted: r.Hosts, Carrier: r,
		RoundTrip: r.RoundTrip, KeepRuntime: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Place(); err != nil {
		t.Fatal(err)
	}
	r.Attach(w, names)
	return w
}

// begin places and begins the world of a run. The function that it returns ends the world where the
// coordinator lives elsewhere, and waits for its end.
func begin(t *testing.T, r *mesh.Run, receive [2]actor.ReceiveFunc, lead func(world.Control)) (wait func()) {
	t.Helper()
	w := place(t, r, receive, lead)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() {
		running.Wait()
		cancel()
	}
}

// Two runs go on between two processes at a time. Each has its own message.
func TestMessageReachesTheWorldOfItsRun(t *testing.T) {
	a, b := pair(t)
	var waits []func()
	for number := range uint64(2) {
		where := []string{"a", "b", "b"}
		from, to := a.mesh.Run(number, where, never), b.mesh.Run(number, where, never)
		if !a.mesh.Enter(from) || !b.mesh.Enter(to) || b.mesh.Enter(to) {
			t.Fatalf("run %d could not be entered once", number)
		}
		if err := from.Reach(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var control world.Control
		tensor := protos.NewTensor([]float32{float32(number), 7})
		waits = append(waits, begin(t, to, [2]actor.ReceiveFunc{1: func(ctx actor.Context) {
			m, ok := ctx.Message().(*protos.Message)
			if !ok {
				return
			}
			if index := m.Head.(*protos.Chunk).Index; uint64(index) != number ||
				m.Tensors[0].Data[0] != float32(number) {
				t.Errorf("run %d was given a message of run %d with %v", number, index, m.Tensors[0].Data)
			}
			m.Release()
			control.Finish()
		}}, func(c world.Control) { control = c }))
		waits = append(waits, begin(t, from, [2]actor.ReceiveFunc{0: func(ctx actor.Context) {
			if _, begun := ctx.Message().(*actor.Started); begun {
				ctx.Send(actor.NewPID("n1", "n1/peer"),
					protos.NewMessage(&protos.Chunk{Index: uint32(number)}, tensor.Retain()))
			}
		}}, nil))
		go func() { // the process ends its world when the other one says so
			for f := range a.control {
				if _, halts := f.Head.(*protos.HaltRun); halts && f.Run == number {
					from.World().Halt()
					return
				}
				a.control <- f
			}
		}()
	}
	for _, wait := range waits {
		wait()
	}
}

func TestFrameForNobodyIsReleasedAndOneWithoutReceiverIsControl(t *testing.T) {
	a, b := pair(t)
	r := b.mesh.Run(1, []string{"b", "a", "a"}, never)
	b.mesh.Enter(r)
	left := b.mesh.Run(2, []string{"b", "a", "a"}, never)
	b.mesh.Enter(left)
	b.mesh.Leave(left)
	for run := range uint64(3) { // not known, without a world, and over
		f := wire.Frame{Kind: wire.User, Run: run, Target: "n0/peer", Head: &protos.Chunk{}}
		f.Tensors = []*protos.Tensor{b.pool.Get(1 << 16)}
		kept := f.Tensors[0].Retain()
		b.mesh.Receive(transport.Peer{Name: "a"}, &f)
		if !kept.Sole() || b.mesh.Posted(&f, 0, 1<<16) != nil {
			t.Errorf("a frame of run %d is held", run)
		}
	}
	if err := a.Send("b", &wire.Frame{Kind: wire.User, Run: 1, Head: &protos.RunMark{Mark: 3}}); err != nil {
		t.Fatal(err)
	}
	if f := <-b.control; f.Run != 1 || f.Head.(*protos.RunMark).Mark != 3 {
		t.Errorf("%+v", f)
	}
}

func TestRunKnowsWhichProcessHostsWhichNode(t *testing.T) {
	r := mesh.New(mesh.Config{Name: "b"}).Run(9, []string{"c", "b", "c", "a", "b"}, never)
	if got := r.NodesOf("c"); len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Errorf("nodes of c: %v", got)
	}
	if got := r.NodesOf("b"); len(got) != 1 || got[0] != 1 {
		t.Errorf("nodes of b, without the coordinator: %v", got)
	}
	if got := r.Others(); len(got) != 2 || got[0] != "a" || got[1] != "c" {
		t.Errorf("others %v", got)
	}
	if r.Lead() != "b" || r.Host(3) != "a" || !r.Hosts(4) || r.Hosts(0) || r.Number() != 9 {
		t.Errorf("lead %s, host of node 3 %s", r.Lead(), r.Host(3))
	}
}

// Process b is connected and takes nothing in. At most 2 MB may wait for it, and as much as the
// system's buffers hold is on its way.
func TestTooManyMessagesForASlowProcessEndTheRun(t *testing.T) {
	a := start(t, "a", transport.Limits{QueueBytes: 1e6, Backlog: 2, Drain: time.Millisecond})
	release := make(chan struct{})
	b, err := transport.Listen(transport.Config{
		Name: "b", Incarnation: 1, Address: "127.0.0.1:0", Tensors: &a.pool,
		Receive: func(transport.Peer, *wire.Frame) { <-release },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // what was under way is lost
	defer close(release)
	if err := a.Connect("b", b.Address()); err != nil {
		t.Fatal(err)
	}
	r := a.mesh.Run(1, []string{"a", "b", "a"}, never)
	if err := r.Reach(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	large := protos.NewTensor(make([]float32, 1<<17)) // half a MB
	w := place(t, r, [2]actor.ReceiveFunc{0: func(ctx actor.Context) {
		if _, begun := ctx.Message().(*actor.Started); !begun {
			return
		}
		for range 128 {
			ctx.Send(actor.NewPID("n1", "n1/peer"), protos.NewMessage(&protos.Chunk{}, large.Retain()))
		}
	}}, func(world.Control) {})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const limit = "to b: the queue for this peer stayed full: "
	_, err = w.Run(ctx)
	if !errors.Is(err, transport.ErrQueueFull) || !strings.Contains(err.Error(), "n1/n1/peer at ") ||
		!strings.Contains(err.Error(), limit) ||
		!strings.Contains(err.Error(), "at most 8192 can, with 2000000 bytes") {
		t.Errorf("the run ended with %v", err)
	}
}

func packet(t *testing.T, target string) *wire.Packet {
	t.Helper()
	p, err := wire.Pack(&wire.Frame{Kind: wire.User, Target: target, Head: &protos.Chunk{}}, wire.Eager)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Nobody listens where the process is said to be.
func TestMessageForASilentProcessIsDroppedUnlessTheRunWaitsForIt(t *testing.T) {
	for _, needed := range []bool{false, true} {
		a := start(t, "a", transport.Limits{QueueBytes: 1000, Backlog: 2, Absent: time.Hour, Drain: time.Millisecond})
		if err := a.Connect("b", "127.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
		r := a.mesh.Run(1, []string{"a", "b", "c", "a"}, func(process string) bool { return needed && process == "b" })
		var err error
		sent := 0
		for ; err == nil; sent++ {
			err = r.Send(1, packet(t, "n1/peer"))
		}
		up, lost := r.Peer("b")
		if errors.Is(err, live.ErrGone) == needed || !errors.Is(err, transport.ErrQueueFull) || up ||
			lost == 1 == needed || sent < 10 {
			t.Errorf("needed %v: message %d: %v; up %v, %d lost", needed, sent, err, up, lost)
		}
		if err := r.Send(2, packet(t, "n2/peer")); !errors.Is(err, live.ErrGone) {
			t.Errorf("to a process of which nothing is known: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Reach(ctx, []string{"b"}); !errors.Is(err, context.Canceled) {
			t.Errorf("with c out of reach: %v", err)
		}
	}
}
