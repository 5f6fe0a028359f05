package compress

import (
	"math"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Float16 writes values as IEEE 754 half precision, rounded to the nearest, ties to even: 16 bits
// each. Values beyond ±65,504 become that.
type Float16 struct{}

// BFloat16 writes the upper half of a float32, rounded to the nearest, ties to even: 16 bits each.
type BFloat16 struct{}

// Validate returns nil.
func (Float16) Validate() error { return nil }
func (Float16) operator()       {}
func (Float16) words(n int) int { return wordsOf(n, 16) }

func (Float16) encode(words, x []float32, _ *rand.Rand) { write16(words, x, half) }
func (Float16) decode(x, words []float32) error         { read16(x, words, single); return nil }

// Validate returns nil.
func (BFloat16) Validate() error { return nil }
func (BFloat16) operator()       {}
func (BFloat16) words(n int) int { return wordsOf(n, 16) }

func (BFloat16) encode(words, x []float32, _ *rand.Rand) { write16(words, x, brain) }

func (BFloat16) decode(x, words []float32) error {
	read16(x, words, func(h uint32) float32 { return math.Float32frombits(h << 16) })
	return nil
}

func write16(words, x []float32, narrow func(float32) uint32) {
	for i := range words {
		w := narrow(x[2*i])
		if 2*i+1 < len(x) {
			w |= narrow(x[2*i+1]) << 16
		}
		words[i] = math.Float32frombits(w)
	}
}

func read16(x, words []float32, widen func(uint32) float32) {
	for i := range x {
		x[i] = widen(math.Float32bits(words[i/2]) >> (16 * (i % 2)) & 0xffff)
	}
}

// brain rounds to the upper half.
func brain(v float32) uint32 {
	b := math.Float32bits(v)
	if v != v {
		return b>>16 | 0x40
	}
	return (b + 0x7fff + b>>16&1) >> 16
}

// half rounds to half precision.
func half(v float32) uint32 {
	b := math.Float32bits(v)
	sign, size := b>>16&0x8000, b&^(1<<31)
	switch {
	case v != v:
		return sign | 0x7e00
	case size >= 0x477ff000: // rounds to more than the largest
		return sign | 0x7bff
	case size < 0x38800000: // below the smallest normal number, 2⁻¹⁴: a multiple of 2⁻²⁴
		return sign | uint32(math.RoundToEven(float64(math.Float32frombits(size))*(1<<24)))
	}
	return sign | ((size+0xfff+size>>13&1)>>13 - 0x1c000)
}

// single is a half as a float32, exactly.
func single(h uint32) float32 {
	sign, size := h&0x8000<<16, h&0x7fff
	switch {
	case size >= 0x7c00:
		return math.Float32frombits(sign | 0x7f800000 | size&0x3ff<<13)
	case size < 0x400:
		return math.Float32frombits(math.Float32bits(float32(size)/(1<<24)) | sign)
	}
	return math.Float32frombits(sign | (size<<13 + 0x38000000))
}

// Rounding says to which of its two neighbours a value is rounded.
type Rounding string

// The roundings.
const (
	// Nearest rounds to the nearer one, ties to even.
	Nearest Rounding = "nearest"
	// Stochastic rounds to either with the probability that makes the mean exact.
	Stochastic Rounding = "stochastic"
)

// Blocks writes values as integers of a few bits, times a scale for each block of them, which is
// the block's largest absolute value ÷ (2^(Bits−1) − 1): Bits each, and 32 a block. The error is at
// most half a scale, with stochastic rounding a scale, which then is unbiased (T. Dettmers, "8-Bit
// Approximations for Parallelism in Deep Learning", ICLR 2016).
type Blocks struct {
	Bits     int      `plan:"bits" range:"2..8" doc:"of each value"`
	Block    int      `plan:"block" range:"1..1048576" doc:"values that share a scale"`
	Rounding Rounding `plan:"rounding" words:"nearest|stochastic" doc:"stochastic is right on the average"`
}

// Int returns Blocks of a number of bits, 256 values each, to the nearest.
func Int(bits int) Blocks { return Blocks{Bits: bits, Block: 256, Rounding: Nearest} }

// Validate returns an error about the first setting that makes no sense.
func (o Blocks) Validate() error { return field.Check(o) }
func (Blocks) operator()         {}

func (o Blocks) words(n int) int { return (n+o.Block-1)/o.Block + wordsOf(n, uint(o.Bits)) }

func (o Blocks) encode(words, x []float32, r *rand.Rand) {
	blocks := (len(x) + o.Block - 1) / o.Block
	top := int32(1)<<(o.Bits-1) - 1
	w := writer{words: words[blocks:]}
	for b := range blocks {
		block := x[b*o.Block : min((b+1)*o.Block, len(x))]
		scale := largest(block) / float32(top)
		words[b] = scale
		inverse := 1 / scale
		for _, v := range block {
			q := int32(0)
			if scale > 0 && inverse <= math.MaxFloat32 {
				q = o.round(v*inverse, r)
			}
			w.put(uint32(min(max(q, -top), top)+top), uint(o.Bits))
		}
	}
	w.end()
}

func (o Blocks) round(v float32, r *rand.Rand) int32 {
	if o.Rounding == Nearest {
		return int32(math.RoundToEven(float64(v)))
	}
	return int32(math.Floor(float64(v) + r.Float64()))
}

func (o Blocks) decode(x, words []float32) error {
	blocks := (len(x) + o.Block - 1) / o.Block
	top := int32(1)<<(o.Bits-1) - 1
	r := reader{words: words[blocks:]}
	for b := range blocks {
		block := x[b*o.Block : min((b+1)*o.Block, len(x))]
		for i := range block {
			block[i] = words[b] * float32(int32(r.get(uint(o.Bits)))-top)
		}
	}
	return nil
}

// largest is the largest absolute value, NaN if there is one.
func largest(x []float32) float32 {
	most := uint32(0)
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(most)
}
