package experiment

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/record"
)

// StillFactor is how many times as long as it ever took to its next step a node has made none that stands still.
const StillFactor = 10

// standing is what is known of the nodes of a run when it ends.
type standing struct {
	names []string
	waits map[int]string // by node, what it waits for
	paces []record.Pace
	end   time.Duration // of the members' part
	least time.Duration // pauses up to this are none
}

// still returns an incident for each node that has stood still.
func (s *standing) still() (incidents []record.Incident) {
	longest := time.Duration(0)
	for _, p := range s.paces {
		longest = max(longest, p.Longest)
	}
	if longest == 0 {
		longest = s.end / (2 * StillFactor) // nobody has made two steps
	}
	for i, name := range s.names {
		cause, waits := s.waits[i]
		if !waits || i >= len(s.paces) {
			continue
		}
		usual := s.paces[i].Longest
		if usual == 0 {
			usual = longest
		}
		if pause := s.end - s.paces[i].Last; pause > max(StillFactor*usual, s.least) {
			incidents = append(incidents, record.Incident{
				At: s.paces[i].Last.Seconds(), Node: name,
				What: fmt.Sprintf("stood still from here to the end, %.3g s: it waits for %s", pause.Seconds(), cause),
			})
		}
	}
	return incidents
}
