// Package fluid shares the rates of links among messages as water finds its level: at every
// instant the flows under way have the max–min fair rates (Bertsekas, Gallager 1992, "Data
// networks", section 6.5.2). No flow could have more unless one that has no more than it had less.
//
// Times are nanoseconds since the run began, capacities and rates bytes a nanosecond. Instants must
// not decrease from call to call. A change costs what the flows and resources cost that it can
// reach over shared resources; nothing is allocated once the most flows at a time have been under
// way.
package fluid

import "math"

// MaxCrossed is how many resources a flow can cross: an uplink, an edge and a downlink.
const MaxCrossed = 3

// Network is resources and the flows that cross them. It must not be used by two goroutines at
// once. The zero value has neither.
type Network struct {
	resources []resource
	flows     []flow
	vacant    []int32 // flows to be used again
	heap      []int32 // flows under way, the one that ends first on top
	started   uint64
	mark      uint64  // of the latest component
	reached   []int32 // its resources
	met       []int32 // its flows
}

type resource struct {
	capacity float64
	crossing []crossing
	mark     uint64
	left     float64 // what is not given yet, while rates are
	open     int     // flows that have no rate yet
}

// crossing is a flow on a resource, which is one of those that the flow crosses.
type crossing struct{ flow, slot int32 }

type flow struct {
	crossed [MaxCrossed]int32
	at      [MaxCrossed]int32 // its place among those that cross
	count   int32
	place   int32 // in the heap
	number  uint64
	mark    uint64
	open    bool
	bytes   float64 // left at since
	since   float64
	rate    float64
	end     float64
}

// Add returns a new resource of a capacity that is 0 or more, and finite.
func (n *Network) Add(capacity float64) int32 {
	n.resources = append(n.resources, resource{capacity: capacity})
	return int32(len(n.resources) - 1)
}

// SetCapacity changes a resource from an instant on.
func (n *Network) SetCapacity(now float64, r int32, capacity float64) {
	n.resources[r].capacity = capacity
	n.begin()
	n.reach(r)
	n.share(now)
}

// Crossed reports whether any flow crosses a resource.
func (n *Network) Crossed(r int32) bool { return len(n.resources[r].crossing) > 0 }

// Start puts bytes under way over one to MaxCrossed different resources. The flow is known by what
// Start returns until it has ended.
func (n *Network) Start(now, bytes float64, over ...int32) int32 {
	var id int32
	if last := len(n.vacant) - 1; last >= 0 {
		id, n.vacant = n.vacant[last], n.vacant[:last]
	} else {
		id = int32(len(n.flows))
		n.flows = append(n.flows, flow{})
	}
	n.started++
	f := &n.flows[id]
	*f = flow{count: int32(len(over)), number: n.started, bytes: bytes, since: now, end: math.Inf(1),
		mark: f.mark, place: int32(len(n.heap))}
	n.heap = append(n.heap, id)
	n.begin()
	for slot, r := range over {
		to := &n.resources[r]
		f.crossed[slot], f.at[slot] = r, int32(len(to.crossing))
		to.crossing = append(to.crossing, crossing{flow: id, slot: int32(slot)})
		n.reach(r)
	}
	n.up(len(n.heap) - 1)
	n.share(now)
	return id
}

// Next returns the flow that ends first if nothing happens before, and when. Of those that end at
// the same instant it is the one that began first. Without a flow the instant is infinite, as it is
// if none has a rate.
func (n *Network) Next() (id int32, at float64) {
	if len(n.heap) == 0 {
		return -1, math.Inf(1)
	}
	return n.heap[0], n.flows[n.heap[0]].end
}

// Rate is what a flow has at present.
func (n *Network) Rate(id int32) float64 { return n.flows[id].rate }

// End takes a flow away at an instant, whether or not it is through.
func (n *Network) End(now float64, id int32) {
	f := &n.flows[id]
	n.begin()
	for slot := range f.count {
		r := f.crossed[slot]
		from := &n.resources[r]
		last := len(from.crossing) - 1
		moved := from.crossing[last]
		from.crossing[f.at[slot]] = moved
		n.flows[moved.flow].at[moved.slot] = f.at[slot]
		from.crossing = from.crossing[:last]
		n.reach(r)
	}
	place, last := int(f.place), len(n.heap)-1
	n.swap(place, last)
	n.heap = n.heap[:last]
	if place < last {
		n.settle(n.heap[place])
	}
	n.vacant = append(n.vacant, id)
	n.share(now)
}

// begin begins a component of resources that have flows in common.
func (n *Network) begin() {
	n.mark++
	n.reached, n.met = n.reached[:0], n.met[:0]
}

func (n *Network) reach(r int32) {
	if at := &n.resources[r]; at.mark != n.mark {
		at.mark = n.mark
		n.reached = append(n.reached, r)
	}
}

// share gives the flows of the component their rates from an instant on.
func (n *Network) share(now float64) {
	n.spread(now)
	for left := len(n.met); left > 0; {
		tightest, level := int32(-1), math.Inf(1)
		for _, r := range n.reached {
			if at := &n.resources[r]; at.open > 0 {
				if l := at.left / float64(at.open); l < level {
					tightest, level = r, l
				}
			}
		}
		for _, c := range n.resources[tightest].crossing {
			if f := &n.flows[c.flow]; f.open {
				n.give(f, level)
				left--
			}
		}
	}
	for _, id := range n.met {
		f := &n.flows[id]
		switch {
		case f.bytes <= 0:
			f.end = now
		case f.rate == 0:
			f.end = math.Inf(1)
		default:
			f.end = now + f.bytes/f.rate
		}
		n.settle(id)
	}
}

// spread finds the whole component, and what its flows have left at an instant.
func (n *Network) spread(now float64) {
	for i := 0; i < len(n.reached); i++ {
		at := &n.resources[n.reached[i]]
		at.left, at.open = at.capacity, len(at.crossing)
		for _, c := range at.crossing {
			f := &n.flows[c.flow]
			if f.mark == n.mark {
				continue
			}
			f.mark, f.open = n.mark, true
			f.bytes = max(f.bytes-float64(f.rate*(now-f.since)), 0)
			f.since = now
			n.met = append(n.met, c.flow)
			for slot := range f.count {
				n.reach(f.crossed[slot])
			}
		}
	}
}

// give gives a flow its rate.
func (n *Network) give(f *flow, rate float64) {
	f.rate, f.open = rate, false
	for slot := range f.count {
		r := &n.resources[f.crossed[slot]]
		r.left = max(r.left-rate, 0)
		r.open--
	}
}

func (n *Network) before(a, b int) bool {
	f, g := &n.flows[n.heap[a]], &n.flows[n.heap[b]]
	return f.end < g.end || (f.end == g.end && f.number < g.number)
}

func (n *Network) swap(a, b int) {
	n.heap[a], n.heap[b] = n.heap[b], n.heap[a]
	n.flows[n.heap[a]].place, n.flows[n.heap[b]].place = int32(a), int32(b)
}

// settle moves a flow whose end has changed to its place in the heap.
func (n *Network) settle(id int32) {
	n.up(int(n.flows[id].place))
	for i := int(n.flows[id].place); ; {
		first := 2*i + 1
		if first >= len(n.heap) {
			return
		}
		if first+1 < len(n.heap) && n.before(first+1, first) {
			first++
		}
		if !n.before(first, i) {
			return
		}
		n.swap(i, first)
		i = first
	}
}

func (n *Network) up(i int) {
	for i > 0 && n.before(i, (i-1)/2) {
		n.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}
