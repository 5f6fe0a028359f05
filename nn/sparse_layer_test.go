package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fused is a·b + c, rounded once: the sum in float64 is rounded to odd, which leaves the next
// rounding right.
func fused(a, b, c float32) float32 {
	p, w := float64(a)*float64(b), float64(c)
	s := p + w
	t := s - p
	lost := (p - (s - t)) + (w - t)
	if u := math.Float64bits(s); lost != 0 && u&1 == 0 {
		if lost > 0 == (s > 0) {
			s = math.Float64frombits(u + 1)
		} else {
			s = math.Float64frombits(u - 1)
		}
	}
	return float32(s)
}

// strange are numbers whose products vanish or have a sign only.
var strange = []float32{float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -1e-40, 1e-30, -1e-30}

// drawNumbers draws n numbers, some of them strange.
func drawNumbers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if x[i] = float32(r.NormFloat64()); r.IntN(8) == 0 {
			x[i] = strange[r.IntN(len(strange))]
		}
	}
	return x
}

// drawRows draws rows of inputs of which each has at most a number that are not 0, some none.
func drawRows(r *rand.Rand, rows, inputs, most int) []float32 {
	x := make([]float32, rows*inputs)
	for i := range rows {
		row := x[i*inputs : (i+1)*inputs]
		for _, v := range drawNumbers(r, r.IntN(most+1)) {
			row[r.IntN(inputs)] = v
		}
	}
	return x
}

// TestSparseLayerIsTheDumbOne compares with chains over all inputs, and all rows, one by one.
func TestSparseLayerIsTheDumbOne(t *testing.T) {
	if !sparseProducts {
		t.Skip("there are no products of sparse rows here")
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		in, out := rapid.IntRange(6, 60).Draw(t, "inputs"), rapid.IntRange(1, 70).Draw(t, "outputs")
		set := drawRows(r, 20, in, rapid.IntRange(0, in/trainingShare).Draw(t, "most"))
		x := NewSparse(set, in)
		rows := make([]int32, rapid.IntRange(1, 30).Draw(t, "rows"))
		for i := range rows {
			rows[i] = int32(r.IntN(20))
		}
		l := layer{in: in, out: out, bias: in * out}
		params, s := drawNumbers(r, (in+1)*out), takeSparseLayer(l)
		defer s.giveBack()
		if !s.set(params) {
			t.Fatal("weights are taken not to be finite")
		}
		z := make([]float32, len(rows)*out+sparseColumns)
		s.forward(z, x, rows)
		d, grad := drawNumbers(r, len(rows)*out+sparseColumns), make([]float32, in*out)
		if rapid.Bool().Draw(t, "second tile") {
			grad = drawNumbers(r, in*out)
		}
		want := slices.Clone(grad)
		s.gradient(grad, d, x, rows)
		for o := range out {
			for i, row := range rows {
				var sum float32
				for k := range in {
					sum = fused(set[int(row)*in+k], params[o*in+k], sum)
				}
				if sum += params[in*out+o]; math.Float32bits(sum) != math.Float32bits(z[i*out+o]) && sum != 0 {
					t.Fatalf("output %d of row %d is %v, want %v", o, i, z[i*out+o], sum)
				}
			}
			for k := range in {
				var sum float32
				for i, row := range rows {
					sum = fused(set[int(row)*in+k], d[i*out+o], sum)
				}
				at, old := o*in+k, math.Float32bits(want[o*in+k])
				if want[at] += sum; math.Float32bits(want[at]) != math.Float32bits(grad[at]) && old != 1<<31 {
					t.Fatalf("gradient of weight %d, %d is %v, want %v", o, k, grad[at], want[at])
				}
			}
		}
	})
}

func TestWhatIsNotFiniteIsSeen(t *testing.T) {
	if !sparseProducts {
		t.Skip("there are no products of sparse rows here")
	}
	for n := range 100 {
		x := slices.Repeat([]float32{math.MaxFloat32}, n)
		if !finite(x) {
			t.Errorf("%d finite numbers are taken not to be", n)
		}
		for i := range x {
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				if x[i] = float32(v); finite(x) {
					t.Errorf("%v is not seen at %d of %d", v, i, n)
				}
			}
			x[i] = -1
		}
	}
}

// TestFewRowsAreWrittenOut tells by the room for them.
func TestFewRowsAreWrittenOut(t *testing.T) {
	if !sparseProducts {
		t.Skip("there are no products of sparse rows here")
	}
	for _, c := range []struct {
		outputs, share, batch int
		written               bool
	}{
		{8, 6, 7, true}, {8, 6, 8, false}, {16, 6, 15, true}, {16, 6, 16, false}, {17, 8, 31, true},
		{17, 8, 32, false}, {64, 8, 31, true}, {64, 8, 32, false}, {64, 6, 63, true}, {64, 6, 64, false},
	} {
		m, err := NewMLP([]int{96, c.outputs, 2}, ReLU)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, 96)
		for i := range 96 / c.share {
			x[i] = 1
		}
		b := Batch{Sparse: NewSparse(x, 96), Rows: make([]int32, c.batch), Y: make([]int32, c.batch)}
		w := m.NewWorkspace(c.batch).(*mlpWorkspace)
		w.Gradient(make([]float32, m.Params()), make([]float32, m.Params()), b)
		if got := w.dense != nil; got != c.written {
			t.Errorf("%d rows, a %dth not 0, %d outputs: written out is %t", c.batch, c.share, c.outputs, got)
		}
	}
}
