package table

import (
	"fmt"

	"github.com/gradwire/gradwire/nn/optim"
)

// Update says what pushed values do to the values of a table: it makes the rule of each shard. The
// built-in ones are [Add], [Assign], [Optimizer] and [Proximal].
type Update interface {
	// New makes a rule. Shards share nothing: each has its own.
	New() (Rule, error)
}

// Rule is an update at work on the values of one shard. What it remembers of keys is in the slots
// of [Block], which move with the shard; it keeps nothing else from one Apply to the next.
type Rule interface {
	// Slots is how many values it remembers beside each value of the table.
	Slots() int
	// Apply changes values, and what it remembers of them, by pushed ones. It allocates nothing.
	Apply(b *Block)
	// Work is the cost of Apply in FLOPs.
	Work(values int) float64
}

// Block is the keys of one push, one after another.
type Block struct {
	// Values are the stored values, Pushed those that were pushed, in the same order.
	Values, Pushed []float32
	// Slots are what the rule remembers of the values: vectors as long as Values, 0 at first.
	Slots [][]float32
	// Width is how many values each key has.
	Width int
	// Pushes is how many pushes the shard has taken in before.
	Pushes uint64
}

// add is the rule of [Add], and makes itself.
type add struct{}

func (add) Slots() int         { return 0 }
func (add) Work(n int) float64 { return float64(n) }
func (add) New() (Rule, error) { return add{}, nil }
func (add) Apply(b *Block) {
	for i, v := range b.Pushed {
		b.Values[i] += v
	}
}

// Add adds pushed values to the stored ones.
func Add() Update { return add{} }

// assign is the rule of [Assign], and makes itself.
type assign struct{}

func (assign) Slots() int         { return 0 }
func (assign) Work(int) float64   { return 0 }
func (assign) New() (Rule, error) { return assign{}, nil }
func (assign) Apply(b *Block)     { copy(b.Values, b.Pushed) }

// Assign replaces the stored values.
func Assign() Update { return assign{} }

// Optimizer makes a step of an optimiser with each push, which has gradients. Keys that a push does
// not have stay as they are, and so do their moments; the schedule of the rate and Adam's bias
// correction go by the pushes that the shard has seen, as in torch.optim.SparseAdam.
func Optimizer(m optim.Method) Update { return stepping{m} }

type stepping struct{ method optim.Method }

// New implements [Update].
func (s stepping) New() (Rule, error) {
	o, ok := s.method.New(0).(optim.Adopter)
	if !ok {
		return nil, fmt.Errorf("optimizer %T cannot work on the state of a table: it is no optim.Adopter", s.method)
	}
	return &stepper{of: o, slots: len(o.State().Slots)}, nil
}

// stepper is an optimiser that works on the slots of blocks.
type stepper struct {
	of    optim.Adopter
	slots int
}

func (s *stepper) Slots() int         { return s.slots }
func (s *stepper) Work(n int) float64 { return s.of.Work(n) }
func (s *stepper) Apply(b *Block) {
	s.of.Adopt(len(b.Values), optim.State{Step: int(b.Pushes), Updates: int(b.Pushes), Slots: b.Slots})
	s.of.Step(b.Values, b.Values, b.Pushed)
}

// Proximal makes a proximal step with each push, for a penalty λ‖w‖₁: of a gradient g at the rate η
//
//	w ← sign(w − ηg) · max(|w − ηg| − ηλ, 0)
//
// (P. L. Combettes and V. R. Wajs, "Signal Recovery by Proximal Forward-Backward Splitting",
// Multiscale Modeling & Simulation 4, 2005). The rate is that of the shard's pushes.
func Proximal(rate optim.Schedule, penalty float64) Update { return proximal{rate, penalty} }

// proximal is the rule of [Proximal], and makes itself.
type proximal struct {
	rate    optim.Schedule
	penalty float64
}

func (proximal) Slots() int           { return 0 }
func (proximal) Work(n int) float64   { return 5 * float64(n) }
func (p proximal) New() (Rule, error) { return p, nil }
func (p proximal) Apply(b *Block) {
	eta := p.rate.Rate(int(b.Pushes))
	threshold := float32(eta * p.penalty)
	for i, g := range b.Pushed {
		b.Values[i] = SoftThreshold(b.Values[i]-float32(float32(eta)*g), threshold)
	}
}

// SoftThreshold brings a value nearer to 0 by a threshold, and to 0 if it is not farther away.
func SoftThreshold(v, threshold float32) float32 {
	switch {
	case v > threshold:
		return v - threshold
	case v < -threshold:
		return v + threshold
	}
	return 0
}
