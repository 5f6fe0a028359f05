//go:build (amd64 || arm64) && !noasm

package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fused is x·y + z, rounded once. The sum in float64 is rounded to odd, so that rounding it again
// does no harm (S. Boldo, G. Melquiond: Emulation of FMA and Correctly Rounded Sums, 2008).
func fused(x, y, z float32) float32 {
	product, addend := float64(x)*float64(y), float64(z) // both exact
	sum := product + addend
	part := sum - product
	rest := (product - (sum - part)) + (addend - part)
	if bits := math.Float64bits(sum); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}

// chained is the product element by element in the order that the package promises.
func chained(p *product) []float32 {
	a, b := p.operands()
	c := slices.Clone(p.c)
	for i := range p.m {
		for j := range p.n {
			at := &c[i*p.ldc+j]
			if p.beta == 0 {
				*at = 0
			}
			*at *= p.beta
			for l := 0; l < p.k; {
				var chain float32
				for end := min(p.k, l+384); l < end; l++ {
					chain = fused(float32(a[i*p.k+l]), float32(b[j*p.k+l]), chain)
				}
				*at = fused(p.alpha, chain, *at)
			}
		}
	}
	return c
}

func TestBlocksDecideNoBits(t *testing.T) {
	best, fit := active, fitting
	defer func() { active, fitting = best, fit }()
	r := rand.New(rand.NewPCG(17, 18))
	shapes := []shape{{m: 260, n: 40, k: 390}, {m: 61, n: 810, k: 110}, {m: 600, n: 33, k: 40},
		{m: 45, n: 29, k: 900}, {m: 26, n: 810, k: 250}}
	repeats := 20
	if testing.Short() {
		repeats = 3 // an emulated processor is slow
	}
	for range 12 {
		shapes = append(shapes, shape{m: 1 + r.IntN(90), n: 1 + r.IntN(90), k: 1 + r.IntN(500)})
	}
	for i, s := range shapes {
		p := sample(r, i&1 == 1, i&2 == 2, s.m, s.n, s.k, 600*r.IntN(2), 0.75, float32(r.IntN(3)))
		want := chained(&p)
		for range repeats {
			fitting = blocks{rows: 1 + r.IntN(s.m+10), columns: 1 + r.IntN(s.n+40)}
			for _, active = range offered() {
				if active == portable {
					continue
				}
				if got := result(t, &p); !slices.Equal(got, want) {
					t.Fatalf("%s, %d×%d×%d in blocks of %d rows and %d columns differs from its chains one by one",
						active.name, s.m, s.n, s.k, fitting.rows, fitting.columns)
				}
			}
		}
	}
}

func TestBlocksFillHalfOfTheSecondLevelCache(t *testing.T) {
	for _, size := range []int{256 << 10, 512 << 10, 1 << 20, 1280 << 10, 2 << 20} {
		bytes := 4 * block * blocksIn(size).rows
		if bytes > size/2 || bytes < size/2-4*block {
			t.Errorf("a cache of %d bytes holds %d bytes of op(A)", size, bytes)
		}
	}
	for odd, like := range map[int]int{0: 512 << 10, 4096: 256 << 10, 1 << 30: 4 << 20} {
		if got, want := blocksIn(odd), blocksIn(like); got != want {
			t.Errorf("a cache of %d bytes has blocks %v, want %v", odd, got, want)
		}
	}
}
