package compress_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }

// vector draws values of very different sizes, with zeros and equal ones.
func vector(r *rand.Rand, d int) []float32 {
	x := make([]float32, d)
	tail := 4 * r.Float64()
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Exp(tail*r.NormFloat64()))
		if r.IntN(8) == 0 {
			x[i] = float32(r.IntN(3) - 1)
		}
	}
	return x
}

func square(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

func distance(x, y []float32) (sum float64) {
	for i, v := range x {
		sum += (float64(v) - float64(y[i])) * (float64(v) - float64(y[i]))
	}
	return sum
}

// through is what comes out at the other end.
func through(tb testing.TB, c compress.Chain, x []float32, f compress.Feedback, r *rand.Rand) []float32 {
	tb.Helper()
	e := c.NewEncoder(len(x), nil, f, r)
	code, y := make([]float32, e.Size()), make([]float32, len(x))
	e.Encode(code, x)
	if err := c.NewDecoder(len(x), nil, f).Decode(y, code); err != nil {
		tb.Fatal(err)
	}
	return y
}

// The bound on what a contractive operator loses holds for each of 10,000 vectors.
func TestContractiveOperatorsLoseNoMoreThanTheirBound(t *testing.T) {
	for i := range 10_000 {
		r := random(uint64(i))
		x := vector(r, 1+r.IntN(200))
		d := float64(len(x))
		share := []float64{0.01, 0.1, 0.5, 1}[i%4]
		k := math.Min(math.Max(math.Ceil(share*d), 1), d)
		one := 0.0
		for _, v := range x {
			one += math.Abs(float64(v))
		}
		for _, c := range []struct {
			chain compress.Chain
			delta float64
		}{
			{compress.Chain{compress.TopK{Share: share}}, k / d},
			{compress.Chain{compress.Sign{}}, one * one / (d * square(x))},
		} {
			y := through(t, c.chain, x, compress.EF, r)
			if square(x) == 0 {
				continue
			}
			if lost := distance(x, y); lost > (1-c.delta)*square(x)*(1+1e-5)+1e-12 {
				t.Fatalf("%T of %v loses %g of %g, δ is %g", c.chain[0], x, lost, square(x), c.delta)
			}
		}
	}
}

// unbiased is an operator with its ω for a vector and, by its definition, the variance there.
type unbiased struct {
	chain    compress.Chain
	omega    func(x []float32) float64
	variance func(x []float32) float64
}

// rounded is the variance of rounding to either neighbour among the multiples of a unit.
func rounded(x []float32, unit float64) (sum float64) {
	for _, v := range x {
		if unit > 0 {
			_, p := math.Modf(math.Abs(float64(v)) / unit)
			sum += unit * unit * p * (1 - p)
		}
	}
	return sum
}

// most is the largest absolute value.
func most(x []float32) (size float64) {
	for _, v := range x {
		size = math.Max(size, math.Abs(float64(v)))
	}
	return size
}

func unbiasedOperators() []unbiased {
	const levels, block = 7, 32
	ternary := func(x []float32) (sum float64) {
		for _, v := range x {
			sum += math.Abs(float64(v)) * (most(x) - math.Abs(float64(v)))
		}
		return sum
	}
	natural := func(x []float32) (sum float64) {
		for _, v := range x {
			if v != 0 {
				size := math.Abs(float64(v))
				low := math.Exp2(math.Floor(math.Log2(size)))
				sum += (size - low) * (2*low - size)
			}
		}
		return sum
	}
	kept := func(x []float32) float64 { return float64(len(x))/math.Ceil(float64(len(x))/4) - 1 }
	return []unbiased{
		{compress.Chain{compress.RandomK{Share: 0.25}}, kept, func(x []float32) float64 { return kept(x) * square(x) }},
		{compress.Chain{compress.QSGD{Levels: levels}}, func(x []float32) float64 {
			d := float64(len(x))
			return math.Min(d/levels/levels, math.Sqrt(d)/levels)
		}, func(x []float32) float64 { return rounded(x, math.Sqrt(square(x))/levels) }},
		{compress.Chain{compress.Natural{}}, func([]float32) float64 { return 1.0 / 8 }, natural},
		{compress.Chain{compress.Ternary{}}, func(x []float32) float64 { return math.Sqrt(float64(len(x))) }, ternary},
		{compress.Chain{compress.Blocks{Bits: 4, Block: block, Rounding: compress.Stochastic}},
			func(x []float32) float64 { return min(block, float64(len(x))) / 49 / 4 },
			func(x []float32) (sum float64) {
				for part := range slices.Chunk(x, block) {
					sum += rounded(part, most(part)/7)
				}
				return sum
			}},
	}
}

// average is a mean and how far it is off, in standard errors, if it is to be 0.
type average struct{ n, sum, squares float64 }

func (a *average) add(v float64) { a.n, a.sum, a.squares = a.n+1, a.sum+v, a.squares+v*v }

func (a *average) errors() float64 { return math.Abs(a.sum) / math.Sqrt(a.squares+1e-30) }

// Of an unbiased operator the variance by its definition is within ω for each of 10,000 vectors,
// and codes of all of them have that variance and no bias: neither along the vector or a half of
// it, nor across it.
func TestUnbiasedOperatorsAreRightOnTheAverageWithinTheirVariance(t *testing.T) {
	for _, c := range unbiasedOperators() {
		var spread average
		var bias [3]average
		for i := range 30_000 { // each vector thrice
			r := random(uint64(i / 3))
			x := vector(r, 1+r.IntN(120))
			size, variance := square(x), c.variance(x)
			if variance > c.omega(x)*size*(1+1e-6) {
				t.Fatalf("%T of %v has the variance %g, ω is %g", c.chain[0], x, variance, c.omega(x))
			}
			y := through(t, c.chain, x, compress.None, random(uint64(i+50_000)))
			if variance <= 1e-6*size {
				continue
			}
			var sums [3]float64
			for j, v := range x {
				off := float64(y[j]) - float64(v)
				sums[0] += off * float64(v) / size
				sums[1] += off * float64(v) / size * float64(1-2*(2*j/len(x)))
				sums[2] += off / math.Sqrt(variance) * float64(1-2*(j%2))
			}
			for k, sum := range sums {
				bias[k].add(sum)
			}
			spread.add(distance(x, y)/variance - 1)
		}
		for _, a := range append(bias[:], spread) {
			if t.Logf("%T: %.1f standard errors", c.chain[0], a.errors()); a.n < 15_000 || !(a.errors() <= 4) {
				t.Errorf("%T: a mean over %g codes is off by %.1f standard errors", c.chain[0], a.n, a.errors())
			}
		}
	}
}

func TestCodesHaveTheBitsOfTheFormula(t *testing.T) {
	logarithm := func(d int) float64 { return math.Ceil(math.Log2(float64(d))) }
	for _, d := range []int{2, 5, 31, 32, 33, 1000, 21_840} {
		n := float64(d)
		k := math.Ceil(n / 100)
		for _, c := range []struct {
			chain compress.Chain
			bits  float64
		}{
			{nil, 32 * n},
			{compress.Chain{compress.TopK{Share: 0.01}}, k * (32 + logarithm(d))},
			{compress.Chain{compress.RandomK{Share: 0.01}}, 32*k + 32},
			{compress.Chain{compress.QSGD{Levels: 15}}, 32 + n*(4+1)},
			{compress.Chain{compress.Ternary{}}, 32 + 32*math.Ceil(n/20)},
			{compress.Chain{compress.Sign{}}, n + 32},
			{compress.Chain{compress.Natural{}}, 9 * n},
			{compress.Chain{compress.Float16{}}, 16 * n},
			{compress.Chain{compress.BFloat16{}}, 16 * n},
			{compress.Chain{compress.Int(8)}, 8*n + 32*math.Ceil(n/256)},
			{compress.Chain{compress.Int(4)}, 4*n + 32*math.Ceil(n/256)},
			{compress.Chain{compress.TopK{Share: 0.01}, compress.Int(4)}, k*(4+logarithm(d)) + 32*math.Ceil(k/256)},
		} {
			size := c.chain.NewEncoder(d, nil, compress.None, random(1)).Size()
			// Whole words: at most one begun for each of indices and values.
			if got := float64(32 * size); got < c.bits || got >= c.bits+64 {
				t.Errorf("%T%+v of %d values: %g bits, the formula says %g", c.chain, c.chain, d, got, c.bits)
			}
		}
	}
}

func TestPowerSGDWritesTheFactorsOfEachMatrix(t *testing.T) {
	model, err := nn.NewMLP([]int{93, 21, 5}, nn.ReLU)
	if err != nil {
		t.Fatal(err)
	}
	c := compress.Chain{compress.PowerSGD{Rank: 2}}
	e := c.NewEncoder(model.Params(), model.Tensors(), compress.EF, random(1))
	if want := 2*(93+21) + 21 + 2*(21+5) + 5; e.Size() != want {
		t.Errorf("a code has %d words, want %d", e.Size(), want)
	}
	// A gradient whose matrices have rank 2 comes through whole, up to rounding.
	r, x := random(2), make([]float32, model.Params())
	for _, tensor := range model.Tensors() {
		n := tensor.Shape[0]
		m := 1
		if len(tensor.Shape) > 1 {
			m = tensor.Shape[1]
		}
		for range 2 {
			left, right := vector(r, n), vector(r, m)
			for i := range n {
				nn.AddScaled(x[tensor.Offset+i*m:][:m], left[i], right)
			}
		}
	}
	dec := c.NewDecoder(model.Params(), model.Tensors(), compress.EF)
	code, y := make([]float32, e.Size()), make([]float32, len(x))
	e.Encode(code, x)
	if err := dec.Decode(y, code); err != nil {
		t.Fatal(err)
	}
	if off := distance(x, y) / square(x); off > 1e-9 {
		t.Errorf("matrices of rank 2 come through with a relative error of %g", off)
	}
}

// What was sent and what is still to be sent are the sum of what was given, exactly for integers,
// of all operators that make integers of integers.
func TestErrorFeedbackLosesNothing(t *testing.T) {
	for _, c := range []compress.Chain{
		{compress.TopK{Share: 0.1}}, {compress.RandomK{Share: 0.1}}, {compress.Float16{}}, {compress.BFloat16{}},
		{compress.Natural{}}, {compress.TopK{Share: 0.1}, compress.BFloat16{}},
		{compress.RandomK{Share: 0.2}, compress.Natural{}},
	} {
		for seed := range uint64(100) {
			r := random(seed)
			d := 1 + r.IntN(100)
			e, receiver := c.NewEncoder(d, nil, compress.EF, r), c.NewDecoder(d, nil, compress.EF)
			given, sent := make([]float32, d), make([]float32, d)
			code, x, y := make([]float32, e.Size()), make([]float32, d), make([]float32, d)
			for range 50 {
				for i := range x {
					x[i] = float32(r.IntN(2001) - 1000)
					given[i] += x[i]
				}
				e.Encode(code, x)
				if err := receiver.Decode(y, code); err != nil {
					t.Fatal(err)
				}
				for i := range sent {
					sent[i] += y[i]
				}
			}
			for i := range sent {
				if sent[i]+e.Memory()[i] != given[i] {
					t.Fatalf("%v: value %d: %v sent and %v left of %v", c, i, sent[i], e.Memory()[i], given[i])
				}
			}
		}
	}
}

// With EF21 both ends have the same, and it approaches a vector that is sent again and again.
func TestEF21ApproachesWhatDoesNotChange(t *testing.T) {
	for _, c := range []compress.Chain{
		{compress.TopK{Share: 0.05}}, {compress.Sign{}}, {compress.Int(4)}, {compress.RandomK{Share: 0.2}},
		{compress.TopK{Share: 0.1}, compress.Int(8)},
	} {
		r := random(3)
		x := vector(r, 300)
		e, receiver := c.NewEncoder(len(x), nil, compress.EF21, r), c.NewDecoder(len(x), nil, compress.EF21)
		code, y := make([]float32, e.Size()), make([]float32, len(x))
		for range 400 {
			e.Encode(code, x)
			if err := receiver.Decode(y, code); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(y, e.Memory()) || !slices.Equal(y, receiver.Memory()) {
				t.Fatalf("%T: the ends differ", c[0])
			}
		}
		if off := distance(x, y) / square(x); off > 1e-3 {
			t.Errorf("%T: a relative error of %g after 400 codes", c[0], off)
		}
	}
}

func TestAllValuesOrVeryManyLevelsAreNoCompression(t *testing.T) {
	for seed := range uint64(50) {
		r := random(seed)
		x := vector(r, 1+r.IntN(300))
		for _, c := range []compress.Chain{nil, {compress.TopK{Share: 1}}, {compress.RandomK{Share: 1}}} {
			if y := through(t, c, x, compress.None, r); !slices.Equal(x, y) {
				t.Fatalf("%v: %v came through as %v", c, x, y)
			}
		}
		y := through(t, compress.Chain{compress.QSGD{Levels: 65535}}, x, compress.None, r)
		if off := distance(x, y) / (square(x) + 1e-30); off > float64(len(x))/65535/65535 {
			t.Errorf("QSGD of 65,535 levels is off by %g", off)
		}
	}
}

// Largest is a dumb second implementation: sort, and keep the first of equal ones.
func TestTopKKeepsTheLargest(t *testing.T) {
	for seed := range uint64(300) {
		r := random(seed)
		x := vector(r, 1+r.IntN(80))
		share := r.Float64()*0.99 + 0.01
		order := make([]int, len(x))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int {
			a, b := math.Abs(float64(x[i])), math.Abs(float64(x[j]))
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
		want := make([]float32, len(x))
		for _, i := range order[:max(1, int(math.Ceil(share*float64(len(x))-1e-9)))] {
			want[i] = x[i]
		}
		got := through(t, compress.Chain{compress.TopK{Share: share}}, x, compress.None, r)
		if !slices.Equal(got, want) {
			t.Fatalf("%g of %v: %v, want %v", share, x, got, want)
		}
	}
}

// Values become the nearest of the numbers that a format has, as a search through all of them says.
func TestHalvesAreTheNearest(t *testing.T) {
	for name, c := range map[string]struct {
		chain    compress.Chain
		exponent int
		mantissa int
		most     float64
	}{
		"float16":  {compress.Chain{compress.Float16{}}, 5, 10, 65504},
		"bfloat16": {compress.Chain{compress.BFloat16{}}, 8, 7, math.Inf(1)},
	} {
		r := random(9)
		bias := 1<<(c.exponent-1) - 1
		for range 20_000 {
			v := math.Float32frombits(r.Uint32())
			if r.IntN(2) == 0 {
				v = float32(r.NormFloat64() * math.Exp2(float64(r.IntN(40)-25)))
			}
			if v != v {
				continue
			}
			// The distance of neighbours there, as a power of two.
			_, e := math.Frexp(float64(v))
			unit := math.Exp2(float64(max(e-1, 1-bias) - c.mantissa))
			want := math.Copysign(math.Min(math.RoundToEven(math.Abs(float64(v))/unit)*unit, c.most), float64(v))
			if name == "bfloat16" {
				want = float64(float32(want))
			}
			got := through(t, c.chain, []float32{v, v}, compress.None, r)
			if float64(got[0]) != want || got[1] != got[0] {
				t.Fatalf("%s: %g became %v, want %g", name, v, got, want)
			}
		}
	}
	y := through(t, compress.Chain{compress.Float16{}}, []float32{float32(math.NaN())}, compress.None, random(1))
	if y[0] == y[0] {
		t.Errorf("NaN became %v", y[0])
	}
}

func TestBlocksAreOffByHalfAScaleAtMost(t *testing.T) {
	for seed := range uint64(300) {
		r := random(seed)
		o := compress.Blocks{Bits: 2 + r.IntN(7), Block: 1 + r.IntN(40), Rounding: compress.Nearest}
		x := vector(r, 1+r.IntN(200))
		y := through(t, compress.Chain{o}, x, compress.None, r)
		for b := 0; b < len(x); b += o.Block {
			block := x[b:min(b+o.Block, len(x))]
			most := 0.0
			for _, v := range block {
				most = math.Max(most, math.Abs(float64(v)))
			}
			scale := most / float64(int(1)<<(o.Bits-1)-1)
			for i, v := range block {
				if off := math.Abs(float64(v) - float64(y[b+i])); off > scale/2*(1+1e-5) {
					t.Fatalf("%+v: %v became %v, the scale is %g", o, v, y[b+i], scale)
				}
			}
		}
	}
}

func TestChainsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, c := range map[string]compress.Chain{
		"what keeps a part of the values comes first": {compress.TopK{Share: 0.1}, compress.RandomK{Share: 0.1}},
		"what writes values with fewer bits comes":    {compress.Sign{}, compress.Int(4)},
		"what keeps a part":                           {compress.Sign{}, compress.TopK{Share: 0.1}},
		"[0]: Share is 0: must be more than 0":        {compress.TopK{}},
		"[0]: Bits is 9":                              {compress.Int(9)},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", c, err, want)
		}
	}
}

// chains are all operators, alone and together.
func chains() (list []compress.Chain) {
	reducers := []compress.Operator{nil, compress.TopK{Share: 0.2}, compress.RandomK{Share: 0.2},
		compress.PowerSGD{Rank: 2}}
	quantisers := []compress.Operator{nil, compress.Float16{}, compress.BFloat16{}, compress.Int(8),
		compress.Blocks{Bits: 4, Block: 16, Rounding: compress.Stochastic}, compress.QSGD{Levels: 15},
		compress.Ternary{Clip: 2.5}, compress.Sign{}, compress.Natural{}}
	for _, r := range reducers {
		for _, q := range quantisers {
			var c compress.Chain
			for _, o := range []compress.Operator{r, q} {
				if o != nil {
					c = append(c, o)
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// FuzzDecode gives decoders words that nobody has written: they refuse them, or take them for what
// they are.
func FuzzDecode(f *testing.F) {
	f.Add(uint64(1), 7)
	f.Fuzz(func(t *testing.T, seed uint64, d int) {
		d = 1 + (d&math.MaxInt)%100
		r := random(seed)
		tensors := []nn.Tensor{{Shape: []int{d}}}
		if d%6 == 0 {
			tensors[0].Shape = []int{6, d / 6}
		}
		for _, c := range chains() {
			for _, feedback := range []compress.Feedback{compress.None, compress.EF, compress.EF21} {
				e, receiver := c.NewEncoder(d, tensors, feedback, r), c.NewDecoder(d, tensors, feedback)
				code, y := make([]float32, e.Size()), make([]float32, d)
				e.Encode(code, vector(r, d))
				if err := receiver.Decode(y, code); err != nil {
					t.Fatalf("%v: its own code: %v", c, err)
				}
				for i := range code {
					code[i] = math.Float32frombits(r.Uint32())
				}
				_ = receiver.Decode(y, code)
				if err := receiver.Decode(y, code[:len(code)-1]); err == nil {
					t.Errorf("%v: a code without its end was taken", c)
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	model, err := nn.NewMLP([]int{499, 490, 10}, nn.ReLU)
	if err != nil {
		b.Fatal(err)
	}
	x := vector(random(1), model.Params())
	for _, c := range []compress.Chain{
		{compress.Float16{}}, {compress.Int(8)}, {compress.Int(4)}, {compress.QSGD{Levels: 15}}, {compress.Ternary{}},
		{compress.Sign{}}, {compress.Natural{}}, {compress.TopK{Share: 0.01}}, {compress.RandomK{Share: 0.01}},
		{compress.PowerSGD{Rank: 2}},
	} {
		b.Run(strings.TrimPrefix(fmt.Sprintf("%T", c[0]), "compress."), func(b *testing.B) {
			e := c.NewEncoder(len(x), model.Tensors(), compress.EF, random(1))
			code := make([]float32, e.Size())
			b.SetBytes(int64(4 * len(x)))
			b.ReportAllocs()
			for b.Loop() {
				e.Encode(code, x)
			}
		})
	}
}

// Indices come back as they were written, in ⌈log₂ d⌉ bits each; words that nobody has written so
// are refused.
func TestIndicesTravelInAsFewBitsAsTheyNeed(t *testing.T) {
	for seed := range 300 {
		r := random(uint64(seed))
		d := 1 + r.IntN(3000)
		var indices []int32
		for i := range d {
			if r.IntN(1+seed%7) == 0 {
				indices = append(indices, int32(i))
			}
		}
		n := len(indices)
		want := math.Ceil(float64(n) * math.Ceil(math.Log2(float64(d))) / 32)
		if compress.IndexWords(n, d) != int(want) {
			t.Fatalf("%d of %d indices take %d words, want %v", n, d, compress.IndexWords(n, d), want)
		}
		words, got := make([]float32, compress.IndexWords(n, d)), make([]int32, n)
		compress.PackIndices(words, indices, d)
		if err := compress.UnpackIndices(got, words, d); err != nil || !slices.Equal(got, indices) {
			t.Fatalf("%v of %d became %v (%v)", indices, d, got, err)
		}
		if compress.UnpackIndices(got, append(words, 0), d) == nil {
			t.Fatal("a word too many is taken")
		}
		if n > 1 {
			got[0], got[1] = got[1], got[0]
			compress.PackIndices(words, got, d)
			if compress.UnpackIndices(got, words, d) == nil {
				t.Fatal("indices that go back are taken")
			}
		}
	}
}
