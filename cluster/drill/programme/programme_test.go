package programme_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/drill"
	"github.com/gradwire/gradwire/cluster/drill/programme"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// TestProgramme is gradwire drill --seeds: no invariant breaks in plans drawn at random, and each
// is watched in some.
func TestProgramme(t *testing.T) {
	seeds := uint64(150)
	if !simtest.Brief() {
		seeds = 20_000
	}
	r, err := programme.Run(t.Context(), programme.Options{From: 1, Seeds: seeds})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("seed %d: %s: %s\n%s", f.Seed, f.Invariant, f.How, f.Plan)
	}
	for _, i := range drill.Invariants() {
		if r.Watched[i.Name] == 0 {
			t.Errorf("%s was watched in none of %d plans", i.Name, r.Seeds)
		}
	}
	t.Logf("%d seeds, %.1f a second; %v", r.Seeds, float64(r.Seeds)/r.Wall, r.Watched)
}

// Each plan that can be drawn, and each that one is shrunk to, is accepted.
func TestEveryCaseIsAPlan(t *testing.T) {
	check := func(c programme.Case) {
		p, err := experiment.Parse("case.yaml", []byte(c.YAML()))
		if err == nil {
			err = p.Check(catalog.Default())
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", c.Seed, err, c.YAML())
		}
	}
	for seed := range uint64(300) {
		c := programme.New(seed)
		check(c)
		if seed < 50 {
			for _, s := range c.Smaller() {
				check(s)
				if s.YAML() == c.YAML() {
					t.Fatalf("seed %d: a smaller case is no other", seed)
				}
			}
		}
	}
}

// What breaks whenever a node pauses is shrunk to a plan with that pause alone.
func TestABrokenInvariantIsShrunk(t *testing.T) {
	paused := drill.Invariant{Name: "nobody-pauses", Doc: "nobody pauses", Check: func(w *drill.Watch) (bool, string) {
		for _, c := range w.Run.Stage.Point.Spec.Plan.Schedule {
			if c.Do == "pause" {
				return true, "somebody paused"
			}
		}
		return true, ""
	}}
	r, err := programme.Run(t.Context(), programme.Options{From: 1, Seeds: 40,
		Invariants: []drill.Invariant{paused}})
	if err != nil || len(r.Failures) == 0 || r.Err() == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, f := range r.Failures {
		if strings.Count(f.Plan, "do: ") != 1 || strings.Contains(f.Plan, "faults") ||
			strings.Contains(f.Plan, "loss") {
			t.Errorf("seed %d is left at\n%s", f.Seed, f.Plan)
		}
	}
}

func TestAProgrammeThatIsInterruptedSaysHowFarItCame(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := programme.Run(ctx, programme.Options{From: 1, Seeds: 1 << 40,
		Progress: func(p experiment.Progress) {
			if p.Done == 3 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || r.Seeds < 3 {
		t.Errorf("%d seeds, %v", r.Seeds, err)
	}
}
