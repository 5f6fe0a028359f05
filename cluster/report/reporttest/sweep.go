package reporttest

import (
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// Axis is a key of a made-up sweep.
type Axis struct {
	Key    string
	Values []string
}

// Sweep makes up a sweep over all combinations of axes. A run takes about ten times the product of
// the slowness of its values, or of pairs of values joined by " × ", where 1 stands for what is not
// named.
func Sweep(seeds int, target float64, slowness map[string]float64, axes ...Axis) (record.Summary, []record.Trace) {
	rng := rand.New(rand.NewPCG(3, 4))
	points := []record.Point{{}}
	for _, a := range axes {
		var more []record.Point
		for _, p := range points {
			for _, v := range a.Values {
				more = append(more, append(slices.Clone(p), record.Setting{Key: a.Key, Value: v}))
			}
		}
		points = more
	}
	s := record.Summary{Plan: "sweep", Target: &target, Complete: true, RunsPlanned: len(points) * seeds}
	var traces []record.Trace
	for _, p := range points {
		factor := 1.0
		for i, one := range p {
			factor *= orOne(slowness[one.Value])
			for _, two := range p[i+1:] {
				factor *= orOne(slowness[one.Value+" × "+two.Value])
			}
		}
		for seed := range seeds {
			r := record.Run{Number: len(s.Runs), Point: p, Seed: uint64(seed + 1), Clock: "virtual",
				Outcome: record.Done, Of: record.Mean, Models: 1}
			curve := fakeCurve(&r, 0.965, 3*(1+0.02*rng.NormFloat64()), target, rng)
			for i := range curve {
				curve[i].Time *= factor
			}
			if r.TimeToTarget != nil {
				*r.TimeToTarget *= factor
				r.Bracket.TimeAfter, r.Bracket.TimeBefore = r.Bracket.TimeAfter*factor, r.Bracket.TimeBefore*factor
			}
			r.Duration *= factor
			s.Runs, traces = append(s.Runs, r), append(traces, record.Trace{Curve: curve})
		}
	}
	s.Groups = record.GroupRuns(s.Runs, &target)
	return s, traces
}

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}
