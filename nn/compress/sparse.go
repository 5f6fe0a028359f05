package compress

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
)

// TopK keeps the values that are largest by absolute value, of equal ones the first, with their
// indices: k·(32 + ⌈log₂ d⌉) bits. It is biased and contractive, with δ ≥ k/d (D. Alistarh et al.,
// "The Convergence of Sparsified Gradient Methods", NeurIPS 2018).
type TopK struct {
	Share float64 `plan:"share,required" unit:"fraction" range:">0%..100%" doc:"of the values that are kept"`
}

// Validate returns an error about a share out of range.
func (o TopK) Validate() error { return field.Check(o) }
func (TopK) operator()         {}

// count is how many of d values a share is, at least one.
func count(share float64, d int) int { return min(max(int(math.Ceil(share*float64(d)-1e-9)), 1), d) }

func (o TopK) reduction(d int, _ []nn.Tensor, _ bool) reduction {
	k := count(o.Share, d)
	return &topK{d: d, k: k, indices: make([]int32, k)}
}

type topK struct {
	d, k    int
	indices []int32
	buckets [1 << 11]int32
}

func (t *topK) sizes() (values, side int) { return t.k, IndexWords(t.k, t.d) }
func (t *topK) work() float64             { return 4 * float64(t.d) }

func (t *topK) reduce(values, side, x []float32, _ *rand.Rand) {
	least, equal := t.threshold(x)
	n := 0
	for i, v := range x {
		size := math.Float32bits(v) &^ (1 << 31)
		if size < least || size == least && equal == 0 {
			continue
		}
		if size == least {
			equal--
		}
		t.indices[n], values[n] = int32(i), v
		n++
	}
	PackIndices(side, t.indices, t.d)
}

// threshold returns the bits of the k-th largest absolute value, and how many values of that size
// are among the k largest. It sorts the bits into buckets by their highest digits, and those of the
// bucket in question by the next ones.
func (t *topK) threshold(x []float32) (least uint32, equal int) {
	left, known := t.k, uint32(0)
	for _, digit := range []struct{ shift, width uint }{{20, 11}, {9, 11}, {0, 9}} {
		clear(t.buckets[:])
		high := digit.shift + digit.width
		for _, v := range x {
			if size := math.Float32bits(v) &^ (1 << 31); size>>high == known {
				t.buckets[size>>digit.shift&(1<<digit.width-1)]++
			}
		}
		b := 1<<digit.width - 1
		for ; int(t.buckets[b]) < left; b-- {
			left -= int(t.buckets[b])
		}
		known = known<<digit.width | uint32(b)
	}
	return known, left
}

func (t *topK) expand(x, values, side []float32) error {
	if err := UnpackIndices(t.indices, side, t.d); err != nil {
		return err
	}
	clear(x)
	for n, i := range t.indices {
		x[i] = values[n]
	}
	return nil
}

// IndexWords is how many words n indices of a vector of d values take: ⌈log₂ d⌉ bits each.
func IndexWords(n, d int) int { return wordsOf(n, indexBits(d)) }

func indexBits(d int) uint { return uint(bits.Len(uint(d - 1))) }

// PackIndices writes indices of a vector of d values, ascending, into IndexWords words.
func PackIndices(words []float32, indices []int32, d int) {
	w := writer{words: words}
	for _, i := range indices {
		w.put(uint32(i), indexBits(d))
	}
	w.end()
}

// UnpackIndices reads as many indices as it is given room for out of IndexWords words. It returns
// an error about words that PackIndices has not written.
func UnpackIndices(indices []int32, words []float32, d int) error {
	if len(words) != IndexWords(len(indices), d) {
		return errCode
	}
	r := reader{words: words}
	before := -1
	for n := range indices {
		i := int(r.get(indexBits(d)))
		if i <= before || i >= d {
			return errCode
		}
		indices[n], before = int32(i), i
	}
	return nil
}

// RandomK keeps random values, whose indices both ends draw from a seed that is sent: 32·k + 32
// bits. Without feedback the values are multiplied by d/k, so that it is unbiased, with ω = d/k −
// 1; with feedback they are not, so that it is contractive, with δ = k/d (S. U. Stich et al.,
// "Sparsified SGD with Memory", NeurIPS 2018).
type RandomK struct {
	Share float64 `plan:"share,required" unit:"fraction" range:">0%..100%" doc:"of the values that are kept"`
}

// Validate returns an error about a share out of range.
func (o RandomK) Validate() error { return field.Check(o) }
func (RandomK) operator()         {}

func (o RandomK) reduction(d int, _ []nn.Tensor, scaled bool) reduction {
	r := &randomK{d: d, k: count(o.Share, d), scale: 1, chosen: make([]uint64, (d+63)/64)}
	r.random = rand.New(&r.source)
	if scaled {
		r.scale = float32(float64(d) / float64(r.k))
	}
	return r
}

type randomK struct {
	d, k   int
	scale  float32
	chosen []uint64 // bits
	source rand.PCG
	random *rand.Rand
}

func (t *randomK) sizes() (values, side int) { return t.k, 1 }
func (t *randomK) work() float64             { return 2 * float64(t.k) }

// draw chooses k of d indices by a seed, all sets alike (R. W. Floyd's algorithm).
func (t *randomK) draw(seed uint32) {
	clear(t.chosen)
	t.source.Seed(uint64(seed), 0x72616e646f6d6b)
	for j := t.d - t.k; j < t.d; j++ {
		i := t.random.IntN(j + 1)
		if t.chosen[i/64]>>(i%64)&1 == 1 {
			i = j
		}
		t.chosen[i/64] |= 1 << (i % 64)
	}
}

// each calls a function with the chosen indices, ascending.
func (t *randomK) each(do func(n, i int)) {
	n := 0
	for w, word := range t.chosen {
		for ; word != 0; word &= word - 1 {
			do(n, 64*w+bits.TrailingZeros64(word))
			n++
		}
	}
}

func (t *randomK) reduce(values, side, x []float32, r *rand.Rand) {
	seed := r.Uint32()
	side[0] = math.Float32frombits(seed)
	t.draw(seed)
	t.each(func(n, i int) { values[n] = x[i] * t.scale })
}

func (t *randomK) expand(x, values, side []float32) error {
	clear(x)
	t.draw(math.Float32bits(side[0]))
	t.each(func(n, i int) { x[i] = values[n] })
	return nil
}
