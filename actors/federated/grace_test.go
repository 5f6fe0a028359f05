package federated_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/cluster/link"
)

// Three steps and two delays of a millisecond have updates of five clients come after 32, 35, 38,
// 62 and 302 ms. With the third the median is 35 and the MAD 3, with the fourth 36.5 and 3.
func TestGraceEndsARoundByHand(t *testing.T) {
	for _, c := range []struct {
		mads     float64
		deadline time.Duration
		updates  []int
		ended    time.Duration
	}{
		{3, 0, []int{1, 2, 3}, 44 * ms},
		{0, 0, []int{1, 2, 3}, 38 * ms},
		{10, 0, []int{1, 2, 3, 4}, 66*ms + ms/2},
		{10, 40 * ms, []int{1, 2, 3}, 40 * ms},
		{10, 30 * ms, nil, 30 * ms},
		{10, 900 * ms, []int{1, 2, 3, 4}, 66*ms + ms/2},
		{1000, 900 * ms, []int{1, 2, 3, 4, 5}, 302 * ms},
	} {
		s := &stage{task: newTask(24, 24, 24, 24, 24), arch: federated.Default(), rounds: 1,
			steps: []time.Duration{10 * ms, 11 * ms, 12 * ms, 20 * ms, 100 * ms}}
		s.link.Delay = link.Constant{Delay: ms}
		s.arch.Deadline, s.arch.Grace = c.deadline, &federated.Grace{Quorum: 0.6, MADs: c.mads}
		s.run(t)
		var updates []int
		if len(s.updates) > 0 {
			updates = s.updates[0]
		}
		end := s.ended[0]
		if !slices.Equal(updates, c.updates) || end < c.ended || end > c.ended+time.Microsecond {
			t.Errorf("%v MADs and a deadline of %v: updates of %v until %v, want %v and %v", c.mads, c.deadline,
				updates, end, c.updates, c.ended)
		}
	}
}

// ends looks at each microsecond of a round whether it is over, and says who has come by then.
func ends(times []float64, wanted int, quorum, mads, deadline float64) (came []int, end float64) {
	middle := func(values []float64) float64 {
		slices.Sort(values)
		if n := len(values); n%2 == 0 {
			return (values[n/2-1] + values[n/2]) / 2
		}
		return values[len(values)/2]
	}
	for now := 0.5; ; now++ {
		var past, away []float64
		came = nil
		for i, at := range times {
			if at <= now {
				past, came = append(past, at), append(came, i+1)
			}
		}
		over := len(past) == wanted || now > deadline
		if float64(len(past)) >= quorum*float64(wanted) {
			mid := middle(past)
			for _, at := range past {
				away = append(away, max(at-mid, mid-at))
			}
			over = over || now > mid+mads*middle(away)
		}
		if over {
			return came, now
		}
	}
}

func TestGraceIsThatOfAClockThatLooksAllTheTime(t *testing.T) {
	early := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 5))
		n := 1 + r.IntN(9)
		s := &stage{task: newTask(slices.Repeat([]int{24}, n)...), arch: federated.Default(), rounds: 1}
		s.link.Delay = link.Constant{Delay: ms}
		var times []float64
		for range n {
			step := time.Duration(100+r.IntN(1000)) * time.Microsecond
			s.steps, times = append(s.steps, step), append(times, float64(2*ms+3*step)/1000)
		}
		quorum, mads, limit := 0.1+0.9*r.Float64(), 4*r.Float64(), 1e9
		if s.arch.Grace = (&federated.Grace{Quorum: quorum, MADs: mads}); r.IntN(2) == 0 {
			limit = 2300 + 4000*r.Float64()
			s.arch.Deadline = time.Duration(limit * 1000)
		}
		s.run(t)
		came, end := ends(times, n, quorum, mads, limit)
		var updates []int
		if len(s.updates) > 0 {
			updates = s.updates[0]
		}
		got := float64(s.ended[0]) / 1000
		if !slices.Equal(updates, came) || got < end-1 || got > end+1 {
			t.Errorf("seed %d: updates of %v until %v µs, want %v and %v", seed, updates, got, came, end)
		}
		if len(came) < n {
			early++
		}
	}
	if early < 50 {
		t.Errorf("%d rounds have ended early", early)
	}
}

func TestAGraceOfNothingIsRefused(t *testing.T) {
	a := federated.Default()
	for _, g := range []federated.Grace{{}, {Quorum: 2}, {Quorum: 1, MADs: -1}} {
		if a.Grace = &g; a.Validate() == nil {
			t.Errorf("%+v is accepted", g)
		}
	}
	a.Grace.SetDefaults()
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
}
