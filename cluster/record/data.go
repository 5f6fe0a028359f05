package record

import "math"

// Evaluation is a point of the curve: the verdict on the models of one instant.
type Evaluation struct {
	// Number counts the run's evaluations, from 1.
	Number uint64 `json:"evaluation"`
	// Time is the instant of the snapshots in seconds since the run began.
	Time float64 `json:"time_s"`
	// Step counts the steps of all workers, divided by the number of nodes that hold a model where
	// these train.
	Step uint64 `json:"step"`
	// Epoch is samples processed by all workers ÷ training samples.
	Epoch float64 `json:"epoch"`
	// Accuracy is that of what is judged, a fraction; Loss the mean over the test set, of the same.
	Accuracy Float `json:"accuracy"`
	Loss     Float `json:"loss"`
	// Models is how many were looked at; AverageModel, Mean, All and Any are the four figures of
	// them.
	Models       int   `json:"models"`
	AverageModel Float `json:"average_model"`
	Mean         Float `json:"mean"`
	All          Float `json:"all"`
	Any          Float `json:"any"`
	// Bytes were put on all links until the snapshot, without control; 0 in records of
	// before they were counted.
	Bytes int64 `json:"bytes"`
	// Node is the name of the node whose model it was in records of before version 2, which have a
	// point for each model.
	Node string `json:"node,omitempty"`
}

// ModelVerdict is the verdict on the model of one node.
type ModelVerdict struct {
	// Number is that of the evaluation.
	Number uint64 `json:"evaluation"`
	Node   string `json:"node"`
	// Step is how many steps the node, or all workers where it does not train, had made.
	Step     uint64 `json:"step"`
	Accuracy Float  `json:"accuracy"`
	Loss     Float  `json:"loss"`
}

// MaxLinks is how many edges of a run are recorded one by one. Of a run with more, the
// edges of each sender are counted together, as a Link to Everyone.
const MaxLinks = 1 << 16

// MaxChoosers is how many nodes have their selections recorded neighbour by neighbour. In a
// run with more, those of each node are counted together, as those of Everyone.
const MaxChoosers = 1 << 10

// Everyone stands for all the nodes that a count is of together. No node can bear it.
const Everyone = "*"

// Link counts what an edge has carried.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Messages and Bytes were put on the edge; Lost messages of these never arrived.
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	// DelayAsked and DelayAchieved are means in seconds: of the delays that the link
	// drew, and of the times between sending and arrival.
	DelayAsked    float64 `json:"delay_asked_s"`
	DelayAchieved float64 `json:"delay_achieved_s"`
	Lost          int64   `json:"lost"`
	// Control and ControlBytes count the control messages, which are in none of the others.
	Control      int64 `json:"control_messages"`
	ControlBytes int64 `json:"control_bytes"`
}

// Update is what a worker has done.
type Update struct {
	Node string `json:"node"`
	// Steps are the batches it computed a gradient of, Samples those in them, Updates
	// its gradients that a model has taken in.
	Steps     uint64    `json:"steps"`
	Samples   uint64    `json:"samples"`
	Updates   uint64    `json:"updates"`
	Staleness Staleness `json:"staleness"`
	// LastStep is the instant of its last step in seconds, 0 if it made none.
	LastStep float64 `json:"last_step_s,omitempty"`
	// Age is how old the models of others were when it merged them into its own: the steps that
	// their node had made since it sent them. It is nil for nodes that merge none.
	Age *Staleness `json:"age,omitempty"`
	// Waiting is sorted by cause.
	Waiting []Waiting `json:"waiting"`
}

// Staleness is how old a worker's updates were when they were applied, in versions.
type Staleness struct {
	Mean float64 `json:"mean"`
	// P50 and P99 are the smallest values that half and 99 % of the updates do not exceed.
	P50 uint64 `json:"p50"`
	P99 uint64 `json:"p99"`
	Max uint64 `json:"max"`
	// Counts are sorted by value; values from 65,536 on are rounded down to 8 leading bits.
	Counts []Count `json:"counts"`
}

// Count says how often a value occurred.
type Count struct {
	Value uint64 `json:"value"`
	Count uint64 `json:"count"`
}

// Waiting is the time a worker stood idle for one cause.
type Waiting struct {
	Cause string `json:"cause"`
	Count uint64 `json:"count"`
	// Total is in seconds.
	Total float64 `json:"total_s"`
	// Buckets are sorted and not empty, at most 1 % wide, in records of before version 2 12.5 %.
	Buckets []Bucket `json:"buckets"`
}

// Bucket counts waits of at least Low and less than High seconds.
type Bucket struct {
	Low   float64 `json:"low_s"`
	High  float64 `json:"high_s"`
	Count uint64  `json:"count"`
	// Total is the sum of the waits in seconds.
	Total float64 `json:"total_s"`
}

// Selection says whom a node has chosen to exchange models with.
type Selection struct {
	Node string `json:"node"`
	// Neighbours are in the order of the nodes' numbers; Counts says how often each was chosen.
	Neighbours []string `json:"neighbours"`
	Counts     []uint64 `json:"counts"`
}

// Measurement is a figure that an actor has reported of its own, such as the distance
// of models from their mean.
type Measurement struct {
	// Time is in seconds since the run began.
	Time float64 `json:"time_s"`
	// Node is the name of the node that reported it, or "coordinator".
	Node  string `json:"node"`
	Name  string `json:"name"`
	Value Float  `json:"value"`
}

// Data is what was counted during a run, up to the instant at which its record ends.
type Data struct {
	// Curve is in the order of the evaluations' numbers.
	Curve []Evaluation `json:"curve"`
	// Models has the verdicts on each model, in the order of the evaluations' numbers and in them
	// of the nodes'. It is nil where every evaluation was of one model.
	Models []ModelVerdict `json:"models,omitempty"`
	// Links are the used edges, in the order in which Config.Links returned them.
	Links []Link `json:"links"`
	// Updates are the workers, in the order of the nodes' numbers.
	Updates []Update `json:"updates"`
	// Steps counts those of all workers.
	Steps uint64 `json:"steps"`
	// Messages and Bytes add up the links, without control.
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	// Selections are in the order of the nodes' numbers; nodes that chose nobody are not in them.
	Selections []Selection `json:"selections,omitempty"`
	// Measured is sorted by time and has at most MaxMeasured elements; Unmeasured counts those left
	// out.
	Measured   []Measurement `json:"measured,omitempty"`
	Unmeasured uint64        `json:"unmeasured,omitempty"`
}

// Accuracies returns the accuracy of the last evaluation and the highest of all;
// NaN if there were none.
func (d *Data) Accuracies() (final, best Float) {
	final, best = Float(math.NaN()), Float(math.NaN())
	for _, e := range d.Curve {
		final = e.Accuracy
		if !(best >= e.Accuracy) {
			best = e.Accuracy
		}
	}
	return final, best
}
