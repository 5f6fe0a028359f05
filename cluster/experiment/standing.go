package experiment

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/journal"
	"github.com/gradwire/gradwire/cluster/record"
)

// standing is what is known of the nodes of a run when it ends.
type standing struct {
	names []string
	waits map[int]string // by node, what it waits for
	paces []record.Pace
	end   time.Duration // of the members' part
	least time.Duration // shorter pauses are none
}

// still returns an incident for each node that has stood still.
func (s *standing) still() (incidents []record.Incident) {
	longest := time.Duration(0)
	for _, p := range s.paces {
		longest = max(longest, p.Longest)
	}
	if longest == 0 {
		longest = s.end / (2 * journal.StillFactor) // nobody has made two steps
	}
	for i, name := range s.names {
		cause, waits := s.waits[i]
		if !waits || i >= len(s.paces) {
			continue
		}
		if p := s.paces[i]; journal.StoodStill(p, longest, s.end, s.least) {
			incidents = append(incidents, record.Incident{
				At: p.Last.Seconds(), Node: name,
				What: fmt.Sprintf("stood still from here to the end, %.3g s: it waits for %s", (s.end - p.Last).Seconds(), cause),
			})
		}
	}
	return incidents
}
