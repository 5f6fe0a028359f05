package compress

import (
	"math"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
)

// PowerSGD writes a matrix of n rows and m columns as the product of one of n rows and one of m, of
// Rank columns each, by one step of the power method that begins where the last one ended: 32·Rank·
// (n + m) bits. The rows of a tensor are its first dimension. Vectors, and matrices that would not
// get smaller, are written whole. It is biased, and made for feedback (T. Vogels et al., "PowerSGD:
// Practical Low-Rank Gradient Compression for Distributed Optimization", NeurIPS 2019, algorithm
// 1).
type PowerSGD struct {
	Rank int `plan:"rank" range:"1..64" doc:"columns of the two factors of a matrix"`
}

// Validate returns an error about a rank out of range.
func (o PowerSGD) Validate() error { return field.Check(o) }
func (PowerSGD) operator()         {}

func (o PowerSGD) reduction(d int, tensors []nn.Tensor, _ bool) reduction {
	if len(tensors) == 0 {
		tensors = []nn.Tensor{{Shape: []int{d}}}
	}
	p := &lowRank{d: d}
	for i := range tensors {
		t, next := &tensors[i], d
		if i+1 < len(tensors) {
			next = tensors[i+1].Offset
		}
		size := next - t.Offset
		f := factored{low: t.Offset, high: next}
		if len(t.Shape) > 1 && t.Shape[0] > 0 {
			n, m := t.Shape[0], size/t.Shape[0]
			if rank := min(o.Rank, n, m); rank*(n+m) < size {
				f.n, f.m, f.rank = n, m, rank
				size = rank * (n + m)
			}
		}
		p.kept += size
		p.parts = append(p.parts, f)
	}
	return p
}

type lowRank struct {
	d, kept int
	parts   []factored
}

// factored is the part of a vector from low to high: a matrix if it has a rank, else whole.
type factored struct {
	low, high, n, m, rank int
	right                 []float32 // m values a column, of the step before
}

func (p *lowRank) sizes() (values, side int) { return p.kept, 0 }

func (p *lowRank) work() float64 {
	work := 0.0
	for i := range p.parts {
		f := &p.parts[i]
		work += float64(4 * f.rank * f.n * f.m)
	}
	return work
}

func (p *lowRank) reduce(values, _, x []float32, r *rand.Rand) {
	for i := range p.parts {
		f := &p.parts[i]
		if f.rank == 0 {
			values = values[copy(values, x[f.low:f.high]):]
			continue
		}
		if f.right == nil {
			f.right = make([]float32, f.rank*f.m)
			for k := range f.right {
				f.right[k] = float32(r.NormFloat64())
			}
		}
		size := f.rank * (f.n + f.m)
		f.factor(values[:f.rank*f.n], values[f.rank*f.n:size], x[f.low:f.high])
		values = values[size:]
	}
}

// factor makes one step of the power method: the left factor is an orthonormal basis of x times the
// right one of the step before, and the right one is what x is in that basis.
func (f *factored) factor(left, right, x []float32) {
	for k := range f.rank {
		column := f.right[k*f.m : (k+1)*f.m]
		for i := range f.n {
			left[k*f.n+i] = float32(dot(x[i*f.m:(i+1)*f.m], column))
		}
		orthonormalise(left, k, f.n)
	}
	clear(right)
	for k := range f.rank {
		for i := range f.n {
			nn.AddScaled(right[k*f.m:(k+1)*f.m], left[k*f.n+i], x[i*f.m:(i+1)*f.m])
		}
	}
	for k := range f.rank { // a column of nothing would remain that
		if column := right[k*f.m : (k+1)*f.m]; dot(column, column) > 0 {
			copy(f.right[k*f.m:], column)
		}
	}
}

// orthonormalise makes column k orthogonal to those before and of length 1, or 0 if it depends on
// them (modified Gram–Schmidt).
func orthonormalise(columns []float32, k, n int) {
	own := columns[k*n : (k+1)*n]
	before := math.Sqrt(dot(own, own))
	for j := range k {
		other := columns[j*n : (j+1)*n]
		nn.AddScaled(own, -float32(dot(own, other)), other)
	}
	norm := math.Sqrt(dot(own, own))
	if !(norm > 1e-6*before) {
		clear(own)
		return
	}
	nn.Scale(own, float32(1/norm))
}

func dot(x, y []float32) float64 {
	sum := 0.0
	for i, v := range x {
		sum += float64(v) * float64(y[i])
	}
	return sum
}

func (p *lowRank) expand(x, values, _ []float32) error {
	for i := range p.parts {
		f := &p.parts[i]
		part := x[f.low:f.high]
		if f.rank == 0 {
			values = values[copy(part, values):]
			continue
		}
		left, right := values[:f.rank*f.n], values[f.rank*f.n:f.rank*(f.n+f.m)]
		clear(part)
		for k := range f.rank {
			for i := range f.n {
				nn.AddScaled(part[i*f.m:(i+1)*f.m], left[k*f.n+i], right[k*f.m:(k+1)*f.m])
			}
		}
		values = values[f.rank*(f.n+f.m):]
	}
	return nil
}
