package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// withEach runs a test with every set of instructions that the machine offers.
func withEach(t *testing.T, test func(t *testing.T)) {
	best := active
	defer func() { active = best }()
	for _, active = range offered() {
		t.Run(active.name, test)
	}
}

// guard stands around the elements of outputs, and must stay.
const guard = 12345

// sample is a product with random operands, cut out of larger slices at odd places.
func sample(r *rand.Rand, transA, transB bool, m, n, k, padding int, alpha, beta float32) product {
	matrix := func(rows, width int) ([]float32, int) {
		stride := max(1, width+r.IntN(padding+1))
		x := make([]float32, max(0, (rows-1)*stride+width)+8)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		start := r.IntN(8)
		return x[start : start+max(0, (rows-1)*stride+width)], stride
	}
	p := product{transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha, beta: beta}
	rowsA, widthA, rowsB, widthB := m, k, k, n
	if transA {
		rowsA, widthA = k, m
	}
	if transB {
		rowsB, widthB = n, k
	}
	p.a, p.lda = matrix(rowsA, widthA)
	p.b, p.ldb = matrix(rowsB, widthB)
	p.c, p.ldc = matrix(m, n)
	for i := range p.c {
		if i%p.ldc >= n {
			p.c[i] = guard
		}
	}
	return p
}

// dense returns a matrix of float64, transposed if asked.
func dense(x []float32, stride, rows, width int, trans bool) []float64 {
	d := make([]float64, rows*width)
	for i := range rows {
		for j := range width {
			if trans {
				d[j*rows+i] = float64(x[i*stride+j])
			} else {
				d[i*width+j] = float64(x[i*stride+j])
			}
		}
	}
	return d
}

// operands returns op(A), by rows, and op(B), by columns.
func (p *product) operands() (a, b []float64) {
	if p.transA {
		a = dense(p.a, p.lda, p.k, p.m, true)
	} else {
		a = dense(p.a, p.lda, p.m, p.k, false)
	}
	if p.transB {
		return a, dense(p.b, p.ldb, p.n, p.k, false)
	}
	return a, dense(p.b, p.ldb, p.k, p.n, true)
}

// naive is the product as a triple loop in float64, and for each element a bound of float32's
// error.
func naive(p *product) (want, bound []float64) {
	want, bound = make([]float64, len(p.c)), make([]float64, len(p.c))
	for i, c := range p.c {
		want[i] = float64(c)
	}
	a, b := p.operands()
	for i := range p.m {
		for j := range p.n {
			var sum, size float64
			column := b[j*p.k:][:p.k]
			for l, v := range a[i*p.k:][:p.k] {
				term := v * column[l]
				sum += term
				size += math.Abs(term)
			}
			c := &want[i*p.ldc+j]
			size = math.Abs(float64(p.alpha))*size + math.Abs(float64(p.beta)**c)
			bound[i*p.ldc+j] = float64(p.k+3) * size * 0x1p-24
			if p.beta == 0 {
				*c = 0
			}
			*c = float64(p.alpha)*sum + float64(p.beta)**c
			if p.alpha == 0 && p.beta == 0 {
				*c = 0
			}
		}
	}
	return want, bound
}

// expectProduct compares got with the triple loop; what is not of C must be untouched.
func expectProduct(t interface{ Fatalf(string, ...any) }, p *product, got []float32) {
	want, bound := naive(p)
	for i := range got {
		if math.IsNaN(want[i]) && math.IsNaN(float64(got[i])) || want[i] == float64(got[i]) {
			continue
		}
		if difference := math.Abs(float64(got[i]) - want[i]); !(difference <= bound[i]) {
			t.Fatalf("%v/%v %d×%d×%d, strides %d, %d, %d, alpha %v, beta %v: element %d, %d is %v, want %v ± %v",
				p.transA, p.transB, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.alpha, p.beta, i/p.ldc, i%p.ldc,
				got[i], want[i], bound[i])
		}
	}
}

// result computes a product into a copy of C, and checks the elements behind it.
func result(t interface{ Fatalf(string, ...any) }, p *product) []float32 {
	c := append(slices.Clone(p.c), guard, guard, guard, guard, guard, guard, guard, guard, guard)
	Gemm(p.transA, p.transB, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, c[:len(p.c)], p.ldc)
	for _, v := range c[len(p.c):] {
		if v != guard {
			t.Fatalf("%d×%d×%d: wrote behind C", p.m, p.n, p.k)
		}
	}
	return c[:len(p.c)]
}

func sizes() *rapid.Generator[int] {
	return rapid.OneOf(rapid.IntRange(0, 70), rapid.SampledFrom([]int{1, 5, 10, 16, 17, 21, 31, 32, 33, 50, 64, 93, 97,
		127, 128, 131}))
}

func coefficient() *rapid.Generator[float32] {
	return rapid.SampledFrom([]float32{0, 1, -1, 0.5, -2.25})
}

func TestProductIsThatOfATripleLoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			p := sample(r, rapid.Bool().Draw(t, "transA"), rapid.Bool().Draw(t, "transB"), sizes().Draw(t, "m"),
				sizes().Draw(t, "n"),
				sizes().Draw(t, "k"), rapid.SampledFrom([]int{0, 1, 9}).Draw(t, "padding"), coefficient().Draw(t,
					"alpha"), coefficient().Draw(t, "beta"))
			expectProduct(t, &p, result(t, &p))
		})
	})
}

// large are shapes that cross the borders of chains, bands and packing.
var large = []struct{ m, n, k, padding int }{
	{1, 1100, 400, 0}, {250, 70, 385, 3}, {7, 1031, 97, 0}, {500, 33, 64, 1}, {61, 67, 769, 5}, {2, 3, 2000, 0},
	{256, 16, 300, 1200}, {245, 1060, 9, 0},
}

func TestLargeProductIsThatOfATripleLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, shape := range large {
		for trans := range 4 {
			if raceEnabled && trans != i%4 {
				continue // the triple loop is slow there
			}
			p := sample(r, trans&1 == 1, trans&2 == 2, shape.m, shape.n, shape.k, shape.padding, 0.75, float32(trans%3))
			withEach(t, func(t *testing.T) { expectProduct(t, &p, result(t, &p)) })
		}
	}
}

func TestProductsMayBeComputedAtTheSameTime(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	var callers sync.WaitGroup
	for range 4 {
		p := sample(r, false, false, 150, 130, 120, 0, 1, 0)
		want := result(t, &p)
		callers.Go(func() {
			c := make([]float32, len(p.c))
			for range 30 {
				Gemm(false, false, p.m, p.n, p.k, 1, p.a, p.lda, p.b, p.ldb, 0, c, p.ldc)
				for i := range c {
					if i%p.ldc < p.n && c[i] != want[i] {
						t.Errorf("products computed at the same time have other bits than alone")
						return
					}
				}
			}
		})
	}
	callers.Wait()
}

// part returns the product for the rows [i0, i1) and the columns [j0, j1) of C.
func (p *product) part(i0, i1, j0, j1 int) product {
	q := *p
	q.m, q.n = i1-i0, j1-j0
	stepA, stepB := p.lda, 1
	if p.transA {
		stepA = 1
	}
	if p.transB {
		stepB = p.ldb
	}
	q.a, q.b = p.a[i0*stepA:], p.b[j0*stepB:]
	q.c = p.c[i0*p.ldc+j0:]
	return q
}

func TestElementDependsOnItsRowAndColumnOnly(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for trans := range 4 {
			p := sample(r, trans&1 == 1, trans&2 == 2, 129, 75, 300, 2, 0.5, 1)
			whole := result(t, &p)
			for range 50 {
				i0, j0 := r.IntN(p.m), r.IntN(p.n)
				q := p.part(i0, i0+1+r.IntN(p.m-i0), j0, j0+1+r.IntN(p.n-j0))
				part := result(t, &q)
				for i := range q.m {
					if !slices.Equal(part[i*q.ldc:][:q.n], whole[(i0+i)*p.ldc+j0:][:q.n]) {
						t.Fatalf("rows %d+%d, columns %d+%d of a product computed alone have other bits", i0, q.m, j0,
							q.n)
					}
				}
			}
		}
	})
}

func TestInstructionsAgreeInEveryBit(t *testing.T) {
	best := active
	defer func() { active = best }()
	r := rand.New(rand.NewPCG(9, 10))
	for range 60 {
		p := sample(r, r.IntN(2) == 1, r.IntN(2) == 1, r.IntN(80), r.IntN(80), r.IntN(600), 2, 1.25, 1)
		var first []float32
		for _, active = range offered() {
			if active == portable {
				continue
			}
			if got := result(t, &p); first == nil {
				first = got
			} else if !slices.Equal(got, first) {
				t.Fatalf("%s computes other bits than %s: %d×%d×%d", active.name, best.name, p.m, p.n, p.k)
			}
		}
	}
}

func TestNaNAndInfAreThoseOfTheTripleLoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		special := []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
		for range 200 {
			p := sample(r, r.IntN(2) == 1, r.IntN(2) == 1, 1+r.IntN(40), 1+r.IntN(40), 1+r.IntN(40), 1, 2,
				float32(r.IntN(3)))
			for range 3 {
				for _, x := range [][]float32{p.a, p.b, p.c} {
					if r.IntN(3) == 0 {
						x[r.IntN(len(x))] = special[r.IntN(len(special))]
					}
				}
			}
			got := result(t, &p)
			if p.beta == 0 {
				clear(p.c)
			}
			want, _ := naive(&p)
			for i := range p.m {
				for j := range p.n {
					g, w := float64(got[i*p.ldc+j]), want[i*p.ldc+j]
					if math.IsNaN(g) != math.IsNaN(w) || math.IsInf(w, 0) && g != w {
						t.Fatalf("element %d, %d is %v, want %v", i, j, g, w)
					}
				}
			}
		}
	})
}

func TestCoefficientsOfZeroReadNothing(t *testing.T) {
	withEach(t, func(t *testing.T) {
		nan := float32(math.NaN())
		a, b := slices.Repeat([]float32{nan}, 400), slices.Repeat([]float32{1}, 400)
		c := slices.Repeat([]float32{3}, 400)
		Gemm(false, false, 20, 20, 20, 0, a, 20, b, 20, 1, c, 20)
		if slices.ContainsFunc(c, func(v float32) bool { return v != 3 }) {
			t.Error("alpha = 0 read A")
		}
		Gemm(false, false, 20, 20, 20, 1, b, 20, b, 20, 0, a, 20)
		if slices.ContainsFunc(a, func(v float32) bool { return v != 20 }) {
			t.Error("beta = 0 read C")
		}
	})
}

func TestMistakesPanic(t *testing.T) {
	x := make([]float32, 100)
	for _, mistake := range []struct {
		want string
		call func()
	}{
		{badSize, func() { Gemm(false, false, -1, 2, 2, 1, x, 2, x, 2, 0, x, 2) }},
		{badStrideA, func() { Gemm(true, false, 3, 2, 2, 1, x, 2, x, 2, 0, x, 2) }},
		{badStrideB, func() { Gemm(false, true, 3, 2, 4, 1, x, 4, x, 3, 0, x, 2) }},
		{badStrideC, func() { Gemm(false, false, 3, 2, 4, 1, x, 4, x, 2, 0, x, 1) }},
		{shortA, func() { Gemm(false, false, 3, 2, 4, 1, x[:11], 4, x, 2, 0, x, 2) }},
		{shortB, func() { Gemm(false, false, 3, 2, 4, 1, x, 4, x[:7], 2, 0, x, 2) }},
		{shortC, func() { Gemm(false, false, 3, 2, 4, 1, x, 4, x, 2, 0, x[:5], 2) }},
		{badLength, func() { Axpy(x, 1, x, x[:5]) }},
		{badLength, func() { Sum(x, 1, x, x[:5]) }},
		{badLength, func() { Sum(x[:5], 1, x, x) }},
		{badLength, func() { Axpby(x[:5], 1, x, 1, x) }},
		{badLength, func() { (&Momentum{}).Step(x, x[:5], x, x) }},
		{badLength, func() { (&Adam{}).Step(x, x, x[:5], x, x) }},
	} {
		func() {
			defer func() {
				if got := recover(); got != mistake.want {
					t.Errorf("panic %v, want %q", got, mistake.want)
				}
			}()
			mistake.call()
		}()
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, s := range shapes {
		if raceEnabled || max(s.m, s.n) > 256 {
			continue
		}
		p := sample(rand.New(rand.NewPCG(13, 14)), s.transA, s.transB, s.m, s.n, s.k, 0, 1, 0)
		allocated := testing.AllocsPerRun(20, func() {
			Gemm(p.transA, p.transB, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc)
		})
		if allocated >= 1 {
			t.Errorf("%v: %v allocations", s, allocated)
		}
	}
}

// shape is a product that is measured.
type shape struct {
	transA, transB bool
	m, n, k        int
}

func (s shape) String() string {
	letter := map[bool]string{false: "N", true: "T"}
	return fmt.Sprintf("%s%s/%dx%dx%d", letter[s.transA], letter[s.transB], s.m, s.n, s.k)
}

var shapes = []shape{
	{false, false, 64, 64, 64}, {false, false, 256, 256, 256}, {false, false, 1024, 1024, 1024},
	{false, false, 1, 21, 93}, {false, false, 32, 21, 93}, {false, false, 128, 21, 93}, {false, false, 1024, 21, 93},
	{true, false, 93, 21, 1}, {true, false, 93, 21, 32}, {true, false, 93, 21, 128},
	{false, true, 32, 93, 21}, {false, true, 128, 93, 21},
	{false, false, 32, 5, 21}, {true, false, 21, 5, 32}, {false, true, 32, 21, 5},
	{false, false, 32, 128, 9216}, {false, false, 18432, 64, 288}, {false, true, 32, 9216, 128},
}
