package plan

import (
	"time"

	"github.com/gradwire/gradwire/cluster/link/lines"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Late says what of a plan never happens, because it is due when every run is over: entries of the
// schedule, outages, and nodes that come too late. Times are compared with stop.time, and without it
// with the longest time that a run may be meant to take.
func (p *Plan) Late() []string {
	l := late{end: p.Stop.Time}
	if c := p.Checkpoint; c != nil && c.Source != nil {
		l.due(c.Source.At("every"), c.Every)
	}
	for _, c := range p.Schedule {
		l.due(c.Source.At("at"), c.At)
	}
	l.outages(p.Network.Source.At("default"), p.Network.Default)
	for i := range p.Network.Links {
		l.outages(p.Network.Links[i].Source, p.Network.Links[i].LinkSettings)
	}
	for i := range p.Nodes {
		a := p.Nodes[i].Available
		if a != nil && a.First != nil && (i == 0 || p.Nodes[i-1].Available != a) {
			l.due(a.Source.At("first"), *a.First)
		}
	}
	return l.notes
}

// late collects what is due too late.
type late struct {
	end   unit.Duration // 0 for none
	notes []string
}

func (l *late) outages(n *syntax.Node, s LinkSettings) {
	list, given := n.Get("outages")
	for i, o := range s.Outages {
		if given && o.Random == nil && i < len(list.Items) {
			l.due(list.Items[i].At("from"), o.From)
		}
	}
}

// due notes what stands at n if it is due when the run is over.
func (l *late) due(n *syntax.Node, at unit.Duration) {
	switch {
	case l.end > 0 && at >= l.end:
		l.notes = append(l.notes, syntax.Errorf(n, "this never happens: stop.time is %s", l.end).Error())
	case l.end == 0 && at > unit.Duration(lines.LongestRun):
		l.notes = append(
			l.notes,
			syntax.Errorf(n, "this happens %.0f days after the run began, if that goes on for so "+
				"long; times count from the beginning of the run", float64(at)/float64(24*time.Hour)).Error(),
		)
	}
}
