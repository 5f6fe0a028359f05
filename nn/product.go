package nn

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

// addProduct computes Z += A·W for A m×k, W k×n and Z m×n. If nz is not nil it is left with the non-zero elements
// of A.
//
// Zeros of the left operand are skipped, by gonum as well, so inputs that are mostly zero (one-hot columns, dark
// pixels) cost what their other elements cost; the price is that 0·NaN and 0·Inf count as 0 there.
func addProduct(z, a, w []float32, nz *nonzeros, m, n, k int) {
	if nz == nil || !portable() {
		sgemm(blas.NoTrans, blas.NoTrans, m, n, k, a, k, w, n, 1, z, n)
		return
	}
	nz.find(a)
	addSparseProduct(z, a, w, nz, m, n, k)
}

// addTransposedProduct computes G += Aᵀ·D for A m×k, D m×n and G k×n, the gradient of the weights. If nz is not nil
// it is as addProduct left it for the same A.
func addTransposedProduct(g, a, d []float32, nz *nonzeros, m, n, k int) {
	if nz == nil || !portable() {
		sgemm(blas.Trans, blas.NoTrans, k, n, m, a, k, d, n, 1, g, n)
		return
	}
	addSparseTransposedProduct(g, a, d, nz, m, n, k)
}

// productTransposed computes C = D·Wᵀ for D m×n, W k×n and C m×k, the gradient of a layer's inputs.
func productTransposed(c, d, w []float32, m, n, k int) {
	if n > narrowInner || !portable() {
		sgemm(blas.NoTrans, blas.Trans, m, k, n, d, n, w, n, 0, c, k)
		return
	}
	narrowProductTransposed(c, d, w, m, n, k)
}

// portable tells whether gonum's own implementation is in place, rather than one that the program has plugged in.
func portable() bool {
	_, ok := blas32.Implementation().(gonum.Implementation)
	return ok
}

// sgemm computes C = op(A)·op(B) + beta·C, where op(A) is m×k and op(B) is k×n, with the plugged-in implementation.
// gonum's own is called block by block: on a product of four or more blocks of 64×64 of C it would start goroutines
// and allocate.
func sgemm(ta, tb blas.Transpose, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	const block, serial = 64, 3
	impl := blas32.Implementation()
	columns, rows := n, m
	if portable() {
		columns = min(n, serial*block)
		rows = serial / ((columns + block - 1) / block) * block
	}
	stepA, stepB := lda, 1
	if ta == blas.Trans {
		stepA = 1
	}
	if tb == blas.Trans {
		stepB = ldb
	}
	for j := 0; j < n; j += columns {
		for i := 0; i < m; i += rows {
			impl.Sgemm(ta, tb, min(rows, m-i), min(columns, n-j), k, 1, a[i*stepA:], lda, b[j*stepB:], ldb, beta, c[i*ldc+j:], ldc)
		}
	}
}

// AddScaled computes dst += alpha·src with the plugged-in implementation. The two must have the same length.
func AddScaled(dst []float32, alpha float32, src []float32) {
	if len(dst) != len(src) {
		panic(badVectors)
	}
	if len(dst) > 0 {
		blas32.Implementation().Saxpy(len(dst), alpha, src, 1, dst, 1)
	}
}
