package experiment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
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

// losses are those of all models that were judged, by node; of no node where each time it was one.
func losses(d *record.Data) map[string][]record.Float {
	all := map[string][]record.Float{}
	for i := range d.Curve {
		if d.Models == nil {
			all[""] = append(all[""], d.Curve[i].Loss)
		}
	}
	for _, m := range d.Models {
		all[m.Node] = append(all[m.Node], m.Loss)
	}
	return all
}

// timed are words in what makes models depend on who comes first, as they do with servers unless
// there are rounds.
var timed = []string{inThreads, "ssp", "gossip", "ad-psgd", "backup", "staleness", "servers:"}

func timeless(architecture string) bool {
	return !slices.ContainsFunc(timed, func(word string) bool { return strings.Contains(architecture, word) }) &&
		(strings.Contains(architecture, "bsp") || !strings.Contains(architecture, "parameter-server"))
}

// TestInterruptedRunInRealTimeHasTheModelsOfVirtualTime interrupts runs whose models depend on no
// timing. Their losses are those of models of the run in virtual time, bit for bit: of what was on
// its way when the nodes were saved, nothing is missing, and nothing came twice.
func TestInterruptedRunInRealTimeHasTheModelsOfVirtualTime(t *testing.T) {
	for _, architecture := range architectures {
		if !timeless(architecture) {
			continue
		}
		t.Run(architecture, func(t *testing.T) {
			t.Parallel()
			virtual := stagedPlan(t, base, "architecture="+architecture, "evaluate={every: 1ms}", "stop={epochs: 3}")
			w, err := sim.New(virtual.simulation())
			if err != nil {
				t.Fatal(err)
			}
			e := finish(t, virtual, w)
			known := losses(&e.Data)
			s, r := cutAndResumed(t, 2, "architecture="+architecture, "evaluate={every: 1 steps}")
			d, err := s.Collector.Close(s.result.Last)
			if err != nil {
				t.Fatal(err)
			}
			for node, all := range losses(&d) {
				for _, loss := range all {
					if !slices.Contains(known[node], loss) {
						t.Errorf("node %s: loss %v is of no model of the run in virtual time", node, loss)
					}
				}
			}
			if len(d.Curve) < 3 || r.DeadLetters > 0 {
				t.Errorf("%d evaluations, %d dead letters", len(d.Curve), r.DeadLetters)
			}
		})
	}
}

// TestInterruptedRunInRealTimeComesToItsEnd interrupts runs of all architectures on networks that
// lose, repeat and reorder, and whose nodes crash, leave, come back and are paused.
func TestInterruptedRunInRealTimeComesToItsEnd(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(conditions)) {
		for k, architecture := range architectures {
			if name == threads != strings.HasSuffix(architecture, inThreads) || name == "plain" ||
				simtest.Brief() && (i+k)%8 != 0 {
				continue
			}
			t.Run(name+" "+architecture, func(t *testing.T) {
				t.Parallel()
				set := append([]string{"architecture=" + architecture}, conditions[name]...)
				if strings.HasPrefix(architecture, "{kind: ad-psgd") {
					for k := range set {
						set[k] = strings.Replace(set[k], another, "", 1)
					}
				}
				s, r := cutAndResumed(t, 1, set...)
				d, err := s.Collector.Close(s.result.Last)
				if err != nil {
					t.Fatal(err)
				}
				if last := d.Curve[len(d.Curve)-1]; last.Epoch < 1 || r.Stalled > 0 {
					t.Errorf("the run ended at epoch %v, and stood still since %v", last.Epoch, r.Stalled)
				}
			})
		}
	}
}
