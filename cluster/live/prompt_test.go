package live_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// held is a world with one node, whose handler a test sees at work, and the coordinator elsewhere.
func held(t *testing.T, profile world.Profile, h handler) (m *mesh, end func()) {
	t.Helper()
	s := &stage{profile: profile}
	begun := make(chan struct{})
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			close(begun)
		} else {
			h(ctx, env)
		}
	}}
	stop := make(chan struct{})
	s.lead = func(_ actor.Context, env actors.Env) {
		select {
		case <-stop:
			s.finish()
		default:
			env.After(ms, "look")
		}
	}
	m = s.split(0, 1)
	wait := m.start(t)
	<-begun
	return m, func() {
		close(stop)
		wait()
		if err := errors.Join(m.failures...); err != nil {
			t.Error(err)
		}
	}
}

func deliver(m *mesh) {
	m.worlds[0].Deliver(0, &wire.Frame{Kind: wire.User, Target: "n0/peer", Head: &protos.Chunk{}})
}

func TestMessageOfAnotherProcessIsHandledByWhoeverDeliversIt(t *testing.T) {
	var handled atomic.Int64
	m, end := held(t, world.Unlimited, func(ctx actor.Context, _ actors.Env) {
		if _, ok := index(ctx); ok {
			handled.Add(1)
		}
	})
	at := 0
	for i := range 200 {
		before := handled.Load()
		if deliver(m); handled.Load() > before {
			at++
		}
		for handled.Load() != int64(i+1) { // an earlier goroutine may still have been at it
			runtime.Gosched()
		}
	}
	end()
	if at < 150 {
		t.Errorf("%d of 200 messages were handled before Deliver returned", at)
	}
}

func TestWhoDeliversIsNotHeldUp(t *testing.T) {
	t.Run("by what a node of limited speed charges", func(t *testing.T) {
		release := make(chan struct{})
		m, end := held(t, world.Profile{Cores: 1, Speed: 1e9}, func(ctx actor.Context, _ actors.Env) {
			if _, ok := index(ctx); ok {
				<-release
			}
		})
		deliver(m)
		close(release)
		end()
	})
	t.Run("by messages that follow", func(t *testing.T) {
		var over atomic.Bool
		m, end := held(t, world.Unlimited, func(ctx actor.Context, _ actors.Env) {
			_, delivered := index(ctx)
			if again := ctx.Message() == "again"; (delivered || again) && !over.Load() {
				ctx.Send(ctx.Self(), "again")
			}
		})
		deliver(m)
		over.Store(true)
		end()
	})
}
