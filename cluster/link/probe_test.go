package link_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

func TestProbesMeetWhatTheEdgeOfALargerNetworkDoes(t *testing.T) {
	const every, size = 7 * ms, 900
	n := configured(3)
	flaky := link.Config{Delay: link.Uniform{Max: 9 * ms}, Rate: rate.Constant(1e6), Reorder: true,
		Intermittent: link.Intermittent{Up: 90 * ms, Down: 30 * ms}}
	changed := link.Config{Delay: paperWalk, Loss: link.Loss{Timeout: ms, Bursts: &link.Bursts{P: 0.2, R: 0.5, K: 1}}}
	n.Set(0, 3, flaky)
	line := link.Line{
		From: names(4)[0], To: names(4)[3], Config: flaky, Uplink: rate.Constant(3e6), Downlink: rate.Constant(7e6),
		Changes: []link.LineChange{{At: 100 * every, Config: changed}, {At: 150*every + 1, Config: flaky}},
	}
	probes := line.Probe(3, size, every, 300)
	arrivals := make([]time.Duration, len(probes))
	var order []int
	for i, p := range probes {
		now := time.Duration(i) * every
		switch i {
		case 100:
			n.Set(0, 3, changed)
		case 151:
			n.Set(0, 3, flaky)
		}
		got := n.Edge(0, 3).Send(now, size)
		if p.Sent != now || p.Delay != got.Delay || p.Tries != got.Tries || p.Lost != got.Lost {
			t.Fatalf("probe %d: %+v, on the larger network %+v", i, p, got)
		}
		if !got.Lost {
			arrivals[i] = got.Arrival
			order = append(order, i)
		}
	}
	// The downlink serves them as they arrive.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(arrivals[a], arrivals[b]) })
	for _, i := range order {
		if got := n.Edge(0, 3).Receive(arrivals[i], size) - probes[i].Sent; got != probes[i].Took {
			t.Fatalf("probe %d took %v, on the larger network %v", i, probes[i].Took, got)
		}
	}
}

func TestOutagesOfALineFollowItsChanges(t *testing.T) {
	random := link.Intermittent{Up: time.Second, Down: time.Second}
	line := link.Line{From: "a", To: "b", Config: link.Config{Outages: []link.Outage{{From: 2, To: 50},
		{From: 60, To: 70}}}, Changes: []link.LineChange{
		{At: 40, Config: link.Config{}},
		{At: 60, Config: link.Config{Outages: []link.Outage{{From: 55, To: 65}}}},
		{At: 65, Config: link.Config{Outages: []link.Outage{{From: 65, To: 80}}}},
		{At: 100, Config: link.Config{Intermittent: random}},
	}}
	got := slices.Collect(line.Outages(1, time.Minute))
	if diff := gocmp.Diff([]link.Outage{{From: 2, To: 40}, {From: 60, To: 80}}, got[:2]); diff != "" {
		t.Error(diff)
	}
	n := link.New(1, []string{"a", "b"})
	n.Set(0, 1, link.Config{Intermittent: random})
	want := outagesOf(n.Edge(0, 1), time.Minute)
	if want[0].From < 100 {
		want[0].From = 100
	}
	if diff := gocmp.Diff(want, got[2:]); diff != "" {
		t.Error(diff)
	}
	for range line.Outages(1, time.Minute) {
		break // a consumer may stop
	}
}

// configured returns a network with links of every kind.
func configured(seed uint64) *link.Network {
	n := link.New(seed, names(4))
	n.SetUplink(0, rate.Constant(3e6))
	n.SetDownlink(3, rate.Constant(7e6))
	loss := link.Loss{Probability: 0.2, Timeout: ms}
	n.SetDefault(link.Config{Delay: paperWalk, Rate: rate.Constant(7e5), Loss: loss})
	n.Set(0, 1, link.Config{Delay: link.Normal{Mean: ms, Std: ms},
		Outages: []link.Outage{{From: ms, To: 9 * ms}, {From: 20 * ms, To: 21 * ms}}})
	n.Set(1, 2, link.Config{Delay: scripted{3, 1, 4, 1, 5}, Loss: loss, Reorder: true})
	n.Set(2, 3, link.Config{Delay: link.Exponential{Mean: ms}, Rate: rate.Constant(3e9)})
	n.Set(3, 0, link.Config{Delay: link.Trace{Points: []link.Point{{Delay: 1}, {At: ms, Delay: 9}}, Interpolate: true,
		Repeat: true}})
	n.Set(3, 1, link.Config{})
	n.Set(2, 1, link.Config{Delay: link.Pareto{Min: ms, Alpha: 1.5}})
	n.Set(1, 3, link.Config{Delay: link.LogNormal{Median: ms, Sigma: 1}, Rate: rate.Constant(1e6)})
	n.Set(3, 2, link.Config{Intermittent: link.Intermittent{Up: 3 * ms, Down: ms}, Rate: rate.Constant(1e6),
		Loss: loss})
	n.Set(2, 0, link.Config{Delay: paperWalk, Loss: link.Loss{Timeout: ms,
		Bursts: &link.Bursts{P: 0.1, R: 0.3, H: 0.2, K: 0.9}}})
	return n
}
