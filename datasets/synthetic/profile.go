package synthetic

import (
	"math"
	"math/rand/v2"
	"slices"
)

// profile is one kind of connection within a class, much as an attack type is
// within DoS.
type profile struct {
	class  int
	weight float64 // share among the profiles of its class
	symbols
	columns []column
}

// symbols are the distributions of the three symbolic columns.
type symbols struct{ protocol, service, flag mixture }

// mixture is a distribution over words: weights in proportion. A word "*"
// stands for all words of the vocabulary alike.
type mixture []weighted

type weighted struct {
	name   string
	weight float64
}

// column says how a numeric column is drawn. Columns that a profile does not
// list keep the value that quiet gives them.
type column struct {
	at numeric
	draw
}

// draw is a distribution: zero with probability zero, top with probability
// top, or else between low and high in units of step, rounded. Within a record
// all draws lean on one common number, so that its columns correlate.
type draw struct {
	low, high, step float64
	top, pTop       float64
	pZero           float64
	exponents       bool // low and high are powers of two, spread evenly
	copies          bool // repeats column from, jittered by up to high
	from            numeric
}

// rate is a share between low and high in hundredths, as the original has it.
func rate(low, high float64) draw { return draw{low: low, high: high, step: 0.01, top: 1} }

// number is a whole number between low and high.
func number(low, high float64) draw { return draw{low: low, high: high, step: 1} }

// size is a whole number between 2^low and 2^high, evenly by magnitude.
func size(low, high float64) draw {
	return draw{low: low, high: high, step: 1, exponents: true}
}

// event is 1 with probability p and else 0.
func event(p float64) draw { return draw{step: 1, top: 1, pTop: p} }

// like repeats an earlier column, off by up to jitter either way.
func like(from numeric, jitter float64) draw {
	return draw{copies: true, from: from, high: jitter, step: 0.01}
}

// orZero makes a draw 0 with probability p.
func (d draw) orZero(p float64) draw { d.pZero = p; return d }

// orTop makes a rate 1 with probability p.
func (d draw) orTop(p float64) draw { d.pTop = p; return d }

// value draws; lean in [0, 1) is the record's common number.
func (d *draw) value(rng *rand.Rand, lean float64, record *[numerics]float64) float64 {
	if d.copies {
		v := record[d.from] + either(rng, d.high)
		return rounded(min(max(v, 0), 1), d.step)
	}
	switch u := rng.Float64(); {
	case u < d.pZero:
		return 0
	case u < d.pZero+d.pTop:
		return d.top
	}
	t := float64(0.35*lean) + float64(0.65*rng.Float64())
	v := d.low + float64((d.high-d.low)*t)
	if d.exponents {
		whole := math.Floor(v)
		v = math.Ldexp(1+(v-whole), int(whole))
	}
	return rounded(v, d.step)
}

func rounded(v, step float64) float64 {
	if step == 1 {
		return math.Floor(v + 0.5)
	}
	return math.Floor(float64(v*100)+0.5) / 100
}

// choice draws an index with probability in proportion to its weight.
type choice struct {
	index []int32
	upTo  []float64 // cumulated weights
}

func (c *choice) add(index int, weight float64) {
	if n := len(c.upTo); n > 0 {
		weight += c.upTo[n-1]
	}
	c.index, c.upTo = append(c.index, int32(index)), append(c.upTo, weight)
}

func (c *choice) draw(rng *rand.Rand) int32 {
	last := len(c.upTo) - 1
	u := rng.Float64() * c.upTo[last]
	for i, upTo := range c.upTo[:last] {
		if u < upTo {
			return c.index[i]
		}
	}
	return c.index[last]
}

// over returns the choice of the mixture's words as indices of a vocabulary.
func (m mixture) over(words []string) choice {
	var c choice
	for _, w := range m {
		if w.name != "*" {
			c.add(word(words, w.name), w.weight)
			continue
		}
		for i := range words {
			c.add(i, w.weight/float64(len(words)))
		}
	}
	return c
}

// merged returns the columns of a profile in the order in which they are
// drawn: quiet's, replaced where the profile has its own, the profile's other
// ones, and those that follow others.
func merged(own []column) []column {
	all := slices.Concat(quiet, own, afterwards)
	kept := all[:0]
	for _, c := range all {
		if i := slices.IndexFunc(kept, func(k column) bool { return k.at == c.at }); i >= 0 {
			kept[i] = c
			continue
		}
		kept = append(kept, c)
	}
	return kept
}
