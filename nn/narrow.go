package nn

import "math"

// Where there are no SIMD kernels, products with few columns are computed by the loops of this file, because general ones
// spend more on calls than on arithmetic there: a few sums at a time are held in registers, and the zeros of the left operand, which are looked up
// once for the two products that it takes part in, are left out without a mispredicted branch for each of them. The
// order of the sums is gonum's.

// Up to where these loops pay, found by measuring on amd64 with 32 rows and an inner dimension of 21 to 93: against
// gonum's, A·W takes 0.3 times as long with 5 columns, 0.6 with 21 (an eighth of A not zero), 0.7 with 32 and 1.1 with
// 64 (half of A not zero), and Aᵀ·D likewise; D·Wᵀ takes 0.5 times as long over 5 columns and as long over 10.
const (
	narrowColumns = 32 // of A·W and Aᵀ·D
	narrowInner   = 8  // of D in D·Wᵀ
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

// addSparseProduct computes Z += A·W for A m×k with the given non-zero elements, W k×n and Z m×n.
func addSparseProduct(z, a, w []float32, nz *nonzeros, m, n, k int) {
	for i := range m {
		index, a, z := nz.row(i), a[i*k:(i+1)*k], z[i*n:(i+1)*n]
		j := 0
		for ; j+8 <= n; j += 8 {
			gather8((*[8]float32)(z[j:]), a, w[j:], index, n)
		}
		for ; j+4 <= n; j += 4 {
			gather4((*[4]float32)(z[j:]), a, w[j:], index, n)
		}
		for ; j < n; j++ {
			sum := z[j]
			for _, l := range index {
				sum += float32(a[l] * w[int(l)*n+j])
			}
			z[j] = sum
		}
	}
}

// gather8 adds to z the rows of w with the given indices, n apart, each times its element of a.
func gather8(z *[8]float32, a, w []float32, index []int32, n int) {
	z0, z1, z2, z3, z4, z5, z6, z7 := z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7]
	for _, l := range index {
		v, w := a[l], (*[8]float32)(w[int(l)*n:])
		z0 += float32(v * w[0])
		z1 += float32(v * w[1])
		z2 += float32(v * w[2])
		z3 += float32(v * w[3])
		z4 += float32(v * w[4])
		z5 += float32(v * w[5])
		z6 += float32(v * w[6])
		z7 += float32(v * w[7])
	}
	z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = z0, z1, z2, z3, z4, z5, z6, z7
}

// gather4 is gather8 for four columns.
func gather4(z *[4]float32, a, w []float32, index []int32, n int) {
	z0, z1, z2, z3 := z[0], z[1], z[2], z[3]
	for _, l := range index {
		v, w := a[l], (*[4]float32)(w[int(l)*n:])
		z0 += float32(v * w[0])
		z1 += float32(v * w[1])
		z2 += float32(v * w[2])
		z3 += float32(v * w[3])
	}
	z[0], z[1], z[2], z[3] = z0, z1, z2, z3
}

// addSparseTransposedProduct computes G += Aᵀ·D for A m×k with the given non-zero elements, D m×n and G k×n.
func addSparseTransposedProduct(g, a, d []float32, nz *nonzeros, m, n, k int) {
	for i := range m {
		index, a, d := nz.row(i), a[i*k:(i+1)*k], d[i*n:(i+1)*n]
		j := 0
		for ; j+8 <= n; j += 8 {
			scatter8(g[j:], a, (*[8]float32)(d[j:]), index, n)
		}
		for ; j+4 <= n; j += 4 {
			scatter4(g[j:], a, (*[4]float32)(d[j:]), index, n)
		}
		for ; j < n; j++ {
			dj := d[j]
			for _, l := range index {
				g[int(l)*n+j] += float32(a[l] * dj)
			}
		}
	}
}

// scatter8 adds d, times the element of a, to each of the rows of g with the given indices, n apart.
func scatter8(g, a []float32, d *[8]float32, index []int32, n int) {
	d0, d1, d2, d3, d4, d5, d6, d7 := d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]
	for _, l := range index {
		v, g := a[l], (*[8]float32)(g[int(l)*n:])
		g[0] += float32(v * d0)
		g[1] += float32(v * d1)
		g[2] += float32(v * d2)
		g[3] += float32(v * d3)
		g[4] += float32(v * d4)
		g[5] += float32(v * d5)
		g[6] += float32(v * d6)
		g[7] += float32(v * d7)
	}
}

// scatter4 is scatter8 for four columns.
func scatter4(g, a []float32, d *[4]float32, index []int32, n int) {
	d0, d1, d2, d3 := d[0], d[1], d[2], d[3]
	for _, l := range index {
		v, g := a[l], (*[4]float32)(g[int(l)*n:])
		g[0] += float32(v * d0)
		g[1] += float32(v * d1)
		g[2] += float32(v * d2)
		g[3] += float32(v * d3)
	}
}

// narrowProductTransposed computes C = D·Wᵀ for D m×n, W k×n and C m×k.
func narrowProductTransposed(c, d, w []float32, m, n, k int) {
	for i := range m {
		ci, di := c[i*k:(i+1)*k], d[i*n:(i+1)*n]
		clear(ci)
		j := 0
		for ; j+4 <= n; j += 4 {
			d := (*[4]float32)(di[j:])
			d0, d1, d2, d3 := d[0], d[1], d[2], d[3]
			o := j
			for l := range ci {
				w := (*[4]float32)(w[o:])
				ci[l] += (float32(d0*w[0]) + float32(d1*w[1])) + (float32(d2*w[2]) + float32(d3*w[3]))
				o += n
			}
		}
		for ; j < n; j++ {
			dj, o := di[j], j
			for l := range ci {
				ci[l] += float32(dj * w[o])
				o += n
			}
		}
	}
}
