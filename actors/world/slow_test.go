package world_test

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/world"
)

func TestASlowdownHoldsFromItsBeginningToBeforeItsEnd(t *testing.T) {
	p := world.Profile{Slowdowns: []world.Slowdown{{From: 10, To: 20, Factor: 4}, {From: 15, To: 30, Factor: 2.5}}}
	for at, want := range map[time.Duration]time.Duration{0: 8, 9: 8, 10: 32, 14: 32, 15: 80, 19: 80, 20: 20, 29: 20,
		30: 8} {
		if got := p.Slowed(at, 8); got != want {
			t.Errorf("at %d a cost of 8 is %d, want %d", at, got, want)
		}
	}
	if got := (&world.Profile{}).Slowed(15, 8); got != 8 {
		t.Errorf("without slowdowns a cost of 8 is %d", got)
	}
	century := 100 * 365 * 24 * time.Hour
	far := world.Profile{Slowdowns: []world.Slowdown{{To: 1, Factor: 1e6}}}
	if got := far.Slowed(0, century); got != century {
		t.Errorf("a century slowed down is %v", got)
	}
	if n := testing.AllocsPerRun(100, func() { p.Slowed(15, 8) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
