package nn

import (
	"slices"

	"github.com/gradwire/gradwire/nn/kernel"
)

// conv is a convolution. Its products read the values under the weights where they are: for one row
// of outputs, the values under a weight are neighbours, lanes after lanes. (To lay them out as the
// columns of a matrix first, as K. Chellapilla, S. Puri, P. Simard, "High Performance Convolutional
// Neural Networks for Document Processing", 2006, moves more memory than the products take time.)
type conv struct {
	window
	in, out Shape
	padded  Shape         // in with its padding
	row     kernel.Places // under the weights of one row of all kernels: channel, column
	taps    kernel.Places // under all weights of a kernel
	order   []int         // columns of a kernel, such that those that an input takes part with follow each other
	spans   []span        // of a row of inputs
	first   kernel.Places // only zero
	ones    []float32     // as many as a row of outputs has
}

// span is of neighbouring inputs of a row that take part in outputs by the same columns of a
// kernel.
type span struct {
	first, end int
	columns    int            // place in the order of the first of these columns
	outputs    *kernel.Places // of one row: column of the kernel, output channel; counted from output
	output     int            // column of the first output
}

func newConv(w window, in, out Shape) *conv {
	c := &conv{window: w, in: in, out: out}
	for rest := range w.stride {
		for j := rest; j < w.size; j += w.stride {
			c.order = append(c.order, j)
		}
	}
	c.padded = Shape{in.Channels, in.Height + 2*w.padding, in.Width + 2*w.padding}
	var row, taps []int32
	for ch := range in.Channels {
		for i := range w.size {
			for j := range w.size {
				at := int32((ch*c.padded.Height+i)*c.padded.Width + j)
				if taps = append(taps, at); i == 0 {
					row = append(row, at)
				}
			}
		}
	}
	c.row, c.taps, c.first = kernel.NewPlaces(row), kernel.NewPlaces(taps), kernel.NewPlaces([]int32{0})
	c.ones = slices.Repeat([]float32{1}, out.Width*tileLanes)
	c.divide()
	return c
}

// divide finds the spans.
func (c *conv) divide() {
	known := map[int]*kernel.Places{} // by the number of columns of a kernel
	last := [2]int{-1, -1}
	for x := range c.in.Width {
		low, n := reach(x+c.padding, c.stride, c.size, c.out.Width)
		if key := [2]int{low, n}; key != last || c.stride > 1 {
			s := span{first: x}
			if n > 0 {
				// Outputs of later columns of the kernel lie to the left.
				high := low + (n-1)*c.stride
				s.columns, s.output = slices.Index(c.order, low), (x+c.padding-high)/c.stride
				if known[n] == nil {
					p := c.outputs(n)
					known[n] = &p
				}
				s.outputs = known[n]
			}
			c.spans, last = append(c.spans, s), key
		}
		c.spans[len(c.spans)-1].end = x + 1
	}
}

// reach returns the columns of a kernel that multiply an input, counted with its padding, in any of
// the outputs: the first one, and the number n of them, a stride apart.
func reach(input, stride, size, outputs int) (first, n int) {
	// Output o reads the input by column input - o·stride.
	most := min(input/stride, outputs-1)
	least := max(0, (input-size+stride)/stride)
	if input < size {
		least = 0
	}
	if most < least {
		return 0, 0
	}
	return input - most*stride, most - least + 1
}

// outputs returns where the outputs are that n columns of a kernel make of the same input.
func (c *conv) outputs(n int) kernel.Places {
	at := make([]int32, 0, n*c.out.Channels)
	for i := range n {
		for ch := range c.out.Channels {
			at = append(at, int32(ch*c.out.Height*c.out.Width+n-1-i))
		}
	}
	return kernel.NewPlaces(at)
}

func (c *conv) output() Shape { return c.out }

func (c *conv) parameters() (weight, bias, fan int) {
	taps := c.taps.Len()
	return c.out.Channels * taps, c.out.Channels, taps
}

func (c *conv) work() float64      { return 2 * float64(c.out.Size()) * float64(c.taps.Len()) }
func (c *conv) needs() (x, y bool) { return true, false }

// prepared is how many elements prepare writes.
func (c *conv) prepared() int { return 2 * c.out.Channels * c.taps.Len() }

// prepare writes the weights for forward, row×input channel×column×output channel, and after them
// for backward, row×column (in the order)×output channel×input channel.
func (c *conv) prepare(to, params []float32) {
	outs, ins, size := c.out.Channels, c.in.Channels, c.size
	ahead, back := to[:outs*ins*size*size], to[outs*ins*size*size:]
	for j, column := range c.order {
		for i := range size {
			for ch := range ins {
				for out := range outs {
					v := params[((out*ins+ch)*size+i)*size+column]
					ahead[((i*ins+ch)*size+column)*outs+out] = v
					back[((i*size+j)*outs+out)*ins+ch] = v
				}
			}
		}
	}
}

// room is the number of elements of the padded input, if there is padding.
func (c *conv) room(lanes int) int {
	if c.padding == 0 {
		return 0
	}
	return c.padded.Size() * lanes
}

// pad returns x with its padding.
func (c *conv) pad(t *tile, x []float32) []float32 {
	if c.padding == 0 {
		return x
	}
	to, width, pitch := t.room[:c.padded.Size()*t.lanes], c.in.Width*t.lanes, c.padded.Width*t.lanes
	clear(to)
	for ch := range c.in.Channels {
		for h := range c.in.Height {
			at := (ch*c.padded.Height+h+c.padding)*pitch + c.padding*t.lanes
			copy(to[at:at+width], x[(ch*c.in.Height+h)*width:])
		}
	}
	return to
}

func (c *conv) forward(t *tile, x, y []float32) {
	plane, width, pitch := c.out.Height*c.out.Width*t.lanes, c.out.Width*t.lanes, c.padded.Width*t.lanes
	weight, bias, _ := c.parameters()
	outputs := width // of one product
	if c.stride > 1 {
		outputs = t.lanes
	}
	s := kernel.Spread{
		M: c.out.Channels, N: outputs, Bias: t.params[weight : weight+bias], A: t.prepared[:weight],
		StepA: c.out.Channels, OuterA: c.row.Len() * c.out.Channels,
		B: c.pad(t, x), OuterB: pitch, Terms: &c.row, Scale: t.lanes, Outer: c.size, StepC: plane,
	}
	for h := range c.out.Height {
		for w := 0; w < width; w += outputs {
			s.FirstB, s.C = h*c.stride*pitch+w*c.stride, y[h*width+w:]
			s.Compute()
		}
	}
}

func (c *conv) backward(t *tile, x, _, dx, dy []float32) {
	c.gradient(t, c.pad(t, x), dy)
	if dx == nil {
		return
	}
	for h := range c.in.Height {
		c.delta(t, dx[h*c.in.Width*t.lanes:], dy, h)
	}
}

// gradient adds to the gradient with respect to weight and bias, given the padded input.
func (c *conv) gradient(t *tile, x, dy []float32) {
	plane, width, pitch := c.out.Height*c.out.Width*t.lanes, c.out.Width*t.lanes, c.padded.Width*t.lanes
	weight, bias, taps := c.parameters()
	r := kernel.Rake{
		M: c.out.Channels, Width: width, StepA: plane, RowA: width, RowB: pitch, Taps: &c.taps, Scale: t.lanes,
		C: t.grad[:weight], StepC: taps,
	}
	b := kernel.Rake{
		M: c.out.Channels, Width: width, StepA: plane, RowA: width, B: c.ones, Taps: &c.first, Scale: 1,
		C: t.grad[weight : weight+bias], StepC: 1,
	}
	for h := 0; h < c.out.Height; h += b.Rows {
		b.Rows = min(kernel.Chained(width), c.out.Height-h)
		b.A = dy[h*width:]
		b.Compute()
		if c.stride == 1 {
			r.Rows, r.A, r.B = b.Rows, b.A, x[h*pitch:]
			r.Compute()
		}
	}
	if c.stride == 1 {
		return
	}
	r.Width, r.RowA, r.RowB = t.lanes, t.lanes, c.stride*t.lanes
	for h := range c.out.Height {
		for w := 0; w < c.out.Width; w += r.Rows {
			r.Rows = min(kernel.Chained(t.lanes), c.out.Width-w)
			r.A, r.B = dy[h*width+w*t.lanes:], x[h*c.stride*pitch+w*c.stride*t.lanes:]
			r.Compute()
		}
	}
}

// delta computes a row of all planes of dx, from where the row begins in the first plane.
func (c *conv) delta(t *tile, dx, dy []float32, h int) {
	plane, width := c.in.Height*c.in.Width*t.lanes, c.out.Width*t.lanes
	column := c.out.Channels * c.in.Channels // elements of the weight for a column
	weight := t.prepared[c.taps.Len()*c.out.Channels:]
	low, n := reach(h+c.padding, c.stride, c.size, c.out.Height)
	for i := range c.spans {
		s := &c.spans[i]
		if n == 0 || s.outputs == nil {
			for ch := range c.in.Channels {
				clear(dx[ch*plane:][s.first*t.lanes : s.end*t.lanes])
			}
			continue
		}
		p := kernel.Spread{
			M: c.in.Channels, N: (s.end - s.first) * t.lanes, A: weight[(low*c.size+s.columns)*column:],
			StepA: c.in.Channels, OuterA: c.stride * c.size * column,
			B: dy, FirstB: (h+c.padding-low)/c.stride*width + s.output*t.lanes, OuterB: -width, Terms: s.outputs,
			Scale: t.lanes, Outer: n,
			C: dx[s.first*t.lanes:], StepC: plane,
		}
		p.Compute()
	}
}
