package datasets

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// counting returns a set whose row i is (i, −i) with label i mod 3.
func counting(n int) *Set {
	s := &Set{Name: "counting", X: make([]float32, 2*n), Y: make([]int32, n), Inputs: 2,
		Classes: []string{"a", "b", "c"}, Numeric: []int{0, 1}}
	for i := range n {
		s.X[2*i], s.X[2*i+1], s.Y[i] = float32(i), -float32(i), int32(i%3)
	}
	return s
}

func sampler(t testing.TB, set *Set, rows []int32, batch int, seed uint64, worker string) *Sampler {
	t.Helper()
	s, err := NewSampler(set, rows, batch, seed, worker)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPermutationIsABijection(t *testing.T) {
	sizes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 255, 256, 257, 1000, 4095, 4097, 65535, 65537, 94480,
		125973, 1 << 20}
	for _, n := range sizes {
		d := newDomain(n)
		if area := uint64(d.a) * uint64(d.b); area < uint64(n) || area-uint64(n) >= uint64(d.a) {
			t.Fatalf("n = %d: rectangle %d × %d", n, d.a, d.b)
		}
		for key := range uint64(3) {
			k := d.newKeys(key)
			seen := make([]bool, n)
			for i := range n {
				p := d.at(&k, uint32(i))
				if int(p) >= n || seen[p] {
					t.Fatalf("n = %d, key %d: %d maps to %d, outside or taken", n, key, i, p)
				}
				seen[p] = true
			}
		}
	}
}

func TestLargestDomainStaysInRange(t *testing.T) {
	d := newDomain(math.MaxInt32)
	k := d.newKeys(1)
	for i := uint32(math.MaxInt32 - 1000); i < math.MaxInt32; i++ {
		if l, want := d.encrypt(&k, i), uint64(d.a)*uint64(d.b); uint64(l) >= want {
			t.Fatalf("%d maps to %d, outside the rectangle of %d", i, l, want)
		}
		if p := d.at(&k, i); p >= math.MaxInt32 {
			t.Fatalf("%d maps to %d", i, p)
		}
	}
}

func TestDivisionByMultiplicationIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDomain(rapid.IntRange(1, math.MaxInt32).Draw(t, "n"))
		i := uint32(rapid.Uint64Range(0, uint64(d.a)*uint64(d.b)-1).Draw(t, "i"))
		identity := keys{}
		l, r := i/d.b, i%d.b
		for j := 0; j < d.rounds; j += 2 {
			l = add(l, r, identity[j], d.a)
			r = add(r, l, identity[j+1], d.b)
		}
		if got := d.encrypt(&identity, i); got != l*d.b+r {
			t.Fatalf("once(%d) = %d by multiplication, %d by division", i, got, l*d.b+r)
		}
	})
}

// exceeds reports whether a chi-square statistic is more than five standard
// deviations above its mean.
func exceeds(statistic float64, freedom int) bool {
	return statistic > float64(freedom)+5*math.Sqrt(2*float64(freedom))
}

func TestSmallPermutationsAreAllAboutEquallyLikely(t *testing.T) {
	const draws = 24000
	for _, n := range []int{2, 3, 4, 5, 6} {
		d := newDomain(n)
		counts := map[string]int{}
		for key := range uint64(draws) {
			k := d.newKeys(mix(key))
			name := ""
			for i := range n {
				name += fmt.Sprint(d.at(&k, uint32(i)))
			}
			counts[name]++
		}
		all := 1
		for i := 2; i <= n; i++ {
			all *= i
		}
		if len(counts) != all {
			t.Errorf("n = %d: %d of %d permutations occur", n, len(counts), all)
		}
		expected, statistic := float64(draws)/float64(all), 0.0
		for _, c := range counts {
			statistic += (float64(c) - expected) * (float64(c) - expected) / expected
		}
		if exceeds(statistic, all-1) {
			t.Errorf("n = %d: chi-square %.1f with %d degrees of freedom", n, statistic, all-1)
		}
	}
}

func TestPositionSaysNothingAboutRow(t *testing.T) {
	const bins = 32
	for _, n := range []int{1000, 94480} {
		d := newDomain(n)
		var table [bins][bins]float64
		passes := 1 + 200_000/n
		for pass := range passes {
			k := d.newKeys(mix(uint64(pass)))
			for i := range n {
				table[i*bins/n][int(d.at(&k, uint32(i)))*bins/n]++
			}
		}
		expected, statistic := float64(n*passes)/(bins*bins), 0.0
		for i := range bins {
			for j := range bins {
				statistic += (table[i][j] - expected) * (table[i][j] - expected) / expected
			}
		}
		if exceeds(statistic, (bins-1)*(bins-1)) {
			t.Errorf("n = %d: chi-square %.1f with %d degrees of freedom", n, statistic, (bins-1)*(bins-1))
		}
	}
}

func TestNeighboursInAPassAreFarApart(t *testing.T) {
	const n = 94480
	d := newDomain(n)
	k := d.newKeys(7)
	var bins [64]float64
	last := d.at(&k, 0)
	for i := uint32(1); i < n; i++ {
		p := d.at(&k, i)
		bins[uint64((p+n-last)%n)*uint64(len(bins))/n]++
		last = p
	}
	expected, statistic := float64(n-1)/float64(len(bins)), 0.0
	for _, c := range bins {
		statistic += (c - expected) * (c - expected) / expected
	}
	if exceeds(statistic, len(bins)-1) {
		t.Errorf("chi-square of differences %.1f with %d degrees of freedom", statistic, len(bins)-1)
	}
}

func TestEveryPassVisitsEveryRowOnceInAnotherOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		batch := rapid.IntRange(1, 40).Draw(t, "batch")
		set := counting(300)
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32(300 - n + i)
		}
		s, err := NewSampler(set, rows, batch, rapid.Uint64().Draw(t, "seed"), "w")
		if err != nil {
			t.Fatal(err)
		}
		var orders [2][]int32
		for pass := range orders {
			for step := range s.Steps() {
				before := len(orders[pass])
				orders[pass] = rowsOf(s, pass, step, orders[pass])
				if got := len(orders[pass]) - before; got != s.Batch() && step < s.Steps()-1 {
					t.Fatalf("batch %d has %d rows before the last step", step, got)
				}
			}
			if sorted := slices.Sorted(slices.Values(orders[pass])); !slices.Equal(sorted, rows) {
				t.Fatalf("pass %d visits %v, want %v", pass, sorted, rows)
			}
		}
		if n > 20 && slices.Equal(orders[0], orders[1]) {
			t.Fatal("two passes in the same order")
		}
	})
}

func TestFillCopiesTheRowsThatRowsNames(t *testing.T) {
	set := counting(101)
	s := sampler(t, set, nil, 8, 3, "fast")
	x, y := make([]float32, 16), make([]int32, 8)
	for pass := range 3 {
		for step := range s.Steps() {
			n := s.Fill(pass, step, x, y)
			rows := rowsOf(s, pass, step, nil)
			want := set.Subset(rows)
			if n != len(rows) || !slices.Equal(x[:2*n], want.X) || !slices.Equal(y[:n], want.Y) {
				t.Fatalf("pass %d, step %d: Fill gives %v %v, Rows %v", pass, step, x[:2*n], y[:n], rows)
			}
		}
	}
}

func TestBatchIsAFunctionOfSeedWorkerPassAndStepAlone(t *testing.T) {
	set := counting(1000)
	base := sampler(t, set, nil, 10, 1, "a")
	want := rowsOf(base, 5, 7, nil)
	again := sampler(t, set, nil, 10, 1, "a")
	rowsOf(again, 9, 1, nil)
	if got := rowsOf(again, 5, 7, nil); !slices.Equal(got, want) {
		t.Errorf("asked again: %v, want %v", got, want)
	}
	for name, other := range map[string][]int32{
		"seed":   rowsOf(sampler(t, set, nil, 10, 2, "a"), 5, 7, nil),
		"worker": rowsOf(sampler(t, set, nil, 10, 1, "b"), 5, 7, nil),
		"pass":   rowsOf(base, 6, 7, nil),
		"step":   rowsOf(base, 5, 8, nil),
	} {
		if slices.Equal(other, want) {
			t.Errorf("another %s gives the same batch", name)
		}
	}
}

// The order of batches is part of what makes old runs repeatable.
func TestBatchesStayAsTheyWere(t *testing.T) {
	s := sampler(t, counting(94480), nil, 8, 1, "fast")
	got := rowsOf(s, 2, 3, nil)
	want := []int32{26058, 18861, 20785, 39612, 5048, 32320, 43707, 68233}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("batch (2, 3) of seed 1, worker fast (-want +got):\n%s", diff)
	}
}

func TestSamplerRefusesWhatItCannotSample(t *testing.T) {
	set := counting(10)
	for name, make := range map[string]func() (*Sampler, error){
		"no rows":          func() (*Sampler, error) { return NewSampler(set, []int32{}, 1, 0, "w") },
		"row outside":      func() (*Sampler, error) { return NewSampler(set, []int32{10}, 1, 0, "w") },
		"negative row":     func() (*Sampler, error) { return NewSampler(set, []int32{-1}, 1, 0, "w") },
		"batch of nothing": func() (*Sampler, error) { return NewSampler(set, nil, 0, 0, "w") },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBatchesPanicOnProgrammerMistakes(t *testing.T) {
	s := sampler(t, counting(10), nil, 4, 0, "w")
	x, y := make([]float32, 8), make([]int32, 4)
	for name, call := range map[string]func(){
		"short x":       func() { s.Fill(0, 0, x[:7], y) },
		"short y":       func() { s.Fill(0, 0, x, y[:3]) },
		"few rows":      func() { s.Rows(0, 0, y[:3], y) },
		"few labels":    func() { s.Rows(0, 0, y, y[:3]) },
		"negative pass": func() { s.Fill(-1, 0, x, y) },
		"step too far":  func() { s.Fill(0, 3, x, y) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	s := sampler(t, counting(1000), nil, 32, 0, "w")
	x, y := make([]float32, 64), make([]int32, 32)
	step := 0
	if allocs := testing.AllocsPerRun(100, func() { s.Fill(0, step%s.Steps(), x, y); step++ }); allocs != 0 {
		t.Errorf("%v allocations a batch", allocs)
	}
}

func BenchmarkPermutation(b *testing.B) {
	d := newDomain(94480)
	k := d.newKeys(1)
	b.ReportAllocs()
	i, sum := uint32(0), uint32(0)
	for b.Loop() {
		sum += d.at(&k, i)
		if i++; i == 94480 {
			i = 0
		}
	}
	_ = sum
}

func BenchmarkFill(b *testing.B) {
	const inputs, batch = 93, 32
	set := &Set{X: make([]float32, 94480*inputs), Y: make([]int32, 94480), Inputs: inputs}
	s := sampler(b, set, nil, batch, 1, "w")
	x, y := make([]float32, batch*inputs), make([]int32, batch)
	b.ReportAllocs()
	step := 0
	for b.Loop() {
		s.Fill(0, step, x, y)
		if step++; step == s.Steps() {
			step = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/sample")
}

// rowsOf appends to into the rows that make batch (pass, step), in the order in which Fill copies
// them.
func rowsOf(s *Sampler, pass, step int, into []int32) []int32 {
	rows, y := make([]int32, s.Batch()), make([]int32, s.Batch())
	return append(into, rows[:s.Rows(pass, step, rows, y)]...)
}
