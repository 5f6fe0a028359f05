package fluid

import (
	"math"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/queue"
)

// Flows are a network in whole nanoseconds, whose rates may be processes. What ends is told by the
// number of its owner. The zero value has neither rates nor flows. Flows must not be used by two
// goroutines at once.
type Flows struct {
	network Network
	bounds  []bound // by resource
	vacant  []int32 // resources to be used again
	set     []int32 // resources that were set while flows crossed them
	due     queue.Calendar[event]
	ended   queue.Ring[Ended]
	owners  []int32 // by flow
	now     time.Duration
}

// bound is what a resource carries.
type bound struct {
	process rate.Process  // nil where there is no bound
	until   time.Duration // when the rate changes, if it is known
	known   bool
}

// event is a flow that starts, or, if it crosses nothing, the rate of a resource that changes.
type event struct {
	over     [MaxCrossed]int32
	count    int
	bytes    float64
	resource int32
	owner    int32
}

// Ended is a flow that is through.
type Ended struct {
	Owner int32
	At    time.Duration
}

// boundless is the capacity of a resource without a bound.
const boundless = 1e300

// Now is the latest instant that is known.
func (f *Flows) Now() time.Duration { return f.now }

// Add returns a new resource; nil is no bound.
func (f *Flows) Add(p rate.Process) int32 {
	if last := len(f.vacant) - 1; last >= 0 {
		r := f.vacant[last]
		f.vacant = f.vacant[:last]
		f.bounds[r] = bound{process: p}
		return r
	}
	f.bounds = append(f.bounds, bound{process: p})
	return f.network.Add(boundless)
}

// Remove takes a resource away that nothing crosses.
func (f *Flows) Remove(r int32) { f.vacant = append(f.vacant, r) }

// Set changes a resource, for what is under way too, from the instant on that Next is called with.
func (f *Flows) Set(r int32, p rate.Process) {
	f.bounds[r] = bound{process: p}
	if f.network.Crossed(r) {
		f.set = append(f.set, r)
	}
}

// Start puts bytes under way at an instant over one to MaxCrossed different resources. Now stands
// for an instant that lies before it.
func (f *Flows) Start(at time.Duration, bytes float64, owner int32, over ...int32) {
	f.advance(at)
	f.start(bytes, owner, over)
}

// StartLater is Start for an instant that may be yet to come.
func (f *Flows) StartLater(at time.Duration, bytes float64, owner int32, over ...int32) {
	item, _ := f.due.Enter(max(at, f.now))
	*item = event{bytes: bytes, owner: owner, count: copy(item.over[:], over), over: item.over}
}

// Due returns the instant at which Next has something to do, if nothing happens before;
// [rate.Never] if there is none. An instant that has passed stands for the present one.
func (f *Flows) Due() time.Duration {
	if f.ended.Len() > 0 || len(f.set) > 0 {
		return f.now
	}
	_, end := f.network.Next()
	return min(instant(end), f.next())
}

// Next returns a flow that has ended until an instant, if there is one that it has not returned. Of
// several it is the one that ended first.
func (f *Flows) Next(now time.Duration) (e Ended, ok bool) {
	f.advance(now)
	if f.ended.Len() == 0 {
		return Ended{}, false
	}
	return f.ended.Pop(), true
}

// next is the instant of the next event.
func (f *Flows) next() time.Duration {
	if f.due.Len() == 0 {
		return rate.Never
	}
	return f.due.First()
}

// instant is the first one that is not before a time.
func instant(ns float64) time.Duration {
	if !(ns < float64(rate.Never)) {
		return rate.Never
	}
	return time.Duration(math.Ceil(ns))
}

// advance goes on to an instant.
func (f *Flows) advance(now time.Duration) {
	now = max(now, f.now)
	for {
		id, end := f.network.Next()
		at, next := instant(end), f.next()
		switch {
		case at <= min(now, next) && at < rate.Never:
			f.now = at
			f.network.End(end, id)
			f.ended.Push(Ended{f.owners[id], at})
		case next <= now:
			f.now = next
			f.happen()
		case len(f.set) > 0:
			f.now = now
			for _, r := range f.set {
				f.look(r)
			}
			f.set = f.set[:0]
		default:
			f.now = now
			return
		}
	}
}

// happen carries out the next event, which is now.
func (f *Flows) happen() {
	_, _, item := f.due.Next()
	e := *item
	*item = event{}
	if e.count > 0 {
		f.start(e.bytes, e.owner, e.over[:e.count])
		return
	}
	if b := &f.bounds[e.resource]; b.known && b.until == f.now {
		if b.known = false; f.network.Crossed(e.resource) {
			f.look(e.resource)
		}
	}
}

func (f *Flows) start(bytes float64, owner int32, over []int32) {
	for _, r := range over {
		if !f.bounds[r].known {
			f.look(r)
		}
	}
	id := f.network.Start(float64(f.now), bytes, over...)
	for int(id) >= len(f.owners) {
		f.owners = append(f.owners, 0)
	}
	f.owners[id] = owner
}

// look finds the present rate of a resource, and when it changes.
func (f *Flows) look(r int32) {
	b := &f.bounds[r]
	capacity := boundless
	b.known, b.until = true, rate.Never
	if b.process != nil {
		capacity, b.until = b.process.Rate(f.now)
		capacity /= 1e9
	}
	f.network.SetCapacity(float64(f.now), r, capacity)
	if b.until < rate.Never {
		item, _ := f.due.Enter(b.until)
		*item = event{resource: r}
	}
}
