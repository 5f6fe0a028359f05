package nn

import "github.com/gradwire/gradwire/nn/kernel"

// addProductTransposed computes Z += A·Wᵀ for A m×k, W n×k and Z m×n. If nz is not nil it is left
// with the non-zero elements of A.
//
// Where there are no SIMD kernels, zeros of a narrow product's left operand are skipped, so inputs
// that are mostly zero (one-hot columns, dark pixels) cost what their other elements cost; the
// price is that 0·NaN and 0·Inf count as 0 there.
func addProductTransposed(z, a, w []float32, nz *nonzeros, m, n, k int) {
	if nz == nil {
		sgemm(noTrans, trans, m, n, k, a, k, w, k, 1, z, n)
		return
	}
	nz.find(a)
	addSparseProduct(z, a, w, nz, m, n, k)
}

// addTransposedProduct computes G += Dᵀ·A for D m×n, A m×k and G n×k, the gradient of the weights.
// If nz is not nil it is as addProductTransposed left it for the same A.
func addTransposedProduct(g, d, a []float32, nz *nonzeros, m, n, k int) {
	if nz == nil {
		sgemm(trans, noTrans, n, k, m, d, n, a, k, 1, g, k)
		return
	}
	addSparseTransposedProduct(g, d, a, nz, m, n, k)
}

// product computes C = D·W for D m×n, W n×k and C m×k, the gradient of a layer's inputs.
func product(c, d, w []float32, m, n, k int) {
	if n > narrowInner || !portable {
		sgemm(noTrans, noTrans, m, k, n, d, n, w, k, 0, c, k)
		return
	}
	narrowProduct(c, d, w, m, n, k)
}

// portable tells that no SIMD kernels are at hand, so that the loops of narrow.go are faster for
// few columns.
var portable = kernel.Name() == "portable"

// sgemm computes C = op(A)·op(B) + beta·C, where op(A) is m×k and op(B) is k×n, on the calling
// goroutine.
func sgemm(ta, tb orientation, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32,
	ldc int) {
	kernel.Gemm(bool(ta), bool(tb), m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
}

// orientation says how a matrix takes part in a product.
type orientation bool

const (
	noTrans orientation = false
	trans   orientation = true
)

// AddScaled computes dst += alpha·src. The two must have the same length.
func AddScaled(dst []float32, alpha float32, src []float32) {
	if len(dst) != len(src) {
		panic(badVectors)
	}
	kernel.Axpy(dst, alpha, src, dst)
}

// WeightedSum computes dst = alpha·x + beta·y, both products being rounded before they are added.
// The three must have the same length; dst may be x or y.
func WeightedSum(dst []float32, alpha float32, x []float32, beta float32, y []float32) {
	if len(dst) != len(x) || len(dst) != len(y) {
		panic(badVectors)
	}
	kernel.Axpby(dst, alpha, x, beta, y)
}

// Scale computes x *= alpha.
func Scale(x []float32, alpha float32) { kernel.Scal(alpha, x) }

// ScaledSum computes dst = alpha·(x + y), the sum being rounded before it is multiplied. The three
// must have the same length; dst may be x or y.
func ScaledSum(dst []float32, alpha float32, x, y []float32) {
	if len(dst) != len(x) || len(dst) != len(y) {
		panic(badVectors)
	}
	kernel.Sum(dst, alpha, x, y)
}
