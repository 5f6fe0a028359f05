package world

import (
	"testing"
	"time"
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
		{p: Pace{Last: 5 * s, Longest: 100 * ms, Waited: true}, at: 6001 * ms, want: true},
		// This one has not shown how long an exchange takes.
		{p: Pace{Last: 5 * s, Longest: 100 * ms}, at: 6001 * ms, want: false},
		{p: Pace{Last: 5 * s, Longest: 100 * ms}, at: 6001 * ms, lost: true, want: true},
		{p: Pace{Last: 5 * s, Longest: 100 * ms, Waited: true}, at: 6 * s, longest: s,
			want: false},
		{p: Pace{Last: 5 * s, Longest: ms, Waited: true}, at: 5900 * ms, lost: true,
			want: false},
		{p: Pace{Last: 5 * s, Longest: s, Waited: true}, at: 14 * s, lost: true,
			want: false},
		{p: Pace{Last: 5 * s}, at: 8 * s, longest: 200 * ms, lost: true, want: true},
		{p: Pace{Last: 5 * s}, at: 8 * s, longest: s, lost: true, want: false},
		{p: Pace{}, at: 2 * s, lost: true, want: true},
		{p: Pace{}, at: 2 * s, want: false},
		{p: Pace{}, at: 2 * s, longest: 100 * ms, want: true},
		{p: Pace{Last: 190 * ms, Longest: 100 * ms}, at: 2 * s, want: true},
		{p: Pace{Last: 210 * ms, Longest: 100 * ms}, at: 2 * s, want: false},
	} {
		if got := x.p.StoodStill(x.at, x.longest, s, x.lost); got != x.want {
			t.Errorf("%+v at %v, longest of any %v, lost %v: %v", x.p, x.at, x.longest, x.lost, got)
		}
	}
}
