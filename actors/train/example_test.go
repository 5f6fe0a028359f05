package train_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// learner trains a model by itself.
type learner struct {
	env       actors.Env
	local     *train.Local
	params    *protos.Tensor
	optimizer optim.Optimizer
}

func (l *learner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		l.local.Begin(l.params.Retain()) // the step's own reference
	case *train.Gradient: // 50 ms later
		l.local.Done(m)
		l.params = train.Update(l.env.Tensors(), l.optimizer, l.params, m.Values.Data)
		fmt.Printf("%v: step %d, loss %.4f\n", l.env.Now(), m.Step, m.Loss)
		m.Values.Release()
		l.local.Begin(l.params.Retain())
	}
}

// A task, and the steps of its one worker in virtual time. The four samples are the corners of a
// square, and the class is the first coordinate.
func ExampleTask() {
	model, err := nn.NewMLP([]int{2, 2}, nn.ReLU) // no hidden layer
	if err != nil {
		fmt.Println(err)
		return
	}
	corners := &datasets.Set{Name: "corners", Inputs: 2, Classes: []string{"left", "right"},
		X: []float32{0, 0, 0, 1, 1, 0, 1, 1}, Y: []int32{0, 0, 1, 1}}
	task := &train.Task{Model: model, Train: corners, Test: corners, Batch: 4, Seed: 1,
		Method:  optim.SGD{Rate: optim.Constant(1)},
		Workers: []string{"a"}, Shards: [][]int32{{0, 1, 2, 3}}}
	kind := func(env actors.Env) (actor.Actor, error) {
		local, err := task.NewLocal(env)
		return &learner{env: env, local: local, optimizer: task.Method.New(model.Params()),
			params: env.Tensors().Copy(make([]float32, model.Params()))}, err // zeros; see Task.Initial
	}
	d := &world.Deployment{Seed: task.Seed, Bounded: true, Nodes: []world.Node{{Name: "a", Role: "worker", Kind: kind,
		Profile: world.Profile{Cores: 1, Speed: 1e9, Step: 50 * time.Millisecond}}}}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(220*time.Millisecond, "end")
			case string:
				control.Finish()
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(d.Seed, d.Names())})
	if err == nil {
		_, err = w.Run(context.Background())
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 50ms: step 1, loss 0.6931
	// 100ms: step 2, loss 0.5836
	// 150ms: step 3, loss 0.5074
	// 200ms: step 4, loss 0.4464
}
