package nn

import "math"

// maxPool takes the maximum under a window and, with rectify, the ReLU of it. That is the same as the maximum of the
// ReLU, at a fraction of the cost.
type maxPool struct {
	plain
	window
	in, out Shape
	rectify bool
}

func (p *maxPool) output() Shape      { return p.out }
func (p *maxPool) needs() (x, y bool) { return false, p.rectify }

func (p *maxPool) forward(t *tile, x, y []float32) {
	if p.rectify && p.size == 2 {
		p.forwardPairs(t, x, y)
		return
	}
	p.forwardWindows(t, x, y)
}

// forwardWindows is forward for windows of any size.
func (p *maxPool) forwardWindows(t *tile, x, y []float32) {
	i, lanes := 0, t.lanes
	p.places(lanes, func(source int) {
		y := y[i : i+lanes]
		places := t.places[i : i+lanes]
		copy(y, x[source:source+lanes])
		clear(places)
		for k := 1; k < p.size*p.size; k++ {
			from := source + (k/p.size*p.in.Width+k%p.size)*lanes
			for l, v := range x[from : from+lanes] {
				if m := y[l]; v > m || (v != v && m == m) {
					y[l], places[l] = v, uint16(k)
				}
			}
		}
		if p.rectify {
			ReLU.apply(y)
		}
		i += lanes
	})
}

// forwardPairs is forward for windows of 2×2 with ReLU. Floats that are not negative have the order of their bits as
// integers, and integers are compared without a branch. The sums show whether there may be a NaN, for which that does
// not hold.
func (p *maxPool) forwardPairs(t *tile, x, y []float32) {
	i, lanes := 0, t.lanes
	var sum float32
	p.places(lanes, func(source int) {
		a, b := x[source:source+lanes], x[source+lanes:source+2*lanes]
		below := source + p.in.Width*lanes
		c, d := x[below:below+lanes], x[below+lanes:below+2*lanes]
		if t.training {
			sum += largestPlaces(y[i:i+lanes], t.places[i:i+lanes], a, b, c, d)
		} else {
			sum += largest(y[i:i+lanes], a, b, c, d)
		}
		i += lanes
	})
	if sum != sum {
		p.forwardWindows(t, x, y)
	}
}

// largest computes y = max(0, a, b, c, d) element by element and returns a number that is NaN if one of them is.
func largest(y, a, b, c, d []float32) (sum float32) {
	a, b, c, d = a[:len(y)], b[:len(y)], c[:len(y)], d[:len(y)]
	for l := range y {
		va, vb, vc, vd := a[l], b[l], c[l], d[l]
		sum += (va + vb) + (vc + vd)
		m := max(int32(math.Float32bits(va)), int32(math.Float32bits(vb)), int32(math.Float32bits(vc)), int32(math.Float32bits(vd)), 0)
		y[l] = math.Float32frombits(uint32(m))
	}
	return sum
}

// largestPlaces is largest and writes which of the four is the first maximum.
func largestPlaces(y []float32, places []uint16, a, b, c, d []float32) (sum float32) {
	places, a, b, c, d = places[:len(y)], a[:len(y)], b[:len(y)], c[:len(y)], d[:len(y)]
	for l := range y {
		va, vb, vc, vd := a[l], b[l], c[l], d[l]
		sum += (va + vb) + (vc + vd)
		// The place is kept in the lowest bits, counted down so that the first of equal values is the largest.
		m := max(key(va)+3, key(vb)+2, key(vc)+1, key(vd), 0)
		y[l] = math.Float32frombits(uint32(m >> 2))
		places[l] = uint16(3 - m&3)
	}
	return sum
}

// key is the bits of v as an integer, two places up.
func key(v float32) int64 { return int64(int32(math.Float32bits(v))) << 2 }

func (p *maxPool) backward(t *tile, _, y, dx, dy []float32) {
	if dx == nil {
		return
	}
	if p.rectify {
		ReLU.chain(dy, y)
	}
	pairs, covered := p.size == 2 && p.stride == 2, (p.in.Height|p.in.Width)&1 == 0
	if !pairs || !covered {
		clear(dx)
	}
	i, lanes := 0, t.lanes
	if pairs {
		p.places(lanes, func(source int) {
			below := source + p.in.Width*lanes
			above, under := dx[source:source+2*lanes], dx[below:below+2*lanes]
			clear(above)
			clear(under)
			route(above, under, dy[i:i+lanes], t.places[i:i+lanes])
			i += lanes
		})
		return
	}
	p.places(lanes, func(source int) {
		for l, v := range dy[i : i+lanes] {
			k := int(t.places[i+l])
			dx[source+(k/p.size*p.in.Width+k%p.size)*lanes+l] += v
		}
		i += lanes
	})
}

// route writes every d to that of the four places of its window where the maximum was.
func route(above, below, d []float32, places []uint16) {
	n := len(d)
	above, below, places = above[:2*n], below[:2*n], places[:n]
	for l, v := range d {
		k := int(places[l])
		rows := above
		if k >= 2 {
			rows = below
		}
		rows[l+k&1*n] = v
	}
}

// averagePool takes the mean under a window.
type averagePool struct {
	plain
	window
	in, out Shape
}

func (p *averagePool) output() Shape      { return p.out }
func (p *averagePool) needs() (x, y bool) { return false, false }

func (p *averagePool) forward(t *tile, x, y []float32) {
	i, lanes, scale := 0, t.lanes, 1/float32(p.size*p.size)
	slide(p.window, p.in, p.out, lanes, func(source int) {
		y := y[i : i+lanes]
		clear(y)
		for k := range p.size * p.size {
			from := source + (k/p.size*p.in.Width+k%p.size)*lanes
			for l, v := range x[from : from+lanes] {
				y[l] += v
			}
		}
		for l := range y {
			y[l] *= scale
		}
		i += lanes
	})
}

func (p *averagePool) backward(t *tile, _, _, dx, dy []float32) {
	if dx == nil {
		return
	}
	clear(dx)
	i, lanes, scale := 0, t.lanes, 1/float32(p.size*p.size)
	slide(p.window, p.in, p.out, lanes, func(source int) {
		for k := range p.size * p.size {
			to := source + (k/p.size*p.in.Width+k%p.size)*lanes
			d := dx[to : to+lanes]
			for l, v := range dy[i : i+lanes] {
				d[l] += float32(v * scale)
			}
		}
		i += lanes
	})
}

func (p *maxPool) places(lanes int, at func(source int)) { slide(p.window, p.in, p.out, lanes, at) }

// slide calls at with the place of the window's first element for every output in order.
func slide(w window, in, out Shape, lanes int, at func(source int)) {
	for c := range out.Channels {
		for h := range out.Height {
			source := (c*in.Height + h*w.stride) * in.Width * lanes
			for range out.Width {
				at(source)
				source += w.stride * lanes
			}
		}
	}
}
