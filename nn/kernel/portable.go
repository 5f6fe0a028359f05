package kernel

import "math"

// The twin in plain Go of what is elsewhere done in assembly. Products are converted before they
// are added, which keeps compilers from fusing the two, so that the bits are the same on every
// platform.

// multiplyPortable computes a product with alpha ≠ 0 and k > 0.
func (p *product) multiplyPortable() {
	for i := range p.m {
		start, step := i*p.lda, 1
		if p.transA {
			start, step = i, p.lda
		}
		a := p.a[start:]
		c := p.c[i*p.ldc:][:p.n]
		if p.transB {
			p.rowTransposed(c, a, step)
		} else {
			p.row(c, a, step)
		}
	}
}

// row computes a row c of C from a row of op(A), whose elements are step apart, and B as it is.
func (p *product) row(c, a []float32, step int) {
	j := 0
	for ; j+8 <= p.n; j += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for l := range p.k {
			v, b := a[l*step], (*[8]float32)(p.b[l*p.ldb+j:])
			s0 += float32(v * b[0])
			s1 += float32(v * b[1])
			s2 += float32(v * b[2])
			s3 += float32(v * b[3])
			s4 += float32(v * b[4])
			s5 += float32(v * b[5])
			s6 += float32(v * b[6])
			s7 += float32(v * b[7])
		}
		for q, s := range [...]float32{s0, s1, s2, s3, s4, s5, s6, s7} {
			p.put(&c[j+q], s)
		}
	}
	for ; j < p.n; j++ {
		var s float32
		for l := range p.k {
			s += float32(a[l*step] * p.b[l*p.ldb+j])
		}
		p.put(&c[j], s)
	}
}

// rowTransposed is row for B stored transposed.
func (p *product) rowTransposed(c, a []float32, step int) {
	j := 0
	for ; j+4 <= p.n; j += 4 {
		b0, b1, b2, b3 := p.b[j*p.ldb:][:p.k], p.b[(j+1)*p.ldb:][:p.k], p.b[(j+2)*p.ldb:][:p.k], p.b[(j+3)*p.ldb:][:p.k]
		var s0, s1, s2, s3 float32
		for l := range p.k {
			v := a[l*step]
			s0 += float32(v * b0[l])
			s1 += float32(v * b1[l])
			s2 += float32(v * b2[l])
			s3 += float32(v * b3[l])
		}
		for q, s := range [...]float32{s0, s1, s2, s3} {
			p.put(&c[j+q], s)
		}
	}
	for ; j < p.n; j++ {
		var s float32
		for l, v := range p.b[j*p.ldb:][:p.k] {
			s += float32(a[l*step] * v)
		}
		p.put(&c[j], s)
	}
}

// put sets an element of C, given the sum of its products.
func (p *product) put(c *float32, sum float32) {
	switch p.beta {
	case 0:
		*c = p.alpha * sum
	case 1:
		*c += float32(p.alpha * sum)
	default:
		*c = float32(p.beta**c) + float32(p.alpha*sum)
	}
}

// copySixteensPortable copies rows of a multiple of 16 elements.
func copySixteensPortable(to []float32, pitch int, from []float32, step, rows, width int) {
	for i := range rows {
		for j := 0; j < width; j += 16 {
			*(*[16]float32)(to[i*pitch+j:]) = *(*[16]float32)(from[i*step+j:])
		}
	}
}

func transposePortable(to []float32, pitch int, from []float32, step, m, n int) {
	for i := range m {
		for j, v := range from[i*step:][:n] {
			to[j*pitch+i] = v
		}
	}
}

func axpyPortable(alpha float32, x, y, z []float32) {
	y, z = y[:len(x)], z[:len(x)]
	for i, v := range x {
		z[i] = float32(alpha*v) + y[i]
	}
}

func scalPortable(alpha float32, x []float32) {
	for i := range x {
		x[i] *= alpha
	}
}

func sumPortable(alpha float32, x, y, z []float32) {
	y, z = y[:len(x)], z[:len(x)]
	for i, v := range x {
		z[i] = float32(v+y[i]) * alpha
	}
}

func axpbyPortable(alpha, beta float32, x, y, z []float32) {
	y, z = y[:len(x)], z[:len(x)]
	for i, v := range x {
		z[i] = float32(alpha*v) + float32(beta*y[i])
	}
}

func dotPortable(x, y []float32) float32 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float32
	for len(x) >= 4 && len(y) >= 4 {
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
		x, y = x[4:], y[4:]
	}
	s := (s0 + s2) + (s1 + s3)
	for i, v := range x {
		s += float32(v * y[i])
	}
	return s
}

// rectifyPortable has no branches, which would be mispredicted half the time.
func rectifyPortable(y, x []float32) {
	y = y[:len(x)]
	for i, v := range x {
		// Read as an integer, a positive v is above 0, and a NaN with a sign is above -Inf.
		const negativeInf = -1 << 23
		b := int64(int32(math.Float32bits(v)))
		keep := (b | -b) & (negativeInf - b) >> 63
		y[i] = math.Float32frombits(math.Float32bits(y[i]) & uint32(keep))
	}
}
