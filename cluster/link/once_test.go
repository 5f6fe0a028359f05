package link_test

import (
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/gradwire/gradwire/cluster/link"
)

// delaysOf are what two messages on each edge of some nodes take, by source and destination.
func delaysOf(t *testing.T, n *link.Network, count int32) map[[2]int32]time.Duration {
	t.Helper()
	all := map[[2]int32]time.Duration{}
	for from := range count {
		for to := range count {
			if from == to {
				continue
			}
			present := n.Delay(from, to, 0)
			e := n.Edge(from, to)
			for range 2 {
				if got := e.Send(time.Second, 10).Delay; got != present {
					t.Fatalf("from %d to %d: delay %v, expected was %v", from, to, got, present)
				}
			}
			all[[2]int32{from, to}] = present
		}
	}
	return all
}

func TestADelayThatIsDrawnOnceIsThatOfItsLinkOrItsSender(t *testing.T) {
	const count = 30
	of := link.Uniform{Min: ms, Max: time.Second}
	n := link.New(1, names(count))
	n.SetDefault(link.Config{Delay: link.Once{Of: of}})
	perLink := delaysOf(t, n, count)
	distinct := map[time.Duration]bool{}
	var seconds []float64
	for _, d := range perLink {
		distinct[d] = true
		seconds = append(seconds, d.Seconds())
	}
	if len(distinct) < len(perLink)-2 {
		t.Errorf("%d different delays on %d links", len(distinct), len(perLink))
	}
	if mean, std := stat.MeanStdDev(seconds, nil); mean < 0.46 || mean > 0.54 || std < 0.26 || std > 0.32 {
		t.Errorf("mean %v, standard deviation %v of a uniform distribution up to 1 s", mean, std)
	}
	n = link.New(1, names(count))
	n.SetDefault(link.Config{Delay: link.Once{Of: of, PerNode: true}})
	perNode := delaysOf(t, n, count)
	var senders []time.Duration
	for from := range int32(count) {
		first := perNode[[2]int32{from, (from + 1) % count}]
		senders = append(senders, first)
		for to := range int32(count) {
			if d := perNode[[2]int32{from, to}]; from != to && d != first {
				t.Fatalf("node %d sends with delays %v and %v", from, first, d)
			}
		}
	}
	slices.Sort(senders)
	if len(slices.Compact(senders)) != count {
		t.Errorf("senders have delays %v", senders)
	}
}

func TestADelayThatIsDrawnOnceOutlastsAChangeOfAnythingElse(t *testing.T) {
	once := link.Once{Of: link.LogNormal{Median: 50 * ms, Sigma: 1}}
	e := pair(4, link.Config{Delay: once})
	first := e.Send(0, 1).Delay
	n := link.New(4, names(2))
	n.SetDefault(link.Config{Delay: once})
	n.Edge(0, 1).Send(0, 1)
	n.SetDefault(link.Config{Delay: once, Reorder: true})
	if again := n.Edge(0, 1).Send(time.Second, 1).Delay; again != first {
		t.Errorf("%v, then %v", first, again)
	}
}
