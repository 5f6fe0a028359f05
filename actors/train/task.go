// Package train holds what all data-parallel architectures share: the task (model, data,
// optimiser), a worker's local step, and the evaluation of a model.
//
// An Architecture says which actor each node of a plan runs. Its actors compute
// their steps with Local, and let the coordinator look at their model with
// AnswerSnapshot; everything between two steps is the architecture's own.
package train

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// Task is what a run trains: the model, the data and how a step is made. It is
// read-only during the run.
type Task struct {
	// Model is the network.
	Model nn.Model
	// Train and Test are the samples to learn from and to judge by. On a cluster a process may have
	// those rows of Train alone that its own workers see, the others being 0, and no Test.
	Train, Test *datasets.Set
	// Sparse are the inputs of Train without most that are 0, or nil.
	Sparse *nn.Sparse
	// Validation are samples by which settings are chosen, in neither of the other sets; nil for
	// none.
	Validation *datasets.Set
	// Workers are the names of the nodes that train, in the order of the plan.
	Workers []string
	// Shards are the rows of Train that each worker sees, in the order of Workers. A worker
	// keeps its shard whatever becomes of its rank.
	Shards [][]int32
	// Clients are those of a population that take turns on the workers, each of which sees all
	// samples then; nil where each worker is a client itself.
	Clients Clients
	// Cores are those that each worker computes a step on, in the order of Workers; nil
	// stands for one each. The result of a step does not depend on them.
	Cores []int
	// Threads are those by which each worker makes the steps between two exchanges, in the order of
	// Workers; they share its Cores. Nil stands for one each.
	Threads []int
	// Batch is the number of samples of a step.
	Batch int
	// Weights are those of the classes in the loss, see [nn.Batch]; nil for none.
	Weights []float32
	// Method is how a gradient changes parameters.
	Method optim.Method
	// Seed is the run's.
	Seed uint64
}

// Clients says which samples the clients of a population have.
type Clients interface {
	// Rows returns the rows of Train that a client has, counted from 0. Nobody may change them.
	Rows(client int) []int32
}

// Validate returns an error that names what does not fit together.
func (t *Task) Validate() error {
	switch {
	case t.Model.Inputs() != t.Train.Inputs:
		return fmt.Errorf("the model takes %d inputs, data set %s has %d", t.Model.Inputs(), t.Train.Name,
			t.Train.Inputs)
	case t.Model.Classes() != len(t.Train.Classes):
		return fmt.Errorf("the model tells %d classes apart, data set %s has %d", t.Model.Classes(), t.Train.Name,
			len(t.Train.Classes))
	case len(t.Shards) != len(t.Workers):
		return fmt.Errorf("%d shards for %d workers", len(t.Shards), len(t.Workers))
	case t.Weights != nil && len(t.Weights) != len(t.Train.Classes):
		return fmt.Errorf("%d weights for %d classes", len(t.Weights), len(t.Train.Classes))
	case t.Batch < 1:
		return fmt.Errorf("a batch of %d samples, at least 1 is needed", t.Batch)
	case t.Train.Len() == 0 || t.Test != nil && t.Test.Len() == 0:
		return errors.New("no samples to train on or to judge by")
	}
	if m, shaped := t.Model.(interface{ InputShape() []int }); shaped {
		err := datasets.CheckShape("data set "+t.Train.Name, t.Train.Shape, "that of the model's input", m.InputShape())
		if err != nil {
			return err
		}
	}
	for rank, shard := range t.Shards {
		if len(shard) == 0 {
			return fmt.Errorf("worker %q has no samples of data set %s", t.Workers[rank], t.Train.Name)
		}
	}
	return nil
}

// Worker returns the place in Workers of a node of the run. Workers are some of the view's members,
// in the same order, so that a node's place is its position or shortly before: among 2,000 workers
// nobody searches through all of them. It returns an error if the node does not train.
func (t *Task) Worker(view *actors.View, node int) (int, error) {
	name := view.Members[node].Name
	for i := min(node, len(t.Workers)-1); i >= 0; i-- {
		if t.Workers[i] == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s is not among the workers, which have the samples: %v", name, t.Workers)
}

// OnValidation is the same task, judged by its validation samples in the place of the test samples.
func (t *Task) OnValidation() *Task {
	judged := *t
	judged.Test = t.Validation
	return &judged
}

// Initial returns the parameters that every model of the run starts from.
func (t *Task) Initial() []float32 {
	params := make([]float32, t.Model.Params())
	t.Model.Init(params, rand.New(actors.Source(t.Seed, "model", "initial parameters")))
	return params
}

// Role is a part that a node can have in an architecture.
type Role struct {
	// Name is what a plan calls it.
	Name string
	// Doc says what nodes of the role do.
	Doc string
	// Trains marks the workers: they have a shard and compute steps.
	Trains bool
	// Holds marks those whose models are evaluated.
	Holds bool
	// Joint says that the nodes that hold have one model among them, which any of them puts
	// together.
	Joint bool
	// Copied says that others of the role have copies of what a node holds, and go on with them
	// when it has crashed.
	Copied bool
	// Flushes says that those that hold send each other what they have held back, when their models
	// are looked at for the last time.
	Flushes bool
	// Min and Max bound the number of nodes; a Max of 0 is no bound.
	Min, Max int
	// ByName says that more nodes than Min have the role only where a plan gives it to them.
	ByName bool
}

// Place is where an actor is wanted.
type Place struct {
	// Node is the node's position in the plan and in the first view.
	Node int
	// Name is the node's, Role its part in the architecture.
	Name, Role string
}

// Architecture says which actor each node runs.
type Architecture interface {
	// Roles lists the parts of the architecture.
	Roles() []Role
	// Kind makes the actor of a node.
	Kind(task *Task, place Place) actors.Kind
}

// FreeRunner is an Architecture that can say whether its nodes make their steps without ever
// waiting for a message.
type FreeRunner interface {
	FreeRunning() bool
}

// Summing is an Architecture that can add its workers' gradients up instead of averaging them.
type Summing interface {
	Sums() bool
}

// Tolerant is an Architecture that can say whether it lives, by its nature, with messages that are
// lost, come twice or overtake each other. It gets them so, unless the plan asks for more.
type Tolerant interface {
	Tolerant() bool
}

// Bounded is an Architecture that may bound by how many rounds a worker is ahead of the slowest.
type Bounded interface {
	// RoundsAhead is that bound, and how many steps a round has. It is not bounded where workers
	// come and go, or leave rounds out.
	RoundsAhead() (rounds uint64, steps int, bounded bool)
}

// Rounds is an Architecture that may train in rounds, whose server tells the coordinator of the end
// of each by a protos.RoundDone. A run of it can be evaluated and ended by rounds.
type Rounds interface {
	// InRounds reports whether it does.
	InRounds() bool
}

// Populated is an Architecture for whose clients workers may be hosts.
type Populated interface {
	// Registered is how many clients there are, which take turns on the workers; 0 where each
	// worker is one itself.
	Registered() int
}

// Sharded is an Architecture whose model may be in shards, each with versions of its own.
type Sharded interface {
	// InShards reports whether it is, on so many servers.
	InShards(servers int) bool
}

// Ranked is an Architecture whose nodes may have equal models, bit by bit, after as many updates.
type Ranked interface {
	EqualRanks() bool
}

// Epochs is an Architecture whose epochs may be shorter than a pass through all samples.
type Epochs interface {
	// EpochSamples is how many samples, of so many to train on, make an epoch.
	EpochSamples(samples int) int
}

// Fitter is an Architecture that does not suit every topology.
type Fitter interface {
	// Fit returns an error that says why a run whose first view was first cannot go on, or
	// begin, with the topology of now. At the beginning both are the same.
	Fit(first, now *actors.View) error
}
