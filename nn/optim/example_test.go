package optim_test

import (
	"fmt"

	"github.com/gradwire/gradwire/nn/optim"
)

// An optimizer that is saved and restored goes on with the same bits.
func ExampleOptimizer() {
	method := optim.Momentum{Rate: optim.Constant(0.1), Momentum: 0.9}
	gradient := []float32{1, -2}

	whole, first := []float32{0, 0}, []float32{0, 0}
	o := method.New(2)
	for range 4 {
		o.Step(whole, whole, gradient)
	}

	o = method.New(2)
	o.Step(first, first, gradient)
	o.Step(first, first, gradient)
	state := o.State()

	o = method.New(2)
	if err := o.Restore(state); err != nil {
		fmt.Println(err)
	}
	o.Step(first, first, gradient)
	o.Step(first, first, gradient)
	fmt.Println(whole[0] == first[0], whole[1] == first[1])
	// Output: true true
}
