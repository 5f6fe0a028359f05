package report

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/record"
)

// sample makes up a sweep of labels with the given number of seeds: saturating
// curves that rise slower from point to point, some of which never reach the target.
func sample(labels []string, seeds int, target float64) (record.Summary, [][]record.Evaluation) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := record.Summary{Plan: "async-ps-unequal-links", Target: &target, Complete: true, RunsPlanned: len(labels) * seeds}
	var curves [][]record.Evaluation
	for i, label := range labels {
		for seed := range seeds {
			r := record.Run{Number: len(s.Runs), Seed: uint64(seed + 1), Clock: "virtual"}
			if label != "" {
				r.Point = record.Point{{Key: "data.split", Value: label}}
			}
			ceiling := 0.965 - 0.004*float64(i) + 0.004*rng.NormFloat64()
			rate := 1.5 / (0.3 + 0.15*float64(i)) * (1 + 0.1*rng.NormFloat64())
			curve := fakeCurve(&r, ceiling, rate, target, rng)
			s.Runs, curves = append(s.Runs, r), append(curves, curve)
		}
	}
	s.Groups = record.GroupRuns(s.Runs)
	return s, curves
}

func fakeCurve(r *record.Run, ceiling, rate, target float64, rng *rand.Rand) []record.Evaluation {
	var curve []record.Evaluation
	for k := range 101 {
		epoch := float64(k) * 0.1
		accuracy := ceiling - 0.7*math.Exp(-rate*epoch) + 0.004*rng.NormFloat64()
		curve = append(curve, record.Evaluation{
			Number: uint64(k + 1), Time: 60 * epoch, Step: uint64(k * 30), Epoch: epoch, Node: "server",
			Accuracy: record.Float(accuracy), Loss: record.Float(1 - accuracy),
		})
		r.FinalAccuracy = record.Float(accuracy)
		if accuracy >= target {
			seconds := 60 * epoch
			r.Reached, r.TimeToTarget, r.EpochsToTarget = true, &seconds, &epoch
			break
		}
	}
	r.Steps, r.Messages, r.Bytes = uint64(30*len(curve)), int64(60*len(curve)), int64(60*8366*len(curve))
	return curve
}

// shares are the labels of a sweep of twelve points.
func shares() []string {
	labels := []string{"iid"}
	for share := 0; share <= 100; share += 10 {
		labels = append(labels, fmt.Sprintf("share %d %%", share))
	}
	return labels
}
