package compress

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// QSGD writes each value as its sign and one of Levels + 1 levels from 0 to the norm of the vector,
// rounded to either neighbour so that the mean is exact: 32 + d·(⌈log₂(Levels + 1)⌉ + 1) bits. It
// is unbiased, with ω ≤ min(d/Levels², √d/Levels) (D. Alistarh et al., "QSGD:
// Communication-Efficient SGD via Gradient Quantization and Encoding", NIPS 2017, section 3.1).
type QSGD struct {
	Levels int `plan:"levels" range:"1..65535" doc:"above 0; one less than a power of two wastes no bits"`
}

// Validate returns an error about levels out of range.
func (o QSGD) Validate() error { return field.Check(o) }
func (QSGD) operator()         {}

func (o QSGD) width() uint     { return uint(bits.Len(uint(o.Levels))) + 1 }
func (o QSGD) words(n int) int { return 1 + wordsOf(n, o.width()) }

func (o QSGD) encode(words, x []float32, r *rand.Rand) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	norm := float32(math.Sqrt(sum))
	words[0] = norm
	w := writer{words: words[1:]}
	for _, v := range x {
		level := uint32(0)
		if norm > 0 && norm <= math.MaxFloat32 {
			size := math.Abs(float64(v)) / float64(norm) * float64(o.Levels)
			level = min(uint32(size+r.Float64()), uint32(o.Levels))
		}
		w.put(level<<1|math.Float32bits(v)>>31, o.width())
	}
	w.end()
}

func (o QSGD) decode(x, words []float32) error {
	r := reader{words: words[1:]}
	for i := range x {
		v := r.get(o.width())
		if v>>1 > uint32(o.Levels) {
			return errCode
		}
		x[i] = signed(words[0]*float32(v>>1)/float32(o.Levels), v&1)
	}
	return nil
}

// signed gives a value that is not negative a sign.
func signed(v float32, sign uint32) float32 {
	return math.Float32frombits(math.Float32bits(v) | sign<<31)
}

// Ternary writes each value as −1, 0 or 1 times the largest, so that the mean is exact, 20 of them
// a word: 32 + 1.6·d bits. Before, values are clipped at Clip standard deviations. It is unbiased
// but for that (W. Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed
// Deep Learning", NIPS 2017, section 3).
type Ternary struct {
	Clip float64 `plan:"clip" range:"0.." doc:"standard deviations at which values are clipped before; 0 for not at all"`
}

// Validate returns an error about a negative clip.
func (o Ternary) Validate() error { return field.Check(o) }
func (Ternary) operator()         {}

const trits = 20 // 3²⁰ < 2³²

func (Ternary) words(n int) int { return 1 + (n+trits-1)/trits }

func (o Ternary) encode(words, x []float32, r *rand.Rand) {
	most := o.most(x)
	words[0] = most
	for i := range words[1:] {
		word, digit := uint32(0), uint32(1)
		for _, v := range x[i*trits : min((i+1)*trits, len(x))] {
			t := uint32(1)
			if most > 0 && most <= math.MaxFloat32 && r.Float64()*float64(most) < math.Abs(float64(v)) {
				t = 2 - 2*(math.Float32bits(v)>>31)
			}
			word += t * digit
			digit *= 3
		}
		words[1+i] = math.Float32frombits(word)
	}
}

// most is the largest absolute value after clipping.
func (o Ternary) most(x []float32) float32 {
	most := largest(x)
	if o.Clip == 0 {
		return most
	}
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	mean := sum / float64(len(x))
	return min(most, float32(o.Clip*math.Sqrt(max(squares/float64(len(x))-mean*mean, 0))))
}

func (Ternary) decode(x, words []float32) error {
	for i := range words[1:] {
		word := math.Float32bits(words[1+i])
		part := x[i*trits : min((i+1)*trits, len(x))]
		for j := range part {
			part[j] = words[0] * float32(int32(word%3)-1)
			word /= 3
		}
		if word != 0 {
			return errCode
		}
	}
	return nil
}

// Sign writes the sign of each value, times the mean absolute value: 32 + d bits. It is biased and
// contractive, with δ = ‖x‖₁²/(d·‖x‖₂²) (S. P. Karimireddy et al., "Error Feedback Fixes SignSGD
// and other Gradient Compression Schemes", ICML 2019, section 4).
type Sign struct{}

// Validate returns nil.
func (Sign) Validate() error { return nil }
func (Sign) operator()       {}
func (Sign) words(n int) int { return 1 + wordsOf(n, 1) }

func (Sign) encode(words, x []float32, _ *rand.Rand) {
	sum := 0.0
	w := writer{words: words[1:]}
	for _, v := range x {
		sum += math.Abs(float64(v))
		w.put(math.Float32bits(v)>>31, 1)
	}
	w.end()
	words[0] = float32(sum / float64(len(x)))
}

func (Sign) decode(x, words []float32) error {
	r := reader{words: words[1:]}
	for i := range x {
		x[i] = signed(words[0], r.get(1))
	}
	return nil
}

// Natural writes the sign and the exponent of each value, rounded to either power of two so that
// the mean is exact: 9·d bits. It is unbiased, with ω = 1/8 (S. Horváth et al., "Natural
// Compression for Distributed Deep Learning", MSML 2022, theorem 1). Values below the smallest
// normal number become 0 or that.
type Natural struct{}

// Validate returns nil.
func (Natural) Validate() error { return nil }
func (Natural) operator()       {}
func (Natural) words(n int) int { return wordsOf(n, 9) }

func (Natural) encode(words, x []float32, r *rand.Rand) {
	const mantissa = 1<<23 - 1
	w := writer{words: words}
	for _, v := range x {
		b := math.Float32bits(v)
		exponent := b >> 23 & 0xff
		if exponent < 0xfe && r.Uint32()&mantissa < b&mantissa {
			exponent++
		}
		w.put(exponent<<1|b>>31, 9)
	}
	w.end()
}

func (Natural) decode(x, words []float32) error {
	r := reader{words: words}
	for i := range x {
		v := r.get(9)
		x[i] = math.Float32frombits(v>>1<<23 | v&1<<31)
	}
	return nil
}
