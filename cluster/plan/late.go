package plan

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/link/lines"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Instants are the times at which a setting takes effect: one, or one for each element of a list.
type Instants struct {
	At  *syntax.Node // setting
	Due []unit.Duration
	// Lost is the consequence of a run that ends before, such as "this never happens". With several times
	// it has a plural subject, which the number of late ones precedes.
	Lost string
}

// Late returns a note if a run that ends at end, for a reason such as "stop.time is 1m", is over before
// the setting takes effect; empty if it is not.
func (i Instants) Late(end unit.Duration, reason string) string {
	late := 0
	for _, due := range i.Due {
		if due >= end {
			late++
		}
	}
	text := i.Lost
	switch {
	case late == 0:
		return ""
	case len(i.Due) > 1:
		text = fmt.Sprintf("%d of %d %s", late, len(i.Due), text)
	}
	return syntax.Errorf(i.At, "%s: %s", text, reason).Error()
}

// Instants returns the times that the plan itself gives: of entries of the schedule, outages and
// checkpoints, and of nodes that join. Those in trace files are not among them.
func (p *Plan) Instants() []Instants {
	var l instants
	if c := p.Checkpoint; c != nil && c.Source != nil {
		l.add(c.Source.At("every"), c.Every)
	}
	for _, c := range p.Schedule {
		l.add(c.Source.At("at"), c.At)
	}
	l.outages(p.Network.Source.At("default"), p.Network.Default)
	for i := range p.Network.Links {
		l.outages(p.Network.Links[i].Source, p.Network.Links[i].LinkSettings)
	}
	for i := range p.Nodes {
		a := p.Nodes[i].Available
		if a != nil && a.First != nil && (i == 0 || p.Nodes[i-1].Available != a) {
			l.add(a.Source.At("first"), *a.First)
		}
	}
	return l
}

type instants []Instants

func (l *instants) add(at *syntax.Node, due unit.Duration) {
	*l = append(*l, Instants{At: at, Due: []unit.Duration{due}, Lost: "this never happens"})
}

func (l *instants) outages(n *syntax.Node, s LinkSettings) {
	list, given := n.Get("outages")
	for i, o := range s.Outages {
		if given && o.Random == nil && i < len(list.Items) {
			l.add(list.Items[i].At("from"), o.From)
		}
	}
}

// Late returns notes about instants that are due after stop.time or, if the plan has none, after the
// longest time that a run may be meant to take.
func (p *Plan) Late() (notes []string) {
	for _, i := range p.Instants() {
		if note := p.Stop.Late(i); note != "" {
			notes = append(notes, note)
		}
		if p.Stop.Time == 0 && i.Due[0] > unit.Duration(lines.LongestRun) {
			note := syntax.Errorf(i.At, "this happens %.0f days after the run began, if that goes on for so long; "+
				"times count from the beginning of the run", float64(i.Due[0])/float64(24*time.Hour))
			notes = append(notes, note.Error())
		}
	}
	return notes
}

// Late is the note about instants that are due after stop.time; empty for none, or without stop.time.
func (s *Stop) Late(i Instants) string {
	if s.Time == 0 {
		return ""
	}
	return i.Late(s.Time, "stop.time is "+s.Time.String())
}
