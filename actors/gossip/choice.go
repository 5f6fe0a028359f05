package gossip

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
)

// By says what a choice of neighbours goes by.
type By string

// What a choice goes by.
const (
	// Random gives all neighbours the same chance. On a complete topology it costs time
	// and memory in proportion to those that are chosen, not to all.
	Random By = "random"
	// Latency gives neighbour i the weight 1/ℓᵢ, where ℓᵢ is the present delay of the link to it; a
	// delay below a microsecond counts as one. It looks at the delays of candidates, see Choice.
	Latency By = "latency"
)

// DefaultCandidates is how many neighbours a choice by Latency is made among where the plan does
// not say.
const DefaultCandidates = 128

// Choice says which of the neighbours that are present a peer exchanges models with. They are
// drawn without replacement: of those that are left, the next one is i with probability
// wᵢ/Σwⱼ, where the weights w are all equal for Random. Where there are more neighbours than
// Candidates, a choice by Latency is made among that many, which are drawn alike each time: nobody
// asks ten thousand others for their delays to choose one.
type Choice struct {
	// By is Random or Latency.
	By By `plan:"kind" words:"random|latency" doc:"random: all alike; latency: in inverse proportion to the delay"`
	// Share is which share of the neighbours is drawn, rounded to the nearest number but at
	// least one. Either Share or Count is positive.
	Share float64 `plan:"share,omitzero" unit:"fraction" range:">0%..100%" either:"share|count" doc:"share of the neighbours that are chosen, rounded to the nearest number, at least one"`
	// Count is how many are drawn, all if there are fewer.
	Count int `plan:"count,omitzero" range:"1.." either:"share|count" doc:"neighbours that are chosen"`
	// Candidates is how many neighbours a choice by Latency is made among; 0 is DefaultCandidates.
	// Where more than half as many are to be chosen, it is twice those.
	Candidates int `plan:"candidates,omitzero" range:"1.." with:"kind=latency" doc:"neighbours, drawn alike, whose delays are looked at; at least twice those that are chosen; default: 128"`
	// Floor, from 0 to 1, bounds the weights of Latency from below: none is less than Floor times
	// the mean weight of all candidates, so that far ones are heard of at times. With 0 the
	// weights are what they are, with 1 neighbours that are nearer than most are
	// preferred and the rest are equal.
	Floor float64 `plan:"floor,omitzero" unit:"fraction" with:"kind=latency" doc:"no candidate counts for less than this times the mean"`
}

// size is how many of n neighbours are drawn.
func (c Choice) size(n int) int {
	if c.Count > 0 {
		return min(c.Count, n)
	}
	return min(max(int(math.Round(c.Share*float64(n))), 1), n)
}

// candidates is how many of n neighbours a choice of k by Latency is made among.
func (c Choice) candidates(n, k int) int {
	if c.Candidates == 0 {
		c.Candidates = DefaultCandidates
	}
	return min(max(c.Candidates, 2*k), n)
}

// shortest is what shorter delays count as, so that a delay of 0 has a weight.
const shortest = time.Microsecond

// chooser draws the neighbours of one peer.
type chooser struct {
	env    actors.Env
	choice Choice
	chosen []int

	view       uint64  // number of the view that neighbours are of
	neighbours []int32 // where the topology is not complete

	places   []int // among the neighbours, in the order in which they were drawn
	taken    set   // the same, where they are many
	weighted []weighted
}

// few is up to how many places are looked through one by one.
const few = 128

// weighted is a neighbour with its weight, and its key, by which it is drawn.
type weighted struct {
	node        int
	weight, key float64
}

// draw returns the positions of the neighbours to exchange with now, in the order in which
// they were drawn. They are valid until the next call.
func (c *chooser) draw() []int {
	n := c.look()
	c.chosen = c.chosen[:0]
	switch k := c.choice.size(n); {
	case n == 0:
	case c.choice.By == Latency:
		c.byLatency(n, k)
	default:
		for _, i := range c.atRandom(n, k) {
			c.chosen = append(c.chosen, c.neighbour(i))
		}
	}
	return c.chosen
}

// look returns the number of neighbours now.
func (c *chooser) look() int {
	view := c.env.View()
	if view.Complete() {
		return view.Degree(c.env.Node())
	}
	if c.view != view.Number {
		c.view, c.neighbours = view.Number, c.neighbours[:0]
		for _, i := range view.Potential(c.env.Node()) {
			if view.Members[i].Present {
				c.neighbours = append(c.neighbours, i)
			}
		}
	}
	return len(c.neighbours)
}

func (c *chooser) neighbour(i int) int {
	if view := c.env.View(); view.Complete() {
		return view.Neighbour(c.env.Node(), i)
	}
	return int(c.neighbours[i])
}

// atRandom draws k of n places, and another one for each that is taken: fewer than 2k draws are
// expected up to half of the neighbours, and about n·ln n for all of them.
func (c *chooser) atRandom(n, k int) []int {
	random := c.env.Rand("choice")
	c.places = c.places[:0]
	for len(c.places) < k {
		i := random.IntN(n)
		switch {
		case k <= few:
			if slices.Contains(c.places, i) {
				continue
			}
		case c.taken.has(i):
			continue
		default:
			c.taken.add(i)
		}
		c.places = append(c.places, i)
	}
	clear(c.taken.words)
	c.taken.count = 0
	return c.places
}

// byLatency draws k of n by weights one after the other, all at once: by the k least of independent
// exponentially distributed keys of rates wᵢ (P. Efraimidis and P. Spirakis, "Weighted random
// sampling with a reservoir", Information Processing Letters 97(5), 2006, in logarithms).
func (c *chooser) byLatency(n, k int) {
	sum, m := 0.0, c.choice.candidates(n, k)
	c.weighted = c.weighted[:0]
	if m < n {
		for _, i := range c.atRandom(n, m) {
			sum += c.weigh(c.neighbour(i))
		}
	} else {
		for i := range n {
			sum += c.weigh(c.neighbour(i))
		}
	}
	least := c.choice.Floor * sum / float64(m)
	random := c.env.Rand("choice")
	for i := range c.weighted {
		c.weighted[i].key = random.ExpFloat64() / max(c.weighted[i].weight, least)
	}
	slices.SortFunc(c.weighted, func(a, b weighted) int { return cmp.Or(cmp.Compare(a.key, b.key), a.node-b.node) })
	for _, w := range c.weighted[:k] {
		c.chosen = append(c.chosen, w.node)
	}
}

// weigh makes a node a candidate, and returns its weight.
func (c *chooser) weigh(node int) float64 {
	weight := 1 / max(c.env.Latency(node), shortest).Seconds()
	c.weighted = append(c.weighted, weighted{node: node, weight: weight})
	return weight
}
