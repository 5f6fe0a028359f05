package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// forwarder passes every message on to the next node of a ring.
type forwarder struct {
	env      actors.Env
	next     *actor.PID
	messages *protos.Messages[*protos.Chunk]
	left     *int
	warm     func() // called when the messages that are measured begin
	measured int
	done     func()
}

func (f *forwarder) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	m.Release()
	switch *f.left--; *f.left {
	case f.measured:
		f.warm()
	case 0:
		f.done()
		return
	}
	f.send(ctx)
}

func (f *forwarder) send(ctx actor.Context) {
	m, head := f.messages.Get()
	head.Round = 1
	ctx.Send(f.next, m)
}

// ring is a world of n empty actors, each of which starts one message on its way.
func ring(tb testing.TB, n int, left *int, measured int, warm func()) (*sim.World, *link.Network) {
	tb.Helper()
	var finish func()
	messages := protos.NewMessages(func() *protos.Chunk { return &protos.Chunk{} })
	d := &world.Deployment{Seed: 1}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i))
		d.Nodes = append(d.Nodes, world.Node{Name: names[i], Role: "peer", Profile: world.Unlimited,
			Kind: func(env actors.Env) (actor.Actor, error) {
				f := &forwarder{env: env, messages: messages, left: left, measured: measured, warm: warm,
					done: func() { finish() }}
				f.next = env.View().Members[(i+1)%n].PID
				return actor.ReceiveFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Started); ok {
						f.send(ctx)
						return
					}
					f.Receive(ctx)
				}), nil
			}})
	}
	d.Coordinate = func(_ actors.Env, control world.Control) (actor.Actor, error) {
		finish = control.Finish
		return actor.ReceiveFunc(func(actor.Context) {}), nil
	}
	network := link.New(1, append(names, actors.Coordinator))
	network.SetDefault(link.Config{Delay: link.Constant{Delay: time.Millisecond}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err != nil {
		tb.Fatal(err)
	}
	return w, network
}

// BenchmarkMessage is the cost of one message between empty actors: mailbox, door,
// link, calendar and hand-over. ns/op is per message.
func BenchmarkMessage(b *testing.B) {
	for _, n := range []int{2, 1000} {
		b.Run(fmt.Sprintf("actors=%d", n), func(b *testing.B) {
			left := 100*n + b.N
			w, _ := ring(b, n, &left, b.N, b.ResetTimer)
			b.ReportAllocs()
			if _, err := w.Run(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkActorMemory reports what one actor of a world keeps.
func BenchmarkActorMemory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		left := 0
		first, _ := ring(b, 1, &left, 0, nil)
		before := heap()
		w, _ := ring(b, n, &left, 0, nil)
		b.ReportMetric(float64(heap()-before)/n, "B/actor")
		runtime.KeepAlive(w)
		runtime.KeepAlive(first)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
