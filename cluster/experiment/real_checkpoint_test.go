package experiment

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/cluster/turns"
)

// errCut ends a run that is to go on.
var errCut = errors.New("interrupted")

// cutAndResumed makes a run in real time that is interrupted when it has saved its state so often,
// and goes on in another world, and returns the stage of the latter.
func cutAndResumed(t *testing.T, times int, set ...string) (*Stage, live.Result) {
	t.Helper()
	s, r, _ := cutAgainAndAgain(t, 1, times, set...)
	return s, r
}

// unfinished is a file of events.
type unfinished struct{ bytes.Buffer }

func (*unfinished) Close() error { return nil }

// cutAgainAndAgain is cutAndResumed for some interruptions, one after the other. It returns the
// file of the run's events as well, which is written when the record is closed.
func cutAgainAndAgain(t *testing.T, interruptions, times int, set ...string) (*Stage, live.Result, *unfinished) {
	t.Helper()
	f := checkpoint.NewFolder(t.TempDir(), 2)
	var events unfinished
	play := func(ctx context.Context, from *checkpoint.State, saved func()) (*Stage, live.Result, error) {
		s := stagedPlan(t, base, append([]string{"checkpoint={every: 40ms}"}, set...)...)
		if from != nil {
			events.Truncate(int(from.Events))
		}
		s.events = &checkpoint.Counted{WriteCloser: &events, Bytes: int64(events.Len())}
		s.observe(record.Config{Events: s.events})
		if s.tally != nil {
			s.count()
		}
		s.saves = &checkpoint.Run{Folder: f, From: from, Told: func(time.Duration) {}}
		f.Written = saved
		w, err := s.Live(live.Config{KeepRuntime: true})
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Run(ctx)
		return s, r, errors.Join(err, f.Wait())
	}
	var from *checkpoint.State
	for range interruptions {
		ctx, cancel := context.WithCancelCause(t.Context())
		var saved atomic.Int64
		_, _, err := play(ctx, from, func() {
			if saved.Add(1) == int64(times) {
				cancel(errCut)
			}
		})
		// On a busy machine a run can end before its last planned checkpoint. The next one then
		// resumes from the newest checkpoint, as after an interruption.
		if saved.Load() == 0 || err != nil && !errors.Is(err, errCut) {
			t.Fatalf("saved %d times, of %d: %v", saved.Load(), times, err)
		}
		read, err := f.Read(f.Newest())
		if err != nil {
			t.Fatal(err)
		}
		from = &read
	}
	s, r, err := play(t.Context(), from, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, r, &events
}

// timed are words in what makes models depend on who comes first, as they do with servers unless
// there are rounds.
var timed = []string{inThreads, "ssp", "gossip", "ad-psgd", "backup", "staleness", "servers:", "deadline", "fedasync"}

func timeless(architecture string) bool {
	return !slices.ContainsFunc(timed, func(word string) bool { return strings.Contains(architecture, word) }) &&
		(strings.Contains(architecture, "bsp") || !strings.Contains(architecture, "parameter-server"))
}

// TestInterruptedRunInRealTimeHasTheModelsOfVirtualTime interrupts runs whose models depend on no
// timing. Their losses are those of models of the run in virtual time, bit for bit: of what was on
// its way when the nodes were saved, nothing is missing, and nothing came twice.
func TestInterruptedRunInRealTimeHasTheModelsOfVirtualTime(t *testing.T) {
	all := slices.DeleteFunc(slices.Clone(architectures), func(a string) bool { return !timeless(a) })
	for i, architecture := range all {
		t.Run(architecture, func(t *testing.T) {
			turns.Row(t, i, len(all), 3)
			t.Parallel()
			var known record.Data
			// With long delays all wait for each other, and models that wait are seen.
			for delay, every := range map[string]string{"7ms": "1ms", "100ms": "5ms"} {
				virtual := stagedPlan(t, base, "architecture="+architecture, "evaluate={every: "+every+"}",
					"stop={epochs: 3}", "network.default.delay="+delay)
				w, err := sim.New(virtual.simulation())
				if err != nil {
					t.Fatal(err)
				}
				e := finish(t, virtual, w)
				known.Models, known.Curve = append(known.Models, e.Data.Models...), append(known.Curve, e.Data.Curve...)
			}
			s, r := cutAndResumed(t, 2, "architecture="+architecture, "evaluate={every: 1 steps}")
			d, err := s.Collector.Close(s.result.Last)
			if err != nil {
				t.Fatal(err)
			}
			if err := recordtest.Among(&known, &d); err != nil {
				t.Error(err)
			}
			if len(d.Curve) < 3 || r.DeadLetters > 0 {
				t.Errorf("%d evaluations, %d dead letters", len(d.Curve), r.DeadLetters)
			}
		})
	}
}

// TestRecordOfARunThatWasInterruptedHasEachStepOnce interrupts runs again and again. Each step and
// each update of the run in virtual time is in their events, and none is there twice; the record
// has counted as many.
func TestRecordOfARunThatWasInterruptedHasEachStepOnce(t *testing.T) {
	all := []string{"{kind: local}", "{kind: all-reduce}", "{kind: d-psgd}",
		"{kind: parameter-server, consistency: {kind: bsp}}"}
	for i, architecture := range all {
		t.Run(architecture, func(t *testing.T) {
			turns.Row(t, i, len(all), 2)
			t.Parallel()
			var events unfinished
			set := []string{"architecture=" + architecture, "network.default={delay: 1ms}",
				"evaluate={every: 10 steps}"}
			virtual := stagedPlan(t, base, append(set, "stop={steps: 300}")...)
			virtual.observe(record.Config{Events: &events})
			w, err := sim.New(virtual.simulation())
			if err != nil {
				t.Fatal(err)
			}
			finish(t, virtual, w)
			s, _, file := cutAgainAndAgain(t, 8, 1, append(set, "stop={steps: 150}")...)
			d, err := s.Collector.Close(0)
			if err != nil {
				t.Fatal(err)
			}
			steps, updates := uint64(0), uint64(0)
			for _, u := range d.Updates {
				steps, updates = steps+u.Steps, updates+u.Updates
			}
			for kind, counted := range map[actors.EventKind]uint64{actors.StepDone: steps,
				actors.UpdateApplied: updates} {
				if n := bytes.Count(file.Bytes(), []byte(`"event":"`+kind.String()+`"`)); uint64(n) != counted {
					t.Errorf("%d events of kind %v, %d in the record", n, kind, counted)
				}
			}
			recordtest.EachOnce(t, &events, file)
			if strings.Contains(architecture, "d-psgd") {
				checkSent(t, &d)
			}
		})
	}
}

// checkSent checks that every edge of a run of D-PSGD has carried a model for each step of its
// sender, and at most one more.
func checkSent(t *testing.T, d *record.Data) {
	t.Helper()
	steps := map[string]int64{}
	for _, u := range d.Updates {
		steps[u.Node] = int64(u.Steps)
	}
	edges := 0
	for _, l := range d.Links {
		if l.Messages > 0 {
			edges++
			if more := l.Messages - steps[l.From]; more < 0 || more > 1 {
				t.Errorf("%s has made %d steps, and sent %s %d models", l.From, steps[l.From], l.To, l.Messages)
			}
		}
	}
	if edges != 8 {
		t.Errorf("%d edges of a ring of four nodes were used", edges)
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
				turns.Row(t, i+k, len(architectures), 3)
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

// TestStateOfAnotherRunIsRefusedByName resumes from a state with another plan, seed or samples. A plan that
// differs only in its name and checkpoint section is the same plan.
func TestStateOfAnotherRunIsRefusedByName(t *testing.T) {
	stage := func(folder *checkpoint.Folder, from *checkpoint.State, set ...string) (*Stage, *live.World, error) {
		s := stagedPlan(
			t,
			base,
			append([]string{"architecture={kind: all-reduce}", "checkpoint={every: 40ms}"}, set...)...)
		if slices.Contains(set, "name=other-samples") {
			s.Task.Train.X[0]++
		}
		s.saves = &checkpoint.Run{Folder: folder, From: from, Told: func(time.Duration) {}}
		w, err := s.Live(live.Config{KeepRuntime: true})
		return s, w, err
	}
	f := checkpoint.NewFolder(t.TempDir(), 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	f.Written = func() { cancel(errCut) }
	_, w, err := stage(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(ctx); err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	from, err := f.Read(f.Newest())
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"name=another": "", "checkpoint.every=1s": "", "train.batch=7": "it is of another plan",
		"seed=99": "this run has seed 99", "name=other-samples": "it was made with other samples",
	} {
		_, w, err := stage(f, &from, set)
		if (want == "") != (err == nil) || err != nil &&
			(!errors.Is(err, checkpoint.ErrUnusable) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
		if err == nil {
			w.Abandon()
		}
	}
}

// secretive is an actor with state that it does not declare.
type secretive struct{ handled int }

func (s *secretive) Receive(actor.Context) { s.handled++ }

// TestPlanWithCheckpointsRefusesAnActorWithoutState expects the error before the run starts.
func TestPlanWithCheckpointsRefusesAnActorWithoutState(t *testing.T) {
	for _, checkpoints := range []string{"{every: 1s}", "null"} {
		s := stagedPlan(t, base, "architecture={kind: all-reduce}", "checkpoint="+checkpoints)
		s.Deployment.Nodes[1].Kind = func(actors.Env) (actor.Actor, error) { return &secretive{}, nil }
		err := (Real{}).Rehearse(t.Context(), s)
		if checkpoints == "null" && err != nil || checkpoints != "null" && (!errors.Is(err, state.ErrUndeclared) ||
			!strings.Contains(err.Error(), "secretive") || !strings.Contains(err.Error(), s.Names[1])) {
			t.Errorf("checkpoint: %s: %v", checkpoints, err)
		}
	}
}

// savedLarge makes a checkpoint of the large plan in real time. It returns its folder, and the actors that were
// saved, by node.
func savedLarge(b *testing.B) (*checkpoint.Folder, map[string]actor.Actor) {
	b.Helper()
	s := stagedPlan(b, large, "checkpoint={every: 200ms}")
	made := map[string]actor.Actor{}
	for i := range s.Deployment.Nodes {
		n := &s.Deployment.Nodes[i]
		kind, name := n.Kind, n.Name
		n.Kind = func(env actors.Env) (a actor.Actor, err error) {
			made[name], err = kind(env)
			return made[name], err
		}
	}
	f := checkpoint.NewFolder(b.TempDir(), 1)
	ctx, cancel := context.WithCancelCause(b.Context())
	f.Written = func() { cancel(errCut) }
	s.saves = &checkpoint.Run{Folder: f, Told: func(time.Duration) {}}
	w, err := s.Live(live.Config{KeepRuntime: true})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.Run(ctx); err != nil && !errors.Is(err, errCut) {
		b.Fatal(err)
	}
	f.Written = nil
	return f, made
}

// BenchmarkDeclaredCheckpoint is BenchmarkCheckpoint in real time: how long a node is held while its state is
// copied, and how long a checkpoint takes to write and to read.
func BenchmarkDeclaredCheckpoint(b *testing.B) {
	f, made := savedLarge(b)
	for _, name := range []string{"server", "worker1"} {
		of, err := state.Of(made[name])
		if err != nil {
			b.Fatal(err)
		}
		b.Run("hold "+name, func(b *testing.B) {
			for b.Loop() {
				saved, err := state.Save(of)
				if err != nil {
					b.Fatal(err)
				}
				saved.Own(name)
			}
		})
	}
	whole, err := f.Read(f.Newest())
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for _, v := range whole.Declared.Vectors {
		size += 4 * len(v.Data)
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			if err := errors.Join(f.Save(whole), f.Wait()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			if _, err := f.Read(f.Newest()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
