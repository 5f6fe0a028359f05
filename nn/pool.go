package nn

import "github.com/gradwire/gradwire/nn/kernel"

// maxPool takes the maximum under a window and, with rectify, the ReLU of it. That is the same as
// the maximum of the ReLU, at a fraction of the cost.
type maxPool struct {
	plain
	window
	in, out Shape
	rectify bool
}

func (p *maxPool) output() Shape      { return p.out }
func (p *maxPool) needs() (x, y bool) { return false, p.rectify && !p.pairs() }

// pairs tells that the kernel does it.
func (p *maxPool) pairs() bool { return p.size == 2 && p.stride == 2 }

func (p *maxPool) forward(t *tile, x, y []float32) {
	if !p.pairs() {
		p.forwardWindows(t, x, y)
		return
	}
	p.eachRow(t.lanes, func(output, above, below int) {
		width := p.out.Width * t.lanes
		kernel.MaxPairs(y[output:output+width], t.places[output:], x[above:], x[below:], t.lanes, p.rectify)
	})
}

// eachRow calls at with the places where a row of outputs and its two rows of inputs begin.
func (p *maxPool) eachRow(lanes int, at func(output, above, below int)) {
	width := p.in.Width * lanes
	for c := range p.out.Channels {
		for h := range p.out.Height {
			above := (c*p.in.Height + 2*h) * width
			at((c*p.out.Height+h)*p.out.Width*lanes, above, above+width)
		}
	}
}

// forwardWindows is forward for windows of any size and stride.
func (p *maxPool) forwardWindows(t *tile, x, y []float32) {
	i, lanes := 0, t.lanes
	slide(p.window, p.in, p.out, lanes, func(source int) {
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

func (p *maxPool) backward(t *tile, _, y, dx, dy []float32) {
	if dx == nil {
		return
	}
	if p.pairs() {
		if (p.in.Height|p.in.Width)&1 != 0 {
			clear(dx)
		}
		p.eachRow(t.lanes, func(output, above, below int) {
			width := p.out.Width * t.lanes
			kernel.RoutePairs(dy[output:output+width], t.places[output:], dx[above:], dx[below:], t.lanes)
		})
		return
	}
	if p.rectify {
		ReLU.chain(dy, y)
	}
	clear(dx)
	i, lanes := 0, t.lanes
	slide(p.window, p.in, p.out, lanes, func(source int) {
		for l, v := range dy[i : i+lanes] {
			k := int(t.places[i+l])
			dx[source+(k/p.size*p.in.Width+k%p.size)*lanes+l] += v
		}
		i += lanes
	})
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
