package kernel

import "slices"

// Places are where rows of an operand begin, in units that the product names, counted from a place
// that it names too.
type Places struct {
	at          []int32
	least, most int32
}

// NewPlaces returns places that keep at, which holds at least one.
func NewPlaces(at []int32) Places { return Places{at, slices.Min(at), slices.Max(at)} }

// Len is the number of places.
func (p *Places) Len() int { return len(p.at) }

// Spread is the product C = bias + Σ a·b of columns a of M elements with rows b of N elements, as a
// convolution makes it of weights with the values under them, which it leaves where they are. There
// are Outer × Terms.Len() terms.
//
// An element of C is a chain of fused multiply-adds, beginning with the bias, for each block of at
// most 383 terms, the first of which sets C and the others add to it; blocks hold whole outer steps
// if these are not too long. The bits are the same for AVX-512, AVX2 and NEON, and do not depend on
// other elements.
type Spread struct {
	M, N           int
	Bias           []float32 // M values, or nil for zeros
	A              []float32 // a of outer step o and term t begins at o·OuterA + t·StepA
	StepA, OuterA  int
	B              []float32 // b of outer step o and term t begins at FirstB + o·OuterB + Scale·(place t of Terms)
	FirstB, OuterB int
	Terms          *Places
	Scale          int
	Outer          int
	C              []float32 // by rows, StepC elements apart
	StepC          int
}

// Compute computes the product on the calling goroutine. It panics if a dimension is less than 1 or
// a slice too short.
func (s *Spread) Compute() {
	s.check()
	terms := s.Terms.Len()
	if terms < block {
		group := (block - 1) / terms
		for o := 0; o < s.Outer; o += group {
			s.piece(o, min(s.Outer, o+group), 0, terms)
		}
		return
	}
	for o := range s.Outer {
		for t := 0; t < terms; t += block - 1 {
			s.piece(o, o+1, t, min(terms, t+block-1))
		}
	}
}

func (s *Spread) check() {
	if s.M < 1 || s.N < 1 || s.Outer < 1 || s.Scale < 1 || s.StepA < s.M || s.OuterA < 0 {
		panic(badSize)
	}
	if s.StepC < s.N {
		panic(badStrideC)
	}
	if (s.Outer-1)*s.OuterA+(s.Terms.Len()-1)*s.StepA+s.M > len(s.A) || s.Bias != nil && len(s.Bias) < s.M {
		panic(shortA)
	}
	least, most := s.FirstB+s.Scale*int(s.Terms.least), s.FirstB+s.Scale*int(s.Terms.most)
	if last := (s.Outer - 1) * s.OuterB; last < 0 {
		least += last
	} else {
		most += last
	}
	if least < 0 || most+s.N > len(s.B) {
		panic(shortB)
	}
	if (s.M-1)*s.StepC+s.N > len(s.C) {
		panic(shortC)
	}
}

// gather computes the terms [t0, t1) of the outer steps [o0, o1) as an ordinary product of copies
// of the operands.
func (s *Spread) gather(o0, o1, t0, t1 int) {
	first := o0 == 0 && t0 == 0
	k := (o1 - o0) * (t1 - t0)
	buffers := takeBuffers()
	buffers.a, buffers.b = grow(buffers.a, (k+1)*s.M), grow(buffers.b, (k+1)*s.N)
	a, b := buffers.a[:0], buffers.b[:0]
	beta := float32(1)
	if first {
		beta = 0
		if s.Bias != nil {
			k++
			a = append(a, s.Bias[:s.M]...)
			b = ones(b, s.N)
		}
	}
	for o := o0; o < o1; o++ {
		for t := t0; t < t1; t++ {
			a = append(a, s.A[o*s.OuterA+t*s.StepA:][:s.M]...)
			b = append(b, s.B[s.FirstB+o*s.OuterB+s.Scale*int(s.Terms.at[t]):][:s.N]...)
		}
	}
	Gemm(true, false, s.M, s.N, k, 1, a, s.M, b, s.N, beta, s.C, s.StepC)
	buffers.giveBack()
}

// ones appends n ones to x.
func ones(x []float32, n int) []float32 {
	for range n {
		x = append(x, 1)
	}
	return x
}

// Rake is the product C += A·Bᵀ of M rows a with a row b for each of Taps.Len() taps, as a
// convolution makes it for the gradient of its weights. Every row has Rows pieces of Width
// elements.
//
// An element of C has its products summed in sixteen chains of fused multiply-adds, element i of a
// piece going to chain i mod 16; the chains are added in a fixed order, and their sum to the old
// value. The bits are the same for AVX-512, AVX2 and NEON, and do not depend on other elements.
type Rake struct {
	M           int
	Rows, Width int
	A           []float32 // piece r of row i begins at i·StepA + r·RowA
	StepA, RowA int
	B           []float32 // piece r of tap t begins at r·RowB + Scale·(place t of Taps)
	RowB        int
	Taps        *Places
	Scale       int
	C           []float32 // by rows of a tap each, StepC elements apart
	StepC       int
}

// chains is the number of chains of a Rake, and mostChained the most of their terms: pieces that
// are used again and again stay close to the core.
const (
	chains      = 16
	mostChained = 192
)

// Chained returns how many pieces of width elements a Rake may have at most.
func Chained(width int) int { return max(1, mostChained/((width+chains-1)/chains)) }

// Compute computes the product on the calling goroutine. It panics if a dimension is less than 1,
// Rows more than Chained(Width), or a slice too short.
func (r *Rake) Compute() {
	r.check()
	r.compute()
}

func (r *Rake) check() {
	if r.M < 1 || r.Width < 1 || r.Rows < 1 || r.Rows > Chained(r.Width) || r.Scale < 1 || r.RowA < 0 || r.RowB < 0 ||
		r.StepA < 0 || r.Taps.least < 0 {
		panic(badSize)
	}
	if r.StepC < r.Taps.Len() {
		panic(badStrideC)
	}
	if (r.M-1)*r.StepA+(r.Rows-1)*r.RowA+r.Width > len(r.A) {
		panic(shortA)
	}
	if (r.Rows-1)*r.RowB+r.Scale*int(r.Taps.most)+r.Width > len(r.B) {
		panic(shortB)
	}
	if (r.M-1)*r.StepC+r.Taps.Len() > len(r.C) {
		panic(shortC)
	}
}

// computePortable computes the product piece by piece.
func (r *Rake) computePortable() {
	for i := range r.M {
		for t, place := range r.Taps.at {
			sum := r.C[i*r.StepC+t]
			for piece := range r.Rows {
				sum += dotPortable(r.A[i*r.StepA+piece*r.RowA:][:r.Width],
					r.B[piece*r.RowB+r.Scale*int(place):][:r.Width])
			}
			r.C[i*r.StepC+t] = sum
		}
	}
}
