package dpsgd_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// newTask is logistic regression on random clouds, with a shard for each of n nodes.
func newTask(n, samples int, rate float64) *train.Task {
	const inputs, classes = 12, 3
	model, err := nn.NewMLP([]int{inputs, classes}, nn.Tanh)
	if err != nil {
		panic(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	set := &datasets.Set{Name: "random", Inputs: inputs, Classes: make([]string, classes)}
	task := &train.Task{Model: model, Train: set, Test: set, Batch: 8, Method: optim.SGD{Rate: optim.Constant(rate)}, Seed: 3}
	for node := range n {
		var rows []int32
		for range samples {
			rows = append(rows, int32(len(set.Y)))
			y := random.IntN(classes)
			set.Y = append(set.Y, int32(y))
			for i := range inputs {
				x := random.NormFloat64()
				if i%classes == y {
					x++
				}
				set.X = append(set.X, float32(x))
			}
		}
		task.Shards = append(task.Shards, rows)
		task.Workers = append(task.Workers, fmt.Sprintf("n%d", node))
	}
	return task
}

// stage lets peers train in virtual time and looks at their models at given instants.
type stage struct {
	task     *train.Task
	kind     train.Architecture
	graph    actors.Graph
	distinct bool // every node begins with other parameters
	step     []time.Duration
	edge     link.Delay
	reorder  bool
	strict   bool
	threads  int
	observer actors.Observer
	schedule []actors.NodeChange
	detect   time.Duration
	absent   []int
	looks    []time.Duration // ascending; the run ends at the last
	result   sim.Result
}

const stepTime = 100 * time.Millisecond

// seen is what a node's model was at an instant.
type seen struct {
	params  []float32
	version uint64
}

// world makes the run; coordinate leads it.
func (s *stage) world(tb testing.TB, coordinate func(env actors.Env, control actors.Control) (actor.Actor, error)) *sim.World {
	tb.Helper()
	d := &actors.Deployment{Seed: s.task.Seed, Strict: s.strict, Observer: s.observer, Schedule: s.schedule, Detect: s.detect, Coordinate: coordinate}
	if s.graph != nil {
		if err := s.graph.Validate(len(s.task.Workers)); err != nil {
			tb.Fatal(err)
		}
		d.Topologies = []actors.Graph{s.graph}
	}
	for i, name := range s.task.Workers {
		task := *s.task
		if s.distinct {
			task.Seed += uint64(1000 * i)
		}
		profile := actors.Profile{Cores: 1, Speed: math.Inf(1), Step: stepTime}
		if s.step != nil {
			profile.Step = s.step[i]
		}
		d.Nodes = append(d.Nodes, actors.Node{Name: name, Role: "peer", Profile: profile, Absent: slices.Contains(s.absent, i),
			Kind: s.kind.Kind(&task, train.Place{Node: i, Name: name, Role: "peer"})})
	}
	network := link.New(s.task.Seed, append(slices.Clone(s.task.Workers), actors.Coordinator))
	if s.edge == nil {
		s.edge = link.Uniform{Min: time.Microsecond, Max: 20 * time.Microsecond}
	}
	network.SetDefault(link.Config{Delay: s.edge, Reorder: s.reorder})
	w, err := sim.New(sim.Config{Deployment: d, Network: network, Threads: s.threads})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// run returns for every look the models by node; nil for one that is not there.
func (s *stage) run(tb testing.TB) [][]seen {
	tb.Helper()
	looks := make([][]seen, len(s.looks))
	for i := range looks {
		looks[i] = make([]seen, len(s.task.Workers))
	}
	w := s.world(tb, func(env actors.Env, control actors.Control) (actor.Actor, error) {
		return &audience{env: env, control: control, stage: s, looks: looks, view: protos.View{Number: 1, Absent: nodes(s.absent)}}, nil
	})
	var err error
	if s.result, err = w.Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return looks
}

func nodes(list []int) (positions []int32) {
	for _, i := range list {
		positions = append(positions, int32(i))
	}
	return positions
}

// audience is a coordinator that announces who is there and looks at models.
type audience struct {
	env     actors.Env
	control actors.Control
	stage   *stage
	looks   [][]seen
	missing []int
	view    protos.View
}

func (c *audience) Receive(ctx actor.Context) {
	members := c.env.View().Members
	switch m := ctx.Message().(type) {
	case *actor.Started:
		for i := range members {
			if members[i].Present {
				ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
			}
		}
		c.missing = make([]int, len(c.looks))
		for i, at := range c.stage.looks {
			c.env.After(at, i)
		}
	case int:
		for i := range members {
			if members[i].Present {
				c.missing[m]++
				ctx.Send(members[i].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: uint64(m)}))
			}
		}
	case actors.MemberChange:
		c.change(ctx, m)
	case *protos.Message:
		if head, ok := m.Head.(*protos.Snapshot); ok {
			look := int(head.Evaluation)
			c.looks[look][head.Node] = seen{params: slices.Clone(m.Tensors[0].Data), version: head.Version}
			if c.missing[look]--; c.missing[look] == 0 && look == len(c.looks)-1 {
				c.control.Finish()
			}
		}
		m.Release()
	}
}

func (c *audience) change(ctx actor.Context, m actors.MemberChange) {
	c.view.Number++
	at, there := slices.BinarySearch(c.view.Absent, int32(m.Node))
	if there {
		c.view.Absent = slices.Delete(slices.Clone(c.view.Absent), at, at+1)
	} else {
		c.view.Absent = slices.Insert(slices.Clone(c.view.Absent), at, int32(m.Node))
	}
	head := protos.View{Number: c.view.Number, Absent: c.view.Absent}
	c.control.Announce(&head)
	members := c.env.View().Members
	for i := range members {
		if members[i].Present {
			ctx.Send(members[i].PID, protos.NewMessage(&protos.View{Number: head.Number, Absent: head.Absent}))
		}
	}
	if m.Present {
		ctx.Send(members[m.Node].PID, protos.NewMessage(&protos.Start{View: head.Number, Joins: true}))
	}
}

// recorder keeps all events of a run.
type recorder struct {
	nodes  []int
	events []actors.Event
	at     []time.Duration
}

func (r *recorder) Observe(at time.Duration, node int, event actors.Event) {
	r.nodes, r.events, r.at = append(r.nodes, node), append(r.events, event), append(r.at, at)
}

// stepsAfter counts the steps that each of n nodes has made after an instant.
func (r *recorder) stepsAfter(n int, at time.Duration) []int {
	steps := make([]int, n)
	for i, e := range r.events {
		if e.Kind == actors.StepDone && r.at[i] > at {
			steps[r.nodes[i]]++
		}
	}
	return steps
}

// total is the sum of the models that are there, value by value.
func total(models []seen) (sum []float64, present int) {
	for _, m := range models {
		if m.params == nil {
			continue
		}
		if sum == nil {
			sum = make([]float64, len(m.params))
		}
		present++
		for i, v := range m.params {
			sum[i] += float64(v)
		}
	}
	return sum, present
}

// distance is ‖a−b‖ ÷ ‖b‖.
func distance(a, b []float64) float64 {
	var difference, norm float64
	for i := range b {
		difference += (a[i] - b[i]) * (a[i] - b[i])
		norm += b[i] * b[i]
	}
	return math.Sqrt(difference / norm)
}

// spread is the root mean square distance of the models from their mean.
func spread(models []seen) float64 {
	sum, n := total(models)
	square := 0.0
	for _, m := range models {
		for i, v := range m.params {
			d := float64(v) - sum[i]/float64(n)
			square += d * d
		}
	}
	return math.Sqrt(square / float64(n))
}
