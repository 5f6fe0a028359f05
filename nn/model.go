// Package nn holds the models that Gradwire trains: networks over one flat float32 parameter
// vector, their loss, and the gradient, which is written into the caller's slice.
//
// Because the parameters are one flat vector, the rest of the system can send, average,
// compress or step them without knowing the layers. A Model is an immutable description of how
// to read the vector; a Workspace holds the activations of one computation.
//
// Package nn/kernel computes the matrix products.
//
// Results depend only on the arguments, the build and the kernel: sums are made in a fixed
// order, and neither GOMAXPROCS nor the size of a workspace changes a bit.
package nn

import "math/rand/v2"

// Batch is n samples: X is n×Inputs, row-major, and Y holds n class indices in [0, Classes). If
// Sparse is not nil, n Rows of it are the inputs in the place of X. Results have the same bits.
//
// Seed chooses what [Dropout] drops in a Gradient and means nothing else. A training loop gives
// every step another seed; the same seed drops the same units again.
//
// Weights, if not nil, holds a positive weight for each class, by which a Gradient weights the
// losses of its samples.
type Batch struct {
	X       []float32
	Y       []int32
	Sparse  *Sparse
	Rows    []int32
	Seed    uint64
	Weights []float32
}

// Tensor names a piece of the flat parameter vector, in the manner of a safetensors header: the
// row-major array of the given Shape that starts at element Offset.
type Tensor struct {
	Name   string // for instance "layer1.weight"
	Shape  []int
	Offset int // in elements, not bytes
}

// Model is the immutable description of a network over one flat float32 parameter vector. It is
// safe for concurrent use.
//
// Slices of a wrong length and class indices out of range are mistakes of the program and panic.
type Model interface {
	// Inputs is the number of values in one sample.
	Inputs() int
	// Classes is the number of classes told apart.
	Classes() int
	// Params is the length of the parameter vector.
	Params() int
	// Tensors lists the pieces of the parameter vector in the order of their offsets. They cover it
	// without gaps. The caller owns what is returned.
	Tensors() []Tensor
	// Init fills params with random start values drawn from r, in the order of the vector.
	Init(params []float32, r *rand.Rand)
	// Work is the number of floating-point operations of one Gradient on a batch of the given size.
	Work(batch int) float64
	// Samples lays samples out to be judged by again and again: n×Inputs values x, row-major, of n
	// class indices y. The order, if not nil, is a permutation: the samples are laid out in that
	// order. All three may be kept and must not change.
	Samples(x []float32, y, order []int32) *Samples
	// NewWorkspace returns a workspace for batches of 1 to maxBatch samples.
	NewWorkspace(maxBatch int) Workspace
}

// Workspace holds the activations of one model. One goroutine may use it at a time; nothing
// allocates after its creation. It remembers nothing between calls.
type Workspace interface {
	// Gradient overwrites grad with the gradient, with respect to params, of the mean loss over the
	// batch, and returns that mean. The batch holds 1 to maxBatch samples. With weights it is the
	// weighted mean, Σ w·loss ÷ Σ w, as PyTorch's: a sample of weight 2 is two of weight 1.
	Gradient(params, grad []float32, b Batch) (loss float64)
	// Evaluate returns the sum (not the mean) of the losses of all samples of b, and how many of
	// them are classified correctly, the first of several equal maxima being the prediction. Any
	// number of samples is allowed, none included. A sample for which the model yields NaN counts
	// as wrong.
	Evaluate(params []float32, b Batch) (loss float64, correct int)
	// Logits computes the logits of n of the model's samples, from the first one laid out on, and
	// writes them into to, samples×Classes, in the order in which these are laid out. The others
	// are left. The range begins at a multiple of 16, and ends at one or with the samples. The
	// workspace must be for at least 16 samples. The logits have the same bits as those that
	// Evaluate judges.
	Logits(params []float32, s *Samples, first, n int, to []float32)
}

// Messages of the panics with which programming mistakes are met.
const (
	badParams   = "nn: length of params differs from the model's Params"
	badGrad     = "nn: length of grad differs from the model's Params"
	badX        = "nn: length of Batch.X is not len(Batch.Y) times the model's Inputs"
	badSparse   = "nn: Batch.Sparse has not the model's Inputs, or Batch.Rows not len(Batch.Y) rows"
	badBatch    = "nn: batch is empty or larger than the workspace's maxBatch"
	badMaxBatch = "nn: maxBatch is less than 1"
	badWeights  = "nn: length of Batch.Weights differs from the model's Classes"
	badLabel    = "nn: class index out of range"
	badThreads  = "nn: threads is less than 1"
	badOrder    = "nn: the order is not a permutation of the samples"
	badLogits   = "nn: samples or logits are not the model's"
	badRange    = "nn: the range of samples does not begin and end at multiples of 16"

	smallWorkspace = "nn: Logits needs a workspace for at least 16 samples"
	badVectors     = "nn: vectors differ in length"
)
