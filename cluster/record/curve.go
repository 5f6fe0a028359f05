package record

import "fmt"

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
	// Accuracy is the accuracy of what is judged, a fraction; Loss its mean loss over the test set.
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
	// Node is the name of the node whose model was judged. Only records before version 2 have it:
	// they have a point for each model.
	Node string `json:"node,omitempty"`
}

var curveList = list{
	name: "curve", columns: "time_s,step,epoch,accuracy,loss,bytes,models,average_model,mean,all,any",
	of: func(d *Data) List { return listOf(d.Curve) }, rows: curveRows,
}

// Where implements Element.
func (e *Evaluation) Where() string { return fmt.Sprintf("evaluation %d at %g s", e.Number, e.Time) }

func (e *Evaluation) check() error {
	if !within(e.Time, 0, longest) || !within(e.Epoch, 0, longest) || !e.fractions() || e.Bytes < 0 || e.Models < 0 {
		return fmt.Errorf("no evaluation has time %g s, epoch %g, accuracy %v, %d bytes",
			e.Time, e.Epoch, e.Accuracy, e.Bytes)
	}
	return nil
}

// fractions reports whether all accuracies are.
func (e *Evaluation) fractions() bool {
	return fraction(e.Accuracy) && fraction(e.AverageModel) && fraction(e.Mean) && fraction(e.All) && fraction(e.Any)
}

func curveRows(w *rowWriter, _ *Run, d *Data) {
	for _, e := range d.Curve {
		w.row(e.Time, e.Step, e.Epoch, e.Accuracy, e.Loss, e.Bytes, e.Models, e.AverageModel, e.Mean, e.All, e.Any)
	}
}
