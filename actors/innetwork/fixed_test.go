package innetwork

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The largest integers of any number of workers add up to one of 32 bits, and twice as large ones
// would not.
func TestSumsOfIntegersCannotOverflow(t *testing.T) {
	most := float32(math.Nextafter32(8, 0)) // of all values below 2³
	for _, workers := range []int{1, 2, 3, 4, 5, 7, 8, 9, 1000, 1 << 16, 1<<20 + 1, math.MaxInt32 / 2, math.MaxInt32} {
		for _, v := range []float32{most, -most} {
			words := make([]float32, 1)
			fix(words, []float32{v}, peak([]float32{v}), workers)
			sum := int64(workers) * int64(integer(words[0]))
			if sum != int64(int32(sum)) || sum == math.MinInt32 {
				t.Errorf("%d times %v come to %d", workers, v, sum)
			}
			if doubled := 2 * int64(workers) << magnitude(workers); doubled <= math.MaxInt32 {
				t.Errorf("%d workers use %d of 31 bits", workers, magnitude(workers))
			}
		}
	}
}

// vector draws values of which some are much smaller than others.
func vector(rt *rapid.T, n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(math.Ldexp(rapid.Float64Range(-1, 1).Draw(rt, "mantissa"),
			rapid.IntRange(-60, 20).Draw(rt, "exponent")))
	}
	return values
}

// The mean of workers' values is that of exact arithmetic within half of 2^(e−h), and what a value
// of a tensor can hold.
func TestMeanIsExactWithinTheResolution(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers, n := rapid.IntRange(1, 40).Draw(rt, "workers"), rapid.IntRange(1, 5).Draw(rt, "values")
		exact, sum, common := make([]big.Float, n), make([]float32, n), uint64(0)
		vectors := make([][]float32, workers)
		for w := range vectors {
			vectors[w] = vector(rt, n)
			common = max(common, peak(vectors[w]))
		}
		greatest := 0.0
		for _, v := range vectors {
			words := make([]float32, n)
			fix(words, v, common, workers)
			for i := range sum {
				sum[i] = word(integer(sum[i]) + integer(words[i]))
				exact[i].SetPrec(300).Add(&exact[i], big.NewFloat(float64(v[i])))
				greatest = max(greatest, math.Abs(float64(v[i])))
			}
		}
		means := make([]float32, n)
		float(means, sum, common, workers, float64(workers))
		// 2^e is above the greatest and no more than twice as much; h bits of 31 hold all workers.
		unit := 2 * greatest * 2 * float64(workers) / (1 << 31)
		for i, mean := range means {
			want, _ := new(big.Float).Quo(&exact[i], big.NewFloat(float64(workers))).Float64()
			if bound := unit/2 + math.Abs(want)/(1<<24) + 1e-45; math.Abs(float64(mean)-want) > bound {
				rt.Errorf("mean %v of %v, want %v within %v", mean, vectors, want, bound)
			}
		}
	})
}

func TestWhatIsNoNumberIsNoneForAll(t *testing.T) {
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		values := []float32{1, v}
		words, back := []float32{7, 7}, make([]float32, 2)
		fix(words, values, peak(values), 3)
		if integer(words[0]) != 0 || integer(words[1]) != 0 {
			t.Errorf("%v is %v", values, words)
		}
		float(back, words, peak(values), 3, 3)
		if back[0] == back[0] || back[1] == back[1] {
			t.Errorf("%v comes back as %v", values, back)
		}
	}
	zeros, words := []float32{0, float32(math.Copysign(0, -1))}, make([]float32, 2)
	fix(words, zeros, peak(zeros), 2)
	if back := make([]float32, 2); integer(words[0]) != 0 || integer(words[1]) != 0 {
		t.Errorf("zeros are %v", words)
	} else if float(back, words, peak(zeros), 2, 2); back[0] != 0 || back[1] != 0 {
		t.Errorf("zeros come back as %v", back)
	}
}
