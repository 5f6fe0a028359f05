package link_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// The answers stand in kat_vectors in the library Random123 of the generator's authors.
func TestPhiloxHasItsPublishedAnswers(t *testing.T) {
	for _, c := range []struct{ key, x, y, first, second uint64 }{
		{0, 0, 0, 0xca00a0459843d731, 0x66c24222c9a845b5},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64, 0x65b021d60cd8310f, 0x4d02f3222f86df20},
		{0xa4093822299f31d0, 0x243f6a8885a308d3, 0x13198a2e03707344, 0x0a5e742c2997341c, 0xb0f883d38000de5d},
	} {
		if first, second := link.Philox(c.key, c.x, c.y); first != c.first || second != c.second {
			t.Errorf("%#x of (%#x, %#x): (%#x, %#x), want (%#x, %#x)", c.key, c.x, c.y, first, second, c.first,
				c.second)
		}
	}
}

// sea is a delay that is a function of time.
type sea []time.Duration

func (sea) Validate() error                               { return nil }
func (sea) Memoryless()                                   {}
func (s sea) Start(*rand.Rand, link.Process) link.Process { return s }
func (s sea) Next(departure time.Duration) time.Duration  { return s[int(departure/tide)%len(s)] }
func (s sea) Present(now time.Duration) time.Duration     { return s.Next(now) }

// tide is how long a delay holds.
const tide = 70

var _ link.Memoryless = sea{}

// unit draws what a uniform delay of 0 to 2³²−1 ns makes of a message, as a number from 0 to 1.
func unit(e *link.Edge) float64 { return float64(e.Send(0, 0).Delay) / (1 << 32) }

var units = link.Config{Delay: link.Uniform{Max: 1<<32 - 1}}

// uniformPairs fails if the pairs of two lists of numbers are not evenly spread over a square, by
// Pearson's χ² in 16 × 16 cells.
func uniformPairs(t *testing.T, what string, a, b []float64) {
	t.Helper()
	const cells = 16
	var seen [cells * cells]float64
	for i := range a {
		seen[int(a[i]*cells)*cells+int(b[i]*cells)]++
	}
	want, sum := float64(len(a))/(cells*cells), 0.0
	for _, n := range seen {
		sum += (n - want) * (n - want) / want
	}
	if p := 1 - (distuv.ChiSquared{K: cells*cells - 1}).CDF(sum); p < 1e-4 {
		t.Errorf("%s: χ² is %.0f, which has the probability %.2g", what, sum, p)
	}
}

func TestDrawsOfPairsMessagesAndPurposesAreIndependent(t *testing.T) {
	const count = 1 << 17
	for _, most := range []int{link.MaxPairs, 0} {
		lists := map[string][]float64{}
		for name, pair := range map[string][2]int32{"0→1": {0, 1}, "1→0": {1, 0}, "0→2": {0, 2}, "2→1": {2, 1}} {
			n := link.New(3, names(3))
			n.CountPairs(most)
			n.SetDefault(units)
			for range count + 1 {
				lists[name] = append(lists[name], unit(n.Edge(pair[0], pair[1])))
			}
		}
		own := lists["0→1"]
		for name, other := range lists {
			if name != "0→1" {
				uniformPairs(t, "0→1 and "+name, own[:count], other[:count])
			}
		}
		uniformPairs(t, "a message and the next", own[:count], own[1:])
		uniformPairs(t, "a message and the next one but three", own[:count-3], own[4:])
	}
	other := link.New(4, names(3))
	other.SetDefault(units)
	one := link.New(3, names(3))
	one.SetDefault(units)
	lossy := units
	lossy.Loss = link.Loss{Probability: 0.5, Drop: true}
	dropping := link.New(3, names(3))
	dropping.SetDefault(lossy)
	var a, b, lost []float64
	for range count {
		a, b = append(a, unit(one.Edge(0, 1))), append(b, unit(other.Edge(0, 1)))
		x := 0.25
		if dropping.Edge(0, 1).Send(0, 0).Lost {
			x = 0.75
		}
		lost = append(lost, x)
	}
	uniformPairs(t, "two seeds", a, b)
	hits := 0.0
	for i, u := range a {
		if u < 0.5 && lost[i] > 0.5 {
			hits++
		}
	}
	if math.Abs(hits-count/4) > 4*math.Sqrt(count*3/16.0) {
		t.Errorf("%v of %d messages are fast and lost, want a quarter", hits, count)
	}
}

// One message on each of a million edges.
func TestFirstDrawsOfAllPairsFollowTheirDistribution(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine counts for long")
	}
	t.Parallel()
	const nodes = 1000
	n := link.New(5, names(nodes))
	n.SetDefault(units)
	n.CountPairs(0)
	list := make([]float64, 0, nodes*nodes)
	for i := range int32(nodes) {
		for j := range int32(nodes) {
			e := n.Edge(i, j)
			list = append(list, unit(e))
			e.Deliver(0, 0)
		}
	}
	slices.Sort(list)
	for i, x := range list {
		// Kolmogorov and Smirnov, as above.
		if off := math.Abs(x - (float64(i)+0.5)/float64(len(list))); off > 1.95/math.Sqrt(float64(len(list))) {
			t.Fatalf("%v has rank %d of %d", x, i, len(list))
		}
	}
}

func TestNoDrawIsRepeatedWhenEdgesAreNoLongerCountedOneByOne(t *testing.T) {
	n := link.New(1, names(30))
	n.CountPairs(100)
	n.SetDefault(link.Config{Delay: link.Uniform{Max: link.MaxDelay}})
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[time.Duration]bool{}
	for i := range 20_000 {
		// The first edges are used before and after there are more than a hundred.
		e := n.Edge(int32(random.IntN(1+min(i/500, 29))), int32(random.IntN(30)))
		got := e.Send(time.Duration(i), 1).Delay
		e.Discard(1)
		if seen[got] {
			t.Fatalf("message %d draws %v a second time", i, got)
		}
		seen[got] = true
	}
}

// A second implementation of the counters keeps the counters of all pairs.
func TestCountersOfASenderAreThoseOfItsPairsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 4
		most := rapid.IntRange(0, 17).Draw(t, "pairs counted one by one")
		n := link.New(rapid.Uint64().Draw(t, "seed"), names(nodes))
		n.CountPairs(most)
		c := link.Config{Delay: link.Uniform{Max: 50}, Reorder: true,
			Loss: link.Loss{Probability: 0.3, Drop: true}}
		n.SetDefault(c)
		type flight struct {
			pair [2]int32
			edge *link.Edge
			size int
		}
		var flying []flight
		want := map[[2]int32]link.Stats{}
		edges := map[[2]int32]bool{}
		for now := range time.Duration(rapid.IntRange(0, 200).Draw(t, "steps")) {
			size := rapid.IntRange(0, 9).Draw(t, "size")
			node := rapid.Int32Range(0, nodes-1)
			pair := [2]int32{node.Draw(t, "from"), node.Draw(t, "to")}
			if rapid.Bool().Draw(t, "send") {
				edges[pair] = true
				s := want[pair]
				e := n.Edge(pair[0], pair[1])
				got := e.Send(now, size)
				s.Sent, s.SentBytes = s.Sent+1, s.SentBytes+int64(size)
				if got.Lost {
					s.Lost, s.Dropped, s.DroppedBytes = s.Lost+1, s.Dropped+1, s.DroppedBytes+int64(size)
				} else {
					s.DelayCount, s.DelaySum = s.DelayCount+1, s.DelaySum+got.Delay
					s.DelayMax = max(s.DelayMax, got.Delay)
					flying = append(flying, flight{pair, e, size})
				}
				want[pair] = s
			} else if len(flying) > 0 {
				f := flying[0]
				flying = flying[1:]
				s := want[f.pair]
				s.Delivered, s.DeliveredBytes, s.TookSum = s.Delivered+1, s.DeliveredBytes+int64(f.size), s.TookSum+7
				f.edge.Deliver(f.size, 7)
				want[f.pair] = s
			}
		}
		inFlight := int64(0)
		for _, u := range n.Used() {
			inFlight += u.InFlight()
		}
		if inFlight != int64(len(flying)) {
			t.Fatalf("%d messages are in flight, want %d", inFlight, len(flying))
		}
		if diff := cmp.Diff(usedOf(want, nodes, len(edges) > most), n.Used()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// usedOf adds counters of pairs up by sender, if that is wanted.
func usedOf(pairs map[[2]int32]link.Stats, nodes int32, bySender bool) (used []link.Count) {
	for i := range nodes {
		sum := link.Count{Source: i, Destination: link.Anyone}
		for j := range nodes {
			s := pairs[[2]int32{i, j}]
			if !bySender && s != (link.Stats{}) {
				used = append(used, link.Count{Source: i, Destination: j, Stats: s})
			}
			sum.Sent, sum.SentBytes = sum.Sent+s.Sent, sum.SentBytes+s.SentBytes
			sum.Delivered, sum.DeliveredBytes = sum.Delivered+s.Delivered, sum.DeliveredBytes+s.DeliveredBytes
			sum.Dropped, sum.DroppedBytes = sum.Dropped+s.Dropped, sum.DroppedBytes+s.DroppedBytes
			sum.Lost, sum.TookSum = sum.Lost+s.Lost, sum.TookSum+s.TookSum
			sum.DelayCount, sum.DelaySum = sum.DelayCount+s.DelayCount, sum.DelaySum+s.DelaySum
			sum.DelayMax = max(sum.DelayMax, s.DelayMax)
		}
		if bySender && sum.Stats != (link.Stats{}) {
			used = append(used, sum)
		}
	}
	return used
}

func TestEdgesWithNothingUnderWayTakeNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine counts for long")
	}
	const nodes, pairs = 2000, 1_000_000
	n := link.New(1, names(nodes))
	n.SetDefault(link.Config{Delay: link.Normal{Mean: ms, Std: ms}, Rate: rate.Constant(1e6),
		Loss: link.Loss{Probability: 0.1, Timeout: ms}})
	send := func(from, to int) {
		for i := from; i < to; i++ {
			// Each node sends a message every 2 s, to another one each time.
			at := time.Duration(i) * ms
			e := n.Edge(int32(i%nodes), int32((i/nodes+i)%nodes))
			if got := e.Send(at, 100); !got.Lost {
				e.Deliver(100, got.Arrival-at)
			}
		}
	}
	send(0, pairs/5)
	some := heap()
	send(pairs/5, pairs)
	many := heap()
	t.Logf("%d bytes after %d edges, %d after %d", some, pairs/5, many, pairs)
	if many > some+some/20 {
		t.Error("edges that carry nothing stay")
	}
	if got := len(n.Used()); got != nodes {
		t.Errorf("counters of %d senders, want %d", got, nodes)
	}
	if allocs := testing.AllocsPerRun(1000, func() { send(pairs, pairs+1) }); allocs != 0 {
		t.Errorf("%v allocations a message", allocs)
	}
	runtime.KeepAlive(n)
}

func TestEdgeIsKeptWhileAMessageOfControlIsUnderWay(t *testing.T) {
	n := link.New(1, names(99))
	n.CountPairs(0)
	e := n.Edge(0, 1)
	e.SendControl(1)
	reused := func() bool {
		for dst := int32(2); dst < 99; dst++ {
			other := n.Edge(0, dst)
			other.Send(time.Duration(dst)*ms, 1)
			other.Discard(1)
		}
		return n.Edge(0, 1) != e
	}
	if reused() || e.Source() != 0 || e.Destination() != 1 {
		t.Errorf("the edge has become %d → %d under a message", e.Source(), e.Destination())
	}
	e.EndControl()
	if !reused() {
		t.Error("the edge stays when nothing is under way on it")
	}
}

// In real time a handler sends at the instant at which it was due, when later ones have passed.
func TestEdgeHoldsBackWhatIsSentBeforeTheArrivalOfWhatWasDelivered(t *testing.T) {
	n := link.New(1, names(9))
	n.CountPairs(0)
	n.SetDefault(link.Config{Delay: sea{100, 0}})
	e := n.Edge(0, 1)
	if got := e.Send(0, 1).Arrival; got != 100 {
		t.Fatalf("arrives at %d", got)
	}
	e.Deliver(1, 120)
	for dst := int32(2); dst < 9; dst++ {
		n.Edge(0, dst).Send(tide, 1)
	}
	if got := n.Edge(0, 1).Send(tide, 1).Arrival; got != 100 {
		t.Errorf("arrives at %d, before the message ahead of it", got)
	}
}

// heap returns the bytes that are reachable.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAskingForADelayMakesNoEdge(t *testing.T) {
	for _, c := range []link.Config{{}, {Delay: link.Constant{Delay: ms}}, {Delay: paperWalk}, units,
		{Delay: link.Pareto{Min: ms, Alpha: 2}}, {Delay: scripted{3, 1, 4}}} {
		asked, made := link.New(1, names(3)), link.New(1, names(3))
		asked.SetDefault(c)
		made.SetDefault(c)
		for _, pair := range [][2]int32{{0, 1}, {1, 0}, {2, 2}} {
			for range 2 { // before and after a message
				got, want := asked.Delay(pair[0], pair[1], 5), made.Edge(pair[0], pair[1]).Delay(5)
				if got != want {
					t.Errorf("%v from %d to %d: %v, of an edge %v", c.Delay, pair[0], pair[1], got, want)
				}
				asked.Edge(pair[0], pair[1]).Send(5, 1)
				made.Edge(pair[0], pair[1]).Send(5, 1)
			}
		}
	}
	n := link.New(1, names(1000))
	n.SetDefault(units)
	if allocs := testing.AllocsPerRun(1000, func() { n.Delay(1, 2, 0) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
