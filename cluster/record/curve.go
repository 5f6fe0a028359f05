package record

import (
	"fmt"
	"slices"
	"strings"
)

// Evaluation is a point of the curve: the verdict on the models of one instant.
type Evaluation struct {
	// Number counts the run's evaluations, from 1.
	Number uint64 `json:"evaluation"`
	// Time is the instant of the snapshots in seconds since the run began.
	Time float64 `json:"time_s"`
	// Step counts the steps of all workers, divided by the number of nodes that hold a model where
	// these train.
	Step uint64 `json:"step"`
	// Epoch is samples processed by all workers ÷ training samples, or ÷ the epoch-share of them.
	Epoch float64 `json:"epoch"`
	// Accuracy is the accuracy of what is judged, a fraction; Loss its mean loss over the test set.
	Accuracy Float `json:"accuracy"`
	Loss     Float `json:"loss"`
	// Samples is 0 where these are of the whole test set. Otherwise Accuracy is an estimate by this
	// many of its samples, drawn at random, or for each of several models by at least so many: it
	// is surely below the target, see Early. The loss is not known then.
	Samples int `json:"samples,omitempty"`
	// Models is how many were looked at; AverageModel, Mean, All and Any are the four figures of
	// them.
	Models       int   `json:"models"`
	AverageModel Float `json:"average_model"`
	Mean         Float `json:"mean"`
	All          Float `json:"all"`
	Any          Float `json:"any"`
	// Estimates names which of the four figures are estimates by a part of the test set.
	Estimates []Of `json:"estimates,omitempty"`
	// Bytes were put on all links until the snapshot, without control; 0 in records of
	// before they were counted.
	Bytes int64 `json:"bytes"`
	// Node is the name of the node whose model was judged. Only records before version 2 have it:
	// they have a point for each model.
	Node string `json:"node,omitempty"`
}

var curveList = list{
	name: "curve", columns: "time_s,step,epoch,accuracy,loss,bytes,models,average_model,mean,all,any,samples,estimates",
	of: func(d *Data) List { return listOf(d.Curve) }, rows: curveRows,
}

// Where implements Element.
func (e *Evaluation) Where() string { return fmt.Sprintf("evaluation %d at %g s", e.Number, e.Time) }

func (e *Evaluation) check() error {
	if !within(e.Time, 0, longest) || !within(e.Epoch, 0, longest) || !e.fractions() || e.Bytes < 0 || e.Models < 0 ||
		e.Samples < 0 {
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
		var estimates []string
		for _, of := range e.Estimates {
			estimates = append(estimates, string(of))
		}
		w.row(e.Time, e.Step, e.Epoch, e.Accuracy, e.Loss, e.Bytes, e.Models, e.AverageModel, e.Mean, e.All, e.Any,
			part(e.Samples), strings.Join(estimates, " "))
	}
}

// part is a number of samples for a cell, which is empty where it is all of them.
func part(samples int) any {
	if samples == 0 {
		return nil
	}
	return samples
}

// Whole reports whether one of the four figures is of the whole test set.
func (e *Evaluation) Whole(of Of) bool { return !slices.Contains(e.Estimates, of) }

// Partial counts the evaluations of which a figure is an estimate by a part of the test set.
func (d *Data) Partial() (n int) {
	for i := range d.Curve {
		if d.Curve[i].Samples > 0 || len(d.Curve[i].Estimates) > 0 {
			n++
		}
	}
	return n
}
