package robust_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/periodic/robust"
)

// tolerant are all means that bear attackers.
var tolerant = []robust.Kind{robust.Median, robust.TrimmedMean, robust.Krum, robust.MultiKrum, robust.Bulyan,
	robust.GeometricMedian}

// of is the mean of vectors of equal weights.
func of(r robust.Rule, vectors [][]float32) []float32 {
	dst, weights := make([]float32, len(vectors[0])), make([]float64, len(vectors))
	for i := range weights {
		weights[i] = 1 / float64(len(vectors))
	}
	r.Of(dst, vectors, weights)
	return dst
}

// constant are vectors of four times the same value.
func constant(values ...float32) (all [][]float32) {
	for _, v := range values {
		all = append(all, []float32{v, v, v, v})
	}
	return all
}

// The figures of Flower's tests.
func TestMeansAreThoseOfPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		rule    robust.Rule
		vectors [][]float32
		want    float32
	}{
		{robust.Rule{Kind: robust.Krum, Attackers: 1}, constant(0.2, 0.7, 1.0), 0.7},
		{robust.Rule{Kind: robust.MultiKrum, Attackers: 1, Keep: 2}, constant(0.2, 0.5, 1.0), 0.35},
	} {
		for _, got := range of(c.rule, c.vectors) {
			if got != c.want {
				t.Errorf("%+v of %v is %v, want %v", c.rule, c.vectors, got, c.want)
			}
		}
	}
	for _, c := range []struct {
		center float32
		sorted []float32
		count  int
		want   float32
	}{
		{1, []float32{0.5, 1, 2}, 2, 0.75},
		{0, []float32{-0.5, 1, 10}, 1, -0.5},
	} {
		if got := robust.Nearest(c.sorted, c.center, c.count); got != c.want {
			t.Errorf("the mean of the %d of %v nearest to %v is %v, want %v", c.count, c.sorted, c.center, got, c.want)
		}
	}
}

// drawn are n vectors of d values, which have a common part.
func drawn(t *rapid.T, n int) (vectors [][]float32) {
	d := rapid.IntRange(1, 600).Draw(t, "values")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for range n {
		v := make([]float32, d)
		for k := range v {
			v[k] = float32(k%7) + float32(r.NormFloat64())
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// rule draws a mean, and a number of vectors that is enough for it.
func rule(t *rapid.T) (robust.Rule, int) {
	r := robust.Rule{Kind: rapid.SampledFrom(tolerant).Draw(t, "kind"), Attackers: rapid.IntRange(1, 3).Draw(t, "f")}
	n := 1
	for r.Check(n) != nil {
		n++
	}
	return r, n + rapid.IntRange(0, 5).Draw(t, "more")
}

func near(a, b []float32, tolerance float64) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x)-float64(y)) <= tolerance })
}

// naive are the definitions once more, as plain loops in float64 over lists that are sorted anew.
func naive(r robust.Rule, vectors [][]float32) []float64 {
	n, f, result := len(vectors), r.Attackers, make([]float64, len(vectors[0]))
	among, keep := vectors, n-2*f
	switch r.Kind {
	case robust.Krum, robust.MultiKrum:
		keep = 1
		if r.Kind == robust.MultiKrum {
			keep = n - f - 2
		}
		among = slices.SortedStableFunc(slices.Values(vectors), func(a, b []float32) int {
			return cmp.Or(cmp.Compare(score(a, vectors, n-f-2), score(b, vectors, n-f-2)), slices.Compare(a, b))
		})[:keep]
	case robust.Bulyan:
		left := slices.Clone(vectors)
		for among = nil; len(among) < n-2*f; {
			best := slices.MinFunc(left, func(a, b []float32) int {
				count := len(left) - f - 2
				return cmp.Or(cmp.Compare(score(a, left, count), score(b, left, count)), slices.Compare(a, b))
			})
			among = append(among, best)
			left = slices.DeleteFunc(left, func(v []float32) bool { return &v[0] == &best[0] })
		}
		keep = n - 4*f
	}
	for k := range result {
		var column []float64
		for _, v := range among {
			column = append(column, float64(v[k]))
		}
		slices.Sort(column)
		m := len(column)
		center := (column[(m-1)/2] + column[m/2]) / 2
		switch r.Kind {
		case robust.Median:
			column = []float64{center}
		case robust.TrimmedMean:
			column = column[f : n-f]
		case robust.Bulyan:
			slices.SortStableFunc(column, func(a, b float64) int {
				return cmp.Compare(math.Abs(a-center), math.Abs(b-center))
			})
			column = column[:keep]
		}
		for _, v := range column {
			result[k] += v / float64(len(column))
		}
	}
	return result
}

// score is the sum of the least squares of distances from a vector to the others.
func score(v []float32, all [][]float32, count int) (sum float64) {
	var squares []float64
	for _, o := range all {
		if &o[0] == &v[0] {
			continue
		}
		square := 0.0
		for k := range v {
			square += (float64(v[k]) - float64(o[k])) * (float64(v[k]) - float64(o[k]))
		}
		squares = append(squares, square)
	}
	slices.Sort(squares)
	for _, s := range squares[:min(max(count, 1), len(squares))] {
		sum += s
	}
	return sum
}

func TestMeansAreTheirDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, n := rule(t)
		if r.Kind == robust.GeometricMedian {
			return
		}
		vectors := drawn(t, n)
		got := of(r, vectors)
		for k, want := range naive(r, vectors) {
			if math.Abs(float64(got[k])-want) > 1e-5 {
				t.Fatalf("%+v of %d vectors: value %d is %v, by its definition %v", r, n, k, got[k], want)
			}
		}
	})
}

// What one update of a crowd is does not depend on the order in which they come.
func TestMeansDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, n := rule(t)
		vectors := drawn(t, n)
		if got, want := of(r, rapid.Permutation(vectors).Draw(t, "order")), of(r, vectors); !near(got, want, 1e-6) {
			t.Fatalf("%+v of %d vectors in another order is %v, was %v", r, n, got, want)
		}
	})
}

// bad are values that an attacker may send.
var bad = rapid.SampledFrom([]float32{1e3, -1e3, 3e38, -3e38, 0, float32(math.NaN()), float32(math.Inf(1)),
	float32(math.Inf(-1))})

// Whatever f attackers send, no value of a mean leaves the range of the honest ones; of the
// geometric median not by much more than these are apart.
func TestAttackersPullNothingBeyondHonestValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, n := rule(t)
		vectors := drawn(t, n)
		low, high := slices.Clone(vectors[0]), slices.Clone(vectors[0])
		for i, v := range vectors {
			for k := range v {
				if i < n-r.Attackers {
					low[k], high[k] = min(low[k], v[k]), max(high[k], v[k])
				} else {
					v[k] = bad.Draw(t, "bad")
				}
			}
		}
		slack := float32(0)
		if r.Kind == robust.GeometricMedian {
			slack = 40 * float32(math.Sqrt(float64(len(low)))) // a multiple of how far honest ones are apart
		}
		for k, v := range of(r, rapid.Permutation(vectors).Draw(t, "order")) {
			if !(v >= low[k]-slack-1e-5 && v <= high[k]+slack+1e-5) {
				t.Fatalf("%+v of %d vectors: value %d is %v, honest ones are %v to %v", r, n, k, v, low[k], high[k])
			}
		}
	})
}

func TestKrumReturnsAnInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vectors := drawn(t, rapid.IntRange(1, 12).Draw(t, "n"))
		got := of(robust.Rule{Kind: robust.Krum, Attackers: rapid.IntRange(0, 3).Draw(t, "f")}, vectors)
		if !slices.ContainsFunc(vectors, func(v []float32) bool { return slices.Equal(v, got) }) {
			t.Fatalf("%v is none of %v", got, vectors)
		}
	})
}

// Without attackers, trimmed mean and Bulyan are the mean; so is Multi-Krum of all.
func TestWithoutAttackersMeansAreTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		vectors := drawn(t, n)
		want := of(robust.Rule{Kind: robust.Mean}, vectors)
		for _, r := range []robust.Rule{{Kind: robust.TrimmedMean}, {Kind: robust.Bulyan},
			{Kind: robust.MultiKrum, Keep: n}} {
			if got := of(r, vectors); !near(got, want, 1e-5) {
				t.Fatalf("%s is %v, the mean is %v", r.Kind, got, want)
			}
		}
	})
}

// distanceSum is the sum of the weighted distances of a point from vectors, whose gradient, with as
// small a smoothing, is added to a vector.
func distanceSum(z []float64, vectors [][]float32, weights []float64, gradient []float64) (sum float64) {
	for i, v := range vectors {
		square := 1e-12
		for k := range z {
			square += (z[k] - float64(v[k])) * (z[k] - float64(v[k]))
		}
		distance := math.Sqrt(square)
		sum += weights[i] * distance
		for k := range gradient {
			gradient[k] += weights[i] * (z[k] - float64(v[k])) / distance
		}
	}
	return sum
}

// No descent of the sum of distances, step by step, ends lower.
func TestGeometricMedianIsWhereDescentOfDistancesEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d := rapid.IntRange(1, 8).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "d")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		vectors, weights := make([][]float32, n), make([]float64, n)
		for i := range vectors {
			weights[i] = 0.1 + r.Float64()
			for range d {
				vectors[i] = append(vectors[i], float32(r.NormFloat64()))
			}
		}
		dst, z, found := make([]float32, d), make([]float64, d), make([]float64, d)
		robust.Rule{Kind: robust.GeometricMedian}.Of(dst, vectors, weights)
		for k, v := range dst {
			found[k] = float64(v)
		}
		for step := range 1000 {
			gradient := make([]float64, d)
			distanceSum(z, vectors, weights, gradient)
			for k := range z {
				z[k] -= gradient[k] / float64(step+n)
			}
		}
		got, want := distanceSum(found, vectors, weights, nil), distanceSum(z, vectors, weights, nil)
		if got > want*(1+1e-3)+1e-4 {
			t.Fatalf("distances add up to %v, a descent finds %v", got, want)
		}
	})
}

func TestMeansOfTooFewAreToldAndEndAllTheSame(t *testing.T) {
	for _, kind := range tolerant {
		for n := 1; n < 12; n++ {
			r := robust.Rule{Kind: kind, Attackers: 2}
			least := map[robust.Kind]int{robust.Krum: 7, robust.MultiKrum: 7, robust.Bulyan: 11}[kind]
			if least == 0 {
				least = 5
			}
			if err := r.Check(n); (err == nil) != (n >= least) {
				t.Errorf("%s of %d vectors: %v", kind, n, err)
			}
			if got := of(r, constant(make([]float32, n)...)); !slices.Equal(got, make([]float32, 4)) {
				t.Errorf("%s of %d vectors of zeros is %v", kind, n, got)
			}
		}
	}
	err := robust.Rule{Kind: robust.Bulyan, Attackers: 2}.Check(9)
	if want := "a bulyan with 2 attackers is of 11 updates at least, and there are 9"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []struct {
		rule robust.Rule
		good bool
	}{
		{robust.Rule{Kind: robust.Mean}, true},
		{robust.Rule{Kind: robust.Mean, Attackers: 1}, false},
		{robust.Rule{Kind: robust.Median}, true},
		{robust.Rule{Kind: robust.Krum}, false},
		{robust.Rule{Kind: robust.Krum, Attackers: 1, Keep: 2}, false},
		{robust.Rule{Kind: robust.MultiKrum, Attackers: 1, Keep: 2}, true},
		{robust.Rule{Kind: "medoid"}, false},
	} {
		if err := c.rule.Validate(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.rule, err)
		}
	}
}

func TestInnerLoopsDoNotAllocate(t *testing.T) {
	dst, vectors, weights := make([]float32, 5000), make([][]float32, 11), make([]float64, 11)
	for i := range vectors {
		vectors[i], weights[i] = make([]float32, len(dst)), 1
		vectors[i][i] = 1
	}
	for _, kind := range tolerant {
		rule := robust.Rule{Kind: kind, Attackers: 2}
		if n := testing.AllocsPerRun(3, func() { rule.Of(dst, vectors, weights) }); n > 20 {
			t.Errorf("%s of 11 vectors of 5000 values allocates %v times", kind, n)
		}
	}
}

func BenchmarkRules(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	dst, vectors, weights := make([]float32, 100_000), make([][]float32, 20), make([]float64, 20)
	for i := range vectors {
		weights[i] = 0.05
		for range dst {
			vectors[i] = append(vectors[i], float32(r.NormFloat64()))
		}
	}
	for _, kind := range tolerant {
		b.Run(string(kind), func(b *testing.B) {
			for range b.N {
				robust.Rule{Kind: kind, Attackers: 4}.Of(dst, vectors, weights)
			}
		})
	}
}
