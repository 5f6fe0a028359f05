package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// cut returns n random elements from an odd place of a larger slice, which is filled with guards.
func cut(r *rand.Rand, n int) (x, whole []float32) {
	whole = slices.Repeat([]float32{guard}, n+16)
	start := r.IntN(8)
	x = whole[start : start+n]
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x, whole
}

func guards(x []float32) (n int) {
	for _, v := range x {
		if v == guard {
			n++
		}
	}
	return n
}

func TestVectorOperationsAreThoseOfALoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range 300 {
			x, _ := cut(r, n)
			y, whole := cut(r, n)
			z, beside := cut(r, n)
			first, old := slices.Clone(x), slices.Clone(y)
			for _, to := range [][]float32{z, y, x} {
				reset := func() { copy(x, first); copy(y, old) }
				reset()
				Axpy(to, -1.25, x, y)
				for i := range to {
					want := -1.25*float64(first[i]) + float64(old[i])
					if math.Abs(float64(to[i])-want) > (math.Abs(want)+math.Abs(float64(first[i])))*0x1p-23 {
						t.Fatalf("Axpy of %d elements: element %d is %v, want %v", n, i, to[i], want)
					}
					var one [1]float32
					if Axpy(one[:], -1.25, first[i:i+1], old[i:i+1]); one[0] != to[i] {
						t.Fatalf("Axpy of %d elements: element %d has other bits than alone", n, i)
					}
				}
				reset()
				Sum(to, 0.3, x, y)
				for i := range to {
					if want := float32(first[i]+old[i]) * 0.3; to[i] != want {
						t.Fatalf("Sum of %d elements: element %d is %v, want %v", n, i, to[i], want)
					}
				}
				reset()
				Axpby(to, 0.3, x, -1.7, y)
				for i := range to {
					if want := float32(0.3*first[i]) + float32(-1.7*old[i]); to[i] != want {
						t.Fatalf("Axpby of %d elements: element %d is %v, want %v", n, i, to[i], want)
					}
				}
			}
			if got := guards(beside); got != 16 {
				t.Fatalf("%d elements: wrote beside them", n)
			}

			copy(old, y)
			Scal(0.3, y)
			for i := range y {
				if y[i] != 0.3*old[i] {
					t.Fatalf("Scal of %d elements: element %d is %v, want %v", n, i, y[i], 0.3*old[i])
				}
			}
			if got := guards(whole); got != 16 {
				t.Fatalf("%d elements: wrote beside them", n)
			}
		}
	})
}

func TestVectorOperationsKeepNaNAndInf(t *testing.T) {
	withEach(t, func(t *testing.T) {
		inf := float32(math.Inf(1))
		for n := 1; n < 80; n++ {
			x, y := make([]float32, n), make([]float32, n)
			x[n-1] = inf
			if Axpy(y, 0, x, y); y[n-1] == y[n-1] {
				t.Fatalf("0·Inf is %v in element %d", y[n-1], n-1)
			}
			if Axpby(y, 1, y, 0, x); y[n-1] == y[n-1] {
				t.Fatalf("0·Inf is %v in element %d", y[n-1], n-1)
			}
			if Scal(0, x); x[n-1] == x[n-1] {
				t.Fatalf("0·Inf is %v in element %d", x[n-1], n-1)
			}
		}
	})
}

func TestRectifyKeepsWhatIsPositiveOrNaN(t *testing.T) {
	nan := math.Float32bits(float32(math.NaN()))
	special := []uint32{0, 1 << 31, 1, 1<<31 | 1, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001, nan, nan | 1<<31,
		0x7fffffff, 0xffffffff, 0x80800000}
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range 150 {
			x, _ := cut(r, n)
			y, whole := cut(r, n)
			for i := range x {
				if r.IntN(3) == 0 {
					x[i] = math.Float32frombits(special[r.IntN(len(special))])
				}
			}
			want := slices.Clone(y)
			for i, v := range x {
				if v <= 0 {
					want[i] = 0
				}
			}
			Rectify(y, x)
			for i := range y {
				if math.Float32bits(y[i]) != math.Float32bits(want[i]) {
					t.Fatalf("Rectify of %d elements: at %#x there is %v, want %v", n, math.Float32bits(x[i]), y[i],
						want[i])
				}
			}
			if got := guards(whole); got != 16 {
				t.Fatalf("%d elements: wrote beside them", n)
			}
		}
	})
}

func TestCopyRowsCopiesRows(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(25, 26))
		for range 100 {
			rows, width := r.IntN(20), []int{1 + r.IntN(20), 16, 32}[r.IntN(3)]
			pitch, step := width+r.IntN(30), width+r.IntN(30)
			from, to := draw(r, rows*step), slices.Repeat([]float32{guard}, rows*pitch)
			CopyRows(to, pitch, from, step, rows, width)
			for i, v := range to {
				want := float32(guard)
				if i%pitch < width {
					want = from[i/pitch*step+i%pitch]
				}
				if v != want {
					t.Fatalf("%d rows of %d from %d to %d: element %d is %v, want %v", rows, width, step, pitch, i, v,
						want)
				}
			}
		}
	})
}

func TestTransposeIsThatOfALoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 3))
		for range 300 {
			m, n := 1+r.IntN(40), 1+r.IntN(40)
			pitch, step := m+r.IntN(20), n+r.IntN(9)
			from, _ := cut(r, (m-1)*step+n)
			to, _ := cut(r, (n-1)*pitch+m+TransposeMargin)
			Transpose(to, pitch, from, step, m, n)
			for i := range m {
				for j := range n {
					if to[j*pitch+i] != from[i*step+j] {
						t.Fatalf("%d×%d: element %d, %d is %v, want %v", m, n, i, j, to[j*pitch+i], from[i*step+j])
					}
				}
			}
		}
	})
}
