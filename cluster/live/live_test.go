package live_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

// limit is how long a run of a test may take that its actors should have ended.
const limit = 2 * time.Minute

// handler is an actor made of a function. Its variables may be read when the run is over.
type handler func(ctx actor.Context, env actors.Env)

func (h handler) kind(env actors.Env) (actor.Actor, error) {
	return actor.ReceiveFunc(func(ctx actor.Context) { h(ctx, env) }), nil
}

// timeIsUp ends a run that no actor has ended.
type timeIsUp struct{}

// stage builds a world of handlers, one a node, that one of them ends with finish.
type stage struct {
	seed     uint64
	end      time.Duration // of a run that nobody finishes; 0 stands for limit
	bounded  bool          // the deployment says that it ends then
	beside   bool          // others run beside it: what it leaves is looked for after all tests
	strict   bool
	threads  int
	bound    time.Duration
	profile  world.Profile
	edge     link.Config
	handlers []handler
	changes  []link.Change
	schedule []world.NodeChange
	detect   time.Duration
	absent   []int
	making   func(node, life int) error // is called before an actor is made of a handler
	observer world.Observer
	network  *link.Network
	finish   func()
	halt     func()
	announce func(*protos.View)
	lead     handler // of the coordinator, beside the end
}

func (s *stage) world(t testing.TB) *live.World {
	t.Helper()
	w, err := live.New(s.config())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (s *stage) config() live.Config {
	d := &world.Deployment{Seed: s.seed, Strict: s.strict, Observer: s.observer, Schedule: s.schedule,
		Detect: s.detect, Bounded: s.bounded}
	var names []string
	if s.profile.Speed == 0 {
		s.profile = world.Profile{Cores: 1, Speed: 1e9}
	}
	for i, h := range s.handlers {
		d.Nodes = append(d.Nodes, world.Node{Name: fmt.Sprintf("n%d", i), Role: "peer", Profile: s.profile,
			Kind: s.kind(i, h)})
		names = append(names, d.Nodes[i].Name)
	}
	for _, i := range s.absent {
		d.Nodes[i].Absent = true
	}
	if s.end == 0 {
		s.end = limit
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		s.finish, s.halt, s.announce = control.Finish, control.Halt, control.Announce
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(s.end, timeIsUp{})
			case timeIsUp:
				control.Finish()
			}
			if s.lead != nil {
				s.lead(ctx, env)
			}
		}), nil
	}
	s.network = link.New(s.seed, append(names, actors.Coordinator))
	s.network.SetDefault(s.edge)
	return live.Config{Deployment: d, Network: s.network, Threads: s.threads, Changes: s.changes, Bound: s.bound}
}

// kind makes actors of a node's handler, one a life.
func (s *stage) kind(node int, h handler) actors.Kind {
	life := -1
	return func(env actors.Env) (actor.Actor, error) {
		if life++; s.making != nil {
			if err := s.making(node, life); err != nil {
				return nil, err
			}
		}
		return h.kind(env)
	}
}

// run lets the stage happen, without an error and without anything left behind.
func (s *stage) run(t testing.TB) live.Result {
	t.Helper()
	w := s.world(t)
	r, err := w.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Now >= limit {
		t.Fatal("nobody ended the run in time")
	}
	if !s.beside {
		nothingLeft(t)
	}
	return r
}

// fails lets the stage happen and returns the error that ends it.
func (s *stage) fails(t testing.TB) error {
	t.Helper()
	r, err := s.world(t).Run(context.Background())
	if err == nil {
		t.Fatalf("no error, the run ended at %v", r.Now)
	}
	if !s.beside {
		nothingLeft(t)
	}
	return err
}

// nothingLeft waits until no goroutine of a world or of its actors is left, and fails the
// test if that does not come to pass.
func nothingLeft(t testing.TB) {
	t.Helper()
	if others := leftOver(); others != "" {
		t.Fatalf("left after the run:\n%s", others)
	}
}

// leftOver are the goroutines of worlds or of their actors that do not end.
func leftOver() string {
	for deadline := time.Now().Add(limit); ; runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		_, others, _ := strings.Cut(string(stacks), "\n\n")
		if !strings.Contains(others, "cluster/live.") && !strings.Contains(others, "protoactor-go") {
			return ""
		}
		if time.Now().After(deadline) {
			return others
		}
	}
}

func chunk(index uint32) *protos.Message { return protos.NewMessage(&protos.Chunk{Index: index}) }

// index returns the index of a chunk, and whether a message is one.
func index(ctx actor.Context) (uint32, bool) {
	if m, ok := ctx.Message().(*protos.Message); ok {
		defer m.Release()
		return m.Head.(*protos.Chunk).Index, true
	}
	return 0, false
}

func started(ctx actor.Context) bool {
	_, ok := ctx.Message().(*actor.Started)
	return ok
}

func pid(env actors.Env, node int) *actor.PID { return env.View().Members[node].PID }

func constant(d time.Duration) link.Config { return link.Config{Delay: link.Constant{Delay: d}} }

func nothing(actor.Context, actors.Env) {}

// notBefore fails the test where something happened before it was due, or absurdly late.
func notBefore(t *testing.T, what string, at, due time.Duration) {
	t.Helper()
	if at < due || at > due+10*time.Second {
		t.Errorf("%s at %v, due at %v", what, at, due)
	}
}
