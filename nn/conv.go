package nn

// conv is a convolution, computed as matrix products with the values under the kernel at each place laid out as
// columns (K. Chellapilla, S. Puri, P. Simard, "High Performance Convolutional Neural Networks for Document
// Processing", 2006). The columns are made for a band of output rows at a time, so that they stay in the cache.
type conv struct {
	window
	in, out Shape
	runs    []run // of each column of a kernel
	turned  bool  // whether products are made with the transposed weight
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

// room is the number of elements of the columns of a band and of a weight, both with the bias.
func (c *conv) room(lanes int) int {
	return (c.taps() + 1) * (c.band()*c.out.Width*lanes + c.out.Channels)
}

// turn decides on the orientation of the product that yields the gradient of the weight, channels×taps or its
// transpose. Its cost is about the number of elements, of which there are as many in a row as fill vectors, and four
// for each row of the right operand, which is transposed on its way.
func (c *conv) turn() bool {
	const vector, transposed = 16, 4
	full := func(n int) int { return (n + vector - 1) / vector * vector }
	channels, taps := c.out.Channels, c.taps()+1
	return taps*full(channels)+transposed*channels < channels*full(taps)+transposed*taps
}

func (c *conv) forward(t *tile, x, y []float32) {
	channels, k := c.out.Channels, c.taps()+1
	weight, room := t.columns[:channels*k], t.columns[channels*k:]
	order, lda := noTrans, k
	if c.turned {
		order, lda = trans, channels
	}
	c.join(weight, t.params)
	plane, width := c.out.Height*c.out.Width*t.lanes, c.out.Width*t.lanes
	for h := 0; h < c.out.Height; h += c.band() {
		rows := min(c.band(), c.out.Height-h)
		n := rows * width
		c.gather(room[:k*n], x, h, rows, t.lanes)
		sgemm(order, noTrans, channels, n, k, weight, lda, room[:k*n], n, 0, y[h*width:], plane)
	}
}

func (c *conv) backward(t *tile, x, _, dx, dy []float32) {
	channels, taps, k := c.out.Channels, c.taps(), c.taps()+1
	gradient, room := t.columns[:channels*k], t.columns[channels*k:]
	plane, width := c.out.Height*c.out.Width*t.lanes, c.out.Width*t.lanes
	clear(dx)
	for h, beta := 0, float32(0); h < c.out.Height; h, beta = h+c.band(), 1 {
		rows := min(c.band(), c.out.Height-h)
		n := rows * width
		columns, d := room[:k*n], dy[h*width:]
		c.gather(columns, x, h, rows, t.lanes)
		if c.turned {
			sgemm(noTrans, trans, k, channels, n, columns, n, d, plane, beta, gradient, channels)
		} else {
			sgemm(noTrans, trans, channels, k, n, d, plane, columns, n, beta, gradient, k)
		}
		if dx != nil {
			sgemm(trans, noTrans, taps, n, channels, t.params[:channels*taps], taps, d, plane, 0, columns, n)
			c.scatter(dx, columns[:taps*n], h, rows, t.lanes)
		}
	}
	c.addSplit(t.grad, gradient)
}

// join writes weight and bias as one matrix, the bias being the weight of a tap whose value is always 1:
// channels×(taps+1), or its transpose if c.turned.
func (c *conv) join(joined, params []float32) {
	channels, taps := c.out.Channels, c.taps()
	bias := params[channels*taps:]
	if c.turned {
		transpose(joined, params[:channels*taps], channels, taps)
		copy(joined[channels*taps:], bias)
		return
	}
	for i, b := range bias {
		copy(joined[i*(taps+1):], params[i*taps:(i+1)*taps])
		joined[i*(taps+1)+taps] = b
	}
}

// addSplit adds to grad a gradient in the form of join.
func (c *conv) addSplit(grad, joined []float32) {
	channels, taps := c.out.Channels, c.taps()
	row, step := taps+1, 1
	if c.turned {
		row, step = 1, channels
	}
	for i := range channels {
		from := i * row
		for j := range taps {
			grad[i*taps+j] += joined[from]
			from += step
		}
		grad[channels*taps+i] += joined[from]
	}
}

// run describes where the weights of one column of a kernel are for the outputs of one row.
type run struct {
	first, end int // output columns with the weight over the input; the weight is over padding in the others
	source     int // input column of the first of them
}

func newConv(w window, in, out Shape) *conv {
	c := &conv{window: w, in: in, out: out, runs: make([]run, w.size)}
	c.turned = c.turn()
	for j := range c.runs {
		first := max(0, (w.padding-j+w.stride-1)/w.stride)
		end := 0
		if last := in.Width - 1 + w.padding - j; last >= 0 {
			end = min(out.Width, last/w.stride+1)
		}
		if first < end {
			c.runs[j] = run{first, end, first*w.stride + j - w.padding}
		}
	}
	return c
}

// at returns the run of the weight at row i and column j of a kernel for output row h, and the place of its first value
// in the input's plane.
func (c *conv) at(h, i, j int) (u run, source int) {
	row := h*c.stride + i - c.padding
	if row < 0 || row >= c.in.Height {
		return run{}, 0
	}
	return c.runs[j], row*c.in.Width + c.runs[j].source
}

// gather fills columns, (taps+1)×(rows·width·lanes), with the values of x under each weight for the output rows from h
// on, and with ones in the last row.
func (c *conv) gather(columns, x []float32, h, rows, lanes int) {
	width := c.out.Width * lanes
	for ch := range c.in.Channels {
		plane := x[ch*c.in.Height*c.in.Width*lanes:]
		for i := range c.size {
			for j := range c.size {
				for r := range rows {
					c.gatherRow(columns[:width], plane, h+r, i, j, lanes)
					columns = columns[width:]
				}
			}
		}
	}
	fill(columns, 1)
}

// gatherRow fills row, width×lanes, with the values under the weight at row i and column j of a kernel for output row h.
func (c *conv) gatherRow(row, plane []float32, h, i, j, lanes int) {
	u, source := c.at(h, i, j)
	if c.stride == 1 && u.end-u.first == c.out.Width {
		copy(row, plane[source*lanes:])
		return
	}
	clear(row[:u.first*lanes])
	clear(row[u.end*lanes:])
	if c.stride == 1 {
		copy(row[u.first*lanes:u.end*lanes], plane[source*lanes:])
		return
	}
	for w := u.first; w < u.end; w++ {
		copy(row[w*lanes:(w+1)*lanes], plane[source*lanes:])
		source += c.stride
	}
}

// scatter adds the columns, taps×(rows·width·lanes), to the elements of dx from which gather would fill them.
func (c *conv) scatter(dx, columns []float32, h, rows, lanes int) {
	width := c.out.Width * lanes
	for ch := range c.in.Channels {
		plane := dx[ch*c.in.Height*c.in.Width*lanes:]
		for i := range c.size {
			for j := range c.size {
				for r := range rows {
					c.scatterRow(plane, columns[:width], h+r, i, j, lanes)
					columns = columns[width:]
				}
			}
		}
	}
}

// scatterRow adds row to the elements of plane from which gatherRow would fill it.
func (c *conv) scatterRow(plane, row []float32, h, i, j, lanes int) {
	u, source := c.at(h, i, j)
	if u.first == u.end {
		return
	}
	if c.stride == 1 {
		AddScaled(plane[source*lanes:][:(u.end-u.first)*lanes], 1, row[u.first*lanes:u.end*lanes])
		return
	}
	for w := u.first; w < u.end; w++ {
		AddScaled(plane[source*lanes:][:lanes], 1, row[w*lanes:][:lanes])
		source += c.stride
	}
}
