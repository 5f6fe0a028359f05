package reporttest

import (
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// Runs makes up the runs of a point, seeds from 1 on: each arrives after the given seconds, or
// where that is negative ends then without arriving; 0 stands for a run that failed. Without a
// target pass none, and let change set the accuracies.
func Runs(p record.Point, target *float64, change func(*record.Run), seconds ...float64) (runs []record.Run) {
	for i, at := range seconds {
		r := record.Run{
			Point: p, Seed: uint64(i + 1), Outcome: record.Done, Of: record.Mean, Models: 1, Clock: "virtual",
			Target: target, FinalAccuracy: 0.9, BestAccuracy: 0.9,
		}
		switch {
		case at > 0:
			r.Reached, r.TimeToTarget, r.EpochsToTarget = true, &at, &at
			r.Duration, r.Epochs = at, at
			r.Bracket = &record.Bracket{TimeAfter: at - at/1000, TimeBefore: at, EpochsAfter: at - at/1000,
				EpochsBefore: at}
		case at < 0:
			r.Duration, r.Epochs, r.FinalAccuracy, r.BestAccuracy = -at, -at, 0.6, 0.65
		default:
			r.Outcome = record.Failed
		}
		if change != nil {
			change(&r)
		}
		runs = append(runs, r)
	}
	return runs
}

// Summary makes a summary of runs.
func Summary(target *float64, all ...[]record.Run) record.Summary {
	runs := slices.Concat(all...)
	for i := range runs {
		runs[i].Number = i
	}
	return record.Summary{Plan: "made-up", Target: target, RunsPlanned: len(runs), Complete: true, Runs: runs,
		Groups: record.GroupRuns(runs, target)}
}
