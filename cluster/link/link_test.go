package link_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/topology"
	"pgregory.net/rapid"
)

// paperWalk is the delay in the source paper's gossip experiment.
var paperWalk = link.RandomWalk{FirstMin: time.Second, FirstMax: 5 * time.Second, Step: 500 * time.Millisecond,
	Min: 50 * time.Millisecond}

func names(count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("n%d", i)
	}
	return list
}

func pair(seed uint64, c link.Config) *link.Edge {
	n := link.New(seed, names(2))
	n.Set(0, 1, c)
	return n.Edge(0, 1)
}

func TestArrivalNeverOvertakesOnFIFOEdge(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		c := link.Config{Delay: link.Uniform{Max: time.Second}, Reorder: reorder,
			Loss: link.Loss{Probability: 0.2, Timeout: time.Second}}
		e := pair(1, c)
		var last time.Duration
		overtakes := 0
		for i := range 10_000 {
			at := e.Send(time.Duration(i)*ms, 10).Arrival
			if at < last {
				overtakes++
			}
			last = at
		}
		if reorder == (overtakes == 0) {
			t.Errorf("reorder %v: %d of 10000 messages overtook", reorder, overtakes)
		}
	}
}

func TestSentIsDeliveredDroppedOrInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		e := pair(rapid.Uint64().Draw(t, "seed"), c)
		var want link.Stats
		var flying []int
		now := time.Duration(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			size := rapid.IntRange(0, 1000).Draw(t, "size")
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case step < 5:
				now += time.Duration(rapid.IntRange(0, 50).Draw(t, "wait"))
				got := e.Send(now, size)
				want.Sent++
				want.SentBytes += int64(size)
				if got.Lost {
					want.Lost++
					want.Dropped++
					want.DroppedBytes += int64(size)
				} else {
					want.DelayCount++
					want.DelaySum += got.Delay
					want.DelayMax = max(want.DelayMax, got.Delay)
					flying = append(flying, size)
				}
			case step < 6:
				e.SendControl(size)
				want.Control++
				want.ControlBytes += int64(size)
			case len(flying) == 0:
			case step < 9:
				e.Deliver(flying[0], time.Millisecond)
				want.Delivered++
				want.DeliveredBytes += int64(flying[0])
				want.TookSum += time.Millisecond
				flying = flying[1:]
			default:
				e.Discard(flying[0])
				want.Dropped++
				want.DroppedBytes += int64(flying[0])
				flying = flying[1:]
			}
			bytes := int64(0)
			for _, size := range flying {
				bytes += int64(size)
			}
			got := e.Stats()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			if got.InFlight() != int64(len(flying)) || got.InFlightBytes() != bytes {
				t.Fatalf("in flight %d messages of %d bytes, want %d of %d", got.InFlight(), got.InFlightBytes(),
					len(flying), bytes)
			}
		}
	})
}

func TestSaturatedQueuesRunAtTheirRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := math.Pow(10, rapid.Float64Range(0, 11).Draw(t, "log rate"))
		size := rapid.IntRange(0, 100_000).Draw(t, "size")
		const count = 200
		exact := float64(2*count*size) / bytes * 1e9
		check := func(queue string, last time.Duration) {
			if math.Abs(float64(last)-exact) > 1+1e-9*exact {
				t.Errorf("%s at %v bytes/s: %d messages of %d bytes took %d ns, want %.1f", queue, bytes, 2*count, size,
					last, exact)
			}
		}
		edge := pair(1, link.Config{Rate: rate.Constant(bytes)})
		n := link.New(1, names(4))
		n.SetUplink(0, rate.Constant(bytes))
		n.SetDownlink(3, rate.Constant(bytes))
		var one, two, last time.Duration
		for range count {
			edge.Send(0, size)
			one = edge.Send(0, size).Arrival
			n.Edge(0, 1).Send(0, size)
			two = n.Edge(0, 2).Send(0, size).Arrival
			n.Edge(1, 3).Receive(0, size)
			last = n.Edge(2, 3).Receive(0, size)
		}
		check("edge", one)
		check("uplink of two edges", two)
		check("downlink of two edges", last)
	})
}

func TestMessageOnIdleQueueTakesItsOwnTime(t *testing.T) {
	e := pair(1, link.Config{Rate: rate.Constant(3)})
	for i := range 10 {
		sent := time.Duration(i) * time.Second
		if got, want := e.Send(sent, 1).Arrival-sent, time.Duration(333333333); got != want {
			t.Errorf("message %d took %d ns, want %d", i, got, want)
		}
	}
}

func TestSlowestQueueSetsThePace(t *testing.T) {
	n := link.New(1, names(2))
	n.SetUplink(0, rate.Constant(4e6))
	n.SetDefault(link.Config{Rate: rate.Constant(1e6), Delay: link.Constant{Delay: time.Second}})
	e := n.Edge(0, 1)
	// 1,000 bytes: 250 µs on the uplink, then 1 ms each on the edge.
	for i := range 10 {
		want := 250*time.Microsecond + time.Duration(i+1)*ms + time.Second
		if got := e.Send(0, 1000).Arrival; got != want {
			t.Errorf("message %d arrives at %v, want %v", i, got, want)
		}
	}
}

func TestLossCostsTimeAndRateOrTheMessage(t *testing.T) {
	const count = 100_000
	const p = 0.25
	e := pair(1, link.Config{Rate: rate.Constant(1e9),
		Loss: link.Loss{Probability: p, Timeout: ms, Attempts: 4}, Reorder: true})
	tries, lost := 0, 0
	for i := range count {
		sent := time.Duration(i) * time.Second
		got := e.Send(sent, 1000)
		tries += got.Tries
		if got.Lost {
			lost++
		} else if want := sent + time.Duration(got.Tries)*time.Microsecond +
			time.Duration(got.Tries-1)*ms; got.Arrival != want {
			t.Fatalf("%d tries arrive at %v, want %v", got.Tries, got.Arrival, want)
		}
	}
	// Four tries fail with p⁴; the mean number of tries is 1 + p + p² + p³. Four standard
	// deviations.
	if want := math.Pow(p, 4) * count; math.Abs(float64(lost)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d lost, want %.0f", lost, want)
	}
	if want := (1 + p + p*p + p*p*p) * count; math.Abs(float64(tries)-want) > 4*math.Sqrt(count*p) {
		t.Errorf("%d tries, want %.0f", tries, want)
	}
	dropping := pair(1, link.Config{Loss: link.Loss{Probability: p, Drop: true}})
	for range count {
		dropping.Send(0, 1)
	}
	if got, want := float64(dropping.Stats().Lost), p*count; math.Abs(got-want) > 4*math.Sqrt(want*(1-p)) {
		t.Errorf("%v dropped, want %v", got, want)
	}
}

func TestRetransmissionsTakeTheRate(t *testing.T) {
	e := pair(1, link.Config{Rate: rate.Constant(1e6), Loss: link.Loss{Probability: 0.5, Timeout: 1, Attempts: 100}})
	tries := time.Duration(0)
	var got link.Transit
	for range 1000 {
		got = e.Send(0, 1000)
		tries += time.Duration(got.Tries)
	}
	if extra := got.Arrival - tries*ms; extra < 0 || extra > 100 {
		t.Errorf("%d tries of 1 ms took %v", tries, got.Arrival)
	}
}

func TestLossMovesNoDelay(t *testing.T) {
	sure, lossy := link.Config{Delay: paperWalk}, link.Config{Delay: paperWalk,
		Loss: link.Loss{Probability: 0.5, Drop: true}}
	if diff := cmp.Diff(draws(pair(1, sure), 100), draws(pair(1, lossy), 100)); diff != "" {
		t.Error(diff)
	}
}

func TestAddingNodesAndEdgesMovesNoOthersDraws(t *testing.T) {
	c := link.Config{Delay: link.Uniform{Max: time.Hour}, Loss: link.Loss{Probability: 0.5, Timeout: ms}}
	alone := link.New(9, []string{"a", "b"})
	alone.Set(0, 1, c)
	crowd := link.New(9, []string{"x", "b", "y", "a"})
	crowd.SetDefault(link.Config{Delay: link.Normal{Mean: time.Second, Std: time.Second}})
	crowd.Set(3, 1, c)
	different := 0
	for i := range 100 {
		now := time.Duration(i) * time.Hour
		other := crowd.Edge(1, 3).Send(now, 1).Delay
		crowd.Edge(0, 1).Send(now, 1)
		a, b := alone.Edge(0, 1).Send(now, 1), crowd.Edge(3, 1).Send(now, 1)
		if a != b {
			t.Fatalf("message %d: %+v alone, %+v among others", i, a, b)
		}
		if other != a.Delay {
			different++
		}
	}
	if different < 99 {
		t.Error("both directions draw the same delays")
	}
}

func TestSeedsAndPairsHaveStreamsOfTheirOwn(t *testing.T) {
	seen := map[time.Duration]string{}
	for seed := range uint64(20) {
		for _, nodes := range [][]string{{"a", "b"}, {"ab", ""}, {"", "ab"}, {"b", "a"}, {"a", "c"}} {
			n := link.New(seed, nodes)
			n.SetDefault(link.Config{Delay: link.Uniform{Max: link.MaxDelay}})
			which := fmt.Sprint(seed, nodes)
			got := n.Edge(0, 1).Send(0, 1).Delay
			if before, ok := seen[got]; ok {
				t.Errorf("%s and %s draw the same", before, which)
			}
			seen[got] = which
		}
	}
}

func TestWhenAnEdgeIsFirstAskedForMakesNoDifference(t *testing.T) {
	other := paperWalk
	other.FirstMax = 9 * time.Second
	run := func(early bool) []time.Duration {
		n := link.New(3, names(2))
		n.SetDefault(link.Config{Delay: paperWalk, Loss: link.Loss{Probability: 0.5, Timeout: ms}})
		if early {
			n.Edge(0, 1).Delay(0)
			n.Edge(0, 1).SendControl(1)
		}
		n.SetDefault(link.Config{Delay: other})
		return draws(n.Edge(0, 1), 10)
	}
	if diff := cmp.Diff(run(true), run(false)); diff != "" {
		t.Error(diff)
	}
}

func TestScheduledChangeGoesOnFromTheState(t *testing.T) {
	n := link.New(3, names(2))
	c := link.Config{Delay: paperWalk, Rate: rate.Constant(1e6)}
	n.Set(0, 1, c)
	e := n.Edge(0, 1)
	e.Send(0, 1000)
	present := e.Delay(0)

	c.Outages = []link.Outage{{From: time.Hour, To: link.Forever}}
	n.Set(0, 1, c)
	if got := e.Delay(0); got != present {
		t.Errorf("walk at %v after an unrelated change, before it %v", got, present)
	}
	narrow := paperWalk
	narrow.FirstMin, narrow.FirstMax, narrow.Min = 30*time.Second, 30*time.Second, 20*time.Second
	n.Set(0, 1, link.Config{Delay: narrow, Rate: rate.Constant(1e3)})
	if got := e.Delay(0); got != narrow.Min {
		t.Errorf("walk at %v under the new bound %v", got, narrow.Min)
	}
	if got, want := e.Send(0, 1000).Arrival, ms+time.Second+narrow.Min; got != want {
		t.Errorf("arrival %v, want %v: the queue's time goes on at the new rate", got, want)
	}
	n.Set(0, 1, link.Config{})
	n.Set(0, 1, link.Config{Delay: narrow})
	if got := e.Delay(0); got != narrow.FirstMin {
		t.Errorf("walk at %v after another model, want a new beginning at %v", got, narrow.FirstMin)
	}
}

func TestDefaultDoesNotReachEdgesOfTheirOwn(t *testing.T) {
	n := link.New(1, names(3))
	n.Set(0, 1, link.Config{Delay: link.Constant{Delay: 1}})
	n.Edge(0, 2)
	n.SetDefault(link.Config{Delay: link.Constant{Delay: 2}})
	for dst, want := range []time.Duration{2, 1, 2} {
		if got := n.Edge(0, int32(dst)).Delay(0); got != want {
			t.Errorf("delay to %d is %d, want %d", dst, got, want)
		}
	}
}

func TestUnlimitedDownlinkStillServesItsQueueInOrder(t *testing.T) {
	n := link.New(1, names(2))
	e := n.Edge(0, 1)
	if e.HasDownlink() {
		t.Error("a downlink without being asked for")
	}
	n.SetDownlink(1, rate.Constant(1e3))
	first := e.Receive(0, 1000)
	n.SetDownlink(1, rate.Constant(0))
	if !e.HasDownlink() || e.Receive(0, 1) != first {
		t.Error("the second message overtakes the first")
	}
}

func TestUsedIsOrderedAndLeavesOutWhatCarriedNothing(t *testing.T) {
	n := link.New(1, names(20))
	for i := range int32(400) {
		e := n.Edge((i*7)%20, (i*3+i/20)%20)
		if i%2 == 0 {
			e.Send(0, 1)
		}
	}
	n.Edge(19, 19).SendControl(1)
	want, last := 0, int32(-1)
	for i := range int32(20) {
		for j := range int32(20) {
			if n.Edge(i, j).Stats() != (link.Stats{}) {
				want++
			}
		}
	}
	used := n.Used()
	for _, e := range used {
		key := e.Source*20 + e.Destination
		if key <= last || e.Stats == (link.Stats{}) || n.Edge(e.Source, e.Destination).Stats() != e.Stats {
			t.Fatalf("edge %d → %d out of place", e.Source, e.Destination)
		}
		last = key
	}
	if len(used) != want || used[len(used)-1].Destination != 19 {
		t.Errorf("%d edges, want %d", len(used), want)
	}
}

func TestEdgesOfAThousandNodesTakeMemoryWhenUsed(t *testing.T) {
	list := names(1000)
	var n *link.Network
	empty := allocated(func() { n = link.New(1, list) })
	star := allocated(func() {
		n.SetDefault(link.Config{Delay: link.Constant{Delay: ms}})
		for i := range int32(1000) {
			n.Edge(0, i)
			n.Edge(i, 0)
		}
	})
	t.Logf("%d bytes for 1,000 nodes, %d an edge", empty, star/1999)
	if empty > 300_000 || star/1999 > 300 {
		t.Error("too much")
	}
}

// allocated returns the bytes that do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAMessageAllocatesNothing(t *testing.T) {
	models := []link.Delay{nil, link.Constant{Delay: ms}, paperWalk,
		link.Trace{Points: []link.Point{{}, {At: 1}}, Repeat: true}}
	for _, d := range distributions() {
		models = append(models, d.model)
	}
	for _, model := range models {
		n := link.New(1, names(2))
		n.SetUplink(0, rate.Constant(1e9))
		n.SetDownlink(1, rate.Constant(1e9))
		n.Set(0, 1, link.Config{
			Delay: model, Rate: rate.Constant(1e9), Outages: []link.Outage{{From: 1, To: 2}},
			Intermittent: link.Intermittent{Up: 9 * ms, Down: ms},
			Loss:         link.Loss{Timeout: ms, Bursts: &link.Bursts{P: 0.1, R: 0.5, K: 1}},
		})
		now := time.Duration(0)
		allocs := testing.AllocsPerRun(100, func() {
			now += ms
			e := n.Edge(0, 1)
			if got := e.Send(now, 100); !got.Lost && e.HasDownlink() {
				e.Receive(got.Arrival, 100)
			}
			e.Delay(now)
			e.Deliver(100, time.Millisecond)
			e.Discard(0)
			e.SendControl(1)
			e.EndControl()
			_ = e.Stats()
		})
		if allocs != 0 {
			t.Errorf("%#v: %v allocations a message", model, allocs)
		}
	}
}

func TestMessagesBeyondTheHorizonAreLost(t *testing.T) {
	n := link.New(1, names(2))
	n.SetUplink(0, rate.Constant(1e-300))
	n.SetDownlink(1, rate.Constant(1e-300))
	n.SetDefault(link.Config{Rate: rate.Constant(1e-300), Delay: link.Constant{Delay: link.MaxDelay},
		Loss: link.Loss{Probability: 1, Timeout: link.MaxDelay, Attempts: 1000}})
	e := n.Edge(0, 1)
	for range 10 {
		if got := e.Send(link.Horizon, math.MaxInt); !got.Lost || got.Arrival != link.Forever {
			t.Fatalf("%+v", got)
		}
		if got := e.Receive(link.Horizon, math.MaxInt); got < link.Horizon {
			t.Fatalf("received at %v", got)
		}
	}
	lost := e.Stats().Lost
	if late, all, back := n.Late(0, 1), n.Late(0, link.Anyone), n.Late(1, 0); lost != 10 || late != lost ||
		all != lost || back != 0 {
		t.Errorf("%d lost, %d of them because they are late, %d to anyone, %d back", lost, late, all, back)
	}
	n.SetUplink(0, rate.Constant(0))
	n.Set(0, 1, link.Config{})
	if got := e.Send(time.Second, 1); got.Lost {
		t.Error("what was lost blocks the queue")
	}
	n.Set(0, 1, link.Config{Delay: link.Constant{Delay: link.MaxDelay}})
	for range 300 {
		e.Send(time.Second, 1)
	}
	if got := e.Stats().DelaySum; got != link.Forever {
		t.Errorf("300 delays of a year sum up to %v", got)
	}
}

// misconfigured is a configuration and the field that Validate names.
type misconfigured struct {
	config link.Config
	field  string
}

func expectFieldErrors(t *testing.T, cases []misconfigured) {
	t.Helper()
	for _, c := range cases {
		err := c.config.Validate()
		var wrong *field.Error
		if !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%+v: %v, want an error of %s", c.config, err, c.field)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	nan := math.NaN()
	expectFieldErrors(t, []misconfigured{
		{link.Config{Rate: rate.Constant(-1)}, "Rate"},
		{link.Config{Rate: rate.Constant(nan)}, "Rate"},
		{link.Config{Rate: rate.Constant(math.Inf(1))}, "Rate"},
		{link.Config{Loss: link.Loss{Probability: 1.5}}, "Loss.Probability"},
		{link.Config{Loss: link.Loss{Probability: nan}}, "Loss.Probability"},
		{link.Config{Loss: link.Loss{Probability: 0.5}}, "Loss.Timeout"},
		{link.Config{Loss: link.Loss{Timeout: -1}}, "Loss.Timeout"},
		{link.Config{Loss: link.Loss{Attempts: -1}}, "Loss.Attempts"},
		{link.Config{Loss: link.Loss{Drop: true, Bursts: &link.Bursts{R: 0.5}}}, "Loss.Bursts.P"},
		{link.Config{Loss: link.Loss{Drop: true, Bursts: &link.Bursts{P: 0.5}}}, "Loss.Bursts.R"},
		{link.Config{Loss: link.Loss{Drop: true, Bursts: &link.Bursts{P: 0.5, R: 0.5, H: -1}}}, "Loss.Bursts.H"},
		{link.Config{Loss: link.Loss{Drop: true, Bursts: &link.Bursts{P: 0.5, R: 0.5, K: math.NaN()}}},
			"Loss.Bursts.K"},
		{link.Config{Loss: link.Loss{Drop: true, Probability: 0.1, Bursts: &link.Bursts{P: 0.5, R: 0.5}}},
			"Loss.Probability"},
		{link.Config{Loss: link.Loss{Bursts: &link.Bursts{P: 0.5, R: 0.5}}}, "Loss.Timeout"},
		{link.Config{Intermittent: link.Intermittent{Up: time.Second}}, "Intermittent.Down"},
		{link.Config{Intermittent: link.Intermittent{Down: time.Second}}, "Intermittent.Up"},
		{link.Config{Intermittent: link.Intermittent{Up: ms, Down: 1001 * ms}}, "Intermittent.Down"},
		{link.Config{Outages: []link.Outage{{From: -1, To: 1}}}, "Outages[0].From"},
		{link.Config{Outages: []link.Outage{{From: 1, To: 1}}}, "Outages[0].To"},
		{link.Config{Outages: []link.Outage{{From: 1, To: 3}, {From: 2, To: 4}}}, "Outages[1].From"},
		{link.Config{Outages: []link.Outage{{From: 1, To: link.Forever}, {From: 2, To: 4}}}, "Outages[1].From"},
	})
	const want = "Probability is 1.5: must be from 0 to 1"
	if got := (link.Loss{Probability: 1.5}).Validate().Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	outages := []link.Outage{{From: 1, To: 2}, {From: 2, To: 3}}
	if err := (link.Config{Delay: paperWalk, Rate: rate.Constant(1), Outages: outages}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesTheFieldOfTheDelay(t *testing.T) {
	point := func(at, delay time.Duration) link.Point { return link.Point{At: at, Delay: delay} }
	expectFieldErrors(t, []misconfigured{
		{link.Config{Delay: link.Constant{Delay: -1}}, "Delay.Delay"},
		{link.Config{Delay: link.Constant{Delay: link.MaxDelay + 1}}, "Delay.Delay"},
		{link.Config{Delay: link.Uniform{Min: -1}}, "Delay.Min"},
		{link.Config{Delay: link.Uniform{Min: 2, Max: 1}}, "Delay.Max"},
		{link.Config{Delay: link.Normal{Mean: -1}}, "Delay.Mean"},
		{link.Config{Delay: link.Normal{Std: -1}}, "Delay.Std"},
		{link.Config{Delay: link.Normal{Mean: 1, Std: 1, Min: 32}}, "Delay.Min"},
		{link.Config{Delay: link.Normal{Mean: 40, Std: 1, Min: 1, Max: 9}}, "Delay.Max"},
		{link.Config{Delay: link.Normal{Mean: 40, Min: 3, Max: 2}}, "Delay.Max"},
		{link.Config{Delay: link.Exponential{}}, "Delay.Mean"},
		{link.Config{Delay: link.Exponential{Mean: 1, Min: 3, Max: 3}}, "Delay.Max"},
		{link.Config{Delay: link.Pareto{Alpha: 2}}, "Delay.Min"},
		{link.Config{Delay: link.Pareto{Min: ms}}, "Delay.Alpha"},
		{link.Config{Delay: link.Pareto{Min: ms, Alpha: math.NaN()}}, "Delay.Alpha"},
		{link.Config{Delay: link.Pareto{Min: ms, Alpha: 2, Max: ms}}, "Delay.Max"},
		{link.Config{Delay: link.LogNormal{Sigma: 1}}, "Delay.Median"},
		{link.Config{Delay: link.LogNormal{Median: ms, Sigma: 11}}, "Delay.Sigma"},
		{link.Config{Delay: link.LogNormal{Median: ms, Sigma: 1, Min: -1}}, "Delay.Min"},
		{link.Config{Delay: link.LogNormal{Median: ms, Sigma: 0.1, Max: ms / 100}}, "Delay.Max"},
		{link.Config{Delay: link.RandomWalk{FirstMin: 1, FirstMax: 2, Min: 2}}, "Delay.FirstMin"},
		{link.Config{Delay: link.RandomWalk{FirstMin: 1, FirstMax: 9, Max: 8}}, "Delay.FirstMax"},
		{link.Config{Delay: link.RandomWalk{Step: -1}}, "Delay.Step"},
		{link.Config{Delay: link.Trace{}}, "Delay.Points"},
		{link.Config{Delay: link.Trace{Points: []link.Point{point(0, 1)}, Repeat: true}}, "Delay.Repeat"},
		{link.Config{Delay: link.Trace{Points: []link.Point{point(1, 1), point(1, 1)}}}, "Delay.Points[1].At"},
		{link.Config{Delay: link.Trace{Points: []link.Point{point(1, -1)}}}, "Delay.Points[0].Delay"},
	})
}

func TestMistakesOfTheProgramPanic(t *testing.T) {
	n := link.New(1, names(2))
	for name, mistake := range map[string]func(){
		"same name":       func() { link.New(1, []string{"a", "a"}) },
		"source":          func() { n.Edge(2, 0) },
		"destination":     func() { n.Edge(0, -1) },
		"uplink":          func() { n.SetUplink(-1, rate.Constant(1)) },
		"negative rate":   func() { n.SetDownlink(0, rate.Constant(-1)) },
		"invalid config":  func() { n.SetDefault(link.Config{Rate: rate.Constant(-1)}) },
		"negative size":   func() { n.Edge(0, 1).Send(0, -1) },
		"invalid setting": func() { n.Set(0, 1, link.Config{Delay: link.Trace{}}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			mistake()
		})
	}
	if n.Edge(0, 1).Stats().Sent != 0 {
		t.Error("counted what was refused")
	}
}

// The golden checksum holds for every processor, see TestFunctionsHaveTheSameBitsOnEveryProcessor.
func TestLinksHaveTheSameBitsOnEveryProcessor(t *testing.T) {
	const golden = 0x92b68ab760841a07
	n := configured(7)
	n.Set(0, 2, link.Config{Delay: link.Exponential{Mean: ms, Min: ms, Max: 3 * ms}})
	n.Set(0, 3, link.Config{Delay: link.Normal{Mean: ms, Std: ms, Max: 2 * ms}})
	n.Set(1, 0, link.Config{Delay: link.Pareto{Min: ms, Alpha: 1.5, Max: 9 * ms}})
	n.Set(2, 2, link.Config{Delay: link.LogNormal{Median: ms, Sigma: 1, Max: 9 * ms}})
	hash := fnv.New64a()
	for i := range 16_000 {
		edge := n.Edge(int32(i/4%4), int32(i%4))
		now := time.Duration(i) * ms / 10
		got := edge.Send(now, 100)
		for _, v := range []time.Duration{got.Arrival, got.Delay, time.Duration(got.Tries), edge.Delay(now)} {
			_ = binary.Write(hash, binary.LittleEndian, int64(v)) // a hash returns no error
		}
	}
	graph, err := topology.NewGraph(topology.ErdosRenyi{Degree: 8}, names(40), rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprint(hash, graph)
	if got := hash.Sum64(); got != golden {
		t.Errorf("checksum %#x, want %#x", got, uint64(golden))
	}
}

func TestOverheadTakesOfTheRatesAndIsNoMessage(t *testing.T) {
	const size, overhead = 1000, 500
	n := link.New(1, names(2))
	n.SetUplink(0, rate.Constant(1e6))
	n.SetDownlink(1, rate.Constant(1e6))
	e := n.Edge(0, 1)
	n.Set(0, 1, link.Config{Rate: rate.Constant(1e6), Overhead: overhead})
	sent := e.Send(0, size)
	// A byte takes a microsecond on each of the uplink, the edge and the downlink.
	if want := 2 * (size + overhead) * time.Microsecond; sent.Arrival != want {
		t.Errorf("arrives at %v, want %v", sent.Arrival, want)
	}
	if took := e.Receive(sent.Arrival, size) - sent.Arrival; took != (size+overhead)*time.Microsecond {
		t.Errorf("the downlink took %v", took)
	}
	if got := e.Stats().SentBytes; got != size {
		t.Errorf("%d bytes are counted, want %d", got, size)
	}
	var wrong *field.Error
	if err := (link.Config{Overhead: -1}).Validate(); !errors.As(err, &wrong) || wrong.Field != "Overhead" {
		t.Errorf("a negative overhead: %v", err)
	}
}

// Without a bound every message arrives: with the probability p of a loss after 1/(1 - p) tries in
// the mean, of variance p/(1 - p)^2, whether rates are shared or not.
func TestRetransmissionGoesOnUntilTheMessageArrives(t *testing.T) {
	const count = 5000
	for _, p := range []float64{0.05, 0.67, 0.95} {
		e := pair(1, link.Config{Loss: link.Loss{Probability: p, Timeout: ms}})
		tries, most := 0, 0
		for i := range count {
			got := e.Send(time.Duration(i)*time.Second, 1000)
			if got.Lost {
				t.Fatalf("p = %v: message %d is lost after %d tries", p, i, got.Tries)
			}
			tries, most = tries+got.Tries, max(most, got.Tries)
		}
		mean, error4 := float64(tries)/count, 4*math.Sqrt(p/count)/(1-p)
		if want := 1 / (1 - p); math.Abs(mean-want) > error4 {
			t.Errorf("p = %v: %.3f tries in the mean, want %.3f within %.3f", p, mean, want, error4)
		}
		if p > 0.6 && most <= 15 {
			t.Errorf("p = %v: %d tries at most", p, most)
		}
	}
	for _, never := range []link.Loss{
		{Probability: 1, Timeout: ms}, {Bursts: &link.Bursts{P: 0.5, R: 0.5}, Timeout: ms},
	} {
		if got := pair(1, link.Config{Loss: never}).Send(0, 1); !got.Lost {
			t.Errorf("%+v arrives: %+v", never, got)
		}
	}
}

// A bound of tries loses messages for good, so that sessions repair what it loses.
func TestABoundOfTriesLoses(t *testing.T) {
	for _, x := range []struct {
		loss  link.Loss
		loses bool
	}{
		{link.Loss{Probability: 0.5, Timeout: ms}, false},
		{link.Loss{Probability: 0.5, Timeout: ms, Attempts: 2}, true},
		{link.Loss{Bursts: &link.Bursts{P: 0.5, R: 0.5}, Timeout: ms, Attempts: 2}, true},
		{link.Loss{Timeout: ms, Attempts: 2}, false},
		{link.Loss{Probability: 0.5, Drop: true}, true},
	} {
		if got := pair(1, link.Config{Loss: x.loss}).Loses(); got != x.loses {
			t.Errorf("%+v: loses %v, want %v", x.loss, got, x.loses)
		}
	}
}
