package experiment

import (
	"fmt"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/faults"
)

// maxDrawn is how many faults of a point are told one by one.
const maxDrawn = 20

// Drawn says what the faults of each point come to by the seed of its first repeat, a line each; no
// lines for a plan without. A nil catalog stands for catalog.Default().
func (p *Plan) Drawn(c *catalog.Catalog) ([]string, error) {
	points, err := p.Points(c)
	if err != nil {
		return nil, err
	}
	return drawn(points), nil
}

func drawn(points []Point) (lines []string) {
	for i := range points {
		own := points[i].Spec.Plan
		if own.Faults == nil {
			continue
		}
		all := faults.List(points[i].Scheduled(own.Seed), len(own.Schedule))
		at := describe(points[i].Labels)
		if at != "" {
			at = " at " + at
		}
		lines = append(lines, fmt.Sprintf("faults of seed %d%s: %d", own.Seed, at, len(all)))
		for k := range all {
			if k == maxDrawn {
				lines = append(lines, fmt.Sprintf("  and %d more", len(all)-k))
				break
			}
			lines = append(lines, "  "+faults.Describe(&all[k]))
		}
	}
	return lines
}
