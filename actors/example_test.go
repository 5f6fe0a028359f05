package actors_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// worker reports to the server 10 ms after it was asked.
type worker struct{ env actors.Env }

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		if head, ok := m.Head.(*protos.Parameters); ok {
			w.env.After(10*time.Millisecond, head.Version)
		}
		m.Release()
	case uint64: // the timer's message: the round to report in
		head := &protos.Push{Node: int32(w.env.Node()), Version: m}
		ctx.Send(w.env.View().Members[0].PID, protos.NewMessage(head))
	}
}

// server asks all workers in rounds, and waits for each that is there.
type server struct {
	env     actors.Env
	reports *actors.Gather[int32]
}

func (s *server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		s.reports = actors.NewGather[int32](0, s.env.View().Role("worker"))
		s.ask(ctx)
	case *protos.View: // somebody has come or gone
		s.reports.Follow(s.env.View().Role("worker"), func(int32) {})
	case *protos.Push:
		_ = s.reports.Put(int(head.Node), head.Version, head.Node) // it may be late, or have gone
	}
	m.Release()
	if s.reports.Complete() {
		fmt.Printf("%v: round %d, nodes %v\n", s.env.Now(), s.reports.Round(), s.reports.Values())
		s.reports.Next()
		s.ask(ctx)
	}
}

func (s *server) ask(ctx actor.Context) {
	for _, node := range s.env.View().Role("worker") {
		ctx.Send(s.env.View().Members[node].PID, protos.NewMessage(&protos.Parameters{Version: s.reports.Round()}))
	}
}

// coordinate starts all nodes, ends the run after 180 ms, and announces who is there.
func coordinate(env actors.Env, control world.Control) (actor.Actor, error) {
	send := func(ctx actor.Context, head func() *protos.Message) {
		for _, member := range env.View().Members {
			if member.Present {
				ctx.Send(member.PID, head())
			}
		}
	}
	return actor.ReceiveFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			send(ctx, func() *protos.Message { return protos.NewMessage(&protos.Start{View: 1}) })
			env.After(180*time.Millisecond, "end")
		case world.MemberChange:
			view := &protos.View{Number: 2, Absent: []int32{int32(m.Node)}}
			control.Announce(view)
			send(ctx, func() *protos.Message { return protos.NewMessage(view) })
		case string:
			control.Finish()
		}
	}), nil
}

// Two actors of one's own in virtual time. Node c crashes after 55 ms, which the coordinator hears
// 60 ms later; the round under way is complete with that.
func Example() {
	kind := func(env actors.Env) (actor.Actor, error) { return &worker{env}, nil }
	profile := world.Profile{Cores: 1, Speed: 1e9}
	d := &world.Deployment{Seed: 1, Bounded: true, Coordinate: coordinate, Detect: 60 * time.Millisecond,
		Nodes: []world.Node{
			{Name: "hub", Role: "server", Profile: profile,
				Kind: func(env actors.Env) (actor.Actor, error) { return &server{env: env}, nil }},
			{Name: "a", Role: "worker", Profile: profile, Kind: kind},
			{Name: "b", Role: "worker", Profile: profile, Kind: kind},
			{Name: "c", Role: "worker", Profile: profile, Kind: kind},
		},
		Schedule: []world.NodeChange{{At: 55 * time.Millisecond, Node: 3, Do: world.Crash}},
	}
	network := link.New(d.Seed, d.Names())
	network.SetDefault(link.Config{Delay: link.Constant{Delay: 20 * time.Millisecond}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err == nil {
		_, err = w.Run(context.Background())
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 50ms: round 0, nodes [1 2 3]
	// 115ms: round 1, nodes [1 2]
	// 165ms: round 2, nodes [1 2]
}
