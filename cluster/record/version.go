package record

import (
	"fmt"
	"math"
	"slices"
)

// Version is the version of the files that this program writes. Records without a version are read
// too: their curves have a point for each node's model, their runs neither an outcome nor what is
// judged.
const Version = 2

// checkVersion refuses files of programs to come.
func checkVersion(version int) error {
	if version < 0 || version > Version {
		return fmt.Errorf("key \"version\" is %d; up to %d is accepted: a newer gradwire has made this record",
			version, Version)
	}
	return nil
}

// upgrade makes of a run without a version one that says what it then meant: it was done, and
// judged was any node's model.
func (r *Run) upgrade() {
	if r.Outcome == "" {
		r.Outcome = Done
	}
	if r.Of == "" {
		r.Of = Any
	}
}

// complete fills in what follows from the curve.
func (r *Run) complete(d *Data) {
	n := len(d.Curve)
	if n == 0 {
		return
	}
	r.Epochs, r.Models = d.Curve[n-1].Epoch, 0
	for i := range d.Curve {
		r.Models = max(r.Models, d.Curve[i].Models)
	}
	if !r.Reached || r.TimeToTarget == nil {
		return
	}
	i := slices.IndexFunc(d.Curve, func(e Evaluation) bool { return e.Time >= *r.TimeToTarget })
	if i < 0 {
		i = n - 1 // it arrived at the end, but for rounding
	}
	r.Bracket = &Bracket{TimeBefore: d.Curve[i].Time, EpochsBefore: d.Curve[i].Epoch}
	for i--; i >= 0; i-- {
		if d.Curve[i].Time < r.Bracket.TimeBefore {
			r.Bracket.TimeAfter, r.Bracket.EpochsAfter = d.Curve[i].Time, d.Curve[i].Epoch
			return
		}
	}
}

// upgrade makes of a curve with a point for each node's model one with an evaluation for each
// instant, and keeps the points as verdicts on the models.
func (d *Data) upgrade() {
	nodes := map[string]bool{}
	for _, e := range d.Curve {
		nodes[e.Node] = true
	}
	old := d.Curve
	d.Curve = make([]Evaluation, 0, len(old))
	for i := 0; i < len(old); {
		end := i + 1
		for end < len(old) && old[end].Time == old[i].Time {
			end++
		}
		e := instant(old[i:end], len(nodes) == 1)
		e.Number = uint64(len(d.Curve) + 1)
		d.Curve = append(d.Curve, e)
		if len(nodes) > 1 {
			for _, one := range old[i:end] {
				d.Models = append(d.Models,
					ModelVerdict{Number: e.Number, Node: one.Node, Step: one.Step, Accuracy: one.Accuracy,
						Loss: one.Loss})
			}
		}
		i = end
	}
}

// instant is the evaluation of the models that were judged at one instant. The average of several
// was not among them.
func instant(models []Evaluation, single bool) Evaluation {
	e := models[0]
	e.Node, e.Models = "", len(models)
	sum, worst := 0.0, math.Inf(1)
	for _, m := range models {
		v := float64(m.Accuracy)
		sum += v
		worst = min(worst, v)
		if !(float64(e.Accuracy) >= v) {
			e.Accuracy, e.Loss = m.Accuracy, m.Loss
		}
		e.Epoch, e.Step, e.Bytes = max(e.Epoch, m.Epoch), max(e.Step, m.Step), max(e.Bytes, m.Bytes)
	}
	e.Mean, e.All, e.Any, e.AverageModel = Float(sum/float64(len(models))), Float(worst), e.Accuracy, Float(math.NaN())
	if single {
		e.AverageModel = e.Accuracy
	}
	return e
}
