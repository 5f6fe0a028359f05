package faults

import (
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
)

// Cut is a time during which nothing departs between two sides.
type Cut struct {
	link.Outage
	// Sides says of each node on which side it is, 1 or 2, or 0 for neither.
	Sides []int8
}

// severs reports whether a cut is between two nodes. The coordinator, behind the last node, is on
// no side.
func (c *Cut) severs(from, to int32) bool {
	return int(max(from, to)) < len(c.Sides) && c.Sides[from] != c.Sides[to] && c.Sides[from] != 0 && c.Sides[to] != 0
}

// Cuts are those of a plan's schedule.
func Cuts(p *plan.Plan) []Cut {
	var cuts []Cut
	for _, c := range p.Schedule {
		if c.Cut != nil {
			from := time.Duration(c.At)
			to := from + min(time.Duration(c.For), link.Horizon-from)
			cuts = append(cuts, Cut{Outage: link.Outage{From: from, To: to}, Sides: p.Sides(c.Cut)})
		}
	}
	return cuts
}

// severed is what an edge was like, and which cuts go through it, as bits.
type severed struct {
	config *link.Config
	cuts   string
}

// Overlay lays cuts over what edges are like.
type Overlay struct {
	cuts    []Cut
	base    link.Config
	configs func(from, to int32) *link.Config
	known   map[severed]*link.Config
	bits    []byte
}

// Over returns what lays cuts over what edges are like. configs returns that, or nil where an edge
// is like the base; it may be nil itself.
func Over(cuts []Cut, base link.Config, configs func(from, to int32) *link.Config) *Overlay {
	return &Overlay{cuts: cuts, base: base, configs: configs, known: map[severed]*link.Config{},
		bits: make([]byte, (len(cuts)+7)/8)}
}

// Config is for [link.Network.SetConfigs]. What it returns for an edge is another pointer whenever
// what lies below the cuts is.
func (o *Overlay) Config(from, to int32) *link.Config {
	var at severed
	if o.configs != nil {
		at.config = o.configs(from, to)
	}
	clear(o.bits)
	found := false
	for i := range o.cuts {
		if o.cuts[i].severs(from, to) {
			o.bits[i/8] |= 1 << (i % 8)
			found = true
		}
	}
	if !found {
		return at.config
	}
	at.cuts = string(o.bits)
	c := o.known[at]
	if c == nil {
		cut := o.base
		if at.config != nil {
			cut = *at.config
		}
		cut.Outages = slices.Clone(cut.Outages)
		for i := range o.cuts {
			if o.bits[i/8]&(1<<(i%8)) != 0 {
				cut.Outages = append(cut.Outages, o.cuts[i].Outage)
			}
		}
		cut.Outages = link.MergeOutages(cut.Outages)
		c = &cut
		o.known[at] = c
	}
	return c
}
