package link_test

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
)

// A link of 5 ms between a node 20 ms away from it and one 7 ms away.
func TestDelayOfAMessageIsTheSumOfTheLinksAndItsEnds(t *testing.T) {
	n := link.New(1, []string{"a", "b", "c"})
	n.SetAccess(0, link.Constant{Delay: 20 * ms})
	n.SetAccess(1, link.Constant{Delay: 7 * ms})
	n.SetDefault(link.Config{Delay: link.Constant{Delay: 5 * ms}, Rate: nil})
	for _, one := range []struct {
		from, to int32
		want     time.Duration
	}{{0, 1, 32 * ms}, {1, 0, 32 * ms}, {0, 2, 25 * ms}, {2, 0, 25 * ms}, {2, 1, 12 * ms}} {
		if got := n.Delay(one.from, one.to, 0); got != one.want {
			t.Errorf("from %d to %d: present delay %v before it is used, want %v", one.from, one.to, got, one.want)
		}
		e := n.Edge(one.from, one.to)
		if got := e.Send(time.Second, 10); got.Delay != one.want || got.Arrival != time.Second+one.want {
			t.Errorf("from %d to %d: %+v, want a delay of %v", one.from, one.to, got, one.want)
		}
		if got := e.Delay(0); got != one.want {
			t.Errorf("from %d to %d: present delay %v, want %v", one.from, one.to, got, one.want)
		}
	}
}

// What the edge draws is as without accesses; what both ends draw from the same distribution
// differs, lies within its bounds, and is told apart by message.
func TestAccessesDrawBesideTheirEdge(t *testing.T) {
	names := []string{"a", "b"}
	config := link.Config{Delay: link.Uniform{Min: 10 * ms, Max: 20 * ms}, Reorder: true}
	plain := link.New(7, names)
	far, both := link.New(7, names), link.New(7, names)
	access := link.Uniform{Min: ms, Max: 3 * ms}
	far.SetAccess(0, access)
	both.SetAccess(0, access)
	both.SetAccess(1, access)
	for _, n := range []*link.Network{plain, far, both} {
		n.SetDefault(config)
	}
	equal, repeated := 0, 0
	var previous time.Duration
	for i := range 1000 {
		now := time.Duration(i) * time.Second
		base := plain.Edge(0, 1).Send(now, 1).Delay
		leaving := far.Edge(0, 1).Send(now, 1).Delay - base
		reaching := both.Edge(0, 1).Send(now, 1).Delay - base - leaving
		for _, d := range []time.Duration{leaving, reaching} {
			if d < access.Min || d > access.Max {
				t.Fatalf("message %d: an access added %v, want %v to %v", i, d, access.Min, access.Max)
			}
		}
		if leaving == reaching {
			equal++
		}
		if leaving == previous {
			repeated++
		}
		previous = leaving
	}
	if equal > 2 || repeated > 2 {
		t.Errorf("%d of 1000 times both ends added the same, %d times the same as before", equal, repeated)
	}
}

// A delay that is drawn once for the node is the same on all its edges, both ways, and another
// node's is another.
func TestAccessDrawnOnceIsThatOfTheNode(t *testing.T) {
	n := link.New(3, []string{"a", "b", "c"})
	once := link.Once{Of: link.Uniform{Max: time.Hour}, PerNode: true}
	n.SetAccess(0, once)
	want := n.Edge(0, 1).Send(0, 1).Delay
	for _, e := range []*link.Edge{n.Edge(0, 2), n.Edge(1, 0), n.Edge(2, 0), n.Edge(0, 1)} {
		if got := e.Send(time.Minute, 1).Delay; got != want {
			t.Errorf("from %d to %d: %v, want %v", e.Source(), e.Destination(), got, want)
		}
	}
	other := link.New(3, []string{"a", "b", "c"})
	other.SetAccess(1, once)
	if got := other.Edge(0, 1).Send(0, 1).Delay; got == want {
		t.Errorf("two nodes drew the same %v", got)
	}
}

func TestAccessRemembersNothingOfMessages(t *testing.T) {
	walk := link.RandomWalk{FirstMax: time.Second, Step: ms}
	for _, d := range []link.Delay{walk, link.Once{Of: link.Uniform{Max: ms}}, link.Uniform{Min: 2, Max: 1}} {
		if err := link.CheckAccess(d); err == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
	for _, d := range []link.Delay{link.Constant{}, link.Trace{Points: []link.Point{{Delay: ms}}},
		link.Once{Of: walk, PerNode: true}} {
		if err := link.CheckAccess(d); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestSendingOverAccessesDoesNotAllocate(t *testing.T) {
	n := link.New(1, []string{"a", "b"})
	n.SetAccess(0, link.LogNormal{Median: 20 * ms, Sigma: 0.5})
	n.SetAccess(1, link.Exponential{Mean: ms})
	e := n.Edge(0, 1)
	if got := testing.AllocsPerRun(1000, func() { e.Send(0, 10) }); got != 0 {
		t.Errorf("%v allocations a message", got)
	}
}
