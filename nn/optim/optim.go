// Package optim holds the optimizers, which turn a gradient into a step of the parameters, and
// the schedules of their learning rates.
//
// A method is a plain struct that a plan can describe; its New makes the state for one
// parameter vector. A state is plain data: saved at any step and restored, it gives the same
// bits for the same gradients.
//
// The formulas are PyTorch's (https://pytorch.org/docs/stable/optim.html), computed in float32
// and in a fixed order, with rates and bias corrections in float64. Values that a state keeps
// become 0 below 2⁻¹²⁶.
package optim

import (
	"fmt"
	"slices"
)

// Method describes an optimizer. The methods of this package have a Validate() error as well, which
// names the first field that makes no sense and is to be called, before New, on what was read from
// outside. The tags of their fields, and of the schedules', say how a plan sets them.
type Method interface {
	// New makes the state for n parameters, before the first step. It panics if n is negative or
	// the method has no schedule for its rate.
	New(n int) Optimizer
}

// Optimizer is a method at work on one parameter vector. One goroutine may use it at a time.
type Optimizer interface {
	// Step writes to dst what one update makes of params, in one pass; dst may be params, and
	// shares no memory with grad, which stays as it is. It allocates nothing, and panics unless all
	// have the n elements of New.
	Step(dst, params, grad []float32)
	// Work is the number of floating-point operations of one Step on n parameters.
	Work(n int) float64
	// State returns a deep copy of all that Step depends on beside its arguments and the method.
	State() State
	// Restore puts back what State returned, copying it. A state of another shape is an error, and
	// changes nothing.
	Restore(State) error
}

// Adopter is an Optimizer that can work on a state of somebody else's. All of this package are.
type Adopter interface {
	Optimizer
	// Adopt has the next Step go on from a state for n parameters, and write into it, instead of
	// the state before. It allocates nothing, and panics if the state has another shape.
	Adopt(n int, s State)
}

// State is an optimizer's state as plain data. Step and Updates are equal unless the optimizer
// joins a training whose earlier gradients it has not seen: Step, the training's, then sets the
// rate, and Updates, its own, the bias correction.
type State struct {
	Step    int         // of the rate's schedule
	Updates int         // gradients that Slots remember something of
	Slots   [][]float32 // a vector as long as the parameters for each quantity that the method remembers of them
}

const (
	badLength   = "optim: length of dst, params or grad differs from that given to New"
	badAdoption = "optim: a state of another shape is adopted"
	badCount    = "optim: negative number of parameters"
	badSchedule = "optim: method without a schedule for its rate"
)

// core is what optimizers have in common: the state and where the rate comes from.
type core struct {
	rate    Schedule
	n       int
	step    int
	updates int
	slots   [][]float32
}

func newCore(rate Schedule, n, slots int) core {
	if rate == nil {
		panic(badSchedule)
	}
	if n < 0 {
		panic(badCount)
	}
	c := core{rate: rate, n: n, slots: make([][]float32, slots)}
	for i := range c.slots {
		c.slots[i] = make([]float32, n)
	}
	return c
}

// begin checks the arguments of a step, counts it and returns its rate.
func (c *core) begin(dst, params, grad []float32) float64 {
	if len(dst) != c.n || len(params) != c.n || len(grad) != c.n {
		panic(badLength)
	}
	rate := c.rate.Rate(c.step)
	c.step++
	c.updates++
	return rate
}

// State implements [Optimizer].
func (c *core) State() State {
	s := State{Step: c.step, Updates: c.updates, Slots: make([][]float32, len(c.slots))}
	for i, slot := range c.slots {
		s.Slots[i] = slices.Clone(slot)
	}
	return s
}

// Restore implements [Optimizer].
func (c *core) Restore(s State) error {
	if s.Step < 0 {
		return fmt.Errorf("optimizer state: step %d is negative", s.Step)
	}
	if s.Updates < 0 {
		return fmt.Errorf("optimizer state: a count of %d updates is negative", s.Updates)
	}
	if len(s.Slots) != len(c.slots) {
		return fmt.Errorf("optimizer state: %d slots where the method has %d", len(s.Slots), len(c.slots))
	}
	for i, slot := range s.Slots {
		if len(slot) != c.n {
			return fmt.Errorf("optimizer state: slot %d has %d elements for %d parameters", i, len(slot), c.n)
		}
	}
	c.step, c.updates = s.Step, s.Updates
	for i, slot := range s.Slots {
		copy(c.slots[i], slot)
	}
	return nil
}

// Adopt implements [Adopter].
func (c *core) Adopt(n int, s State) {
	if n < 0 || len(s.Slots) != len(c.slots) {
		panic(badAdoption)
	}
	for _, slot := range s.Slots {
		if len(slot) != n {
			panic(badAdoption)
		}
	}
	c.n, c.step, c.updates, c.slots = n, s.Step, s.Updates, s.Slots
}
