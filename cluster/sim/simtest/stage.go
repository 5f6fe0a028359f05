// Package simtest helps to test architectures in virtual time. It has tasks, graphs, a stopwatch
// for steps and what they allocate, and a stage on which peers train, join and leave while a test
// looks at their models.
package simtest

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
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Task is one on random clouds, a cloud for each class, for workers n0, n1, … with shards of the
// given sizes.
func Task(model nn.Model, shards []int, batch int, method optim.Method) *train.Task {
	random := rand.New(rand.NewPCG(11, 12))
	inputs, classes := model.Inputs(), model.Classes()
	set := &datasets.Set{Name: "random", Inputs: inputs, Classes: make([]string, classes)}
	task := &train.Task{Model: model, Train: set, Test: set, Batch: batch, Method: method, Seed: 3}
	for node, samples := range shards {
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

// Site is where a test has a node: in site 0 the first, the fourth, …; in site 1 the others.
func Site(node int) int32 { return int32(node * node % 3) }

// Perceptron is a network of the given widths; two make a logistic regression.
func Perceptron(layers ...int) nn.Model {
	model, err := nn.NewMLP(layers, nn.Tanh)
	if err != nil {
		panic(err)
	}
	return model
}

// NewTask is logistic regression for n nodes, each with a shard of a number of samples.
func NewTask(n, samples int, rate float64) *train.Task {
	return Task(Perceptron(12, 3), slices.Repeat([]int{samples}, n), 8, optim.SGD{Rate: optim.Constant(rate)})
}

// Fixed is a model whose gradient is the input of a batch's first sample, again and again, whatever
// the parameters are: with it steps make the same in any order.
type Fixed struct{ nn.Model }

// NewWorkspace returns a workspace with such a Gradient; the loss is 1.
func (m Fixed) NewWorkspace(maxBatch int) nn.Workspace { return fixed{m.Model.NewWorkspace(maxBatch)} }

type fixed struct{ nn.Workspace }

func (fixed) Gradient(_, gradient []float32, b nn.Batch) float64 {
	inputs := len(b.X) / len(b.Y)
	for i := range gradient {
		gradient[i] = b.X[i%inputs]
	}
	return 1
}

// Graph makes a graph of n nodes from what tells of i < j whether there is an edge.
func Graph(n int, edge func(i, j int) bool) actors.Graph {
	g := make(actors.Graph, n)
	for i := range n {
		for j := range i {
			if edge(j, i) {
				g[i], g[j] = append(g[i], int32(j)), append(g[j], int32(i))
			}
		}
	}
	for i := range g {
		slices.Sort(g[i])
	}
	return g
}

// Stage lets peers train in virtual time and looks at their models at given instants.
type Stage struct {
	// Task is what they train; Workers are the nodes.
	Task *train.Task
	// Kind is the architecture, whose only role is peer.
	Kind train.Architecture
	// Graph is the topology; nil for the complete one. Topologies are those that follow it, in the
	// order of time.
	Graph      actors.Graph
	Topologies []TopologyChange
	// Distinct gives every node other initial parameters.
	Distinct bool
	// Step is how long a step of each node takes; nil for StepTime each.
	Step []time.Duration
	// Edge is the delay of all links; nil for a few microseconds. With Reorder messages overtake
	// each other.
	Edge    link.Delay
	Reorder bool
	// Loss is what links lose, and Repeat the share of messages that arrive twice.
	Loss   link.Loss
	Repeat float64
	// Reliable has sessions deliver messages all the same.
	Reliable bool
	// Strict, Observer, Schedule and Detect belong to the deployment, Threads to the world.
	Strict   bool
	Threads  int
	Observer world.Observer
	Schedule []world.NodeChange
	Detect   time.Duration
	// Absent are the nodes that are not there at the beginning.
	Absent []int
	// Looks are the instants of looks, ascending; the run ends with the last.
	Looks []time.Duration
	// Result is there after the run.
	Result sim.Result
}

// TopologyChange gives a run another topology at an instant.
type TopologyChange struct {
	At    time.Duration
	Graph actors.Graph
}

// StepTime is how long a step takes unless the stage says otherwise.
const StepTime = 100 * time.Millisecond

// Seen is what a node's model was at an instant.
type Seen struct {
	Params  []float32
	Version uint64
	// Voters are the models that it predicts by besides.
	Voters [][]float32
}

// Shake lets nodes of the run come and go, a number of times, at random instants up to end. Node 0
// stays.
func (s *Stage) Shake(random *rand.Rand, times int, end time.Duration) {
	n := len(s.Task.Workers)
	there := make([]bool, n)
	for i := range there {
		if there[i] = i == 0 || random.IntN(4) > 0; !there[i] {
			s.Absent = append(s.Absent, i)
		}
	}
	for i := range times {
		node := 1 + random.IntN(n-1)
		do := world.Join
		if there[node] {
			do = world.Crash + world.NodeEvent(random.IntN(2))
		}
		there[node] = !there[node]
		at := end * time.Duration(i) / time.Duration(times)
		s.Schedule = append(s.Schedule, world.NodeChange{At: at + time.Duration(random.Int64N(int64(end)/int64(times))),
			Node: node, Do: do})
	}
}

// World makes the world of the run; coordinate leads it.
func (s *Stage) World(tb testing.TB, coordinate Coordinate) *sim.World {
	tb.Helper()
	d := &world.Deployment{Seed: s.Task.Seed, Strict: s.Strict, Observer: s.Observer, Schedule: s.Schedule,
		Detect: s.Detect, Coordinate: coordinate, Lossy: s.Loss.Drop, Reliable: s.Reliable}
	if s.Graph != nil || s.Topologies != nil {
		d.Topologies = []actors.Graph{s.Graph}
	}
	for _, t := range s.Topologies {
		d.Topologies = append(d.Topologies, t.Graph)
	}
	for _, g := range d.Topologies {
		if err := g.Validate(len(s.Task.Workers)); err != nil {
			tb.Fatal(err)
		}
	}
	for i, name := range s.Task.Workers {
		task := *s.Task
		if s.Distinct {
			task.Seed += uint64(1000 * i)
		}
		profile := world.Profile{Cores: 1, Speed: math.Inf(1), Step: StepTime}
		if s.Step != nil {
			profile.Step = s.Step[i]
		}
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: "peer", Profile: profile,
			Absent: slices.Contains(s.Absent, i),
			Kind:   s.Kind.Kind(&task, train.Place{Node: i, Name: name, Role: "peer"})})
	}
	network := link.New(s.Task.Seed, append(slices.Clone(s.Task.Workers), actors.Coordinator))
	if s.Edge == nil {
		s.Edge = link.Uniform{Min: time.Microsecond, Max: 20 * time.Microsecond}
	}
	network.SetDefault(link.Config{Delay: s.Edge, Reorder: s.Reorder, Loss: s.Loss, Repeat: s.Repeat})
	w, err := sim.New(sim.Config{Deployment: d, Network: network, Threads: s.Threads})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// Run returns for every look the models by node; one of a node that is not there has no parameters.
func (s *Stage) Run(tb testing.TB) [][]Seen {
	tb.Helper()
	looks, err := s.Try(tb)
	if err != nil {
		tb.Fatal(err)
	}
	return looks
}

// Try is Run for runs that may fail.
func (s *Stage) Try(tb testing.TB) (looks [][]Seen, err error) {
	tb.Helper()
	looks = make([][]Seen, len(s.Looks))
	for i := range looks {
		looks[i] = make([]Seen, len(s.Task.Workers))
	}
	w := s.World(tb, func(env actors.Env, control world.Control) (actor.Actor, error) {
		return &audience{env: env, control: control, stage: s, looks: looks,
			view: protos.View{Number: 1, Absent: nodes(s.Absent)}}, nil
	})
	s.Result, err = w.Run(context.Background())
	return looks, err
}

func nodes(list []int) (positions []int32) {
	for _, i := range list {
		positions = append(positions, int32(i))
	}
	return positions
}

// topology tells the audience to announce the one with this number.
type topology int

// audience is a coordinator that announces who is there and looks at models.
type audience struct {
	env     actors.Env
	control world.Control
	stage   *Stage
	looks   [][]Seen
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
		for i, t := range c.stage.Topologies {
			c.env.After(t.At, topology(i+1))
		}
		c.missing = make([]int, len(c.looks))
		for i, at := range c.stage.Looks {
			c.env.After(at, i)
		}
	case int:
		for i := range members {
			if members[i].Present {
				c.missing[m]++
				ctx.Send(members[i].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: uint64(m)}))
			}
		}
	case topology:
		c.view.Topology = uint32(m)
		c.announce(ctx)
	case world.MemberChange:
		c.change(ctx, m)
	case *protos.Message:
		if head, ok := m.Head.(*protos.Snapshot); ok {
			look := int(head.Evaluation)
			seen := Seen{Params: slices.Clone(m.Tensors[0].Data), Version: head.Version}
			for _, voter := range m.Tensors[1:] {
				seen.Voters = append(seen.Voters, slices.Clone(voter.Data))
			}
			c.looks[look][head.Node] = seen
			if c.missing[look]--; c.missing[look] == 0 && look == len(c.looks)-1 {
				c.control.Finish()
			}
		}
		m.Release()
	}
}

func (c *audience) change(ctx actor.Context, m world.MemberChange) {
	at, there := slices.BinarySearch(c.view.Absent, int32(m.Node))
	if there {
		c.view.Absent = slices.Delete(slices.Clone(c.view.Absent), at, at+1)
	} else {
		c.view.Absent = slices.Insert(slices.Clone(c.view.Absent), at, int32(m.Node))
	}
	c.announce(ctx)
	if m.Present {
		ctx.Send(c.env.View().Members[m.Node].PID, protos.NewMessage(&protos.Start{View: c.view.Number, Joins: true}))
	}
}

// announce issues the next view.
func (c *audience) announce(ctx actor.Context) {
	c.view.Number++
	c.control.Announce(c.copy())
	members := c.env.View().Members
	for i := range members {
		if members[i].Present {
			ctx.Send(members[i].PID, protos.NewMessage(c.copy()))
		}
	}
}

func (c *audience) copy() *protos.View {
	return &protos.View{Number: c.view.Number, Absent: c.view.Absent, Topology: c.view.Topology}
}

// Recorder keeps all events of a run.
type Recorder struct {
	Nodes  []int
	Events []actors.Event
	At     []time.Duration
}

// Observe implements [world.Observer].
func (r *Recorder) Observe(at time.Duration, node int, event actors.Event) {
	r.Nodes, r.Events, r.At = append(r.Nodes, node), append(r.Events, event), append(r.At, at)
}

// StepsAfter counts the steps that each of n nodes has made after an instant.
func (r *Recorder) StepsAfter(n int, at time.Duration) []int {
	steps := make([]int, n)
	for i, e := range r.Events {
		if e.Kind == actors.StepDone && r.At[i] > at {
			steps[r.Nodes[i]]++
		}
	}
	return steps
}

// Lagging returns the nodes that are there at a look and have made fewer steps than least after an
// instant.
func (r *Recorder) Lagging(look []Seen, after time.Duration, least int) (nodes []int) {
	for node, steps := range r.StepsAfter(len(look), after) {
		if look[node].Params != nil && steps < least {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Total is the sum of the models that are there, value by value.
func Total(models []Seen) (sum []float64, present int) {
	for _, m := range models {
		if m.Params == nil {
			continue
		}
		if sum == nil {
			sum = make([]float64, len(m.Params))
		}
		present++
		for i, v := range m.Params {
			sum[i] += float64(v)
		}
	}
	return sum, present
}

// Distance is ‖a−b‖ ÷ ‖b‖.
func Distance(a, b []float64) float64 {
	var difference, norm float64
	for i := range b {
		difference += (a[i] - b[i]) * (a[i] - b[i])
		norm += b[i] * b[i]
	}
	return math.Sqrt(difference / norm)
}

// Spread is the root mean square distance of the models from their mean.
func Spread(models []Seen) float64 {
	sum, n := Total(models)
	square := 0.0
	for _, m := range models {
		for i, v := range m.Params {
			d := float64(v) - sum[i]/float64(n)
			square += d * d
		}
	}
	return math.Sqrt(square / float64(n))
}
