package link

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/gradwire/gradwire/cluster/link/portable"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// maxDownPerUp bounds how much longer an Intermittent edge is down than up: the work of a message
// grows with it.
const maxDownPerUp = 1000

// Outage is a time during which nothing departs on an edge: the half-open interval [From, To), To =
// Forever for one that never ends. A message whose departure would fall into it waits for its end
// and is then sent whole, blocking the edge's queue; with Loss.Drop, or if the outage never ends,
// it is lost. Messages on their way are not touched.
type Outage struct {
	From time.Duration `plan:"from"`
	To   time.Duration `plan:"for"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (o Outage) Validate() error {
	if o.From < 0 || o.From > Horizon {
		return field.Errorf(o, "From", "from 0s to %v", Horizon)
	}
	if o.To <= o.From || (o.To > Horizon && o.To != Forever) {
		return field.Errorf(o, "To", "after From (%v) and at most %v, or Forever", o.From, Horizon)
	}
	return nil
}

// MergeOutages sorts outages and joins those that touch.
func MergeOutages(outages []Outage) []Outage {
	sorted := slices.SortedFunc(slices.Values(outages),
		func(a, b Outage) int { return cmp.Compare(a.From, b.From) })
	var merged []Outage
	for _, o := range sorted {
		if n := len(merged); n > 0 && o.From <= merged[n-1].To {
			merged[n-1].To = max(merged[n-1].To, o.To)
			continue
		}
		merged = append(merged, o)
	}
	return merged
}

// Intermittent makes an edge go down and come up again at random: the two-state Markov chain of
// Gilbert 1960 ("Capacity of a burst-noise channel") and Elliott 1963 in continuous time. The times
// up and down are exponentially distributed with the means Up and Down, the share of time down is
// Down/(Up + Down), from the beginning of the run on. While the edge is down it is as in an Outage.
// The zero value never goes down.
//
// Whether the edge is down at an instant is a function of the network's seed, the names of its
// nodes and these two means alone, not of what is sent.
type Intermittent struct {
	// Mean times; Down is at most 1,000 times Up, and both are 0 for an edge that never goes down.
	Up   time.Duration `plan:"up,required" range:"1ms..8760h" doc:"mean time that the link is up in between, exponentially distributed, from 1ms to a year"`
	Down time.Duration `plan:"down,required" range:"1ms..8760h" doc:"mean time that an outage lasts, likewise, at most 1000 times as long"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Intermittent) Validate() error {
	if d == (Intermittent{}) {
		return nil
	}
	err := field.Check(d)
	if err == nil && d.Down/maxDownPerUp > d.Up {
		return field.Errorf(d, "Down", "at most %d times the mean time up (%v)", maxDownPerUp, d.Up)
	}
	return err
}

// flapper finds the state of an Intermittent edge at any instant. The events that take the edge
// down and those that bring it up are Poisson processes of rates 1/Up and 1/Down, each going on
// whatever the state is; the state is what the last event of either made it. Events that change
// nothing thin neither process, so that this is the chain.
type flapper struct {
	falls, rises poisson
	downAtFirst  bool // before the first event
}

func newFlapper(d Intermittent, key uint64) *flapper {
	key += golden
	seed, salt := splitMix(key), splitMix(key+golden)
	f := &flapper{falls: newPoisson(d.Up, seed, salt), rises: newPoisson(d.Down, salt, seed)}
	f.falls.open(-1)
	f.downAtFirst = f.falls.uniform()*(float64(d.Up)+float64(d.Down)) < float64(d.Down)
	return f
}

// at returns whether the edge is down at an instant, and if so, until when. A nil one is never
// down.
func (f *flapper) at(now time.Duration) (end time.Duration, down bool) {
	if f == nil {
		return 0, false
	}
	f.falls.move(now)
	f.rises.move(now)
	down = f.falls.last > f.rises.last
	if f.falls.last == none && f.rises.last == none {
		down = f.downAtFirst
	}
	switch {
	case !down:
		return 0, false
	case f.rises.next > Horizon:
		return Forever, true
	}
	return f.rises.next, true
}

// nextDown returns the first instant from now on at which the edge is down; before if there is none
// before that.
func (f *flapper) nextDown(now, before time.Duration) time.Duration {
	for ; now < before; now = f.falls.next {
		if _, down := f.at(now); down {
			return now
		}
	}
	return before
}

// eventsPerCell is the mean number of events of one cell.
const eventsPerCell = 16

// poisson finds the events of a Poisson process beside any instant. Each stretch of time, a cell,
// draws its events from a separate random stream, so no look-up has to begin at the beginning. The
// fields after the settings only remember the last look-up.
type poisson struct {
	seed, salt uint64
	gap        float64       // mean nanoseconds between two events
	width      time.Duration // of a cell

	stream     rand.PCG
	cell       int64         // that stream is in
	last, next time.Duration // the events beside the last look-up; last = none if there is none before
	started    bool
}

// none stands for an event before the run.
const none = time.Duration(-1)

func newPoisson(mean time.Duration, seed, salt uint64) poisson {
	return poisson{seed: seed, salt: salt, gap: float64(mean), width: eventsPerCell * mean}
}

// move finds the last event until an instant and the first one after it.
func (p *poisson) move(now time.Duration) {
	if cell := int64(now / p.width); !p.started || now < p.last || cell > p.cell+1 {
		p.seek(cell)
	}
	for p.next <= now {
		p.last = p.next
		p.advance()
	}
}

// seek goes to the beginning of a cell.
func (p *poisson) seek(cell int64) {
	p.started, p.last = true, none
	for before := cell - 1; before >= 0 && p.last == none; before-- {
		p.open(before)
		for p.draw(); p.next < p.end(); p.draw() {
			p.last = p.next
		}
	}
	p.open(cell)
	p.advance()
}

// advance draws the next event, in this cell or one after it.
func (p *poisson) advance() {
	for p.draw(); p.next >= p.end(); p.draw() {
		p.open(p.cell + 1)
	}
}

// open goes to the beginning of a cell.
func (p *poisson) open(cell int64) {
	place := splitMix(p.seed + golden*uint64(cell))
	p.stream.Seed(place, splitMix(place^p.salt))
	p.cell, p.next = cell, time.Duration(cell)*p.width
}

func (p *poisson) end() time.Duration { return time.Duration(p.cell+1) * p.width }

func (p *poisson) draw() { p.next += nearest(-p.gap * portable.Log(1-p.uniform())) }

func (p *poisson) uniform() float64 { return float64(p.stream.Uint64()>>11) * 0x1p-53 }

// outageAt returns the end of the outage that a departure from the queue falls into. Departures
// from the queue do not decrease, so outages that are over are passed for good.
func (e *Edge) outageAt(departure time.Duration) (end time.Duration, down bool) {
	for int(e.outage) < len(e.law.Outages) && e.law.Outages[e.outage].To <= departure {
		e.outage++
	}
	left := e.law.Outages[e.outage:]
	if e.flapper != nil {
		return joined(left, e.flapper, departure)
	}
	if len(left) > 0 && left[0].From <= departure {
		return left[0].To, true
	}
	return 0, false
}

// outageAhead is outageAt for a departure that later ones may precede: it passes nothing.
func (e *Edge) outageAhead(departure time.Duration) (end time.Duration, down bool) {
	left := e.law.Outages[e.outage:]
	if e.flapper != nil {
		ahead := *e.flapper
		return joined(left, &ahead, departure)
	}
	for _, o := range left {
		if departure < o.From {
			break
		}
		if departure < o.To {
			return o.To, true
		}
	}
	return 0, false
}

// joined returns the end of the outage at an instant, and whether there is one. Listed and random
// outages that touch count as one.
func joined(list []Outage, random *flapper, now time.Duration) (end time.Duration, down bool) {
	end = now
	for more := true; more && end <= Horizon; {
		for len(list) > 0 && list[0].To <= end {
			list = list[1:]
		}
		more = false
		if len(list) > 0 && list[0].From <= end {
			end, more = list[0].To, true
		} else if until, isDown := random.at(end); isDown {
			end, more = until, true
		}
	}
	return end, end > now
}

// Outage returns the first outage that there is at or after an instant and before another, of those
// configured and those at random, as if the present configuration held for ever. It draws nothing.
// Outages that touch are one; of one that has begun the rest is returned.
func (e *Edge) Outage(now, before time.Duration) (Outage, bool) {
	list := e.law.Outages
	list = list[sort.Search(len(list), func(i int) bool { return list[i].To > now }):]
	from := before
	if len(list) > 0 {
		from = min(from, max(list[0].From, now))
	}
	var random *flapper
	if e.flapper != nil {
		ahead := *e.flapper
		random = &ahead
		from = random.nextDown(now, from)
	}
	if from >= before {
		return Outage{}, false
	}
	to, _ := joined(list, random, from)
	return Outage{From: from, To: to}, true
}
