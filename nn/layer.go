package nn

import (
	"fmt"
	"math"
)

// Shape is the shape of one sample between two layers of a [Network]: Channels planes of Height
// rows and Width columns, stored in that order. A plain vector of n values has n channels of height
// and width 1.
type Shape struct{ Channels, Height, Width int }

// Size is the number of values, Channels·Height·Width.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

// String is for instance "1×28×28".
func (s Shape) String() string { return fmt.Sprintf("%d×%d×%d", s.Channels, s.Height, s.Width) }

// flat reports whether the shape is a plain vector.
func (s Shape) flat() bool { return s.Height == 1 && s.Width == 1 }

// Layer describes one layer of a [Network]. The layers are [Conv2D], [MaxPool], [AveragePool],
// [Flatten], [Dense], [Dropout] and the activations, such as [ReLU]. The tags of their fields say
// how a plan sets them and what is accepted.
type Layer interface {
	// operation returns what computes the layer on samples of the given shape.
	operation(in Shape) (operation, error)
}

// Conv2D is a two-dimensional convolution (cross-correlation) with square kernels: on an input of C
// channels it yields Channels planes of (height + 2·Padding − Kernel)/Stride + 1 rows, rounded
// down, and as many columns for the width. Its weight is Channels×C×Kernel×Kernel, followed by its
// bias of length Channels, as in PyTorch's nn.Conv2d.
type Conv2D struct {
	Channels int `plan:"channels,required" range:"1.." doc:"of the output"`
	Kernel   int `plan:"kernel,required" range:"1.." doc:"height and width of a kernel"`
	Stride   int `plan:"stride" range:"1.." doc:"from one place to the next"` // 0 means 1
	Padding  int `plan:"padding" range:"0.." doc:"rows and columns of zeros at each side"`
}

// MaxPool replaces squares of Size×Size values in each plane by their largest, the first of several
// equal ones receiving the gradient. NaN is larger than all. Rows and columns that do not fill a
// square are left out.
type MaxPool struct {
	Size   int `plan:"size" range:"1.." doc:"height and width of a square"`
	Stride int `plan:"stride,omitzero" range:"0.." doc:"from one square to the next; default: size"`
}

// AveragePool replaces squares of Size×Size values in each plane by their mean. Rows and columns
// that do not fill a square are left out.
type AveragePool struct {
	Size   int `plan:"size" range:"1.." doc:"height and width of a square"`
	Stride int `plan:"stride,omitzero" range:"0.." doc:"from one square to the next; default: size"`
}

// Flatten turns planes into the plain vector that [Dense] expects, in the order channel, row,
// column.
type Flatten struct{}

// Dense is a fully connected layer on a plain vector of n values. Its weight is Outputs×n, followed
// by its bias of length Outputs, as in PyTorch's nn.Linear.
type Dense struct {
	Outputs int `plan:"outputs,required" range:"1.." doc:"values of the output"`
}

// Dropout sets each value to zero with probability Rate, in [0, 1), and multiplies the others by
// 1/(1−Rate), in a Gradient; in an Evaluate it does nothing. What is dropped is a function of
// [Batch].Seed, the layer's place in the network, the sample's place in the batch and the value's
// place in the sample. Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from
// Overfitting", JMLR 15, 2014.
type Dropout struct {
	Rate float64 `plan:"rate" unit:"fraction" doc:"the probability of each value to become zero, below 100%; the others are divided by 1 − rate"`
}

// maxWindow bounds sizes, strides and paddings of windows, so that shapes cannot overflow.
const maxWindow = 1 << 15

// window is a square window that slides over planes.
type window struct{ size, stride, padding int }

// outputs returns the number of places of the window along n rows or columns.
func (w window) outputs(n int) int { return (n+2*w.padding-w.size)/w.stride + 1 }

// over returns the shape of channels planes to which the window reduces a plane of in.
func (w window) over(in Shape, channels int) (Shape, error) {
	switch {
	case w.size < 1 || w.size > maxWindow:
		return Shape{}, fmt.Errorf("size %d of the window is out of range 1 to %d", w.size, maxWindow)
	case w.stride < 1 || w.stride > maxWindow:
		return Shape{}, fmt.Errorf("stride %d is out of range 1 to %d (or 0 for the default)", w.stride, maxWindow)
	case w.padding < 0 || w.padding >= w.size:
		return Shape{}, fmt.Errorf("padding %d is out of range 0 to %d, one less than the window", w.padding, w.size-1)
	case w.size > in.Height+2*w.padding || w.size > in.Width+2*w.padding:
		return Shape{}, fmt.Errorf("a window of %d×%d does not fit into %d×%d with padding %d", w.size, w.size,
			in.Height, in.Width, w.padding)
	}
	return Shape{channels, w.outputs(in.Height), w.outputs(in.Width)}, nil
}

// limited returns the shape or an error if it is too large.
func limited(s Shape) (Shape, error) {
	if s.Channels > MaxParams/s.Height/s.Width {
		return s, fmt.Errorf("its output %v has more than %d values", s, MaxParams)
	}
	return s, nil
}

func (l Conv2D) operation(in Shape) (operation, error) {
	if l.Channels < 1 || l.Channels > MaxParams {
		return nil, fmt.Errorf("conv2d: %d channels are out of range 1 to %d", l.Channels, MaxParams)
	}
	w := window{l.Kernel, l.Stride, l.Padding}
	if w.stride == 0 {
		w.stride = 1
	}
	out, err := w.over(in, l.Channels)
	if err == nil {
		out, err = limited(out)
	}
	if err != nil {
		return nil, fmt.Errorf("conv2d: %w", err)
	}
	if taps := in.Channels * w.size * w.size; taps > (MaxParams-l.Channels)/l.Channels {
		return nil, fmt.Errorf("conv2d: %d channels of %d×%d×%d weights are more than %d parameters", l.Channels,
			in.Channels, w.size, w.size, MaxParams)
	}
	return newConv(w, in, out), nil
}

// pooled returns window and output shape of a pooling layer.
func pooled(kind string, in Shape, size, stride int) (window, Shape, error) {
	if stride == 0 {
		stride = size
	}
	w := window{size: size, stride: stride}
	out, err := w.over(in, in.Channels)
	if err != nil {
		err = fmt.Errorf("%s: %w", kind, err)
	}
	return w, out, err
}

func (l MaxPool) operation(in Shape) (operation, error) {
	w, out, err := pooled("maxpool", in, l.Size, l.Stride)
	if err == nil && l.Size > 1<<8 {
		err = fmt.Errorf("maxpool: size %d of the window is more than %d", l.Size, 1<<8)
	}
	if err != nil {
		return nil, err
	}
	return &maxPool{window: w, in: in, out: out}, nil
}

func (l AveragePool) operation(in Shape) (operation, error) {
	w, out, err := pooled("averagepool", in, l.Size, l.Stride)
	if err != nil {
		return nil, err
	}
	return &averagePool{window: w, in: in, out: out}, nil
}

func (Flatten) operation(in Shape) (operation, error) {
	return &flatten{shape: in}, nil
}

func (l Dense) operation(in Shape) (operation, error) {
	if !in.flat() {
		return nil, fmt.Errorf("dense: its input is %v; a flatten layer must come before", in)
	}
	if l.Outputs < 1 || l.Outputs > MaxParams || in.Channels+1 > MaxParams/l.Outputs {
		return nil, fmt.Errorf("dense: with %d inputs and %d outputs; accepted is at least 1 output and at most %d "+
			"parameters", in.Channels, l.Outputs, MaxParams)
	}
	return &dense{in: in.Channels, out: l.Outputs}, nil
}

func (l Dropout) operation(in Shape) (operation, error) {
	if !(l.Rate >= 0 && l.Rate < 1) {
		return nil, fmt.Errorf("dropout: rate %v is not in [0, 1)", l.Rate)
	}
	return &dropout{shape: in, threshold: uint32(math.Round(l.Rate * (1 << 32))), scale: float32(1 / (1 - l.Rate))}, nil
}

func (a Activation) operation(in Shape) (operation, error) {
	if !a.valid() {
		return nil, fmt.Errorf("%v does not exist", a)
	}
	return &elementwise{activation: a, shape: in}, nil
}
