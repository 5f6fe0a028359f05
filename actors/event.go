package actors

import "time"

// EventKind says what an Event reports.
type EventKind uint8

// The kinds of events.
const (
	// StepDone: a worker has computed the gradient of a batch. Step counts the
	// worker's finished steps; Samples and Loss are the batch's.
	StepDone EventKind = iota + 1
	// UpdateApplied: a model has taken in the gradient of the worker at position
	// Origin. Staleness is the age of the gradient in versions; Version counts the updates. Of a
	// parameter server Shard, Life and Push say which gradient of the worker it is.
	UpdateApplied
	// Waited: a worker stood idle for Duration because of Cause.
	Waited
	// SnapshotTaken: the coordinator holds the model that an Evaluation, whose number
	// it is, will be made of. Epoch and Step say how far the run is.
	SnapshotTaken
	// Evaluated: the verdict on a model of an Evaluation is in. Origin is the node
	// whose model it was; At, Epoch and Step are the snapshot's; Accuracy and
	// Loss are the means over the test set, or over Samples of its samples; see Score. An
	// evaluation of a part is completed, if need be, by another event of the same number.
	Evaluated
	// Measured: a figure of the actor's own, such as the distance from a consensus. Name
	// says which, Value what it is; At, if Dated, the instant that it is of, otherwise
	// it is of the one at which it is recorded.
	Measured
	// Selected: a peer has chosen the node at position Origin to exchange models with.
	Selected
	// Summarized: the verdicts on all models of an Evaluation are in, as Figures says. At
	// and Epoch are the snapshots', Step is how far the run was; Accuracy, Loss and Samples
	// belong to what is judged. Another event of the same number completes an evaluation.
	Summarized
	// Merged: a peer has taken in a model of the node at position Origin, which had made Step
	// steps when it sent it.
	Merged
)

// String returns the kind's name in the record.
func (k EventKind) String() string {
	switch k {
	case StepDone:
		return "step"
	case UpdateApplied:
		return "update"
	case Waited:
		return "wait"
	case SnapshotTaken:
		return "snapshot"
	case Evaluated:
		return "evaluation"
	case Measured:
		return "measured"
	case Selected:
		return "selection"
	case Summarized:
		return "summary"
	case Merged:
		return "merge"
	}
	return "unknown"
}

// Event is something that happened on a node. Fields that a kind does not name
// are zero.
type Event struct {
	Kind EventKind
	// Shard is the part of the model that took a gradient in, from 0.
	Shard     uint32
	Step      uint64
	Samples   int
	Loss      float64
	Version   uint64
	Staleness uint64
	Origin    int
	// Life is the worker's as the shard knows it, higher than those before it; Push numbers the
	// gradients of that life that have come to the shard, from 1. Both are 0 of architectures
	// that take in no gradient again after a crash.
	Life, Push uint64
	Duration   time.Duration
	// Cause names what was waited for, such as "parameters".
	Cause      string
	Evaluation uint64
	At         time.Duration
	Dated      bool
	Epoch      float64
	Accuracy   float64
	Name       string
	Value      float64
	Figures    *Figures
}

// Of says what is judged, where several nodes hold a model.
type Of string

// What can be judged. Where one node alone holds a model, all four are the same.
const (
	// AverageModel is the model whose parameters are the mean of all nodes' parameters.
	AverageModel Of = "average-model"
	// Mean is the mean of the nodes' accuracies: what the owner of one node can expect.
	Mean Of = "mean"
	// All is the worst node's accuracy: one that all nodes have at least.
	All Of = "all"
	// Any is the best node's accuracy.
	Any Of = "any"
)

// Score is what a test set says of a model.
type Score struct {
	// Accuracy is a fraction, Loss the mean over the samples.
	Accuracy, Loss float64
	// Samples is 0 where the score is of the whole test set. Otherwise Accuracy is an estimate
	// by this many of its samples, or for several models by at least so many, which is surely below
	// the target, and Loss is NaN.
	Samples int
}

// Figures are the scores of the models of one instant.
type Figures struct {
	// Models is how many were looked at.
	Models                       int
	AverageModel, Mean, All, Any Score
}

// Score returns the one of what is judged.
func (f *Figures) Score(of Of) Score {
	switch of {
	case AverageModel:
		return f.AverageModel
	case All:
		return f.All
	case Any:
		return f.Any
	}
	return f.Mean
}
