package experiment

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/cluster/turns"
)

// end is what a run leaves.
type end struct {
	World sim.Result
	Run   coordinator.Result
	Data  record.Data

	Counted, Lost uint64 // samples
}

func staged(t *testing.T, set ...string) *Stage {
	t.Helper()
	return stagedPlan(t, base, set...)
}

func stagedPlan(t testing.TB, text string, set ...string) *Stage {
	t.Helper()
	points := pointsOf(t, text, set...)
	strict := points[0].Spec.Plan.Name == "strict"
	s, err := points[0].stageFor(shelf.New("", 1, nil), points[0].Spec.Plan.Seed, strict, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.observe(record.Config{})
	if faults.Hurts(points[0].Spec.Plan) {
		s.count()
	}
	return s
}

func finish(t *testing.T, s *Stage, w *sim.World) end {
	t.Helper()
	r, err := w.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Collector.Close(s.result.Last)
	if err != nil {
		t.Fatal(err)
	}
	e := end{World: r, Run: s.result, Data: d}
	if s.tally != nil {
		e.Counted, e.Lost = s.tally.Close(r.Now)
	}
	return e
}

// sameFloats compares floats by their text in a record, and treats empty and nil lists and maps alike.
var sameFloats = cmp.Options{cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b record.Float) bool { return a.String() == b.String() })}

// base is a plan of four nodes, the first of which serves where one has to.
const base = `
name: base
data: {set: synthetic-traffic, samples: 600}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 8, optimizer: {kind: momentum}}
architecture: {kind: local}
nodes:
  - {name: n1, compute: {step: 10ms}}
  - {name: n2, compute: {step: 11ms}}
  - {name: n3, compute: {step: 12ms}}
  - {name: n4, compute: {step: 30ms}}
network: {topology: ring, default: {delay: 7ms, rate: 3 Mbit/s}}
evaluate: {every: 0.1 epochs}
stop: {epochs: 1}
`

const (
	threads   = "threads"   // a condition for those whose
	inThreads = "every: 3}" // steps threads can share
)

// architectures are all of them, with what they can remember.
var architectures = []string{
	"{kind: local}",
	"{kind: parameter-server, " + inThreads,
	"{kind: all-reduce, reduce: models, " + inThreads,
	"{kind: parameter-server, consistency: {kind: asp}}",
	"{kind: parameter-server, consistency: {kind: bsp}}",
	"{kind: parameter-server, consistency: {kind: bsp}, backup: 1}",
	"{kind: parameter-server, consistency: {kind: ssp, bound: 2}}",
	"{kind: parameter-server, consistency: {kind: dssp, low: 1, high: 3}}",
	"{kind: parameter-server, every: 3, staleness-rate: inverse}",
	"{kind: parameter-server, epoch-share: 50%}",
	"{kind: parameter-server, compress: {up: [{kind: top-k, share: 10%}]}}",
	"{kind: parameter-server, compress: {up: [{kind: top-k, share: 10%}], feedback: ef21}}",
	"{kind: parameter-server, servers: {shard: 500 B}, roles: {server: [n1, n2]}}",
	"{kind: parameter-server, compress: {up: [{kind: powersgd, rank: 1}]}}",
	"{kind: parameter-server, compress: {up: [{kind: random-k, share: 10%}, {kind: qsgd}]}}",
	"{kind: all-reduce}",
	"{kind: all-reduce, segment: 100}",
	"{kind: all-reduce, algorithm: tree}",
	"{kind: all-reduce, algorithm: butterfly}",
	"{kind: all-reduce, algorithm: all-to-all, compress: {up: [{kind: top-k, share: 10%}]}}",
	"{kind: all-reduce, every: 3, reduce: models}",
	"{kind: all-reduce, every: 3, reduce: models, moved: 0.1}",
	"{kind: all-reduce, preset: diloco, every: 3}",
	"{kind: all-reduce, preset: streaming-diloco, every: 6, fragments: 2, overlap: 1}",
	"{kind: all-reduce, preset: sparta, overlap: 1, every: 2}",
	"{kind: federated, share: 70%, controls: true, proximal: 0.1, local: {steps: 3, time: 1s}}",
	"{kind: federated, preset: fedasync, count: 2, state: kept, local: {steps: 3}}",
	"{kind: federated, mean: {kind: median}, attack: {kind: noise, share: 50%}, local: {steps: 3}}",
	"{kind: federated, roles: {aggregator: n3}, under: {n3: [n2]}, local: {steps: 3}}",
	"{kind: federated, attack: {kind: little-is-enough, share: 50%}, local: {steps: 5}}",
	"{kind: federated, preset: fedyogi, count: 2, spare: 50%, state: kept, deadline: 90ms, grace: {}, " +
		"local: {steps: 9}}",
	"{kind: gaia, consistency: {kind: ssp, bound: 1}}",
	"{kind: federated, population: 50, count: 9, deadline: 300ms, local: {epochs: 2, time: 60ms}}",
	"{kind: d-psgd}",
	"{kind: d-psgd, track: true, lead: 1}",
	"{kind: d-psgd, choco: {compress: [{kind: top-k, share: 10%}], rate: 0.3}}",
	"{kind: ad-psgd}",
	"{kind: ad-psgd, compress: {models: [{kind: quantise, bits: 4}]}}",
	"{kind: gossip}",
	"{kind: gossip, period: 30ms, merge: age, compress: {models: [{kind: quantise, bits: 4}]}}",
	"{kind: gossip, exchange: pull, lead: 2}",
	"{kind: gossip, exchange: push-pull}",
	"{kind: gossip-learning, period: 30ms}",
	"{kind: gossip-learning, period: 20ms, create: um, merge: age, predict: vote, cache: 4, " +
		"flow: {kind: randomized, capacity: 6, reactivity: 2}}",
	"{kind: noloco, every: 2}",
	"{kind: in-network, slots: 2, values: 100}",
}

// another topology is none for ad-psgd, which needs one in two parts.
const another = "{at: 200ms, topology: complete}, "

// conditions are what runs meet.
var conditions = map[string][]string{
	"plain": nil,
	"rough": {
		"network.default={delay: {kind: random-walk, first: 1ms..9ms, step: 2ms, min: 1ms}, " +
			"rate: {kind: random-walk, min: 1 Mbit/s, max: 9 Mbit/s, step: 1 Mbit/s, every: 20ms}, " +
			"loss: {kind: retransmit, timeout: 20ms, bursts: {p: 5%, r: 50%}}, " +
			"outages: [{kind: gilbert-elliott, up: 100ms, down: 20ms}]}",
		"nodes.n2.compute={step: 10ms, wander: {by: 1ms, min: 2ms, max: 19ms}}",
		"train.optimizer={kind: adam}",
	},
	"strict": {"name=strict"},
	"files": {
		"data={set: csv, file: testdata/files/samples.csv}", "model={kind: mlp, layers: [3, 2]}",
		"train={batch: 2, class-weights: testdata/files/weights.csv}",
		"network={topology: {kind: file, file: testdata/files/ring.csv}, default: {" +
			"delay: {kind: trace, file: testdata/files/delays.csv}, rate: {kind: trace, file: testdata/files/rates.csv}}}",
		"nodes.n4.available={file: testdata/files/devices.csv}", "stop.time=9s",
	},
	"terse": {
		"network={topology: ring, links: [{between: [n1, n2], delay: 7ms}, {between: [n3, n4], rate: 3 Mbit/s}]}",
		"train={batch: 8}",
	},
	"disturbed": {"network.default={delay: {kind: uniform, range: 1ms..9ms}, reorder: true, repeat: 10%, " +
		"loss: {kind: drop, probability: 10%}}"},
	threads: {"nodes.n3.compute={step: 12ms, threads: 2, cores: 2}", "train.optimizer={kind: sgd}"},
	"fair": {"network.share=fair", "nodes.n3.uplink={kind: mobile, line: lte-driving-up}", "evaluate.early=true",
		"evaluate.target=90%"},
	"faults": {
		"schedule=[{at: 50ms, node: n4, do: restart, for: 40ms}, {at: 70ms, cut: [n2, n3], for: 50ms}, " +
			"{at: 90ms, node: n3, do: slow, factor: 3, for: 80ms}, {at: 150ms, link: [n2, n3], delay: 20ms}, " +
			"{at: 160ms, node: n3, do: preempt, notice: 20ms, for: 30ms}, {at: 200ms, cut: n4, for: 20ms}]",
		"faults={cut: {mtbf: 200ms, for: 30ms, nodes: [n3, n2]}, until: 250ms}",
		"detect=15ms",
	},
	"lossy": {"network.default={delay: {kind: uniform, range: 3ms..9ms}, rate: 3 Mbit/s, " +
		"loss: {kind: drop, probability: 10%}}"},
	"churn": {
		"schedule=[{at: 50ms, node: n4, do: crash}, {at: 100ms, node: n3, do: pause, for: 60ms}, " +
			"{at: 150ms, link: [n2, n3], delay: 20ms}, {at: 170ms, node: n4, do: join}, " +
			"{at: 180ms, node: n2, do: leave}, " + another +
			"{at: 240ms, node: n2, do: join}, {at: 250ms, node: n4, do: crash}]",
		"detect=15ms",
	},
}

// whole is the end of a run that nobody interrupts.
func whole(t *testing.T, set []string) end {
	t.Helper()
	s := staged(t, set...)
	w, err := sim.New(s.simulation())
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, s, w)
}

// saving is a run that is saved, and where it was.
func saving(t *testing.T, set []string, every time.Duration) (e end, states []*state.Saved) {
	t.Helper()
	s := staged(t, set...)
	c := s.simulation()
	s.saved(&c, every, func(_ time.Duration, saved *state.Saved) error {
		states = append(states, saved)
		return nil
	})
	w, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, s, w), states
}

// continued returns the end of a run that goes on from a state. It reads the plan from the record's
// plan.yaml, which states every default.
func continued(t *testing.T, set []string, every time.Duration, saved *state.Saved) end {
	t.Helper()
	p, err := Parse("plan.yaml", []byte(base), set...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Resolved(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := stagedPlan(t, text)
	c := s.simulation()
	s.saved(&c, every, func(time.Duration, *state.Saved) error { return nil })
	w, err := sim.Restore(c, statetest.Written(t, saved))
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, s, w)
}

// Every architecture, with all that it can remember, under every condition: a run that is saved is
// the run that is not, and one that goes on from a checkpoint at a random instant ends as they do:
// with the same digest, parameters and record. Each round has other instants.
func TestRunGoesOnFromAnyCheckpointToTheSameEnd(t *testing.T) {
	rounds := 1
	if !simtest.Brief() {
		rounds = 20
	}
	for k, name := range slices.Sorted(maps.Keys(conditions)) {
		for i, architecture := range architectures {
			if name == threads && !strings.HasSuffix(architecture, inThreads) ||
				testing.Short() && name != threads && (i+k+k/4)%4 > 0 { // one goroutine works for long
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
				want := whole(t, set)
				for round := range rounds {
					random := rand.New(rand.NewPCG(uint64(i), uint64(round)))
					every := time.Duration(20e6 + random.IntN(40e6))
					got, states := saving(t, set, every)
					if diff := cmp.Diff(want, got, sameFloats); diff != "" {
						t.Fatalf("a checkpoint every %v changes the run: %s", every, diff)
					}
					if len(states) < 2 {
						t.Fatalf("%d checkpoints, one every %v", len(states), every)
					}
					from := random.IntN(len(states))
					if diff := cmp.Diff(want, continued(t, set, every, states[from]), sameFloats); diff != "" {
						t.Fatalf("from checkpoint %d, one every %v: %s", from, every, diff)
					}
				}
			})
		}
	}
}

// interrupted is a venue that cancels its run when the first checkpoint is on disk.
type interrupted struct {
	Virtual
	cancel func()
}

func (v interrupted) Play(ctx context.Context, s *Stage) (Outcome, error) {
	s.OnSaved(v.cancel)
	return v.Virtual.Play(ctx, s)
}

// By default an interrupted run in virtual time is repeated. With FromCheckpoint it resumes, and is marked
// as resumed unless the catalog states that its architecture resumes exactly.
func TestInterruptedRunIsRepeatedOrResumed(t *testing.T) {
	for _, k := range catalog.Default().Architectures.All() {
		if !k.Exact {
			t.Errorf("%s does not go on exactly", k.Name)
		}
	}
	for _, try := range []struct{ from, exact, resumed bool }{{false, false, false}, {true, true, false},
		{true, false, true}} {
		c := catalog.Default()
		for i := range c.Architectures.All() {
			c.Architectures.All()[i].Exact = try.exact
		}
		run := func(ctx context.Context, o Options, v Venue) (runs []record.Run, notes string) {
			p, err := Parse("plan.yaml", []byte(base), "checkpoint={every: 100ms, keep: 1}", "stop={epochs: 40}")
			if err != nil {
				t.Fatal(err)
			}
			o.Catalog, o.Jobs, o.Progress = c, 1, func(p Progress) { notes += p.Note }
			r, err := Prepare(t.Context(), p, o, Site{Venue: v})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.RunAll(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			report, err := r.Report(0)
			if err != nil {
				t.Fatal(err)
			}
			return report.Runs, notes
		}
		dir := filepath.Join(t.TempDir(), "out")
		ctx, cancel := context.WithCancel(t.Context())
		if runs, _ := run(ctx, Options{Out: dir}, interrupted{cancel: cancel}); len(runs) > 0 {
			t.Fatal("the run was not interrupted")
		}
		runs, notes := run(t.Context(), Options{Out: dir, Continue: true, FromCheckpoint: try.from}, Virtual{})
		want := map[bool]string{true: "goes on from its checkpoint", false: "is repeated from its start"}[try.from]
		if len(runs) != 1 || (runs[0].Resumed > 0) != try.resumed || !strings.Contains(notes, want) {
			t.Errorf("%+v: %+v, told %q", try, runs, notes)
		}
	}
}

// large is a server and four workers of a model of 1.2 million parameters.
const large = `
name: large
data: {set: synthetic-traffic, samples: 600}
model: {kind: mlp, layers: [93, 12100, 5]}
train: {batch: 8, optimizer: {kind: momentum}}
architecture: {kind: parameter-server}
nodes: [{name: server, role: server}, {name: worker, role: worker, count: 4, compute: {step: 10ms}}]
network: {default: {delay: 7ms}}
evaluate: {every: 10 epochs}
stop: {epochs: 1}
`

func BenchmarkCheckpoint(b *testing.B) {
	stage := func() sim.Config {
		s := stagedPlan(b, large)
		c := s.simulation()
		s.saved(&c, time.Hour, nil)
		return c
	}
	w, err := sim.New(stage())
	if err == nil {
		_, err = w.Run(context.Background())
	}
	if err != nil {
		b.Fatal(err)
	}
	saved, err := w.Save()
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for _, v := range saved.Vectors {
		size += 4 * len(v.Data)
	}
	measure := func(name string, what func(b *testing.B, i int) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				if err := what(b, i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	measure("save", func(*testing.B, int) error {
		saved, err = w.Save()
		return err
	})
	folder := checkpoint.NewFolder(b.TempDir(), 2)
	measure("write", func(_ *testing.B, i int) error {
		return errors.Join(folder.Save(checkpoint.State{At: time.Duration(i), Declared: saved}), folder.Wait())
	})
	measure("restore", func(b *testing.B, _ int) error {
		b.StopTimer()
		c := stage()
		b.StartTimer()
		_, err := sim.Restore(c, saved)
		return err
	})
}
