package nn

import "math"

// Where there are no SIMD kernels, products with few columns are computed by the loops of this
// file, because general ones spend more on calls than on arithmetic there: a few sums at a time are
// held in registers, and the zeros of the left operand, which are looked up once for the two
// products that it takes part in, are left out without a mispredicted branch for each of them. The
// order of the sums is gonum's.

// Up to where these loops pay, found by measuring on amd64 with 32 rows and an inner dimension of
// 21 to 93: against gonum's, A·Wᵀ takes 0.3 times as long with 5 columns, 0.6 with 21 (an eighth of
// A not zero), 0.7 with 32 and 1.1 with 64 (half of A not zero), and Dᵀ·A likewise; D·W takes 0.5
// times as long over 5 columns and as long over 10.
const (
	narrowColumns = 32 // of A·W and Aᵀ·D
	narrowInner   = 8  // of D in D·W
)

// nonzeros lists the places of the non-zero elements of a matrix, row by row.
type nonzeros struct {
	columns int
	index   []int32 // rows×columns, of each row the first count are used: the columns of its non-zero elements
	count   []int32 // of each row
}

func newNonzeros(rows, columns int) *nonzeros {
	return &nonzeros{columns: columns, index: make([]int32, rows*columns), count: make([]int32, rows)}
}

// find looks up the non-zero elements of a, which has nz.columns columns.
func (nz *nonzeros) find(a []float32) {
	for i := 0; len(a) > 0; i++ {
		row := a[:nz.columns]
		index := nz.index[i*nz.columns:][:len(row)]
		n := 0
		for j := range row {
			// The place is written in any case, and kept by moving on if the element is not ±0.
			index[n] = int32(j)
			n += int((math.Float32bits(row[j])&^(1<<31) + (1<<31 - 1)) >> 31)
		}
		nz.count[i] = int32(n)
		a = a[nz.columns:]
	}
}

func (nz *nonzeros) row(i int) []int32 {
	return nz.index[i*nz.columns:][:nz.count[i]]
}

// addSparseProduct computes Z += A·Wᵀ for A m×k with the given non-zero elements, W n×k and Z m×n.
func addSparseProduct(z, a, w []float32, nz *nonzeros, m, n, k int) {
	for i := range m {
		index, a, z := nz.row(i), a[i*k:(i+1)*k], z[i*n:(i+1)*n]
		j := 0
		for ; j+4 <= n; j += 4 {
			gather4((*[4]float32)(z[j:]), a, w[j*k:(j+4)*k], index)
		}
		for ; j < n; j++ {
			sum, row := z[j], w[j*k:(j+1)*k]
			for _, l := range index {
				sum += float32(a[l] * row[l])
			}
			z[j] = sum
		}
	}
}

// gather4 adds to z the products of a with four rows of w, of which the elements with the given
// indices count.
func gather4(z *[4]float32, a, w []float32, index []int32) {
	k := len(a)
	w0, w1, w2, w3 := w[:k], w[k : 2*k][:k], w[2*k : 3*k][:k], w[3*k : 4*k][:k]
	z0, z1, z2, z3 := z[0], z[1], z[2], z[3]
	for _, l := range index {
		if uint(l) >= uint(k) { // one check for all five
			break
		}
		v := a[l]
		z0 += float32(v * w0[l])
		z1 += float32(v * w1[l])
		z2 += float32(v * w2[l])
		z3 += float32(v * w3[l])
	}
	z[0], z[1], z[2], z[3] = z0, z1, z2, z3
}

// addSparseTransposedProduct computes G += Dᵀ·A for D m×n, A m×k with the given non-zero elements
// and G n×k.
func addSparseTransposedProduct(g, d, a []float32, nz *nonzeros, m, n, k int) {
	for i := range m {
		index, a, d := nz.row(i), a[i*k:(i+1)*k], d[i*n:(i+1)*n]
		j := 0
		for ; j+4 <= n; j += 4 {
			scatter4(g[j*k:(j+4)*k], (*[4]float32)(d[j:]), a, index)
		}
		for ; j < n; j++ {
			row := g[j*k : (j+1)*k]
			for _, l := range index {
				row[l] += float32(a[l] * d[j])
			}
		}
	}
}

// scatter4 adds to four rows of g the elements of a with the given indices, each times its row's
// element of d.
func scatter4(g []float32, d *[4]float32, a []float32, index []int32) {
	k := len(a)
	g0, g1, g2, g3 := g[:k], g[k : 2*k][:k], g[2*k : 3*k][:k], g[3*k : 4*k][:k]
	d0, d1, d2, d3 := d[0], d[1], d[2], d[3]
	for _, l := range index {
		if uint(l) >= uint(k) { // one check for all five
			break
		}
		v := a[l]
		g0[l] += float32(v * d0)
		g1[l] += float32(v * d1)
		g2[l] += float32(v * d2)
		g3[l] += float32(v * d3)
	}
}

// narrowProduct computes C = D·W for D m×n, W n×k and C m×k.
func narrowProduct(c, d, w []float32, m, n, k int) {
	for i := range m {
		c, d := c[i*k:(i+1)*k], d[i*n:(i+1)*n]
		clear(c)
		j := 0
		for ; j+4 <= n; j += 4 {
			d0, d1, d2, d3 := d[j], d[j+1], d[j+2], d[j+3]
			w := w[j*k : (j+4)*k]
			w0, w1, w2, w3 := w[:len(c)], w[k:][:len(c)], w[2*k:][:len(c)], w[3*k:][:len(c)]
			for l := range c {
				c[l] += (float32(d0*w0[l]) + float32(d1*w1[l])) + (float32(d2*w2[l]) + float32(d3*w3[l]))
			}
		}
		for ; j < n; j++ {
			dj, w := d[j], w[j*k:][:len(c)]
			for l := range c {
				c[l] += float32(dj * w[l])
			}
		}
	}
}
