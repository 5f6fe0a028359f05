package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

func TestTeamTakesItsCoresAndAnOrderOfEachRound(t *testing.T) {
	var want string
	for _, x := range []struct{ threads, processors int }{{0, 1}, {1, 2}, {3, 1}, {3, 2}} {
		var ends []time.Duration
		var orders []string
		s := stage{end: time.Second, threads: x.threads, profile: world.Profile{Cores: 4, Speed: 1e9}}
		s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for range 2 {
					order := ""
					note := func(thread, step int) { order += fmt.Sprint(thread, step, " ") }
					env.ComputeTeam(actors.Team{Threads: 3, Steps: 9, Work: 90e6, Cores: 1, Begin: note, End: note,
						Result: func() any { return order }})
				}
				env.Compute(actors.Job{Work: 10e6, Do: func() any { return "one core is left" }})
			case string:
				ends, orders = append(ends, env.Now()), append(orders, m)
			}
		}}
		before := runtime.GOMAXPROCS(x.processors)
		s.run(t)
		runtime.GOMAXPROCS(before)
		// Jobs start in the order in which they came: the single one waits for the second team.
		const ms = time.Millisecond
		if fmt.Sprint(ends) != fmt.Sprint([]time.Duration{30 * ms, 40 * ms, 60 * ms}) {
			t.Errorf("done at %v", ends)
		}
		if got := fmt.Sprint(orders); want == "" {
			want = got
		} else if got != want {
			t.Errorf("%+v: the orders are %s, want %s", x, got, want)
		}
		if orders[0] == orders[2] {
			t.Errorf("both rounds have the order %s", orders[0])
		}
	}
}
