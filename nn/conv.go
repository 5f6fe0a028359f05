package nn

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// conv is a convolution, computed as matrix products with the values under the kernel at each place laid out as
// columns (K. Chellapilla, S. Puri, P. Simard, "High Performance Convolutional Neural Networks for Document
// Processing", 2006). The columns are made for a band of output rows at a time, so that they stay in the cache.
type conv struct {
	window
	in, out Shape
	runs    []run
	turned  bool // whether products are made with the transposed weight
}

// columnsRoom is about how many elements the columns of a band may have.
const columnsRoom = 1 << 15

func (c *conv) output() Shape { return c.out }
func (c *conv) taps() int     { return c.in.Channels * c.size * c.size }

func (c *conv) parameters() (weight, bias, fan int) {
	return c.out.Channels * c.taps(), c.out.Channels, c.taps()
}

func (c *conv) work() float64      { return 2 * float64(c.out.Size()) * float64(c.taps()) }
func (c *conv) needs() (x, y bool) { return true, false }

// band is how many output rows are computed together. It is a function of the shapes alone, since sums over places
// are made band by band.
func (c *conv) band() int {
	return min(max(columnsRoom/(c.taps()*c.out.Width*tileLanes), 1), c.out.Height)
}

// room is the number of elements of the columns of a band and of a transposed weight.
func (c *conv) room(lanes int) int {
	return c.taps() * (c.band()*c.out.Width*lanes + c.out.Channels)
}

// turn decides on the orientation of the product that yields the gradient of the weight, channels×taps or its
// transpose. Its cost is about the number of elements, of which there are as many in a row as fill vectors, and four
// for each row of the right operand, which is transposed on its way.
func (c *conv) turn() bool {
	const vector, transposed = 16, 4
	full := func(n int) int { return (n + vector - 1) / vector * vector }
	channels, taps := c.out.Channels, c.taps()
	return taps*full(channels)+transposed*channels < channels*full(taps)+transposed*taps
}

func (c *conv) forward(t *tile, x, y []float32) {
	channels, taps := c.out.Channels, c.taps()
	weight, bias := t.params[:channels*taps], t.params[channels*taps:]
	plane, width := c.out.Height*c.out.Width*t.lanes, c.out.Width*t.lanes
	room, order, lda := t.columns, blas.NoTrans, taps
	if c.turned {
		room, order, lda = t.columns[channels*taps:], blas.Trans, channels
		transpose(t.columns, weight, channels, taps)
		weight = t.columns[:channels*taps]
	}
	fillRows(y, bias, plane)
	for h := 0; h < c.out.Height; h += c.band() {
		rows := min(c.band(), c.out.Height-h)
		n := rows * width
		columns := room[:taps*n]
		c.gather(columns, x, h, rows, t.lanes)
		sgemm(order, blas.NoTrans, channels, n, taps, weight, lda, columns, n, 1, y[h*width:], plane)
	}
}

func (c *conv) backward(t *tile, x, _, dx, dy []float32) {
	channels, taps := c.out.Channels, c.taps()
	plane, width := c.out.Height*c.out.Width*t.lanes, c.out.Width*t.lanes
	addRowSums(t.grad[channels*taps:], dy, plane)
	turned, room := t.columns[:channels*taps], t.columns[channels*taps:]
	clear(turned)
	clear(dx)
	for h := 0; h < c.out.Height; h += c.band() {
		rows := min(c.band(), c.out.Height-h)
		n := rows * width
		columns, d := room[:taps*n], dy[h*width:]
		c.gather(columns, x, h, rows, t.lanes)
		if c.turned {
			sgemm(blas.NoTrans, blas.Trans, taps, channels, n, columns, n, d, plane, 1, turned, channels)
		} else {
			sgemm(blas.NoTrans, blas.Trans, channels, taps, n, d, plane, columns, n, 1, t.grad[:channels*taps], taps)
		}
		if dx != nil {
			sgemm(blas.Trans, blas.NoTrans, taps, n, channels, t.params[:channels*taps], taps, d, plane, 0, columns, n)
			c.scatter(dx, columns, h, rows, t.lanes)
		}
	}
	if c.turned {
		addTransposed(t.grad[:channels*taps], turned, taps, channels)
	}
}

// addTransposed adds the transpose of the rows×columns matrix src to dst.
func addTransposed(dst, src []float32, rows, columns int) {
	for i := range rows {
		for j, v := range src[i*columns : (i+1)*columns] {
			dst[j*rows+i] += v
		}
	}
}

// run describes where the values under one weight are for one row of the output.
type run struct {
	first, end int // output columns with the weight over the input; the weight is over padding in the others
	source     int // place of the first of them in the input's planes
}

// newConv returns a convolution with the runs of all weights and rows: those of the weight at row i and column j of
// the kernel begin at (i·size + j)·rows.
func newConv(w window, in, out Shape) *conv {
	c := &conv{window: w, in: in, out: out, runs: make([]run, 0, w.size*w.size*out.Height)}
	c.turned = c.turn()
	for tap := range w.size * w.size {
		for h := range out.Height {
			c.runs = append(c.runs, c.run(h, tap/w.size, tap%w.size))
		}
	}
	return c
}

// run returns the run of the weight at row i and column j of the kernel for output row h, empty if over padding.
func (c *conv) run(h, i, j int) run {
	row, last := h*c.stride+i-c.padding, c.in.Width-1+c.padding-j
	if row < 0 || row >= c.in.Height || last < 0 {
		return run{}
	}
	first, end := max(0, (c.padding-j+c.stride-1)/c.stride), min(c.out.Width, last/c.stride+1)
	if first >= end {
		return run{}
	}
	return run{first, end, row*c.in.Width + first*c.stride + j - c.padding}
}

// gather fills columns, taps×(rows·width·lanes), with the values of x under each weight for the output rows from h on.
func (c *conv) gather(columns, x []float32, h, rows, lanes int) {
	width := c.out.Width * lanes
	for ch := range c.in.Channels {
		plane := x[ch*c.in.Height*c.in.Width*lanes:]
		for tap := range c.size * c.size {
			for _, u := range c.runs[tap*c.out.Height+h:][:rows] {
				row := columns[:width]
				columns = columns[width:]
				if c.stride == 1 && u.end-u.first == c.out.Width {
					copy(row, plane[u.source*lanes:])
					continue
				}
				clear(row[:u.first*lanes])
				clear(row[u.end*lanes:])
				if c.stride == 1 {
					copy(row[u.first*lanes:u.end*lanes], plane[u.source*lanes:])
					continue
				}
				for w := u.first; w < u.end; w++ {
					copy(row[w*lanes:(w+1)*lanes], plane[(u.source+(w-u.first)*c.stride)*lanes:])
				}
			}
		}
	}
}

// scatter adds the columns to the elements of dx from which gather would fill them.
func (c *conv) scatter(dx, columns []float32, h, rows, lanes int) {
	width, impl := c.out.Width*lanes, blas32.Implementation()
	for ch := range c.in.Channels {
		plane := dx[ch*c.in.Height*c.in.Width*lanes:]
		for tap := range c.size * c.size {
			for _, u := range c.runs[tap*c.out.Height+h:][:rows] {
				row := columns[:width]
				columns = columns[width:]
				if u.first == u.end {
					continue
				}
				if c.stride == 1 {
					impl.Saxpy((u.end-u.first)*lanes, 1, row[u.first*lanes:], 1, plane[u.source*lanes:], 1)
					continue
				}
				for w := u.first; w < u.end; w++ {
					impl.Saxpy(lanes, 1, row[w*lanes:], 1, plane[(u.source+(w-u.first)*c.stride)*lanes:], 1)
				}
			}
		}
	}
}
