package world_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// logged is a team that notes what it does.
func logged(threads, steps int, log *[]string) actors.Team {
	note := func(what string) func(thread, step int) {
		return func(thread, step int) { *log = append(*log, fmt.Sprintf("%s %d %d", what, thread, step)) }
	}
	return actors.Team{Threads: threads, Steps: steps, Begin: note("begin"), End: note("end"),
		Result: func() any { return len(*log) }}
}

func TestInterleavingBeginsStepsInOrderAndEndsEachOnItsThread(t *testing.T) {
	for seed := range uint64(300) {
		threads, steps := 1+int(seed%7), 1+int(seed*13%40)
		var log []string
		if n := world.Interleave(logged(threads, steps, &log), seed); n != 2*steps {
			t.Fatalf("the result was asked for after %v of %d parts", n, 2*steps)
		}
		at, begun, ended := map[int]int{}, 0, map[int]bool{} // at: the step of a busy thread
		for _, line := range log {
			var what string
			var thread, step int
			if _, err := fmt.Sscan(line, &what, &thread, &step); err != nil {
				t.Fatal(err)
			}
			busy, is := at[thread]
			switch {
			case thread < 0 || thread >= threads:
				t.Fatalf("seed %d: there is no thread %d", seed, thread)
			case what == "begin" && !is && step == begun:
				at[thread] = step
				begun++
			case what == "end" && is && step == busy && !ended[step]:
				delete(at, thread)
				ended[step] = true
			default:
				t.Fatalf("seed %d: %q does not go on from\n%q", seed, line, log)
			}
		}
		if begun != steps || len(ended) != steps {
			t.Errorf("seed %d: %d of %d steps began, %d ended", seed, begun, steps, len(ended))
		}
	}
}

func TestInterleavingIsDrawnByItsSeed(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(200) {
		var first, again []string
		world.Interleave(logged(2, 2, &first), seed)
		world.Interleave(logged(2, 2, &again), seed)
		if !slices.Equal(first, again) {
			t.Fatalf("seed %d: %q and %q", seed, first, again)
		}
		orders[fmt.Sprint(first)] = true
	}
	// Two threads, two steps: either thread begins step 0. Then it ends and either thread begins
	// the other step, or the other thread begins it and either of the two ends first: 2·(2 + 2).
	if len(orders) != 8 {
		t.Errorf("%d orders in 200 seeds, want all 8:\n%v", len(orders), orders)
	}
}

func TestTeamCostsAsLongAsItsStepsSideBySide(t *testing.T) {
	const ms = time.Millisecond
	slow := world.Profile{Cores: 4, Speed: 1e9}
	fixed := world.Profile{Cores: 4, Speed: 1e9, Step: 7 * ms}
	for _, c := range []struct {
		name    string
		profile world.Profile
		team    actors.Team
		want    time.Duration
	}{
		{"one thread", slow, actors.Team{Threads: 1, Steps: 6, Work: 6e6, Cores: 1}, 6 * ms},
		{"three threads", slow, actors.Team{Threads: 3, Steps: 6, Work: 6e6, Cores: 1}, 2 * ms},
		{"a turn that is not full", slow, actors.Team{Threads: 4, Steps: 6, Work: 6e6, Cores: 1}, 2 * ms},
		{"two cores each", slow, actors.Team{Threads: 2, Steps: 6, Work: 6e6, Cores: 2}, 1500 * time.Microsecond},
		{"more threads than cores", slow, actors.Team{Threads: 8, Steps: 8, Work: 8e6, Cores: 1}, 2 * ms},
		{"steps of fixed time", fixed, actors.Team{Threads: 2, Steps: 5, Work: 5e6, Cores: 2}, 21 * ms},
		{"no time", world.Unlimited, actors.Team{Threads: 2, Steps: 5, Work: 5e6, Cores: 1}, 0},
	} {
		if got := c.profile.TeamCost(c.team); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
