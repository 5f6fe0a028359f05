package protocol_test

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/protocol"
)

// The oracle lists the versions of each range and looks for the newest one in both lists.
func TestRangesAgreeOnTheNewestVersionOfBoth(t *testing.T) {
	const most = 6
	list := func(r protocol.Range) map[byte]bool {
		all := map[byte]bool{}
		for v := r.Oldest; v <= r.Newest; v++ {
			all[v] = true
		}
		return all
	}
	var ranges []protocol.Range
	for low := byte(1); low <= most; low++ {
		for high := low; high <= most; high++ {
			ranges = append(ranges, protocol.Range{Oldest: low, Newest: high})
		}
	}
	for _, a := range ranges {
		for _, b := range ranges {
			want := byte(0)
			for v := range list(a) {
				if list(b)[v] {
					want = max(want, v)
				}
			}
			if got := a.Agreed(b); got != want || b.Agreed(a) != want || a.Meet(b).Valid() != (want > 0) {
				t.Errorf("%v and %v agree on %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestErrorSaysWhichProcessToUpgrade(t *testing.T) {
	for want, e := range map[string]protocol.Error{
		"process b (build v1) speaks protocol 3, this cluster 5 to 6: upgrade b": {
			Name: "b", Range: protocol.Of(3), Build: "v1", Others: protocol.Range{Oldest: 5, Newest: 6},
			Whom: "this cluster",
		},
		"process b speaks protocol 7 to 8, process a 5: first upgrade the others to a build that speaks both": {
			Name: "b", Range: protocol.Range{Oldest: 7, Newest: 8}, Others: protocol.Of(5), Whom: "process a",
		},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestThisBuildAnnouncesARange(t *testing.T) {
	if r := protocol.Spoken(); !r.Valid() || r.Newest < protocol.Negotiated {
		t.Errorf("this build speaks protocol %v", r)
	}
}
