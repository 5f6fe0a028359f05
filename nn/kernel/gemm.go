package kernel

import "sync"

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
}

// Gemm computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine. op(A) is m×k and op(B) is k×n; A is stored
// by rows, lda elements apart, as it is (m×k) or transposed (k×m), and likewise B (k×n or n×k) and C (m×n). With
// beta = 0 the old values of C are not read. C must not overlap A or B. It panics if a dimension is negative, a stride
// less than a row, or a slice too short.
func Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	p := product{transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc}
	if p.check() {
		p.compute()
	}
}

// ParallelGemm is Gemm on up to so many threads, the calling goroutine's included: C is cut into blocks, one for each.
// A thread gets at least about a million multiply-adds, so that small products start no goroutine. The bits of C are
// those of Gemm.
func ParallelGemm(threads int, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	p := product{transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc}
	if !p.check() {
		return
	}
	rows, columns := p.split(threads)
	if rows*columns == 1 {
		p.compute()
		return
	}
	p.parallel(rows, columns)
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

// worth is how many multiply-adds a thread must get.
const worth = 1 << 20

// split returns into how many bands of rows and of columns C is cut for so many threads: of all ways the one in which
// threads read the least of A and B.
func (p *product) split(threads int) (rows, columns int) {
	threads = min(threads, p.m*p.n/worth*p.k+p.m*p.n%worth*p.k/worth)
	if threads < 2 || p.alpha == 0 {
		return 1, 1
	}
	least := p.m + p.n + 1
	rows, columns = 1, 1
	for r := 1; r <= threads; r++ {
		c := threads / r
		if r*c < threads || r > p.m || c > (p.n+active.columns-1)/active.columns {
			continue
		}
		if read := (p.m+r-1)/r + (p.n+c-1)/c; read < least {
			least, rows, columns = read, r, c
		}
	}
	return rows, columns
}

// block returns the product for the rows [i0, i1) and the columns [j0, j1) of C.
func (p *product) block(i0, i1, j0, j1 int) product {
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

// task is a part of a product on its way to a goroutine and back. It is kept for reuse, together with the function
// that a go statement starts, so that starting allocates nothing.
type task struct {
	product
	run  func()
	done *sync.WaitGroup
	wait sync.WaitGroup // for the parts that this one, the caller's, has started
	next *task          // of the parts that the caller has started
}

var tasks = sync.Pool{New: func() any {
	t := &task{}
	t.run = func() {
		t.compute()
		t.done.Done()
	}
	return t
}}

// parallel computes bands of rows times bands of columns of C, each on a goroutine of its own. Bands of columns begin
// at multiples of a tile's width.
func (p *product) parallel(rows, columns int) {
	first := tasks.Get().(*task)
	panels := (p.n + active.columns - 1) / active.columns
	for i := range rows {
		for j := range columns {
			if i == 0 && j == 0 {
				continue
			}
			t := tasks.Get().(*task)
			t.product = p.block(i*p.m/rows, (i+1)*p.m/rows, j*panels/columns*active.columns, min(p.n, (j+1)*panels/columns*active.columns))
			t.done, t.next, first.next = &first.wait, first.next, t
			first.wait.Add(1)
			go t.run()
		}
	}
	first.product = p.block(0, p.m/rows, 0, min(p.n, panels/columns*active.columns))
	first.compute()
	first.wait.Wait()
	for t := first; t != nil; {
		next := t.next
		t.product, t.done, t.next = product{}, nil, nil
		tasks.Put(t)
		t = next
	}
}
