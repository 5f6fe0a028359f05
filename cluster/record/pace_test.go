package record

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
)

func TestNodeStandsStillThatWaitsTenTimesLongerThanItEverDid(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, x := range []struct {
		p       Pace
		at      time.Duration
		longest time.Duration // of any node
		lost    bool
		want    bool
	}{
		{p: Pace{Last: 5 * s, Longest: 100 * ms, count: 9, Waited: true}, at: 6001 * ms, want: true},
		// This one has not shown how long an exchange takes.
		{p: Pace{Last: 5 * s, Longest: 100 * ms, count: 9}, at: 6001 * ms, want: false},
		{p: Pace{Last: 5 * s, Longest: 100 * ms, count: 9}, at: 6001 * ms, lost: true, want: true},
		{p: Pace{Last: 5 * s, Longest: 100 * ms, count: 9, Waited: true}, at: 6 * s, longest: s,
			want: false},
		{p: Pace{Last: 5 * s, Longest: ms, count: 9, Waited: true}, at: 5900 * ms, lost: true,
			want: false},
		{p: Pace{Last: 5 * s, Longest: s, count: 9, Waited: true}, at: 14 * s, lost: true,
			want: false},
		{p: Pace{Last: 5 * s, count: 1}, at: 8 * s, longest: 200 * ms, lost: true, want: true},
		{p: Pace{Last: 5 * s, count: 1}, at: 8 * s, longest: s, lost: true, want: false},
		{p: Pace{}, at: 2 * s, lost: true, want: true},
		{p: Pace{}, at: 2 * s, want: false},
	} {
		if got := x.p.StoodStill(x.at, x.longest, s, x.lost); got != x.want {
			t.Errorf("%+v at %v, longest of any %v, lost %v: %v", x.p, x.at, x.longest, x.lost, got)
		}
	}
}

func TestTimeInWhichANodeIsAwayIsNoneBetweenItsSteps(t *testing.T) {
	c := NewCollector(Config{Nodes: make([]string, 4), Trains: make([]bool, 4)})
	step := func(at time.Duration) { c.Observe(at, 3, actors.Event{Kind: actors.StepDone}) }
	step(time.Second)
	step(2 * time.Second)
	c.Interrupted(4*time.Second, 3)
	c.Interrupted(9*time.Second, 3)
	c.Interrupted(90*time.Second, 2)
	step(10 * time.Second)
	step(12 * time.Second)
	all, longest := c.Paces()
	if p := all[3]; longest != p.Longest || p.Longest != 2*time.Second || p.Last != 12*time.Second || p.count != 2 {
		t.Errorf("%+v", p)
	}
}
