package coordinator

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
)

// The state has each field of a result except the models, which the end of the run sets.
func TestStateHasAllThatTheRunHasLedTo(t *testing.T) {
	statetest.Whole(t, &Result{Reached: true, TimeToTarget: 1, EpochsToTarget: 2,
		Crossings: map[actors.Of]time.Duration{actors.Mean: 3}, Last: 4, End: 5, Changed: 6, ChangedIn: 7, Moved: 8,
		Evaluations: 9, Computed: 10, Incidents: []Incident{{At: 1, Node: 2, What: "lost", Late: true}}},
		func(s *state.State, r *Result) { r.State(s) }, "Models", "Average")
}
