package kernel

import (
	"runtime"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

// BLAS is gonum's float32 BLAS with the products and vector operations of this package in place of gonum's own. Unlike
// gonum's, its product does not skip zeros of A, so that 0·NaN and 0·Inf are NaN. The zero value is ready for use.
type BLAS struct {
	gonum.Implementation
	// Threads limits the threads of one product. Zero means as many as GOMAXPROCS says at the time.
	Threads int
}

var _ blas.Float32 = BLAS{}

// Register makes gonum compute with this package: it calls [blas32.Use] with the zero [BLAS]. A program calls it in the
// beginning of main; it must not run at the same time as a computation.
func Register() { blas32.Use(BLAS{}) }

// Sgemm computes C = alpha·op(A)·op(B) + beta·C, see [blas.Float32Level3].
func (i BLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if !known(tA) || !known(tB) {
		i.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	threads := i.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	ParallelGemm(threads, tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func known(t blas.Transpose) bool {
	return t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans
}

// contiguous reports whether n elements of a vector lie side by side; other vectors, and mistakes, are left to gonum.
func contiguous(n int, x []float32, step int) bool { return step == 1 && 0 <= n && n <= len(x) }

// Saxpy computes y += alpha·x, see [blas.Float32Level1].
func (i BLAS) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	if !contiguous(n, x, incX) || !contiguous(n, y, incY) {
		i.Implementation.Saxpy(n, alpha, x, incX, y, incY)
		return
	}
	if alpha != 0 {
		Axpy(alpha, x[:n], y[:n])
	}
}

// Sscal computes x *= alpha, see [blas.Float32Level1].
func (i BLAS) Sscal(n int, alpha float32, x []float32, incX int) {
	if alpha == 0 || !contiguous(n, x, incX) {
		i.Implementation.Sscal(n, alpha, x, incX)
		return
	}
	Scal(alpha, x[:n])
}

// Sdot returns the sum of x times y, see [blas.Float32Level1].
func (i BLAS) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	if !contiguous(n, x, incX) || !contiguous(n, y, incY) {
		return i.Implementation.Sdot(n, x, incX, y, incY)
	}
	return Dot(x[:n], y[:n])
}
