package ps_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// clouds is a data set of normally distributed clouds, one a class.
func clouds(seed uint64, samples, inputs, classes int) *datasets.Set {
	r := rand.New(rand.NewPCG(seed, 1))
	set := &datasets.Set{Name: "clouds", Inputs: inputs, X: make([]float32, samples*inputs), Y: make([]int32, samples)}
	for c := range classes {
		set.Classes = append(set.Classes, string(rune('a'+c)))
	}
	for i := range samples {
		class := r.IntN(classes)
		set.Y[i] = int32(class)
		for j := range inputs {
			set.X[i*inputs+j] = float32(r.NormFloat64())
			if j%classes == class {
				set.X[i*inputs+j]++
			}
		}
	}
	return set
}

// newTask is a small network on clouds for the given workers.
func newTask(tb testing.TB, seed uint64, layers []int, batch, samples int, workers ...string) *train.Task {
	tb.Helper()
	model, err := nn.NewMLP(layers, nn.ReLU)
	if err != nil {
		tb.Fatal(err)
	}
	classes := layers[len(layers)-1]
	task := &train.Task{
		Model: model, Train: clouds(seed, samples, layers[0], classes), Test: clouds(seed+1, 50, layers[0], classes),
		Batch: batch, Method: optim.SGD{Rate: optim.Constant(0.1)}, Seed: seed, Workers: workers,
	}
	if task.Shards, err = (partition.IID{}).Assign(task.Train, workers, seed); err != nil {
		tb.Fatal(err)
	}
	if err := task.Validate(); err != nil {
		tb.Fatal(err)
	}
	return task
}

// stage is a parameter server, its workers, and a coordinator of the test's own.
type stage struct {
	task   *train.Task
	arch   ps.Architecture
	server world.Profile
	steps  []time.Duration // of each worker
	delays []time.Duration // of each worker's link, one way
	strict bool
	// worker, if not nil, stands for the architecture's.
	worker     actors.Kind
	observer   world.Observer
	coordinate func(env actors.Env, control world.Control) (actor.Actor, error)
}

func (s *stage) world(tb testing.TB) *sim.World {
	tb.Helper()
	d := &world.Deployment{Seed: s.task.Seed, Strict: s.strict, Observer: s.observer, Coordinate: s.coordinate}
	d.Nodes = []world.Node{{Name: "hub", Role: ps.RoleServer, Profile: s.server,
		Kind: s.arch.Kind(s.task, train.Place{Role: ps.RoleServer})}}
	names := []string{"hub"}
	kind := s.worker
	if kind == nil {
		kind = s.arch.Kind(s.task, train.Place{Role: ps.RoleWorker})
	}
	for i, name := range s.task.Workers {
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: ps.RoleWorker,
			Profile: world.Profile{Cores: 1, Speed: 1e9, Step: s.steps[i]}, Kind: kind})
		names = append(names, name)
	}
	network := link.New(s.task.Seed, append(names, actors.Coordinator))
	for i, delay := range s.delays {
		config := link.Config{Delay: link.Constant{Delay: delay}}
		network.Set(0, int32(i+1), config)
		network.Set(int32(i+1), 0, config)
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// run ends the run at an instant and returns the server's model then and its version.
func (s *stage) run(tb testing.TB, end time.Duration) (params []float32, version uint64) {
	tb.Helper()
	s.coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for i := range env.View().Members {
					ctx.Send(env.View().Members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
				}
				env.After(end, "end")
			case string:
				ctx.Send(env.View().Members[0].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: 1}))
			case *protos.Message:
				if head, ok := m.Head.(*protos.Snapshot); ok {
					params, version = append([]float32(nil), m.Tensors[0].Data...), head.Version
					control.Finish()
				}
			}
		}), nil
	}
	if _, err := s.world(tb).Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return params, version
}

// events keeps the events of one kind.
type events struct {
	kind actors.EventKind
	list []actors.Event
	at   []time.Duration
}

func (e *events) Observe(at time.Duration, _ int, event actors.Event) {
	if event.Kind == e.kind {
		e.list, e.at = append(e.list, event), append(e.at, at)
	}
}
