package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/sim"
)

// errCut ends a run that is to go on.
var errCut = errors.New("interrupted")

// cutAndResumed makes a run in real time that is interrupted when it has saved its state so often,
// and goes on in another world, and returns the stage of the latter.
func cutAndResumed(t *testing.T, times int, set ...string) (*Stage, live.Result) {
	t.Helper()
	f := checkpoint.NewFolder(t.TempDir(), 2)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	play := func(from *checkpoint.State) (*Stage, live.Result, error) {
		s := stagedPlan(t, base, append([]string{"checkpoint={every: 40ms}"}, set...)...)
		s.saves = &checkpoint.Run{Folder: f, From: from, Told: func(time.Duration) {}}
		w, err := s.Live(live.Config{KeepRuntime: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Run(ctx)
		return s, r, err
	}
	watch := time.NewTicker(time.Millisecond)
	defer watch.Stop()
	go func() {
		seen := map[string]bool{}
		for range watch.C {
			names, _ := f.Names()
			for _, name := range names {
				seen[name] = true
			}
			if len(seen) >= times {
				cancel(errCut)
				return
			}
		}
	}()
	if _, _, err := play(nil); !errors.Is(err, errCut) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	if err := f.Wait(); err != nil {
		t.Fatal(err)
	}
	names, err := f.Names()
	if err != nil {
		t.Fatal(err)
	}
	from, err := checkpoint.Read(names[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx = context.Background()
	s, r, err := play(&from)
	if err := errors.Join(err, f.Wait()); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// TestInterruptedRunInRealTimeHasTheModelsOfVirtualTime interrupts runs whose models depend on no
// timing. Their losses are those of models of the run in virtual time, bit for bit: of what was on
// its way when the nodes were saved, nothing is missing, and nothing came twice.
func TestInterruptedRunInRealTimeHasTheModelsOfVirtualTime(t *testing.T) {
	for _, architecture := range architectures {
		if strings.Contains(architecture, inThreads) || strings.Contains(architecture, "asp") ||
			strings.Contains(architecture, "ssp") || strings.Contains(architecture, "gossip") ||
			strings.Contains(architecture, "ad-psgd") || strings.Contains(architecture, "backup") {
			continue
		}
		t.Run(architecture, func(t *testing.T) {
			t.Parallel()
			set := []string{"architecture=" + architecture, "evaluate={every: 1 steps}"}
			losses := map[record.Float]bool{}
			virtual := stagedPlan(t, base, set...)
			w, err := sim.New(virtual.simulation())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range finish(t, virtual, w).Data.Curve {
				losses[e.Loss] = true
			}
			s, r := cutAndResumed(t, 2, set...)
			d, err := s.Collector.Close(s.result.Last)
			if err != nil {
				t.Fatal(err)
			}
			var other []record.Float
			for _, e := range d.Curve {
				if !losses[e.Loss] {
					other = append(other, e.Loss)
				}
			}
			if len(other) > 0 || len(d.Curve) < 3 || r.DeadLetters > 0 {
				t.Errorf("%d of %d losses are of no model of the run in virtual time: %v; %d dead letters", len(other),
					len(d.Curve), slices.Compact(other), r.DeadLetters)
			}
		})
	}
}
