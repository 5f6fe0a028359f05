// Package collective implements all-reduce. Workers without a server each hold a copy of the model
// and sum vectors among themselves; all of them get the sum divided by its weight. The worker that
// completes a piece of the sum divides it.
//
// An Algorithm says who sends which piece of the vector to whom, as a schedule of plain values that
// are computed when they are needed; each has its own file. A reduction walks through the schedule
// of its rank with the chunks that arrive, in whatever order. The worker lends it the network.
//
// Where vectors are compressed, ranks gather the codes of all, and each sums what they stand for.
//
// Every element is summed in one order, which depends only on the number of ranks and the element's
// place, so all ranks end a round with the same bits. Empty chunks travel too: an algorithm sends
// the same number of messages for every length of the vector, and a round that is over at one rank
// has begun at all others.
//
// Workers follow the views of the run's coordinator: a worker that has gone is missing from the
// next exchange, and one that joins starts from the model that the others share. The members of one
// view make a round, with the same steps of each, or repeat it.
package collective

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// RoleWorker is the only role of the architecture.
const RoleWorker = "worker"

// Reduce says what the workers average.
type Reduce string

// What is averaged. The weight of a batch in the mean is its number of samples, so
// that the last batch of a pass, which may be smaller, counts for what it is.
const (
	// Gradients lets every worker accumulate the gradients of its Every steps at an
	// unchanged model, and averages them over all steps of all workers; then every
	// worker makes the same step of the optimiser, whose state is equal everywhere.
	// Every worker's model has the same bits after a round. This is synchronous training
	// on the joint batch of all workers and steps, and momentum and the rate's schedule
	// mean what they mean there: they count rounds.
	Gradients Reduce = "gradients"
	// Models lets every worker make Every steps with its own optimiser, and then averages the
	// models; a worker's weight is the number of samples of its steps (B. McMahan et al.,
	// "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
	// algorithm 1, with steps instead of passes). The state of the optimiser is local: it is
	// neither sent nor averaged nor reset, so that momentum is the running mean of the worker's own
	// gradients and goes on, from the averaged model, in the direction of the worker's last steps;
	// the rate's schedule counts the worker's steps. With Every 1 and plain SGD this equals
	// Gradients up to rounding. A worker that joins begins with a copy of another worker's state as
	// it is then, counted as if it had made all steps of the rounds that are over.
	Models Reduce = "models"
)

// Architecture is synchronous data-parallel training by all-reduce.
type Architecture struct {
	// Algorithm says how the vectors are summed; it decides messages, bytes, who does the
	// arithmetic and the last bit of sums, nothing else.
	Algorithm Algorithm `plan:"algorithm" words:"all-to-all|ring|butterfly|tree|hierarchical|auto" doc:"the way that vectors take among the workers: hierarchical goes by the network's sites, auto is the one of least time by the plan's links, and butterfly for more than 256 workers"`
	// Segment, if not 0, is how many values a message has at most: pieces of more travel as
	// several, so that a rank adds and sends on the first while the next is under way. It goes with
	// Ring, which Auto then is, and changes no bit of the sum.
	Segment int `plan:"segment" range:"0.." doc:"values of a message at most, 0 for no bound; lets messages overlap with sums; with algorithm: ring, which auto then is"`
	// Every is the number of local steps of a round, at least 1; the sum of their weights is
	// bounded with it.
	Every int `plan:"every" range:"1..1048576" counts:"interval=steps|epochs|samples" doc:"steps between two reductions, with fragments of the same one; or 0.1 epochs, or 4000 samples, of all workers together"`
	// Reduce is Gradients or Models.
	Reduce Reduce `plan:"reduce" words:"gradients|models" doc:"what is averaged"`
	// Moved, if not 0, lets the workers vote after the steps of a round, by a reduction of one
	// value: only if somebody's model is further than Moved (the Euclidean distance, ε) from the
	// last exchanged one are models exchanged; otherwise all go on with local steps from their own
	// (M. Kamp et al., "Communication-Efficient Distributed Online Prediction by Dynamic Model
	// Synchronization", ECML PKDD 2014). A model's weight is the number of samples of its last
	// Every steps. Votes save bytes, not latency: they take as many messages and steps as an
	// exchange, which comes on top. With Gradients the model does not move between exchanges, and
	// only 0 is accepted.
	//
	// There is no bound on a worker's lead over the slowest, as with asynchronous
	// architectures: after a round all have made as many steps, and inside it nobody is more
	// than Every ahead.
	Moved float64 `plan:"moved" range:"0.." counts:"moved=rounds" with:"reduce=models" doc:"models are averaged only when one has moved by more than this (Euclidean norm) since the last time; checked at every exchange"`
	// Compress, unless empty, is what is done to each worker's gradient before it travels, or with
	// Models to the difference of its model from the last one that all had in common. It goes with
	// AllToAll: a code of a sum needs the sum, and partial sums of codes are none. Feedback says
	// what becomes of what is lost (D. Basu et al., "Qsparse-local-SGD: Distributed SGD with
	// Quantization, Sparsification, and Local Computations", NeurIPS 2019, is Models with EF).
	Compress compress.Chain `key:"compress"`
	Feedback compress.Feedback
	// Outer, with Models, makes a step of the joint model in each round, for the mean of all Δ as a
	// gradient: Δ is by how much the joint model is above a worker's own. SGD of rate 1, or nil, is
	// the mean of the models. Momentum is SlowMo, while the rate γ of the workers' own steps is
	// constant, with the slow rate α as its rate and β as its momentum (J. Wang et al., "SlowMo:
	// Improving Communication-Efficient Distributed SGD with Slow Momentum", ICLR 2020), and with
	// Nesterov it is DiLoCo (A. Douillard et al., arXiv 2311.08105, 2023). All ranks make the same
	// step, and a rank that joins gets what it remembers; the schedule of its rate counts rounds.
	Outer optim.Method `key:"outer"`
	// Fragments, Overlap and Mix make rounds of a part of the model, see [streamer].
	Fragments int     `plan:"fragments,omitzero" range:"1..1048576" with:"reduce=models" doc:"parts of the model, each of ⌈parameters ÷ fragments⌉ consecutive parameters and the last ones of fewer, of which one is averaged in turn, each once in the steps of every, which they divide (Streaming DiLoCo, Douillard et al. 2025); default: the whole model"`
	Overlap   int     `plan:"overlap,omitzero" range:"0..1048575" counts:"overlap=steps" with:"reduce=models" doc:"steps that a worker makes while an exchange is under way; default: none"`
	Mix       float64 `plan:"mix,omitzero" unit:"fraction" range:"0%..100%" with:"reduce=models" doc:"share of its own parameters that a worker keeps when it takes in those that all share"`
	// Sparse, if not 0, makes rounds of a random part instead, which is this share of the model.
	Sparse float64 `plan:"sparse,omitzero" unit:"fraction" range:">0%..100%" with:"reduce=models" doc:"share of the parameters that are averaged instead of all: each time one at random of each of as many equal ranges (after SPARTA, Beton et al. 2025)"`
}

var (
	_ train.Architecture = Architecture{}
	_ train.Teams        = Architecture{}
)

// Default averages gradients after every step, by the algorithm that takes the least time.
func Default() Architecture { return Architecture{Algorithm: Auto, Every: 1, Reduce: Gradients} }

// Presets are the names that the field has for some settings: those that differ from Default, in a
// plan's flow style. DiLoCo's steps are the fewest that its paper tries. Those of SlowMo, its β and
// the constants of Streaming DiLoCo are from memory of their papers.
var Presets = map[string]string{
	"local-sgd": "{reduce: models, every: 8}",
	"slowmo":    "{reduce: models, every: 12, outer: {kind: momentum, rate: 1, momentum: 0.7}}",
	"diloco":    "{reduce: models, every: 50, outer: {kind: momentum, rate: 0.7, momentum: 0.9, nesterov: true}}",
	"streaming-diloco": "{reduce: models, every: 100, fragments: 4, overlap: 5, mix: 50%, " +
		"outer: {kind: momentum, rate: 0.7, momentum: 0.9, nesterov: true}}",
	"sparta": "{reduce: models, every: 1, sparse: 0.5%}",
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	if a.compresses() && a.Algorithm != AllToAll && a.Algorithm != Auto {
		return field.Errorf(a, "Algorithm", "%s or %s with compress: the others send partial sums, and a sum of codes "+
			"is no code", AllToAll, Auto)
	}
	if a.Segment > 0 && a.Algorithm != Ring && a.Algorithm != Auto {
		return field.Errorf(a, "Segment", "left out, or with algorithm %s or %s", Ring, Auto)
	}
	if f := a.Feedback; a.compresses() && f != compress.EF && f != compress.EF21 && f != compress.None {
		return field.Errorf(a, "Feedback", "ef, ef21 or none")
	}
	if err := a.checkOuter(); err != nil {
		return err
	}
	if err := a.checkStream(); err != nil {
		return err
	}
	return field.Within(a, "Compress", a.Compress.Validate())
}

// checkOuter returns an error about an outer optimizer that has nothing to do.
func (a *Architecture) checkOuter() error {
	switch {
	case a.Outer == nil:
	case a.Reduce != Models:
		return field.Errorf(*a, "Outer", "left out with reduce: %s, which has train.optimizer make the step; "+
			"reduce: %s takes an outer optimizer", a.Reduce, Models)
	case a.Moved > 0 && !periodic.Averages(a.Outer):
		return field.Errorf(*a, "Outer", "left out with moved: a round without an exchange has no mean for it")
	}
	return nil
}

// EqualRanks reports whether gradients are reduced as they are.
func (a Architecture) EqualRanks() bool { return a.Reduce == Gradients && !a.compresses() }

func (a *Architecture) compresses() bool { return len(a.Compress) > 0 }

// CheckThreads refuses threads unless models are averaged after several steps of their own.
func (a Architecture) CheckThreads() error {
	switch {
	case a.Reduce != Models:
		return errors.New("with reduce: gradients the model stays as it is between two reductions, so threads have " +
			"nothing to share; reduce: models with every: 2 or more has")
	case a.round() < 2:
		return errors.New("with every: 1 models are averaged after each step, so threads have nothing to share; " +
			"every: 2 or more has, for each of the fragments")
	case a.Overlap > 0:
		return errors.New("with overlap an exchange begins after some steps of a round, which threads make all at once")
	}
	return nil
}

// Roles is the one role of all nodes: each trains and holds a model.
func (a Architecture) Roles() []train.Role {
	return []train.Role{{Name: RoleWorker, Doc: "computes gradients on its shard and averages with all others",
		Trains: true, Holds: true, Min: 1}}
}

// Kind makes a worker. It fails for an Architecture that is not valid, or leaves its Algorithm to
// be chosen, or is Hierarchical where the task has no sites.
func (a Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		if a.Algorithm == Auto {
			return nil, field.Errorf(a, "Algorithm", "one by name, or one that Choose has chosen: an architecture "+
				"that wraps this one hands Choose on")
		}
		return newWorker(env, task, a)
	}
}
