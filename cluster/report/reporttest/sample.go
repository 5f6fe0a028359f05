// Package reporttest makes up records for the tests of report's packages, and reads what those
// packages write.
package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/record"
)

// DropTarget makes of a summary one of a plan without a target.
func DropTarget(s *record.Summary) {
	s.Target, s.Groups = nil, record.GroupRuns(s.Runs, nil)
}

// Sample makes up a sweep of labels with the given number of seeds: saturating
// curves that rise slower from point to point, some of which never reach the target.
func Sample(labels []string, seeds int, target float64) (record.Summary, []record.Trace) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := record.Summary{Plan: "async-ps-unequal-links", Target: &target, Complete: true,
		RunsPlanned: len(labels) * seeds}
	var traces []record.Trace
	for i, label := range labels {
		for seed := range seeds {
			r := record.Run{Number: len(s.Runs), Seed: uint64(seed + 1), Clock: "virtual", Outcome: record.Done,
				Of:     record.Mean,
				Models: 1}
			if label != "" {
				r.Point = record.Point{{Key: "data.split", Value: label}}
			}
			ceiling := 0.965 - 0.004*float64(i) + 0.004*rng.NormFloat64()
			rate := 1.5 / (0.3 + 0.15*float64(i)) * (1 + 0.1*rng.NormFloat64())
			curve := fakeCurve(&r, ceiling, rate, target, rng)
			s.Runs, traces = append(s.Runs, r), append(traces, record.Trace{Curve: curve})
		}
	}
	s.Groups = record.GroupRuns(s.Runs, &target)
	return s, traces
}

func fakeCurve(r *record.Run, ceiling, rate, target float64, rng *rand.Rand) []record.Evaluation {
	var curve []record.Evaluation
	for k := range 101 {
		epoch := float64(k) * 0.1
		accuracy := ceiling - 0.7*math.Exp(-rate*epoch) + 0.004*rng.NormFloat64()
		curve = append(curve, record.Evaluation{
			Number: uint64(k + 1), Time: 60 * epoch, Step: uint64(k * 30), Epoch: epoch, Models: 1,
			Accuracy: record.Float(accuracy), AverageModel: record.Float(accuracy), Mean: record.Float(accuracy),
			All: record.Float(accuracy), Any: record.Float(accuracy), Loss: record.Float(1 - accuracy),
			Bytes: int64(60 * 8366 * (k + 1)),
		})
		r.FinalAccuracy = record.Float(accuracy)
		if accuracy >= target {
			seconds := 60 * epoch
			r.Reached, r.TimeToTarget, r.EpochsToTarget = true, &seconds, &epoch
			r.Bracket = &record.Bracket{TimeAfter: max(60*epoch-6, 0), TimeBefore: 60 * epoch,
				EpochsAfter:  max(epoch-0.1, 0),
				EpochsBefore: epoch}
			break
		}
	}
	r.Duration, r.Epochs = curve[len(curve)-1].Time, curve[len(curve)-1].Epoch
	r.Steps, r.Messages, r.Bytes = uint64(30*len(curve)), int64(60*len(curve)), int64(60*8366*len(curve))
	return curve
}

// Shares are the labels of a sweep of twelve points.
func Shares() []string {
	labels := []string{"iid"}
	for share := 0; share <= 100; share += 10 {
		labels = append(labels, fmt.Sprintf("share %d %%", share))
	}
	return labels
}

// Spread gives each run three models around what the single one was, the distance
// between them, and a network of n nodes with a link wherever delay is positive.
func Spread(s record.Summary, traces []record.Trace, n int, delay func(from, to int) float64) {
	for i := range traces {
		s.Runs[i].Models = 3
		var curve []record.Evaluation
		for _, e := range traces[i].Curve {
			e.Models, e.AverageModel, e.Any, e.All = 3, e.Accuracy+0.02, e.Accuracy+0.01, e.Accuracy-0.03
			curve = append(curve, e)
			traces[i].Measured = append(traces[i].Measured,
				record.Measurement{Time: e.Time, Node: "coordinator", Name: "consensus distance",
					Value: record.Float(1 + math.Sin(e.Time/100+float64(i)))},
				record.Measurement{Time: e.Time, Node: "coordinator", Name: "spectral gap", Value: 0.5})
		}
		traces[i].Curve = curve
		for from := range n {
			for to := range n {
				if d := delay(from, to); from != to && d > 0 {
					traces[i].Links = append(traces[i].Links, record.Link{
						From: fmt.Sprintf("peer%d", from+1), To: fmt.Sprintf("peer%d", to+1), Messages: 1e6,
						DelayAsked: d,
					})
				}
			}
		}
	}
}
