package nn_test

import (
	"math"

	"github.com/gradwire/gradwire/nn"
)

// dumb is a second implementation of a network: float64, one sample and one number at a time,
// straight from the definitions of the layers, with planes of C×H×W.
type dumb struct {
	input  nn.Shape
	layers []nn.Layer
}

// plane is the value of one sample after a layer.
type plane struct {
	nn.Shape
	v []float64
}

func newPlane(c, h, w int) plane {
	return plane{nn.Shape{Channels: c, Height: h, Width: w}, make([]float64, c*h*w)}
}

func (p plane) at(c, h, w int) *float64 { return &p.v[(c*p.Height+h)*p.Width+w] }

func (p plane) inside(h, w int) bool { return h >= 0 && w >= 0 && h < p.Height && w < p.Width }

// forward returns the output of a layer and a function that turns the gradient with respect to the
// output into the gradient with respect to x. That function adds the gradient of the layer's
// parameters to grad.
func (d dumb) forward(l nn.Layer, x plane, p, grad []float64) (plane, func(dy plane) plane, int) {
	dx := newPlane(x.Channels, x.Height, x.Width)
	switch l := l.(type) {
	case nn.Conv2D:
		return convolve(l, x, dx, p, grad)
	case nn.Dense:
		n := len(x.v)
		y := newPlane(l.Outputs, 1, 1)
		for o := range y.v {
			y.v[o] = p[n*l.Outputs+o]
			for i, v := range x.v {
				y.v[o] += v * p[o*n+i]
			}
		}
		return y, func(dy plane) plane {
			for o, g := range dy.v {
				grad[n*l.Outputs+o] += g
				for i, v := range x.v {
					grad[o*n+i] += g * v
					dx.v[i] += g * p[o*n+i]
				}
			}
			return dx
		}, (n + 1) * l.Outputs
	case nn.MaxPool:
		return pool(x, dx, l.Size, l.Stride, true)
	case nn.AveragePool:
		return pool(x, dx, l.Size, l.Stride, false)
	case nn.Activation:
		y := newPlane(x.Channels, x.Height, x.Width)
		for i, v := range x.v {
			y.v[i], dx.v[i] = reference{activation: l}.activate(v)
		}
		return y, func(dy plane) plane {
			for i := range dx.v {
				dx.v[i] *= dy.v[i]
			}
			return dx
		}, 0
	case nn.Flatten:
		return plane{nn.Shape{Channels: len(x.v), Height: 1, Width: 1}, x.v},
			func(dy plane) plane { return plane{x.Shape, dy.v} }, 0
	}
	panic("no such layer")
}

func convolve(l nn.Conv2D, x, dx plane, p, grad []float64) (plane, func(plane) plane, int) {
	s := max(l.Stride, 1)
	y := newPlane(l.Channels, (x.Height+2*l.Padding-l.Kernel)/s+1, (x.Width+2*l.Padding-l.Kernel)/s+1)
	bias := l.Channels * x.Channels * l.Kernel * l.Kernel
	each := func(visit func(out *float64, index int, weight, c, h, w int)) {
		for o := range y.v {
			out, row, column := o/(y.Height*y.Width), o/y.Width%y.Height, o%y.Width
			for c := range x.Channels {
				for i := range l.Kernel {
					for j := range l.Kernel {
						if h, w := row*s+i-l.Padding, column*s+j-l.Padding; x.inside(h, w) {
							visit(&y.v[o], o, ((out*x.Channels+c)*l.Kernel+i)*l.Kernel+j, c, h, w)
						}
					}
				}
			}
		}
	}
	for o := range y.v {
		y.v[o] = p[bias+o/(y.Height*y.Width)]
	}
	each(func(out *float64, _, weight, c, h, w int) { *out += p[weight] * *x.at(c, h, w) })
	return y, func(dy plane) plane {
		for o, g := range dy.v {
			grad[bias+o/(y.Height*y.Width)] += g
		}
		each(func(_ *float64, o, weight, c, h, w int) {
			grad[weight] += dy.v[o] * *x.at(c, h, w)
			*dx.at(c, h, w) += dy.v[o] * p[weight]
		})
		return dx
	}, bias + l.Channels
}

func pool(x, dx plane, size, stride int, largest bool) (plane, func(plane) plane, int) {
	if stride == 0 {
		stride = size
	}
	y := newPlane(x.Channels, (x.Height-size)/stride+1, (x.Width-size)/stride+1)
	share := make([]map[int]float64, len(y.v)) // of each output, what a change of an input changes in it
	for o := range y.v {
		c, row, column := o/(y.Height*y.Width), o/y.Width%y.Height, o%y.Width
		share[o] = map[int]float64{}
		best, at := math.Inf(-1), 0
		for i := range size {
			for j := range size {
				index := (c*x.Height+row*stride+i)*x.Width + column*stride + j
				if v := x.v[index]; v > best {
					best, at = v, index
				}
				if !largest {
					y.v[o] += x.v[index] / float64(size*size)
					share[o][index] = 1 / float64(size*size)
				}
			}
		}
		if largest {
			y.v[o], share[o][at] = best, 1
		}
	}
	return y, func(dy plane) plane {
		for o, g := range dy.v {
			for index, s := range share[o] {
				dx.v[index] += g * s
			}
		}
		return dx
	}, 0
}

// gradient returns the mean loss and its gradient.
func (d dumb) gradient(params []float32, b nn.Batch) (float64, []float64) {
	wide, grad := make([]float64, len(params)), make([]float64, len(params))
	for i, p := range params {
		wide[i] = float64(p)
	}
	loss, in := 0., d.input.Size()
	for s, label := range b.Y {
		x := plane{d.input, make([]float64, in)}
		for i := range x.v {
			x.v[i] = float64(b.X[s*in+i])
		}
		var back []func(plane) plane
		offset := 0
		for _, l := range d.layers {
			y, f, n := d.forward(l, x, wide[offset:], grad[offset:])
			x, back, offset = y, append(back, f), offset+n
		}
		sum := 0.
		for _, z := range x.v {
			sum += math.Exp(z)
		}
		loss += math.Log(sum) - x.v[label]
		dy := newPlane(len(x.v), 1, 1)
		for i, z := range x.v {
			dy.v[i] = math.Exp(z) / sum
		}
		dy.v[label]--
		for i := len(back) - 1; i >= 0; i-- {
			dy = back[i](dy)
		}
	}
	for i := range grad {
		grad[i] /= float64(len(b.Y))
	}
	return loss / float64(len(b.Y)), grad
}
