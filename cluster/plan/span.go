package plan

import (
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// lastInstant is the end of virtual time.
const lastInstant = unit.Duration(link.Horizon)

// spans checks that what the schedule begins is over before virtual time is, and what faults begin,
// however late they come.
func (c *check) spans(p *Plan) {
	for _, change := range p.Schedule {
		if change.At <= lastInstant {
			c.span(change.Source, change.At, span{key: "notice", length: change.Notice},
				span{key: "for", length: change.For})
		}
	}
	f := p.Faults
	if f == nil {
		return
	}
	if p.Horizon() > lastInstant {
		c.errorf(f.Source, "faults that begin up to %v would come later than a run can be; give until: of up to %v",
			p.Horizon(), lastInstant)
		return
	}
	last := func(key string, spans ...span) { c.span(f.Source.At(key), p.Horizon(), spans...) }
	if k := f.Crash; k != nil {
		last("crash", span{"back", k.Back, k.Sigma})
	}
	if k := f.Preempt; k != nil {
		last("preempt", span{key: "notice", length: k.Notice}, span{"back", k.Back, k.Sigma})
	}
	if k := f.Pause; k != nil {
		last("pause", span{"for", k.For, k.Sigma})
	}
	if k := f.Slow; k != nil {
		last("slow", span{"for", k.For, k.Sigma})
	}
	if k := f.Cut; k != nil {
		last("cut", span{"for", k.For, k.Sigma})
	}
	if k := f.Swizzle; k != nil {
		last("swizzle", span{"for", k.For, k.Sigma})
	}
}

// span is a key with a length of time, or with the mean of log-normal ones where sigma is not 0.
type span struct {
	key    string
	length unit.Duration
	sigma  float64
}

// span checks that what an entry has one after the other from an instant on ends in virtual time.
func (c *check) span(n *syntax.Node, from unit.Duration, spans ...span) {
	for _, s := range spans {
		length, drawn := s.length, ""
		if s.sigma > 0 {
			length, drawn = longest, "with sigma up to "
		}
		if s.length > length {
			c.errorf(n.At(s.key), "%v in the mean, with sigma; accepted is up to %v", s.length, length)
			return
		}
		if length > lastInstant-from {
			c.errorf(n.At(s.key), "%s%v from %v on ends later than a run can; accepted is an end up to %v", drawn,
				length, from, lastInstant)
			return
		}
		from += length
	}
}
