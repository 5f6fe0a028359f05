package kernel

// product is C = alpha·op(A)·op(B) + beta·C, where op(A) is m×k, op(B) is k×n, C is m×n, and all
// are stored by rows.
type product struct {
	transA, transB bool
	m, n, k        int
	alpha          float32
	a              []float32
	lda            int
	b              []float32
	ldb            int
	beta           float32
	c              []float32
	ldc            int
}

// Gemm computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine. op(A) is m×k and op(B) is
// k×n; A is stored by rows, lda elements apart, as it is (m×k) or transposed (k×m), and likewise B
// (k×n or n×k) and C (m×n). With beta = 0 the old values of C are not read. C must not overlap A or
// B. It panics if a dimension is negative, a stride less than a row, or a slice too short.
func Gemm(
	transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int,
) {
	p := product{transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc}
	if p.check() {
		p.compute()
	}
}

// check panics if the arguments do not fit together, and reports whether there is anything to
// compute.
func (p *product) check() bool {
	rowsA, widthA, rowsB, widthB := p.m, p.k, p.k, p.n
	if p.transA {
		rowsA, widthA = widthA, rowsA
	}
	if p.transB {
		rowsB, widthB = widthB, rowsB
	}
	switch {
	case p.m < 0 || p.n < 0 || p.k < 0:
		panic(badSize)
	case p.lda < max(1, widthA):
		panic(badStrideA)
	case p.ldb < max(1, widthB):
		panic(badStrideB)
	case p.ldc < max(1, p.n):
		panic(badStrideC)
	case p.m == 0 || p.n == 0:
		return false
	case len(p.a) < (rowsA-1)*p.lda+widthA:
		panic(shortA)
	case len(p.b) < (rowsB-1)*p.ldb+widthB:
		panic(shortB)
	case len(p.c) < (p.m-1)*p.ldc+p.n:
		panic(shortC)
	}
	return true
}

// compute computes a checked product.
func (p *product) compute() {
	if p.alpha == 0 || p.k == 0 {
		p.scale()
		return
	}
	p.multiply()
}

// scale multiplies C by beta.
func (p *product) scale() {
	if p.beta == 1 {
		return
	}
	for i := range p.m {
		row := p.c[i*p.ldc:][:p.n]
		if p.beta == 0 {
			clear(row)
		} else {
			Scal(p.beta, row)
		}
	}
}

// block is the length of the chains in which products are summed in assembly: a panel of op(B) of
// that length and of a tile's width stays close to the core. It decides the bits of results.
const block = 384

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// grow returns a slice of n elements, x if it is long enough. Old elements are lost.
func grow(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n+n/4)
	}
	return x[:n]
}
