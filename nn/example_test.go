package nn_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// A network learns exclusive or: 2 inputs, 8 hidden units, 2 classes.
func ExampleNewMLP() {
	model, err := nn.NewMLP([]int{2, 8, 2}, nn.ReLU)
	if err != nil {
		fmt.Println(err)
		return
	}
	params, grad := make([]float32, model.Params()), make([]float32, model.Params())
	model.Init(params, rand.New(rand.NewPCG(1, 1)))
	batch := nn.Batch{X: []float32{0, 0, 0, 1, 1, 0, 1, 1}, Y: []int32{0, 1, 1, 0}}

	work := model.NewWorkspace(4)
	step := optim.SGD{Rate: optim.Constant(0.5)}.New(model.Params())
	for range 500 {
		work.Gradient(params, grad, batch)
		step.Step(params, params, grad)
	}
	_, correct := work.Evaluate(params, batch)
	fmt.Println(model.Params(), "parameters,", correct, "of 4 correct")
	// Output: 42 parameters, 4 of 4 correct
}

// A network of layers: what `kind: network` makes of a plan.
func ExampleNewNetwork() {
	model, err := nn.NewNetwork(nn.Shape{Channels: 1, Height: 28, Width: 28}, []nn.Layer{
		nn.Conv2D{Channels: 8, Kernel: 5}, nn.MaxPool{Size: 2}, nn.ReLU, nn.Flatten{}, nn.Dense{Outputs: 10},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range model.Tensors() {
		fmt.Println(t.Name, t.Shape)
	}
	_, err = nn.NewNetwork(nn.Shape{Channels: 1, Height: 4, Width: 4}, []nn.Layer{nn.Conv2D{Channels: 8, Kernel: 5}})
	fmt.Println(err)
	// Output:
	// conv1.weight [8 1 5 5]
	// conv1.bias [8]
	// fc1.weight [10 1152]
	// fc1.bias [10]
	// network: layer 1: conv2d: a window of 5×5 does not fit into 4×4 with padding 0
}
