package actors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
)

type clock struct{ cancelled []uint64 }

func (c *clock) CancelTimer(id uint64) { c.cancelled = append(c.cancelled, id) }

func TestTimerCancelsAtItsClock(t *testing.T) {
	var c clock
	actors.Timer{Clock: &c, ID: 3}.Cancel()
	actors.Timer{}.Cancel()
	if diff := cmp.Diff([]uint64{3}, c.cancelled); diff != "" {
		t.Error(diff)
	}
}

func TestEveryKindOfEventHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{"unknown": true}
	for k := actors.StepDone; k <= actors.Evaluated; k++ {
		if seen[k.String()] {
			t.Errorf("kind %d is called %q", k, k)
		}
		seen[k.String()] = true
	}
	if got := actors.EventKind(200).String(); got != "unknown" {
		t.Errorf("a kind that does not exist is called %q", got)
	}
}
