package nn

// dense computes y = W·x + b for y out×lanes and x in×lanes.
type dense struct{ in, out int }

func (d *dense) output() Shape                       { return Shape{d.out, 1, 1} }
func (d *dense) parameters() (weight, bias, fan int) { return d.in * d.out, d.out, d.in }
func (d *dense) work() float64                       { return 2 * float64(d.in) * float64(d.out) }
func (d *dense) needs() (x, y bool)                  { return true, false }

func (d *dense) forward(t *tile, x, y []float32) { d.forwardRows(t, x, y, 0, d.out) }

// forwardRows computes the rows of y from first to end.
func (d *dense) forwardRows(t *tile, x, y []float32, first, end int) {
	weight, bias := t.params[:d.in*d.out], t.params[d.in*d.out:]
	y = y[first*t.lanes : end*t.lanes]
	fillRows(y, bias[first:end], t.lanes)
	sgemm(noTrans, noTrans, end-first, t.lanes, d.in, weight[first*d.in:], d.in, x, t.lanes, 1, y, t.lanes)
}

func (d *dense) backward(t *tile, x, _, dx, dy []float32) {
	d.gradientRows(t, x, dy, 0, d.out)
	if dx != nil {
		d.deltaRows(t, dx, dy, 0, d.in)
	}
}

// gradientRows adds to the rows of the gradient of weight and bias from first to end, or sets them
// if t.fresh.
func (d *dense) gradientRows(t *tile, x, dy []float32, first, end int) {
	weight, bias := t.grad[:d.in*d.out], t.grad[d.in*d.out:]
	dy = dy[first*t.lanes : end*t.lanes]
	beta := float32(1)
	if t.fresh {
		beta = 0
		clear(bias[first:end])
	}
	addRowSums(bias[first:end], dy, t.lanes)
	sgemm(noTrans, trans, end-first, d.in, t.lanes, dy, t.lanes, x, t.lanes, beta, weight[first*d.in:], d.in)
}

// deltaRows computes the rows of dx from first to end.
func (d *dense) deltaRows(t *tile, dx, dy []float32, first, end int) {
	weight := t.params[:d.in*d.out]
	sgemm(trans, noTrans, end-first, t.lanes, d.out, weight[first:], d.in, dy, t.lanes, 0, dx[first*t.lanes:], t.lanes)
}

// fillRows sets every element of row i of y, which has the given width, to values[i].
func fillRows(y, values []float32, width int) {
	for _, v := range values {
		fill(y[:width], v)
		y = y[width:]
	}
}

// fill sets every element of y to v.
func fill(y []float32, v float32) {
	const first = 8
	for i := range y[:min(first, len(y))] {
		y[i] = v
	}
	for n := first; n < len(y); n *= 2 {
		copy(y[n:], y[:n])
	}
}

// addRowSums adds to sums[i] the sum of row i of y, which has the given width.
func addRowSums(sums, y []float32, width int) {
	for i := range sums {
		sums[i] += total(y[:width])
		y = y[width:]
	}
}

// total is the sum of x in eight interleaved parts.
func total(x []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for ; len(x) >= 8; x = x[8:] {
		x := (*[8]float32)(x)
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
		s4 += x[4]
		s5 += x[5]
		s6 += x[6]
		s7 += x[7]
	}
	for _, v := range x {
		s0 += v
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}
