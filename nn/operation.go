package nn

import "math/bits"

// operation computes one layer on a tile of samples. Values are stored with the samples innermost:
// a tile of shape C×H×W is C×H×W×lanes, one lane for each sample, so that neighbouring columns of
// many samples are copied, added and multiplied together. It is immutable and safe for concurrent
// use.
type operation interface {
	output() Shape
	// parameters returns the sizes of weight and bias, and the number of values of which one output
	// is a weighted sum.
	parameters() (weight, bias, fan int)
	// work is the number of multiplications and additions of the forward product for one sample.
	work() float64
	// needs tells whether backward reads x and y.
	needs() (x, y bool)
	// forward computes y from x. They are the same slice for an operation that is done in place.
	forward(t *tile, x, y []float32)
	// backward computes from dy, the gradient with respect to y, the one with respect to x, unless
	// dx is nil, and adds the gradient with respect to the parameters to t.grad. dy and dx are the
	// same slice for an operation that is done in place.
	backward(t *tile, x, y, dx, dy []float32)
}

// tile is what an operation must know of the samples and the parameters besides the values.
type tile struct {
	lanes    int
	training bool      // whether backward will follow
	seed     uint64    // of dropout, of the batch and the layer
	first    int       // place of the first sample in the batch
	params   []float32 // weight and bias of the operation
	grad     []float32 // the same of the gradient
	fresh    bool      // grad is to be set by a dense layer, not added to
	places   []uint16  // in which element of a window the maximum was
	prepared []float32 // what the convolution made of its weights
	room     []float32 // of the convolution, for padding
}

// plain has the answers of an operation without parameters.
type plain struct{}

func (plain) parameters() (weight, bias, fan int) { return 0, 0, 0 }
func (plain) work() float64                       { return 0 }

// flatten computes nothing, because the values of a sample are already in the order of the vector.
// Networks leave it out.
type flatten struct {
	plain
	shape Shape
}

func (f *flatten) output() Shape                            { return Shape{f.shape.Size(), 1, 1} }
func (f *flatten) needs() (x, y bool)                       { return false, false }
func (f *flatten) forward(_ *tile, x, y []float32)          { copy(y, x) }
func (f *flatten) backward(_ *tile, _, _, dx, dy []float32) { copy(dx, dy) }

// elementwise is an activation.
type elementwise struct {
	plain
	activation Activation
	shape      Shape
}

func (e *elementwise) output() Shape      { return e.shape }
func (e *elementwise) needs() (x, y bool) { return false, true }

func (e *elementwise) forward(_ *tile, x, y []float32) {
	copy(y, x) // costs nothing in place
	e.activation.apply(y)
}

func (e *elementwise) backward(_ *tile, _, y, dx, dy []float32) {
	if dx != nil {
		copy(dx, dy)
		e.activation.chain(dx, y)
	}
}

// dropout multiplies by 0 or scale.
type dropout struct {
	plain
	shape     Shape
	threshold uint32 // of 32 random bits below which a value is dropped
	scale     float32
}

func (d *dropout) output() Shape      { return d.shape }
func (d *dropout) needs() (x, y bool) { return false, false }

func (d *dropout) forward(t *tile, x, y []float32) {
	if !t.training {
		copy(y, x)
		return
	}
	d.mask(t, y, x)
}

func (d *dropout) backward(t *tile, _, _, dx, dy []float32) {
	if dx != nil {
		d.mask(t, dx, dy)
	}
}

// mask computes dst as src, dropped or scaled. A dropped NaN is 0.
func (d *dropout) mask(t *tile, dst, src []float32) {
	for i := 0; i < len(src); i += t.lanes {
		for l, v := range src[i : i+t.lanes] {
			key := t.seed + uint64(t.first+l)<<32 + uint64(i/t.lanes)
			if hash(key) < d.threshold {
				v = 0
			}
			dst[i+l] = v * d.scale
		}
	}
}

// hash is 32 random bits of a key, two rounds of a folded 128-bit product as in wyhash (Wang Yi,
// 2019).
func hash(key uint64) uint32 {
	high, low := bits.Mul64(key^0x2d358dccaa6c78a5, 0x8bb84b93962eacc9)
	high, low = bits.Mul64(high^low^0x4b33a62ed433d4a3, 0x4d5a2da51de1aa47)
	return uint32((high ^ low) >> 32)
}
