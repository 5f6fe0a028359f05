package experiment

import (
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// checkPlace returns an error if the runs of some points cannot be where they are to be.
func checkPlace(points []Point, t Traits) error {
	if t.Here {
		return affordable(points, memory())
	}
	for i := range points {
		if s := points[i].Spec; points[i].reliable() && s.Links.Disturbed() {
			return syntax.Errorf(s.ArchitectureSection, "links of this plan lose messages for good, repeat or reorder "+
				"them. Where nodes live in several processes nobody sends them again; write delivery: as-is to have "+
				"them so, or run the plan in one process")
		}
	}
	return nil
}

// reliable reports whether sessions have every message of a point handled once and in order. Where
// the plan does not say, they do unless the architecture lives without.
func (p *Point) reliable() bool {
	if p.Spec.Delivery != "" {
		return p.Spec.Delivery == "reliable"
	}
	a, ok := p.Spec.Architecture.(train.Tolerant)
	return !ok || !a.Tolerant()
}
