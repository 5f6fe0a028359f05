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
	// delay below a microsecond counts as one. It looks at all neighbours each time.
	Latency By = "latency"
)

// Choice says which of the neighbours that are present a peer exchanges models with. They are
// drawn without replacement: of those that are left, the next one is i with probability
// wᵢ/Σwⱼ, where the weights w are all equal for Random.
type Choice struct {
	// By is Random or Latency.
	By By `plan:"kind" words:"random|latency" doc:"random: all alike; latency: near ones more often"`
	// Share is which share of the neighbours is drawn, rounded to the nearest number but at
	// least one. Either Share or Count is positive.
	Share float64 `plan:"share,omitzero" unit:"fraction" range:">0%..100%" either:"share|count" doc:"of the neighbours that are chosen"`
	// Count is how many are drawn, all if there are fewer.
	Count int `plan:"count,omitzero" range:"1.." either:"share|count" doc:"neighbours that are chosen"`
	// Floor, from 0 to 1, bounds the weights of Latency from below: none is less than Floor times
	// the mean weight of all neighbours, so that far ones are heard of at times. With 0 the
	// weights are what they are, with 1 neighbours that are nearer than most are
	// preferred and the rest are equal.
	Floor float64 `plan:"floor,omitzero" unit:"fraction" with:"kind=latency" doc:"no neighbour counts for less than this times the mean"`
}

// size is how many of n neighbours are drawn.
func (c Choice) size(n int) int {
	if c.Count > 0 {
		return min(c.Count, n)
	}
	return min(max(int(math.Round(c.Share*float64(n))), 1), n)
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

	taken    set // places among the neighbours
	weighted []weighted
}

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
		c.atRandom(n, k)
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
func (c *chooser) atRandom(n, k int) {
	random := c.env.Rand("choice")
	if k == 1 {
		c.chosen = append(c.chosen, c.neighbour(random.IntN(n)))
		return
	}
	for c.taken.count < k {
		i := random.IntN(n)
		if !c.taken.has(i) {
			c.taken.add(i)
			c.chosen = append(c.chosen, c.neighbour(i))
		}
	}
	clear(c.taken.words)
	c.taken.count = 0
}

// byLatency draws k of n by weights one after the other, all at once: by the k least of independent
// exponentially distributed keys of rates wᵢ (P. Efraimidis and P. Spirakis, "Weighted random
// sampling with a reservoir", Information Processing Letters 97(5), 2006, in logarithms).
func (c *chooser) byLatency(n, k int) {
	c.weighted = c.weighted[:0]
	sum := 0.0
	for i := range n {
		node := c.neighbour(i)
		weight := 1 / max(c.env.Latency(node), shortest).Seconds()
		c.weighted = append(c.weighted, weighted{node: node, weight: weight})
		sum += weight
	}
	least := c.choice.Floor * sum / float64(n)
	random := c.env.Rand("choice")
	for i := range c.weighted {
		c.weighted[i].key = random.ExpFloat64() / max(c.weighted[i].weight, least)
	}
	slices.SortFunc(c.weighted, func(a, b weighted) int { return cmp.Or(cmp.Compare(a.key, b.key), a.node-b.node) })
	for _, w := range c.weighted[:k] {
		c.chosen = append(c.chosen, w.node)
	}
}
