package kernel

// product is C = alpha·op(A)·op(B) + beta·C, where op(A) is m×k, op(B) is k×n, C is m×n, and all are stored by rows.
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
	packedB        []float32 // all of op(B) as packPanel leaves it, or nil
}

// Gemm computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine. op(A) is m×k and op(B) is k×n; A is stored
// by rows, lda elements apart, as it is (m×k) or transposed (k×m), and likewise B (k×n or n×k) and C (m×n). With
// beta = 0 the old values of C are not read. C must not overlap A or B. It panics if a dimension is negative, a stride
// less than a row, or a slice too short.
func Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	p := product{transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, nil}
	if p.check() {
		p.compute()
	}
}

// worth is how many multiply-adds there must be for each thread.
const worth = 1 << 20

// ParallelGemm is Gemm on up to so many threads, the calling goroutine's included, which take bands of rows or columns
// of C until none is left. A product of less than about two million multiply-adds starts no goroutine. The bits of C
// are those of Gemm.
func ParallelGemm(threads int, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	p := product{transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, nil}
	if !p.check() {
		return
	}
	threads = min(threads, p.m*p.n/worth*p.k+p.m*p.n%worth*p.k/worth)
	if threads < 2 || p.alpha == 0 {
		p.compute()
		return
	}
	p.parallel(threads)
}

// check panics if the arguments do not fit together, and reports whether there is anything to compute.
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
	if p.k > 0 {
		q.a, q.b = p.a[i0*stepA:], p.b[j0*stepB:]
	}
	q.c = p.c[i0*p.ldc+j0:]
	return q
}

// takeTerms leaves of a product's terms the ones of [l0, l1): the first ones take care of beta, the others add.
func (p *product) takeTerms(l0, l1 int) {
	stepA, stepB := 1, p.ldb
	if p.transA {
		stepA = p.lda
	}
	if p.transB {
		stepB = 1
	}
	p.a, p.b, p.k = p.a[l0*stepA:], p.b[l0*stepB:], l1-l0
	if l0 > 0 {
		p.beta = 1
	}
}
