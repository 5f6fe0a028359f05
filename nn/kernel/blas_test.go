package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

func TestRegisterMakesGonumComputeWithThisPackage(t *testing.T) {
	if _, ok := blas32.Implementation().(gonum.Implementation); !ok {
		t.Fatalf("importing the package has plugged in %T", blas32.Implementation())
	}
	defer blas32.Use(blas32.Implementation())
	Register()
	if _, ok := blas32.Implementation().(BLAS); !ok {
		t.Errorf("after Register gonum computes with %T", blas32.Implementation())
	}
}

func near(got, want, size float32) bool { return math.Abs(float64(got-want)) <= 1e-5*float64(size) }

func TestBLASComputesWhatGonumDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	ours, gonums := BLAS{}, gonum.Implementation{}
	for _, tA := range []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans} {
		for _, tB := range []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans} {
			p := sample(r, tA != blas.NoTrans, tB != blas.NoTrans, 19, 35, 41, 2, 1.5, 0.5)
			got, want := append([]float32{}, p.c...), append([]float32{}, p.c...)
			ours.Sgemm(tA, tB, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, got, p.ldc)
			gonums.Sgemm(tA, tB, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, want, p.ldc)
			for i := range got {
				if !near(got[i], want[i], 50) {
					t.Fatalf("Sgemm %c%c: element %d is %v, gonum's %v", tA, tB, i, got[i], want[i])
				}
			}
		}
	}
	for _, step := range []int{1, 2, -3} {
		const n = 37
		x, y := make([]float32, 3*n), make([]float32, 3*n)
		for i := range x {
			x[i], y[i] = r.Float32(), r.Float32()
		}
		z := append([]float32{}, y...)
		ours.Saxpy(n, 0.5, x, step, y, step)
		gonums.Saxpy(n, 0.5, x, step, z, step)
		if got, want := ours.Sdot(n, x, step, y, step), gonums.Sdot(n, x, step, z, step); !near(got, want, 30) {
			t.Errorf("Sdot with step %d is %v, gonum's %v", step, got, want)
		}
		if step > 0 {
			ours.Sscal(n, 0.3, y, step)
			gonums.Sscal(n, 0.3, z, step)
		}
		for i := range y {
			if !near(y[i], z[i], 1) {
				t.Fatalf("step %d: element %d is %v, gonum's %v", step, i, y[i], z[i])
			}
		}
	}
}

func TestMistakesAreGonumsPanics(t *testing.T) {
	x := make([]float32, 4)
	for name, call := range map[string]func(blas.Float32){
		"Sgemm with a transposition of 0": func(i blas.Float32) { i.Sgemm(0, 'N', 1, 1, 1, 1, x, 1, x, 1, 0, x, 1) },
		"Saxpy of -1":                     func(i blas.Float32) { i.Saxpy(-1, 1, x, 1, x, 1) },
		"Saxpy beyond the end":            func(i blas.Float32) { i.Saxpy(5, 1, x, 1, x, 1) },
		"Sscal of step 0":                 func(i blas.Float32) { i.Sscal(2, 1, x, 0) },
		"Sdot beyond the end":             func(i blas.Float32) { i.Sdot(5, x, 1, x, 1) },
	} {
		if got, want := panicOf(func() { call(BLAS{}) }), panicOf(func() { call(gonum.Implementation{}) }); got == nil || got != want {
			t.Errorf("%s: panic %v, gonum's %v", name, got, want)
		}
	}
}

func panicOf(call func()) (v any) {
	defer func() { v = recover() }()
	call()
	return nil
}
