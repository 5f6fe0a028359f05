package live_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/link"
)

// toil keeps the thread busy, as a machine does that is slower than its plan.
func toil(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
	}
}

const (
	hops   = 10
	late   = 30 * ms // of every handler
	delay  = 50 * ms
	behind = hops * late / 2 // a run whose delays add up is behind by more than twice that

	// patience is a bound on lateness beyond what handlers and a busy machine make.
	patience = time.Minute
)

// volley has two nodes send a message to and fro. Each handler takes long before it sends. The
// first node reads its clock at the start and at the end, because another process's clock may have
// started later.
func volley(edge link.Config, bound time.Duration) (s *stage, took func() time.Duration) {
	var began, ended time.Duration
	s = &stage{edge: edge, bound: bound}
	serve := func(ctx actor.Context, env actors.Env) {
		began = env.Now()
		ctx.Send(pid(env, 1), chunk(0))
	}
	back := func(ctx actor.Context, env actors.Env) {
		i, ok := index(ctx)
		switch {
		case ok && i <= hops:
			toil(late)
			ctx.Send(pid(env, 1-env.Node()), chunk(i+1))
		case ok:
			ended = env.Now()
			done(ctx)
		}
	}
	s.handlers = []handler{member(serve, back), member(nothing, back)}
	s.untilDone()
	return s, func() time.Duration { return ended - began }
}

// doesNotAddUp checks that late handlers do not delay the end of a run. A busy machine may delay one run;
// accumulating lateness delays every run.
func doesNotAddUp(t *testing.T, what string, want time.Duration, run func() (took time.Duration)) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		switch took := run(); {
		case took < want, took > want+behind && time.Now().After(end):
			t.Errorf("%s took %v, want %v", what, took, want)
			return
		case took <= want+behind:
			return
		}
	}
}

func TestLatenessOfHandlersDoesNotAddUpInMessages(t *testing.T) {
	for name, run := range map[string]func(s *stage){
		"one process":   func(s *stage) { s.run(t) },
		"two processes": func(s *stage) { s.split(0, 1, 1).run(t) },
	} {
		doesNotAddUp(t, name, (hops+2)*delay, func() time.Duration {
			s, took := volley(constant(delay), patience)
			run(s)
			return took()
		})
	}
}

func TestLatenessBeyondTheBoundDelaysTheRun(t *testing.T) {
	s, took := volley(constant(delay), time.Millisecond)
	s.run(t)
	if want := (hops+2)*delay + (hops+1)*(late-time.Millisecond); took() < want {
		t.Errorf("%d messages of %v by handlers that take %v took %v, want at least %v", hops+2, delay, late, took(),
			want)
	}
}

func TestLatenessOfHandlersDoesNotAddUpInStepsAndTimers(t *testing.T) {
	doesNotAddUp(t, "timers and steps", hops*delay, func() time.Duration { return toils(t) })
}

// toils runs timers and steps with slow handlers, and returns the length of the run.
func toils(t *testing.T) time.Duration {
	t.Helper()
	var ended time.Duration
	s := &stage{bound: patience}
	s.handlers = []handler{member(func(_ actor.Context, env actors.Env) { env.After(delay, 0) },
		func(ctx actor.Context, env actors.Env) {
			n, ok := ctx.Message().(int)
			if !ok {
				return
			}
			toil(late)
			switch {
			case n%2 == 0:
				env.Compute(actors.Job{Work: 50e6, Do: func() any { return n + 1 }}) // 50 ms at 1 GFLOP/s
			case n < hops-1:
				env.After(delay, n+1)
			default:
				ended = env.Now()
				done(ctx)
			}
		})}
	var began time.Duration
	s.untilDone()
	lead := s.lead
	s.lead = func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			began = env.Now()
		}
		lead(ctx, env)
	}
	s.run(t)
	return ended - began
}

func TestContinuationChargesAndGoesOnFromItsHandlersTime(t *testing.T) {
	var asked, before, after time.Duration
	s := &stage{bound: time.Hour}
	s.handlers = []handler{member(func(ctx actor.Context, env actors.Env) {
		asked = env.Now()
		future := ctx.RequestFuture(ctx.Self(), "answer", -1)
		ctx.ReenterAfter(future, func(any, error) {
			before = env.Now()
			env.Charge(5e6) // 5 ms at 1 GFLOP/s
			after = env.Now()
			done(ctx)
		})
		ctx.Send(future.PID(), "answered")
	}, nothing)}
	s.untilDone()
	if r := s.run(t); before < asked || after != before+5*ms || r.Now < after {
		t.Errorf("a handler at %v, its continuation at %v, after a charge of 5ms at %v, the run's end at %v", asked,
			before, after, r.Now)
	}
}

func TestMessageToItselfIsDueWhenItsHandlerWas(t *testing.T) {
	var first, second time.Duration
	s := &stage{bound: time.Hour}
	s.handlers = []handler{member(func(ctx actor.Context, env actors.Env) {
		first = env.Now()
		toil(3 * ms)
		ctx.Send(ctx.Self(), chunk(7))
	}, func(ctx actor.Context, env actors.Env) {
		if i, ok := index(ctx); ok && i == 7 {
			second = env.Now()
			done(ctx)
		}
	})}
	s.untilDone()
	if s.run(t); second != first {
		t.Errorf("handled at %v what was sent at %v", second, first)
	}
}

func TestTimeStandsStillInAHandlerButForWhatItCharges(t *testing.T) {
	var before, after, charged time.Duration
	s := &stage{bound: time.Hour}
	s.handlers = []handler{member(func(ctx actor.Context, env actors.Env) {
		before = env.Now()
		toil(3 * ms)
		after = env.Now()
		env.Charge(5e6) // 5 ms at 1 GFLOP/s
		charged = env.Now()
		done(ctx)
	}, nothing)}
	s.untilDone()
	if r := s.run(t); after != before || charged != before+5*ms || r.Now < charged {
		t.Errorf("a handler sees %v, %v after 3ms of work, %v after a charge of 5ms, and the run ends at %v", before,
			after, charged, r.Now)
	}
}
