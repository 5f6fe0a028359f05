package protos_test

import (
	"fmt"

	"github.com/gradwire/gradwire/protos"
)

// A gradient on its way from a worker to a server: a head with the facts, and a tensor beside it.
func ExampleMessage() {
	var tensors protos.TensorPool // an actor's is Env.Tensors
	pushes := protos.NewMessages(func() *protos.Push { return &protos.Push{} })

	gradient := tensors.Copy([]float32{0.5, -1})
	m, head := pushes.Get(gradient) // the message takes over the reference to the gradient
	head.Node, head.Step, head.Version, head.Samples, head.Life = 2, 1, 0, 32, 0
	// ctx.Send(server, m) hands the message over; what follows is what its receiver does.

	if push, ok := m.Head.(*protos.Push); ok {
		kept := m.Take(0) // or m.Tensors[0].Retain(), to keep it after Release
		m.Release()       // goes back to the pool of its sender
		fmt.Println("node", push.Node, "step", push.Step, "gradient", kept.Data, "sole holder", kept.Sole())
		kept.Release()
	}
	// Output: node 2 step 1 gradient [0.5 -1] sole holder true
}
