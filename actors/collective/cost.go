package collective

import (
	"container/heap"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// MaxWeighed is the most workers whose algorithms are weighed: a ring of as many sends 130,560
// messages a round. With more workers Auto is [Butterfly], which moves as few bytes as a ring does,
// in 2·log₂N steps instead of 2(N−1).
const MaxWeighed = 256

var _ train.Chooser = Architecture{}

// Choose chooses the algorithm that takes the least time for one reduction of a model over the
// layout's links, if it is Auto. Hierarchical is among them where there are sites. Of equal ones it
// takes the first in the order of the setting's words. Compress leaves it AllToAll alone and Segment
// Ring. Beyond [MaxWeighed] workers the choice has no options.
func (a Architecture) Choose(l train.Layout, weigh bool) (train.Architecture, *train.Choice, error) {
	if a.Algorithm == Hierarchical && !l.Sites {
		return nil, nil, a.lacksSites()
	}
	auto, many := a.Algorithm == Auto, len(l.Workers) > MaxWeighed
	if !auto && (!weigh || many) {
		return nil, nil, nil
	}
	c := &train.Choice{Key: "algorithm", Word: string(a.Algorithm)}
	possible := a.possible(&l)
	if many {
		a.Algorithm = possible[0]
		if slices.Contains(possible, Butterfly) {
			a.Algorithm = Butterfly
		}
		c.Word = string(a.Algorithm)
		return a, c, nil
	}
	for _, algorithm := range possible {
		as := a
		as.Algorithm = algorithm
		c.Options = append(c.Options, train.Option{Word: string(algorithm), Time: as.cost(&l)})
	}
	if !auto {
		return nil, c, nil
	}
	c.Word = c.Cheapest().Word
	a.Algorithm = Algorithm(c.Word)
	return a, c, nil
}

// possible are the algorithms that Auto is one of, and a stated one is compared with.
func (a *Architecture) possible(l *train.Layout) []Algorithm {
	switch {
	case a.compresses():
		return []Algorithm{AllToAll}
	case a.Segment > 0 && a.Algorithm == Auto:
		return []Algorithm{Ring}
	case l.Sites:
		return []Algorithm{AllToAll, Ring, Butterfly, Tree, Hierarchical}
	}
	return []Algorithm{AllToAll, Ring, Butterfly, Tree}
}

// lacksSites is the error of Hierarchical where it is not known who is where.
func (a Architecture) lacksSites() error {
	return field.Errorf(a, "Algorithm", "another one, because the network has no sites; a preset or a matrix has them")
}

// headBytes is what a chunk's message has beside its values, about.
const headBytes = 62

// A cost is the mean of the rounds after the first ones, which are unlike the others because all
// ranks begin at once.
const (
	firstRounds = 4
	allRounds   = 12
)

// cost is the time that a reduction of a model adds to a round, beside the steps of the slowest
// worker: the longest chain of steps, messages and sums through some rounds of the schedule. A
// message of b bytes takes b ÷ rate of the uplink, of the link and of the downlink, each of which
// serves one after the other, and the link's delay (R. Hockney, "The communication challenge for
// MPP", Parallel Computing 20(3), 1994, with α the delay and β the inverse of the rates; the queues
// are those of an emulated network). A rank adds and sends in the order of its schedule. Steps that
// go on during an exchange count as if they had been made before. Losses,
// outages and changes of the links are not counted, and what is drawn counts as its mean.
func (a *Architecture) cost(l *train.Layout) time.Duration {
	n := len(l.Workers)
	if n == 1 {
		return 0
	}
	c := &costing{layout: l, every: a.round(), work: a.work(l), ranks: make([]costed, n),
		lines: map[int]time.Duration{}}
	var sites []int32
	slowest := time.Duration(0)
	for _, w := range l.Workers {
		sites = append(sites, w.Site)
		slowest = max(slowest, after(0, float64(a.round())*float64(w.Step)))
	}
	for rank := range c.ranks {
		r := &c.ranks[rank]
		r.schedule = a.scheduleOf(part{n: n, rank: rank, values: a.values(l.Params)}, l, sites)
		r.size = r.schedule.size()
		r.come = make([]uint64, 2*r.size/64+1)
	}
	for rank := range c.ranks {
		c.begin(rank)
		c.advance(rank)
	}
	for len(c.flying) > 0 {
		c.land(heap.Pop(&c.flying).(flight))
	}
	first, last := c.over[firstRounds-1], c.over[allRounds-1]
	if last == century {
		return century
	}
	return max(0, (last-first)/(allRounds-firstRounds)-slowest)
}

// scheduleOf is the schedule of a rank for vectors as they travel.
func (a *Architecture) scheduleOf(p part, l *train.Layout, sites []int32) schedule {
	if !a.compresses() {
		return newSchedule(a, p, sites)
	}
	p.values = a.Compress.Size(p.values, a.shapes(l.Tensors))
	return &gather{p}
}

// work is the number of FLOPs that a round takes beside the sums of its schedule: codes, the sum of
// what they stand for, and the step of an outer optimizer.
func (a *Architecture) work(l *train.Layout) float64 {
	work, values := 0.0, a.values(l.Params)
	if a.compresses() {
		encode, decode := a.Compress.Work(values, a.shapes(l.Tensors), a.Feedback)
		work = encode + float64(len(l.Workers))*(decode+float64(values))
	}
	if outer := a.outer(); outer != nil { // differences, and a step by them
		work += float64(values) + outer.New(0).Work(values)
	}
	return work
}

// costing is some rounds of which only the times are known.
type costing struct {
	layout *train.Layout
	every  int
	work   float64
	ranks  []costed
	lines  map[int]time.Duration // when the links that have a rate are free
	flying flights
	sent   int
	over   [allRounds]time.Duration // when the last rank ended each round
}

// costed is one rank.
type costed struct {
	schedule         schedule
	size, at, round  int
	come             []uint64 // a bit for each position of this round and the next: its chunk is there
	free             time.Duration
	uplink, downlink time.Duration // free from then on
}

// bit is the place of a position's bit in come, which is one of two rounds'.
func (r *costed) bit(round, position int) (word *uint64, mask uint64) {
	place := round%2*r.size + position
	return &r.come[place/64], 1 << (place % 64)
}

// begin lets a rank make the steps of its round, and encode and decode.
func (c *costing) begin(rank int) {
	r, w := &c.ranks[rank], &c.layout.Workers[rank]
	if r.free = after(r.free, float64(c.every)*float64(w.Step)); c.work > 0 {
		r.free = after(r.free, c.work/w.Speed*1e9)
	}
}

// land brings a message through the downlink, or to its rank.
func (c *costing) land(f flight) {
	r := &c.ranks[f.to]
	if down := c.layout.Workers[f.to].Downlink; !f.received && down > 0 {
		r.downlink = after(max(f.at, r.downlink), nanoseconds(f.bytes, down))
		f.at, f.received = r.downlink, true
		heap.Push(&c.flying, f)
		return
	}
	word, mask := r.bit(f.round, f.position)
	*word |= mask
	if f.round == r.round && f.position == r.at {
		r.free = max(r.free, f.at)
		c.advance(f.to)
	}
}

// advance lets a rank make its moves until it waits for a chunk, or all rounds are over.
func (c *costing) advance(rank int) {
	for r := &c.ranks[rank]; r.round < allRounds; r.at++ {
		if r.at == r.size {
			c.over[r.round] = max(c.over[r.round], r.free)
			r.round, r.at = r.round+1, -1
			c.begin(rank)
			continue
		}
		m := r.schedule.move(r.at)
		if m.action == send {
			c.send(rank, &m)
			continue
		}
		if m.waits() {
			word, mask := r.bit(r.round, r.at)
			if *word&mask == 0 {
				return
			}
			*word &^= mask
		}
		if m.action == add {
			work := m.high - m.low
			if m.last { // the sum is divided
				work *= 2
			}
			r.free = after(r.free, nanoseconds(work, c.layout.Workers[rank].Speed))
		}
	}
}

func (c *costing) send(rank int, m *move) {
	r, to := &c.ranks[rank], &c.ranks[m.peer]
	position := to.schedule.find(tag{rank, m.step, m.index})
	if m.peer == rank {
		word, mask := r.bit(r.round, position)
		*word |= mask
		return
	}
	line := c.layout.Line(rank, m.peer)
	bytes := headBytes + int(line.Overhead) + 4*(m.high-m.low)
	at := r.free
	if up := c.layout.Workers[rank].Uplink; up > 0 {
		r.uplink = after(max(at, r.uplink), nanoseconds(bytes, up))
		at = r.uplink
	}
	if line.Rate > 0 {
		key := rank*len(c.ranks) + m.peer
		at = after(max(at, c.lines[key]), nanoseconds(bytes, line.Rate))
		c.lines[key] = at
	}
	c.sent++
	heap.Push(&c.flying, flight{at: after(at, float64(line.Delay)), number: c.sent, to: m.peer, round: r.round,
		position: position, bytes: bytes})
}

// nanoseconds is how many an amount takes at a rate a second.
func nanoseconds(amount int, rate float64) float64 { return float64(amount) / rate * 1e9 }

// century is longer than any run.
const century = 100 * 365 * 24 * time.Hour

// after is so many nanoseconds later, at most a century.
func after(begin time.Duration, nanoseconds float64) time.Duration {
	return min(begin+time.Duration(min(nanoseconds, float64(century))), century)
}

// flight is a message on its way: to the receiver's downlink, then through it.
type flight struct {
	at       time.Duration
	number   int // in the order of sending
	to       int
	round    int
	position int
	bytes    int
	received bool
}

// flights is a heap of them, the earliest first.
type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].number < f[j].number
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}
