// Package compress makes gradients, and differences of models, small before they travel.
//
// A [Chain] has at most two operators: one that keeps a part of the values (TopK, RandomK,
// PowerSGD) and one that writes each value with fewer bits. Both are lossy; [Feedback] says what
// becomes of that which was lost. A code is a vector of float32 words like any other, whose bits
// mean something else, so that it travels wherever a vector does; its length depends on the chain
// and on the number of values alone.
package compress

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gradwire/gradwire/nn"
)

// Operator is one part of a chain.
type Operator interface {
	// Validate returns an error about the first setting that makes no sense.
	Validate() error
	operator()
}

// reducer keeps a part of a vector.
type reducer interface {
	Operator
	reduction(d int, tensors []nn.Tensor, scaled bool) reduction
}

// reduction is a reducer at work on vectors of one length. It may remember what it did before.
type reduction interface {
	// sizes are how many values are kept, and how many words beside them say which.
	sizes() (values, side int)
	reduce(values, side, x []float32, r *rand.Rand)
	expand(x, values, side []float32) error
	// work is the number of FLOPs, about, of either.
	work() float64
}

// quantiser writes values with fewer bits.
type quantiser interface {
	Operator
	words(n int) int
	encode(words, x []float32, r *rand.Rand)
	decode(x, words []float32) error
}

// Chain is what is done to a vector, in this order; empty for nothing.
type Chain []Operator

// Validate returns an error about the first operator that makes no sense where it stands.
func (c Chain) Validate() error {
	for i, o := range c {
		if err := o.Validate(); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if _, reduces := o.(reducer); reduces && i > 0 {
			return errors.New("what keeps a part of the values comes first, and once")
		}
		if i > 0 {
			if _, again := c[i-1].(quantiser); again {
				return errors.New("what writes values with fewer bits comes last, and once")
			}
		}
	}
	return nil
}

// Size is the number of words of a code for a vector of d values, which has these tensors.
func (c Chain) Size(d int, tensors []nn.Tensor) int { return c.codec(d, tensors, false).size() }

// Ratio is about how many words a code has for each value of a long vector without matrices.
func (c Chain) Ratio() float64 {
	const d = 1 << 20
	return float64(c.Size(d, nil)) / d
}

// Work is the number of FLOPs, about, that a code costs its sender and each receiver.
func (c Chain) Work(d int, tensors []nn.Tensor, f Feedback) (encode, decode float64) {
	k := c.codec(d, tensors, false)
	return k.sent(f), k.work()
}

// Models returns an error about the first operator that makes no sense where it stands, or for
// models that travel as a whole: none that keeps a part of the values alone.
func (c Chain) Models() error {
	if err := c.Validate(); err != nil {
		return err
	}
	for _, o := range c {
		if _, reduces := o.(reducer); reduces {
			return errPart
		}
	}
	return nil
}

// codec is a chain at work on vectors of one length.
type codec struct {
	d         int
	reduction reduction // nil to keep all
	quantiser quantiser // nil to write values as they are
	kept      []float32
	side, n   int // words beside the values, and values
}

func (c Chain) codec(d int, tensors []nn.Tensor, scaled bool) *codec {
	k := &codec{d: d, n: d}
	for _, o := range c {
		switch o := o.(type) {
		case reducer:
			k.reduction = o.reduction(d, tensors, scaled)
			k.n, k.side = k.reduction.sizes()
		case quantiser:
			k.quantiser = o
		}
	}
	if k.reduction != nil && k.quantiser != nil {
		k.kept = make([]float32, k.n)
	}
	return k
}

// size is the length of a code.
func (k *codec) size() int {
	if k.quantiser == nil {
		return k.side + k.n
	}
	return k.side + k.quantiser.words(k.n)
}

func (k *codec) encode(code, x []float32, r *rand.Rand) {
	values := x
	if k.reduction != nil {
		if values = code[k.side:]; k.quantiser != nil {
			values = k.kept
		}
		k.reduction.reduce(values, code[:k.side], x, r)
	}
	switch {
	case k.quantiser != nil:
		k.quantiser.encode(code[k.side:], values, r)
	case k.reduction == nil:
		copy(code, x)
	}
}

func (k *codec) decode(x, code []float32) error {
	if len(code) != k.size() {
		return fmt.Errorf("a code of %d words for %d values, %d are expected", len(code), k.d, k.size())
	}
	values := code[k.side:]
	if k.quantiser != nil {
		if values = k.kept; k.reduction == nil {
			values = x
		}
		if err := k.quantiser.decode(values, code[k.side:]); err != nil {
			return err
		}
	}
	switch {
	case k.reduction != nil:
		return k.reduction.expand(x, values, code[:k.side])
	case k.quantiser == nil:
		copy(x, values)
	}
	return nil
}

// work is the number of FLOPs, about, that a code costs at either end.
func (k *codec) work() float64 {
	work := 0.0
	if k.reduction != nil {
		work = k.reduction.work()
	}
	if k.quantiser != nil {
		work += 4 * float64(k.n)
	}
	return work
}

// sent is work at the sender, which decodes what it feeds back.
func (k *codec) sent(f Feedback) float64 {
	if f == None {
		return k.work()
	}
	return 2*k.work() + 2*float64(k.d)
}

// Feedback says what becomes of what a code has lost.
type Feedback string

// The feedbacks.
const (
	// None forgets it.
	None Feedback = "none"
	// EF adds it to the next vector (F. Seide et al., "1-Bit Stochastic Gradient Descent and its
	// Application to Data-Parallel Distributed Training of Speech DNNs", Interspeech 2014; S. P.
	// Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression Schemes",
	// ICML 2019): e ← p − C(p), p = x + e.
	EF Feedback = "ef"
	// EF21 codes the difference from what the receiver has, to which it is added at both ends (P.
	// Richtárik et al., "EF21: A New, Simpler, Theoretically Better, and Practically Faster Error
	// Feedback", NeurIPS 2021): g ← g + C(x − g).
	EF21 Feedback = "ef21"
)

// Both is what is done to gradients on the way to a server, and to models on the way back: to the
// difference of the model from the one that the receiver has, so that what is lost is sent later.
type Both struct {
	Up, Down Chain
	// Feedback is that of Up.
	Feedback Feedback
}

// Encoder is the sending end. What it remembers is state of the sender, like an optimizer's.
type Encoder struct {
	codec    *codec
	feedback Feedback
	memory   []float32 // what is still to be sent of EF, what the receiver has of EF21
	input    []float32
	decoded  []float32
	random   *rand.Rand
}

// NewEncoder returns the sending end for vectors of d values, which have these tensors; both ends
// are of one chain and feedback. What is random is drawn from r.
func (c Chain) NewEncoder(d int, tensors []nn.Tensor, f Feedback, r *rand.Rand) *Encoder {
	e := &Encoder{codec: c.codec(d, tensors, f == None), feedback: f, random: r}
	if f != None {
		e.memory, e.input, e.decoded = make([]float32, d), make([]float32, d), make([]float32, d)
	}
	return e
}

// Size is the number of words of a code.
func (e *Encoder) Size() int { return e.codec.size() }

// Work is the number of FLOPs, about, that a code costs.
func (e *Encoder) Work() float64 { return e.codec.sent(e.feedback) }

// Encode writes the code of x, of Size words.
func (e *Encoder) Encode(code, x []float32) {
	switch e.feedback {
	case EF:
		for i, v := range x {
			e.input[i] = v + e.memory[i]
		}
	case EF21:
		for i, v := range x {
			e.input[i] = v - e.memory[i]
		}
	default:
		e.codec.encode(code, x, e.random)
		return
	}
	e.codec.encode(code, e.input, e.random)
	if err := e.codec.decode(e.decoded, code); err != nil {
		panic("compress: its own code: " + err.Error())
	}
	if e.feedback == EF {
		for i, v := range e.decoded {
			e.memory[i] = e.input[i] - v
		}
		return
	}
	nn.AddScaled(e.memory, 1, e.decoded)
}

// Memory is what is still to be sent of EF, and what the receiver has of EF21; nil for None. The
// caller may write it: with EF21 both ends may begin with a vector that both have.
func (e *Encoder) Memory() []float32 { return e.memory }

// Memories returns pointers to the vectors on which later codes depend, such as residuals. A
// checkpoint saves them, and restoring replaces them by vectors of the same lengths. A vector that
// does not exist yet is nil.
func (e *Encoder) Memories() []*[]float32 {
	return append(memories(&e.memory), e.codec.memories()...)
}

// memories leaves out memory that is not there.
func memories(of *[]float32) []*[]float32 {
	if *of == nil {
		return nil
	}
	return []*[]float32{of}
}

func (k *codec) memories() (all []*[]float32) {
	if p, ok := k.reduction.(*lowRank); ok {
		for i := range p.parts {
			all = append(all, &p.parts[i].right)
		}
	}
	return all
}

// Decoder is the receiving end, for one sender.
type Decoder struct {
	codec   *codec
	memory  []float32 // what has been received; nil but for EF21
	decoded []float32
}

// NewDecoder returns the receiving end for one sender.
func (c Chain) NewDecoder(d int, tensors []nn.Tensor, f Feedback) *Decoder {
	r := &Decoder{codec: c.codec(d, tensors, f == None)}
	if f == EF21 {
		r.memory, r.decoded = make([]float32, d), make([]float32, d)
	}
	return r
}

// Work is the number of FLOPs, about, that a code costs.
func (r *Decoder) Work() float64 { return r.codec.work() }

// Memory is as that of the Encoder.
func (r *Decoder) Memory() []float32 { return r.memory }

// Memories is as that of the Encoder.
func (r *Decoder) Memories() []*[]float32 {
	return append(memories(&r.memory), r.codec.memories()...)
}

// Decode writes what a code stands for. It returns an error about a code that no encoder has made.
func (r *Decoder) Decode(x, code []float32) error {
	if len(x) != r.codec.d {
		panic("compress: a vector of another length")
	}
	if r.memory == nil {
		return r.codec.decode(x, code)
	}
	if err := r.Add(code); err != nil {
		return err
	}
	copy(x, r.memory)
	return nil
}

// Add takes a code into the Memory of EF21 without writing that elsewhere.
func (r *Decoder) Add(code []float32) error {
	if err := r.codec.decode(r.decoded, code); err != nil {
		return err
	}
	nn.AddScaled(r.memory, 1, r.decoded)
	return nil
}

var (
	errCode = errors.New("a code that nobody has made")
	errPart = errors.New("what keeps a part of the values alone is for gradients and differences: a model without " +
		"most of its values is none; d-psgd with choco sends differences of models")
)
