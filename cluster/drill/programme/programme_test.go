package programme_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/drill"
	"github.com/gradwire/gradwire/cluster/drill/programme"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// TestProgramme is gradwire drill --seeds: no invariant breaks in plans drawn at random, and each
// is watched in some.
func TestProgramme(t *testing.T) {
	seeds := uint64(100)
	switch {
	case !simtest.Brief():
		seeds = 20_000
	case testing.Short():
		seeds = 50
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
	if testing.Short() {
		t.Skip("works for long")
	}
	paused := drill.Invariant{Name: "nobody-pauses", Doc: "nobody pauses", Check: func(w *drill.Watch) (bool, string) {
		for _, c := range w.Run.Stage.Point.Spec.Plan.Schedule {
			if c.Do == "pause" {
				return true, "somebody paused"
			}
		}
		return true, ""
	}}
	r, err := programme.Run(t.Context(), programme.Options{From: 1, Seeds: 30,
		Invariants: []drill.Invariant{paused}})
	if err != nil || len(r.Failures) < 3 || r.Err() == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, f := range r.Failures {
		if strings.Count(f.Plan, "do: ") != 1 || strings.Contains(f.Plan, "faults") ||
			strings.Contains(f.Plan, "loss") {
			t.Errorf("seed %d is left at\n%s", f.Seed, f.Plan)
		}
	}
}

func TestAPlanWithoutAnEndBreaksProgress(t *testing.T) {
	r, err := programme.Run(t.Context(), programme.Options{From: 3, Seeds: 2, Patience: time.Nanosecond})
	if err != nil || len(r.Failures) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, f := range r.Failures {
		if f.Invariant != "progress" || !strings.Contains(f.How, "do not end") || strings.Contains(f.Plan, "do: ") {
			t.Errorf("seed %d: %s: %s\n%s", f.Seed, f.Invariant, f.How, f.Plan)
		}
	}
}

// brittle is a delay whose processes panic from an instant on.
type brittle struct {
	link.Exponential `plan:",inline"`
}

func (b brittle) Start(random *rand.Rand, previous link.Process) link.Process {
	return tearing{b.Exponential.Start(random, previous)}
}

type tearing struct{ link.Process }

func (t tearing) Next(departure time.Duration) time.Duration {
	if departure > 200*time.Millisecond {
		panic("the link is torn")
	}
	return t.Process.Next(departure)
}

// A panic within or beneath an actor ends no programme: it breaks an invariant of the plan, which
// is shrunk as any other.
func TestAPanicBreaksNoPanic(t *testing.T) {
	c := catalog.Default()
	var torn catalog.Kinds[link.Delay]
	torn.Declare("exponential", brittle{}, "as it is called")
	for i, k := range c.Delays.All() {
		if k.Name == "exponential" {
			c.Delays.All()[i] = torn.All()[0]
		}
	}
	r, err := programme.Run(t.Context(), programme.Options{Catalog: c, From: 1, Seeds: 10})
	if err != nil || r.Seeds != 10 || len(r.Failures) < 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, f := range r.Failures {
		if f.Invariant != "no-panic" || !strings.HasPrefix(f.How, "panic: the link is torn, in ") ||
			!strings.Contains(f.How, "programme_test.go:") {
			t.Errorf("seed %d: %s: %s", f.Seed, f.Invariant, f.How)
		}
		if strings.Contains(f.Plan, "schedule") || strings.Contains(f.Plan, "faults") {
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
