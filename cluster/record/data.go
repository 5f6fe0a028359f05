package record

import (
	"fmt"
	"math"
	"time"
)

// Everyone stands for all the nodes that a count is of together. No node can have this name.
const Everyone = "*"

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
	// Steps counts the steps of all workers.
	Steps uint64 `json:"steps"`
	// LastUpdate is when a judged model last took in an update up to Config.Until. Learned says whether
	// there was such an update, and Overtime whether there was a later one.
	LastUpdate time.Duration `json:"-"`
	Learned    bool          `json:"-"`
	Overtime   bool          `json:"-"`
	// Untrained are the nodes that hold a judged model which took in no update up to Config.Until.
	Untrained []int `json:"-"`
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

// Accuracies returns the accuracy of the last evaluation and the highest of all, without those that
// are estimates by a part of the test set; NaN if there were none.
func (d *Data) Accuracies() (final, best Float) {
	final, best = Float(math.NaN()), Float(math.NaN())
	for _, e := range d.Curve {
		if e.Samples > 0 {
			continue
		}
		final = e.Accuracy
		if !(best >= e.Accuracy) {
			best = e.Accuracy
		}
	}
	return final, best
}

// lists are the lists of Data, in the order in which package diff compares them.
var lists = [...]*list{&curveList, &modelList, &updateList, &linkList, &selectionList, &measuredList}

// Lists returns the lists of the data.
func (d *Data) Lists() []List {
	all := make([]List, len(lists))
	for i, l := range lists {
		all[i] = l.of(d)
		all[i].Name = l.name
	}
	return all
}

// check finds figures that no run counts.
func (d *Data) check() error {
	for _, l := range d.Lists() {
		for i := range l.Len {
			if err := l.At(i).check(); err != nil {
				return fmt.Errorf("element %d of %s: %w", i, l.Name, err)
			}
		}
	}
	for i := 1; i < len(d.Models); i++ {
		if before := d.Models[i-1].Number; d.Models[i].Number < before {
			return fmt.Errorf("element %d of models: evaluation %d comes after evaluation %d",
				i, d.Models[i].Number, before)
		}
	}
	return nil
}
