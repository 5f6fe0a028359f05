package link_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// outagesOf lists the outages of an edge from the beginning to an instant.
func outagesOf(e *link.Edge, end time.Duration) []link.Outage {
	var list []link.Outage
	for now := time.Duration(0); ; {
		o, ok := e.Outage(now, end)
		if !ok {
			return list
		}
		list = append(list, o)
		now = o.To
	}
}

// sojourns returns the times up and down in seconds, without the first of each, which are cut off.
func sojourns(list []link.Outage) (up, down []float64) {
	for i := 1; i < len(list); i++ {
		up = append(up, (list[i].From - list[i-1].To).Seconds())
		down = append(down, (list[i].To - list[i].From).Seconds())
	}
	return up, down
}

var flapping = []link.Intermittent{
	{Up: 30 * time.Second, Down: 5 * time.Second},
	{Up: ms, Down: ms},
	{Up: ms, Down: 40 * ms},
	{Up: time.Hour, Down: 10 * ms},
}

func TestSojournsAreExponentiallyDistributedAndIndependent(t *testing.T) {
	for _, d := range flapping {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			list := outagesOf(pair(5, link.Config{Intermittent: d}), 5000*(d.Up+d.Down))
			up, down := sojourns(list)
			for name, s := range map[string]struct {
				seconds []float64
				mean    time.Duration
			}{"up": {up, d.Up}, "down": {down, d.Down}} {
				count := float64(len(s.seconds))
				if count < 4500 {
					t.Fatalf("%v times %s", count, name)
				}
				// Correlation of each time with the next one: beyond four standard errors once in
				// 16,000 seeds.
				if r := stat.Correlation(s.seconds[1:], s.seconds[:len(s.seconds)-1],
					nil); math.Abs(r) > 4/math.Sqrt(count) {
					t.Errorf("times %s depend on the one before: correlation %v", name, r)
				}
				law := distuv.Exponential{Rate: 1 / s.mean.Seconds()}
				sorted := slices.Sorted(slices.Values(s.seconds))
				for i, x := range sorted {
					if off := math.Abs(law.CDF(x) - (float64(i)+0.5)/count); off > 1.95/math.Sqrt(count) {
						t.Fatalf("a time %s of %v s has rank %d of %v, expected %.0f", name, x, i, count,
							law.CDF(x)*count)
					}
				}
			}
		})
	}
}

// The transition function of the chain: Pr(down at t+s | down at t) = π + (1 − π)·exp(−(1/up +
// 1/down)·s), and Pr(down) = π at every t, the beginning too.
func TestOutagesAreTheStationaryChainFromTheBeginning(t *testing.T) {
	d := link.Intermittent{Up: 3 * time.Second, Down: time.Second}
	const edges = 20_000
	n := link.New(9, names(edges+1))
	n.SetDefault(link.Config{Intermittent: d})
	isDown := func(e *link.Edge, at time.Duration) bool {
		_, down := e.Outage(at, at+1)
		return down
	}
	for _, at := range []time.Duration{0, 1500 * ms, time.Hour} {
		for _, later := range []time.Duration{0, 200 * ms, time.Second, time.Minute} {
			first, both := 0.0, 0.0
			for i := range int32(edges) {
				e := n.Edge(edges, i)
				if isDown(e, at) {
					first++
					if isDown(e, at+later) {
						both++
					}
				}
			}
			share := 0.25
			if off := math.Abs(first/edges - share); off > 4*math.Sqrt(share*(1-share)/edges) {
				t.Errorf("%v of %d edges down at %v, expected a share of %v", first, edges, at, share)
			}
			want := share + (1-share)*math.Exp(-(1/3.0+1)*later.Seconds())
			if off := math.Abs(both/first - want); off > 4*math.Sqrt(want*(1-want)/first)+1e-12 {
				t.Errorf("of edges down at %v, %v are %v later, expected %v", at, both/first, later, want)
			}
		}
	}
}

// What happens to messages was proved of scheduled outages; the ones at random are those, whatever
// is sent and when.
func TestOutagesAtRandomAreLikeScheduledOnesAtTheseInstants(t *testing.T) {
	t.Parallel()
	const listed = 10 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		c := link.Config{
			Intermittent: link.Intermittent{Up: time.Duration(rapid.IntRange(1, 20).Draw(t, "up")) * ms,
				Down: time.Duration(rapid.IntRange(1, 20).Draw(t, "down")) * ms},
			Rate:  rapid.SampledFrom([]rate.Constant{0, 1e5, 1e7}).Draw(t, "rate"),
			Delay: link.Uniform{Max: 5 * ms},
			Loss: link.Loss{Probability: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "probability"),
				Timeout: 3 * ms, Attempts: 4},
		}
		c.Loss.Drop = rapid.Bool().Draw(t, "drop")
		if rapid.Bool().Draw(t, "also scheduled") {
			c.Outages = []link.Outage{{From: 20 * ms, To: 60 * ms}, {From: 90 * ms, To: 91 * ms}}
		}
		random := pair(seed, c)
		fixed := c
		fixed.Outages, fixed.Intermittent = outagesOf(pair(seed, c), listed), link.Intermittent{}
		scheduled := pair(seed, fixed)
		now := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			now += time.Duration(rapid.IntRange(0, 50_000_000).Draw(t, "wait"))
			size := rapid.IntRange(0, 3000).Draw(t, "size")
			got, want := random.Send(now, size), scheduled.Send(now, size)
			if want.Arrival > listed { // which outages it has met is not in the list
				return
			}
			if got != want {
				t.Fatalf("%d bytes at %v: %+v, with scheduled outages %+v", size, now, got, want)
			}
			if rapid.Bool().Draw(t, "ask") {
				random.Outage(time.Duration(rapid.IntRange(0, 1e9).Draw(t, "from")), 2*time.Second)
			}
		}
	})
}

func TestOutagesAtRandomSurviveALeapTheLengthOfARun(t *testing.T) {
	d := link.Intermittent{Up: ms, Down: ms}
	e := pair(1, link.Config{Intermittent: d})
	began := time.Now()
	for _, now := range []time.Duration{0, 100 * time.Hour, link.Horizon / 2, link.Horizon} {
		if got := e.Send(now, 1); !got.Lost && got.Arrival-now > time.Second {
			t.Errorf("sent at %v, arrives at %v", now, got.Arrival)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("four messages took %v", took)
	}
	hard := pair(1, link.Config{Intermittent: link.Intermittent{Up: ms, Down: 1000 * ms}, Rate: rate.Constant(1),
		Loss: link.Loss{Drop: true}})
	for now := range time.Duration(20) {
		hard.Send(now*time.Hour, 1000)
	}
}

func TestAddingOutagesAtRandomMovesNoDelayAndNoOtherEdge(t *testing.T) {
	quiet, flaky := configured(3), configured(3)
	flaky.Set(1, 0, link.Config{Delay: paperWalk, Rate: rate.Constant(7e5),
		Loss: link.Loss{Probability: 0.2, Timeout: ms}, Intermittent: flapping[1]})
	for i := range time.Duration(200) {
		for src := range int32(4) {
			dst := (src + 3) % 4
			a, b := quiet.Edge(src, dst).Send(i*ms, 100), flaky.Edge(src, dst).Send(i*ms, 100)
			if src == 1 {
				a.Arrival, b.Arrival, a.Departure, b.Departure = 0, 0, 0, 0
			}
			if a != b {
				t.Fatalf("message %d from %d: %+v, beside an intermittent edge %+v", i, src, a, b)
			}
		}
	}
}

// The digits that any architecture must reproduce.
const recordedOutages = "2469 {13.412749269s 24.318529066s} 3025632875565269148"

func TestOutagesHaveTheirRecordedInstants(t *testing.T) {
	list := outagesOf(pair(7, link.Config{Intermittent: flapping[0]}), 24*time.Hour)
	sum := uint64(0)
	for _, o := range list {
		sum = sum*0x100000001b3 + uint64(o.From)
		sum = sum*0x100000001b3 + uint64(o.To)
	}
	if got, want := fmt.Sprint(len(list), list[0], sum), recordedOutages; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOutageJoinsWhatTouchesAndEndsWithTheEdge(t *testing.T) {
	e := pair(1, link.Config{Outages: []link.Outage{{From: 2, To: 4}, {From: 4, To: 5}, {From: 9, To: link.Forever}}})
	for _, c := range []struct {
		now, before time.Duration
		want        link.Outage
	}{{0, 20, link.Outage{From: 2, To: 5}}, {3, 20, link.Outage{From: 3, To: 5}}, {5, 9, link.Outage{}}, {5, 10,
		link.Outage{From: 9, To: link.Forever}}} {
		if got, _ := e.Outage(c.now, c.before); got != c.want {
			t.Errorf("from %d before %d: %+v, want %+v", c.now, c.before, got, c.want)
		}
	}
}

// tries sends single tries over an edge and tells which of them failed.
func TestOutageHoldsBackWhatDepartsInIt(t *testing.T) {
	outages := []link.Outage{{From: 10 * ms, To: 20 * ms}, {From: 30 * ms, To: link.Forever}}
	for _, c := range []struct {
		drop       bool
		sent, want time.Duration
	}{
		{false, 0, 6 * ms},
		{false, 8 * ms, 14 * ms},  // departs at 9 ms, is on its way when the outage begins
		{false, 9 * ms, 26 * ms},  // would depart at 10 ms: sent again from 20 ms on
		{false, 19 * ms, 25 * ms}, // would depart at 20 ms, when the outage is over
		{false, 29 * ms, link.Forever},
		{true, 8 * ms, 14 * ms},
		{true, 9 * ms, link.Forever},
		{true, 19 * ms, 25 * ms},
		{true, 40 * ms, link.Forever},
	} {
		e := pair(1, link.Config{Delay: link.Constant{Delay: 5 * ms}, Rate: rate.Constant(1e6), Outages: outages,
			Loss: link.Loss{Drop: c.drop}})
		got := e.Send(c.sent, 1000)
		if got.Arrival != c.want || got.Lost != (c.want == link.Forever) {
			t.Errorf("drop %v, sent at %v: %+v, want arrival %v", c.drop, c.sent, got, c.want)
		}
	}
}

func TestOutageBlocksTheQueue(t *testing.T) {
	e := pair(1, link.Config{Rate: rate.Constant(1e6),
		Outages: []link.Outage{{From: 0, To: 10 * ms}, {From: 12 * ms, To: 20 * ms}}})
	for i, want := range []time.Duration{11 * ms, 21 * ms, 22 * ms} {
		if got := e.Send(0, 1000).Arrival; got != want {
			t.Errorf("message %d arrives at %v, want %v", i, got, want)
		}
	}
}

func TestOutageHoldsBackRetransmissions(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(50) {
		e := pair(seed, link.Config{
			Rate:    rate.Constant(1e6),
			Loss:    link.Loss{Probability: 0.5, Timeout: 10 * ms, Attempts: 100},
			Outages: []link.Outage{{From: 5 * ms, To: 50 * ms}, {From: 70 * ms, To: link.Forever}},
		})
		got := e.Send(0, 1000)
		seen[got.Tries] = true
		// 1 ms, then 12 ms moved to 51 ms, then 62 ms; the fourth would depart at 73 ms and never
		// does.
		want := map[int]time.Duration{1: ms, 2: 51 * ms, 3: 62 * ms}[got.Tries]
		if got.Lost {
			want = link.Forever
		}
		if got.Arrival != want || got.Lost && got.Tries != 3 {
			t.Errorf("%+v, want arrival %v", got, want)
		}
	}
	if len(seen) != 3 {
		t.Errorf("tries %v, want 1, 2 and 3", seen)
	}
}
