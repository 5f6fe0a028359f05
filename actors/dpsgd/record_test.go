package dpsgd_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

func TestFirstRankRecordsTheSpectralGapOnce(t *testing.T) {
	r := &simtest.Recorder{}
	s := simtest.Stage{Task: simtest.NewTask(6, 20, 0.1), Graph: graphs[0].graph, Kind: dpsgd.Architecture{Lead: -1},
		Observer: r, Looks: []time.Duration{time.Second}}
	s.Run(t)
	count := 0
	for i, e := range r.Events {
		if e.Kind != actors.Measured {
			continue
		}
		count++
		if want := 2.0 / 3 * (1 - math.Cos(math.Pi/3)); r.Nodes[i] != 0 || e.Name != "spectral gap" ||
			math.Abs(e.Value-want) > 1e-12 {
			t.Errorf("node %d records %s %v, want %v", r.Nodes[i], e.Name, e.Value, want)
		}
	}
	if count != 1 {
		t.Errorf("%d figures recorded, want 1", count)
	}
}

// On a ring of six a peer may begin a step three ahead of the one opposite, and end its gradient; a
// bound of 0 lets nobody begin before all have ended.
func TestLeadMakesEverybodyWaitForTheSlowest(t *testing.T) {
	for bound, want := range map[int]uint64{0: 1, 1: 2, -1: 4} {
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(6, 20, 0.1), Graph: graphs[0].graph,
			Kind: dpsgd.Architecture{Lead: bound}, Observer: r, Looks: []time.Duration{10 * time.Second}}
		for node := range 6 {
			s.Step = append(s.Step, time.Duration(50+node/5*150)*time.Millisecond)
		}
		s.Run(t)
		steps, ahead := make([]uint64, 6), uint64(0)
		for i, e := range r.Events {
			if e.Kind == actors.StepDone {
				steps[r.Nodes[i]] = e.Step
				ahead = max(ahead, steps[2]-min(steps[5], steps[2]))
			}
		}
		if ahead != want {
			t.Errorf("lead %d: the peer opposite the slowest is up to %d steps ahead, want %d", bound, ahead, want)
		}
	}
}

func TestThreadsChangeNothing(t *testing.T) {
	for _, c := range graphs {
		var results []any
		for _, threads := range []int{0, 2} {
			s := simtest.Stage{Task: simtest.NewTask(len(c.graph), 40, 0.1), Graph: c.graph,
				Kind: dpsgd.Architecture{Lead: 2}, Edge: link.Uniform{Max: 300 * time.Millisecond},
				Threads: threads, Looks: []time.Duration{4 * time.Second}}
			models := s.Run(t)
			results = append(results, fmt.Sprint(s.Result.Digest, models))
		}
		if results[0] != results[1] {
			t.Errorf("%s: digests or models differ between 0 and 2 threads", c.name)
		}
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []struct {
		a    dpsgd.Architecture
		want string
	}{
		{dpsgd.Architecture{Moved: -1}, "Moved is -1: must be 0 or more"},
		{dpsgd.Architecture{Moved: math.NaN()}, "Moved is NaN: must be 0 or more"},
		{dpsgd.Architecture{Matrix: [][]float64{{1, 1}, {1, 1}}}, "sums to 2"},
	} {
		if err := c.a.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
