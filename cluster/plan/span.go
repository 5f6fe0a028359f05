package plan

import (
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// spans checks that what the schedule begins is over before virtual time is.
func (c *check) spans(p *Plan) {
	const end = unit.Duration(link.Horizon)
	for _, change := range p.Schedule {
		if change.At <= end && change.For > end-change.At {
			c.errorf(change.Source.At("for"),
				"%v from %v on ends later than a run can; accepted is an end up to %v", change.For, change.At, end)
		}
	}
}
