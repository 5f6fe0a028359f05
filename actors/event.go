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
	// Origin. Staleness is the age of the gradient in versions; Version counts the updates.
	UpdateApplied
	// Waited: a worker stood idle for Duration because of Cause.
	Waited
	// SnapshotTaken: the coordinator holds the model that an Evaluation, whose number
	// it is, will be made of. Epoch and Step say how far the run is.
	SnapshotTaken
	// Evaluated: the verdict on the snapshot of Evaluation is in. Origin is the node
	// whose model it was; At, Epoch and Step are those of the snapshot; Accuracy and
	// Loss are the means over the test set.
	Evaluated
	// Measured: a figure of the actor's own, such as the distance from a consensus. Name
	// says which, Value what it is; At, if Dated, the instant that it is of, otherwise
	// it is of the one at which it is recorded.
	Measured
	// Selected: a peer has chosen the node at position Origin to exchange models with.
	Selected
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
	}
	return "unknown"
}

// Event is something that happened on a node. Fields that a kind does not name
// are zero.
type Event struct {
	Kind      EventKind
	Step      uint64
	Samples   int
	Loss      float64
	Version   uint64
	Staleness uint64
	Origin    int
	Duration  time.Duration
	// Cause names what was waited for, such as "parameters".
	Cause      string
	Evaluation uint64
	At         time.Duration
	Dated      bool
	Epoch      float64
	Accuracy   float64
	Name       string
	Value      float64
}

// Observer is told of every event of a run. Worlds in real time call it from
// many goroutines.
type Observer interface {
	Observe(at time.Duration, node int, event Event)
}
