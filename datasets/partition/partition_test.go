package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/datasets"
)

// labelled returns a set with counts[c] samples of class c, interleaved.
func labelled(counts ...int) *datasets.Set {
	s := &datasets.Set{Name: "labelled", Inputs: 1}
	for c := range counts {
		s.Classes = append(s.Classes, string(rune('A'+c)))
	}
	for left := slices.Clone(counts); slices.Max(left) > 0; {
		for c := range left {
			if left[c] > 0 {
				left[c]--
				s.X, s.Y = append(s.X, float32(len(s.X))), append(s.Y, int32(c))
			}
		}
	}
	return s
}

func workerNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("w%d", i)
	}
	return names
}

// countsOf returns, for each worker, its number of samples of each class.
func countsOf(set *datasets.Set, assigned [][]int32) [][]int {
	counts := make([][]int, len(assigned))
	for w, rows := range assigned {
		counts[w] = set.Subset(rows).Counts()
	}
	return counts
}

func TestSplitsAreSortedDisjointNonEmptyAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := labelled(rapid.IntRange(1, 60).Draw(t, "A"), rapid.IntRange(0, 60).Draw(t, "B"),
			rapid.IntRange(0, 60).Draw(t, "C"))
		workers := workerNames(rapid.IntRange(1, 8).Draw(t, "workers"))
		seed := rapid.Uint64().Draw(t, "seed")
		shares := Classes{}
		for _, w := range workers {
			shares.Workers = append(shares.Workers, Share{w,
				map[string]float64{"A": 1 / float64(len(workers)),
					"B": rapid.Float64Range(0, 1/float64(len(workers))).Draw(t, "share")}})
		}
		split := rapid.SampledFrom([]Split{IID{}, shares, Shards{1 + int(seed%3)}, Dirichlet{Alpha: 0.5},
			Dirichlet{Alpha: 100, Min: 2}}).Draw(t, "split")
		assigned, err := split.Assign(set, workers, seed)
		if err != nil {
			return
		}
		if len(assigned) != len(workers) {
			t.Fatalf("%d parts for %d workers", len(assigned), len(workers))
		}
		seen := make([]bool, set.Len())
		used := 0
		for w, rows := range assigned {
			if len(rows) == 0 || !slices.IsSorted(rows) {
				t.Fatalf("worker %d has rows %v", w, rows)
			}
			for _, row := range rows {
				if seen[row] {
					t.Fatalf("row %d is given twice", row)
				}
				seen[row] = true
				used++
			}
		}
		if _, partial := split.(Classes); !partial && used != set.Len() {
			t.Fatalf("%T uses %d of %d rows", split, used, set.Len())
		}
		again, err := split.Assign(set, workers, seed)
		if err != nil || !cmp.Equal(again, assigned) {
			t.Fatalf("%T: the same seed gave another split, %v", split, err)
		}
	})
}

func TestIIDSizesDifferByAtMostOneAndClassesFollow(t *testing.T) {
	set := labelled(6000, 3000, 1001)
	assigned, err := IID{}.Assign(set, workerNames(3), 1)
	if err != nil {
		t.Fatal(err)
	}
	for w, counts := range countsOf(set, assigned) {
		if n := len(assigned[w]); n != 3333 && n != 3334 {
			t.Errorf("worker %d has %d samples", w, n)
		}
		// Hypergeometric: standard deviation below 25 for each class.
		for c, all := range []int{6000, 3000, 1001} {
			if math.Abs(float64(counts[c])-float64(all)/3) > 120 {
				t.Errorf("worker %d has %d of %d samples of class %d", w, counts[c], all, c)
			}
		}
	}
	other, _ := IID{}.Assign(set, workerNames(3), 2)
	if cmp.Equal(other, assigned) {
		t.Error("another seed gave the same split")
	}
}

func TestClassesCutsAtRoundedCumulatedShares(t *testing.T) {
	set := labelled(10, 7, 101)
	split := Classes{[]Share{
		{"slow", map[string]float64{"A": 0.5, "B": 0.5, "C": 0.8}},
		{"fast", map[string]float64{"A": 0.5, "B": 0.5, "C": 0.15}},
	}}
	assigned, err := split.Assign(set, []string{"fast", "slow"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	// B: fast is cut at round(3.5) = 4; C: at round(15.15) and round(95.95).
	if diff := cmp.Diff([][]int{{5, 4, 15}, {5, 3, 81}}, countsOf(set, assigned)); diff != "" {
		t.Errorf("samples per worker and class (-want +got):\n%s", diff)
	}
}

func TestClassesUseEverySampleWhereDecimalSharesAddUpToOne(t *testing.T) {
	set := labelled(1003, 998)
	var split Classes
	workers := workerNames(10)
	for _, w := range workers {
		split.Workers = append(split.Workers, Share{w, map[string]float64{"A": 0.1, "B": 0.1}})
	}
	assigned, err := split.Assign(set, workers, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Concat(assigned...)); n != set.Len() {
		t.Errorf("%d of %d samples used", n, set.Len())
	}
}

func TestShardsGiveEachWorkerFewLabels(t *testing.T) {
	set := labelled(600, 600, 600, 600, 600, 600, 600, 600, 600, 600)
	assigned, err := Shards{2}.Assign(set, workerNames(100), 3)
	if err != nil {
		t.Fatal(err)
	}
	for w, counts := range countsOf(set, assigned) {
		labels := 0
		for _, c := range counts {
			labels += min(c, 1)
		}
		if len(assigned[w]) != 60 || labels > 2 {
			t.Errorf("worker %d has %d samples of %d labels", w, len(assigned[w]), labels)
		}
	}
}

func TestDirichletProportionsHaveTheDistributionsMoments(t *testing.T) {
	const workers, draws = 4, 20000
	for _, alpha := range []float64{0.1, 0.5, 1, 3, 50} {
		rng := rand.New(rand.NewPCG(1, 2))
		p := make([]float64, workers)
		var mean, square float64
		for range draws {
			drawProportions(p, alpha, rng)
			if sum := total(p); math.Abs(sum-1) > 1e-12 {
				t.Fatalf("alpha %v: proportions %v add up to %v", alpha, p, sum)
			}
			mean += p[1] / draws
			square += p[1] * p[1] / draws
		}
		variance := (1. / workers) * (1 - 1./workers) / (workers*alpha + 1)
		if math.Abs(mean-1./workers) > 5*math.Sqrt(variance/draws) {
			t.Errorf("alpha %v: mean %v", alpha, mean)
		}
		if got := square - mean*mean; math.Abs(got/variance-1) > 0.08 {
			t.Errorf("alpha %v: variance %v, want %v", alpha, got, variance)
		}
	}
}

func TestDirichletSurvivesTinyAlpha(t *testing.T) {
	p := make([]float64, 5)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		drawProportions(p, 1e-4, rng)
		if sum := total(p); !(math.Abs(sum-1) < 1e-12) {
			t.Fatalf("proportions %v", p)
		}
	}
}

func TestDirichletRespectsMin(t *testing.T) {
	assigned, err := Dirichlet{Alpha: 0.5, Min: 20}.Assign(labelled(200, 200, 200), workerNames(5), 1)
	if err != nil {
		t.Fatal(err)
	}
	for w, rows := range assigned {
		if len(rows) < 20 {
			t.Errorf("worker %d has %d samples", w, len(rows))
		}
	}
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	set, two := labelled(10, 10), []string{"fast", "slow"}
	classes := func(s ...Share) Split { return Classes{s} }
	share := func(worker, class string, share float64) Share {
		return Share{worker, map[string]float64{class: share}}
	}
	for _, c := range []struct {
		split   Split
		workers []string
		want    []string
	}{
		{IID{}, nil, []string{"no workers"}},
		{IID{}, []string{"a", "a"}, []string{`"a"`, "twice"}},
		{IID{}, workerNames(21), []string{`"w20"`, "without samples"}},
		{classes(share("fast", "A", 1)), two, []string{`"slow"`, "without samples"}},
		{classes(share("quick", "A", 1)), two, []string{`"quick"`, `"fast" "slow"`}},
		{classes(share("fast", "Z", 1)), two, []string{`"Z"`, `"A" "B"`}},
		{classes(share("fast", "A", 1), share("fast", "B", 1)), two, []string{`"fast"`, "twice"}},
		{classes(share("fast", "A", 0.7), share("slow", "A", 0.4)), two, []string{`"A"`, "1.1"}},
		{classes(share("fast", "A", -0.1)), two, []string{"-0.1", `"A"`}},
		{classes(share("fast", "A", math.NaN())), two, []string{"NaN"}},
		{Shards{0}, two, []string{"0 shards"}},
		{Shards{11}, two, []string{"11 shards", "20 samples"}},
		{Shards{math.MaxInt}, two, []string{"20 samples"}},
		{Dirichlet{Alpha: 0}, two, []string{"alpha 0"}},
		{Dirichlet{Alpha: math.NaN()}, two, []string{"alpha NaN"}},
		{Dirichlet{Alpha: math.Inf(1)}, two, []string{"alpha +Inf"}},
		{Dirichlet{Alpha: 1, Min: -1}, two, []string{"min -1"}},
		{Dirichlet{Alpha: 1, Min: 11}, two, []string{"11 samples"}},
		{Dirichlet{Alpha: 1e-3, Min: 5}, workerNames(4), []string{"alpha 0.001", "fewer than 5"}},
	} {
		_, err := c.split.Assign(set, c.workers, 1)
		if err == nil {
			t.Errorf("%#v: no error", c.split)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%#v: error %q does not contain %q", c.split, err, want)
			}
		}
	}
}

func BenchmarkAssign(b *testing.B) {
	set := labelled(50000, 34000, 9000, 700, 40)
	for _, split := range []Split{IID{}, Shards{2}, Dirichlet{Alpha: 0.5}} {
		b.Run(fmt.Sprintf("%T", split), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := split.Assign(set, workerNames(10), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
