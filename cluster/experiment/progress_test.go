package experiment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// steady is a plan of four nodes that train, with whatever others the architecture needs.
const steady = `name: steady
data: {set: synthetic-traffic, samples: 400}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 10, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: local}
nodes: [{name: w, count: 4, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: 1ms}}
evaluate: {every: 1s}
stop: {time: 10s}
detect: 0.1s
`

// variants are what every architecture of the catalog is tried as.
var variants = map[string][]string{
	"all-reduce": {"{kind: all-reduce}", "{kind: all-reduce, preset: diloco}", "{kind: all-reduce, preset: local-sgd}"},
	"parameter-server": {"{kind: parameter-server, roles: {server: added}}",
		"{kind: parameter-server, consistency: bsp, roles: {server: added}}"},
	"federated": {"{kind: federated, roles: {server: added}}",
		"{kind: federated, preset: scaffold, roles: {server: added}}",
		"{kind: federated, preset: fedasync, roles: {server: added}}",
		"{kind: federated, preset: fedbuff, buffer: 2, roles: {server: added}}",
		"{kind: federated, deadline: 200ms, roles: {server: added}}",
		"{kind: federated, grace: {quorum: 50%, mads: 3}, roles: {server: added}}",
		"{kind: federated, population: 20, count: 4, roles: {server: added}}",
		"{kind: federated, mean: {kind: median}, roles: {server: added}}",
		"{kind: federated, roles: {server: added, aggregator: [w1]}, under: {w1: [w2, w3, w4]}}"},
	"gaia":            {"{kind: gaia, roles: {server: added}}"},
	"in-network":      {"{kind: in-network, slots: 2, values: 100, roles: {switch: added}}"},
	"gossip":          {"{kind: gossip}", "{kind: gossip, wait: false}"},
	"d-psgd":          {"{kind: d-psgd}"},
	"ad-psgd":         {"{kind: ad-psgd}"},
	"gossip-learning": {"{kind: gossip-learning, period: 10ms}"},
	"noloco":          {"{kind: noloco, every: 4}"},
	"local":           {"{kind: local}"},
}

// noProgress are settings of a run in which nothing is learned.
var noProgress = []struct {
	name string
	set  []string
}{
	{"nobody there", []string{
		"nodes=[{name: w, count: 4, compute: {step: 5ms}, available: {on: 1s, off: 1s, first: 1h}}]"}},
	{"links down", []string{"network.default.outages=[{from: 0s, for: 1000h}]"}},
	{"links down from 0.1 s on", []string{"network.default.outages=[{from: 100ms, for: 1000h}]"}},
	{"links of 1 bit/s", []string{"network.default.rate=1 bit/s"}},
	{"delays of a year", []string{"network.default.delay=8760h"}},
	{"everything lost", []string{lostToAll, "architecture.delivery=as-is"}},
	{"everything lost and repeated", []string{lostToAll, "architecture.delivery=reliable"}},
	{"retransmitted in vain", []string{"network.default.loss={probability: 100%, kind: retransmit}"}},
	{"cut off", []string{"schedule=[{at: 0s, cut: w1, for: 1000h}, {at: 0s, cut: w2, for: 1000h}, " +
		"{at: 0s, cut: w3, for: 1000h}]"}},
	{"all paused", []string{"schedule=[{at: 100ms, node: w, do: pause, for: 1000h}]"}},
	{"one paused", []string{"schedule=[{at: 100ms, node: w2, do: pause, for: 1000h}]"}},
	{"all leave", []string{"schedule=[{at: 100ms, node: w, do: leave}]"}},
	{"all crash", []string{"schedule=[{at: 100ms, node: w, do: crash}]"}},
	{"steps of an hour", []string{"nodes=[{name: w, count: 4, compute: {step: 1h}}]"}},
	{"all slow", []string{"schedule=[{at: 100ms, node: w, do: slow, factor: 1000000, for: 1000h}]"}},
	{"rate 0", []string{"train.optimizer={kind: sgd, rate: 0}"}},
	{"rate that falls to nothing", []string{
		"train.optimizer={kind: sgd, rate: {kind: step, first: 0.1, factor: 1e-30, every: 3}}"}},
	{"rate that falls to nothing, seldom evaluated", []string{"evaluate.every=2s",
		"train.optimizer={kind: sgd, rate: {kind: step, first: 0.1, factor: 1e-30, every: 3}}"}},
	{"rate that falls to nothing, evaluated at the end", []string{"evaluate.every=1h",
		"train.optimizer={kind: sgd, rate: {kind: step, first: 0.1, factor: 1e-30, every: 3}}"}},
	{"a target that the initial model reaches", []string{"stop={target: 1%, time: 10s}"}},
	{"the worst model never trained", []string{"evaluate.of=all",
		"nodes=[{name: w, count: 3, compute: {step: 5ms}}, {name: w4, compute: {step: 1h}}]"}},
}

const lostToAll = "network.default.loss={probability: 100%, kind: drop}"

// emptyRounds are settings of federated runs whose rounds all end without an update.
var emptyRounds = [][]string{
	{"architecture={kind: federated, deadline: 1ms, roles: {server: added}}", "stop={rounds: 20}", byRounds},
	{"architecture={kind: federated, deadline: 1ms, roles: {server: added}}", "stop={rounds: 1}", byRounds},
	{"architecture={kind: federated, deadline: 12ms, roles: {server: added}}", "stop={epochs: 1}"},
	{"architecture={kind: federated, deadline: 12ms, roles: {server: added}}", "stop={steps: 100}"},
	{"architecture={kind: federated, deadline: 12ms, population: 20, count: 4, roles: {server: added}}",
		"stop={rounds: 9}", byRounds},
	{"architecture={kind: federated, deadline: 12ms, controls: true, roles: {server: added}}", "stop={rounds: 9}",
		byRounds},
	{"architecture={kind: federated, deadline: 12ms, mean: {kind: median}, roles: {server: added}}",
		"stop={rounds: 9}", byRounds},
	{"architecture={kind: federated, deadline: 200ms, mean: {kind: krum, attackers: 1}, roles: {server: added}}",
		"nodes=[{name: w, count: 4, compute: {step: 5ms}}, {name: v, count: 4, compute: {step: 1h}}]",
		"stop={rounds: 20}", byRounds},
}

// noChange lists settings of runs whose updates leave every parameter unchanged.
var noChange = [][]string{
	{"architecture={kind: federated, outer: {kind: sgd, rate: 0}, roles: {server: added}}", "stop={time: 10s}"},
	{"architecture={kind: federated, outer: {kind: sgd, rate: 0}, roles: {server: added}}", "stop={rounds: 20}",
		byRounds},
	{"architecture={kind: local}", "stop={epochs: 2}", "train.optimizer={kind: sgd, rate: 0}"},
	{"architecture={kind: federated, outer: {kind: sgd, rate: {kind: cosine, first: 1, steps: 2}}, " +
		"roles: {server: added}}", "stop={rounds: 40}", "evaluate.every=40 rounds"},
	{"architecture={kind: federated, outer: {kind: adaptive, rate: {kind: cosine, first: 0.01, steps: 1}}, " +
		"roles: {server: added}}", "stop={rounds: 40}", "evaluate.every=40 rounds"},
	{"architecture={kind: all-reduce, reduce: models, every: 2, outer: {kind: sgd, rate: {kind: step, first: 1, " +
		"factor: 1e-20, every: 1}}}", "stop={time: 6s}"},
	{"architecture={kind: all-reduce, preset: diloco, every: 5, outer: {kind: momentum, rate: {kind: exponential, " +
		"first: 0.7, decay: 1e-20}}}", "stop={time: 20s}", "evaluate.every=1h"},
	{"architecture={kind: local}", "stop={time: 10s}", "evaluate.every=1h",
		"train.optimizer={kind: sgd, rate: {kind: cosine, first: 0.2, steps: 20, last: 1e-14}}"},
}

const byRounds = "evaluate.every=1 rounds"

// attempt runs a plan with settings in virtual time.
func attempt(t *testing.T, set ...string) (run record.Run, curve []record.Evaluation) {
	t.Helper()
	return attemptOn(t, VirtualTime, set...)
}

// attemptOn runs a plan with settings on a clock.
func attemptOn(t *testing.T, clock Clock, set ...string) (run record.Run, curve []record.Evaluation) {
	t.Helper()
	p, err := Parse("plan.yaml", []byte(steady), set...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := Run(ctx, p, Options{Out: filepath.Join(t.TempDir(), "record"), Clock: clock})
	if r == nil || len(r.Runs) == 0 {
		t.Fatal(err)
	}
	return r.Runs[0], r.Traces[0].Curve
}

// A run that is done judges another model at its end than after a tenth of it.
func TestNoRunThatMadeNoProgressIsDone(t *testing.T) {
	t.Parallel()
	expectOn := func(t *testing.T, clock Clock, set ...string) {
		t.Helper()
		run, curve := attemptOn(t, clock, set...)
		first := slices.IndexFunc(curve, func(e record.Evaluation) bool { return e.Time >= run.Duration/10 })
		learned := first >= 0 && curve[first].Loss != curve[len(curve)-1].Loss
		if run.Outcome == record.Done && !learned {
			t.Errorf("done after %d steps, and nothing was learned", run.Steps)
		}
		if run.Outcome == record.Degraded && !learned && len(run.Incidents) == 0 {
			t.Error("degraded, and no incident says why")
		}
	}
	expect := func(t *testing.T, set ...string) {
		t.Helper()
		expectOn(t, VirtualTime, set...)
	}
	all := catalog.Default().Architectures.All()
	for i, k := range all {
		if len(variants[k.Name]) == 0 {
			t.Fatalf("architecture %s is not tried", k.Name)
		}
		t.Run(k.Name+" in real time", func(t *testing.T) {
			turns.Row(t, i, len(all), 3)
			t.Parallel()
			expectOn(t, RealTime, "architecture="+variants[k.Name][0], "stop={time: 1.5s}", "evaluate.every=100ms",
				"network.default.outages=[{from: 100ms, for: 1000h}]")
		})
		for v, architecture := range variants[k.Name] {
			for c, x := range noProgress {
				t.Run(architecture+", "+x.name, func(t *testing.T) {
					turns.Row(t, i+v+c, len(noProgress), 3)
					t.Parallel()
					expect(t, append([]string{"architecture=" + architecture}, x.set...)...)
				})
			}
		}
	}
	for _, set := range slices.Concat(emptyRounds, noChange) {
		t.Run(set[0]+", "+set[1], func(t *testing.T) {
			t.Parallel()
			if run, _ := attempt(t, set...); run.Outcome != record.Degraded {
				t.Errorf("%s: %+v", run.Outcome, run.Incidents)
			}
			expect(t, set...)
		})
	}
}

// A run whose rate is effective for a quarter of it or more is done, however rarely models are evaluated.
func TestRunsWhoseRateLastedAreDone(t *testing.T) {
	t.Parallel()
	for _, every := range []string{"500ms", "2s", "9s", "1h"} {
		for _, steps := range []int{500, 1100, 1900} { // of 2000
			run, _ := attempt(t, "evaluate.every="+every, fmt.Sprintf(
				"train.optimizer={kind: sgd, rate: {kind: cosine, first: 0.1, steps: %d}}", steps))
			if run.Outcome != record.Done {
				t.Errorf("evaluated every %s, the rate lasts for %d steps: %s, %+v", every, steps, run.Outcome,
					run.Incidents)
			}
		}
	}
}

// An update is no progress if its work ends after the run.
func TestAnUpdateBeyondTheEndIsNoProgress(t *testing.T) {
	t.Parallel()
	hubs := "nodes=[{name: s, role: %s, compute: {speed: 1 FLOP/s}}, {name: w, count: 4, role: %s, " +
		"compute: {step: 5ms}}]"
	all := map[string][2]string{
		"{kind: parameter-server}": {"server", "worker"}, "{kind: gaia}": {"server", "worker"},
		"{kind: federated}": {"server", "client"},
		"{kind: federated, preset: fedbuff, buffer: 2, count: 3}": {"server", "client"},
		"{kind: in-network, slots: 2, values: 100}":               {"switch", "worker"},
	}
	for i, architecture := range slices.Sorted(maps.Keys(all)) {
		roles := all[architecture]
		for clock, stop := range map[Clock]string{VirtualTime: "{time: 60s}", RealTime: "{time: 1.5s}"} {
			t.Run(fmt.Sprintf("%s, %s", architecture, clock), func(t *testing.T) {
				if clock == RealTime {
					turns.Row(t, i, len(all), 3)
				}
				t.Parallel()
				for _, every := range []string{"evaluate.every=100ms", "evaluate.every=1h"} {
					run, _ := attemptOn(t, clock, "architecture="+architecture, fmt.Sprintf(hubs, roles[0], roles[1]),
						"stop="+stop, every)
					if run.Outcome != record.Degraded || len(run.Incidents) == 0 {
						t.Errorf("%s: %s after %v s: %+v", every, run.Outcome, run.Duration, run.Incidents)
					}
				}
			})
		}
	}
}

// A run ends in time although nodes are dead, paused or busy.
func TestARunEndsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][]string{
		"an undetected crash":  {"detect=1h", "schedule=[{at: 100ms, node: w2, do: crash}]"},
		"a paused coordinator": {"schedule=[{at: 100ms, node: coordinator, do: pause, for: 1h}]"},
		"paused nodes":         {"schedule=[{at: 100ms, node: w, do: pause, for: 1h}]"},
		"slow nodes":           {"schedule=[{at: 100ms, node: w, do: slow, factor: 1000000, for: 1000h}]"},
	} {
		for kind, architectures := range variants {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				run, _ := attempt(t, append([]string{"architecture=" + architectures[0]}, set...)...)
				if run.Duration != 10 {
					t.Errorf("%s after %v s: %+v", run.Outcome, run.Duration, run.Incidents)
				}
				for _, i := range run.Incidents {
					if i.At > run.Duration {
						t.Errorf("%+v in a run of %v s", i, run.Duration)
					}
				}
			})
		}
		t.Run(name+", in real time", func(t *testing.T) {
			t.Parallel()
			run, _ := attemptOn(t, RealTime, append(set, "stop={time: 1.2s}")...)
			if run.Duration < 1.2 || run.Duration > 10 {
				t.Errorf("%s after %v s: %+v", run.Outcome, run.Duration, run.Incidents)
			}
		})
	}
	t.Run("after a number of steps", func(t *testing.T) {
		t.Parallel()
		run, _ := attempt(t, "stop={steps: 100}", "detect=1h", "schedule=[{at: 100ms, node: w2, do: crash}]")
		if run.Duration > 1 {
			t.Errorf("%s after %v s: %+v", run.Outcome, run.Duration, run.Incidents)
		}
	})
	t.Run("after rounds, with a paused coordinator", func(t *testing.T) {
		t.Parallel()
		run, _ := attempt(t, "architecture={kind: federated, roles: {server: added}}", "stop={rounds: 9, time: 10s}",
			byRounds, "schedule=[{at: 1ms, node: coordinator, do: pause, for: 1h}]")
		if run.Duration != 10 || run.Outcome != record.Degraded {
			t.Errorf("%s after %v s: %+v", run.Outcome, run.Duration, run.Incidents)
		}
	})
}

// An incident names each node that spends most of the run waiting for a message in flight.
func TestAWaitForAMessageInFlightIsTold(t *testing.T) {
	t.Parallel()
	for _, slow := range []string{"network={default: {delay: 1ms, rate: 1 bit/s}}", "network={default: {delay: 1h}}",
		"network={default: {delay: 1ms, rate: 10 bit/s}}"} {
		t.Run(slow, func(t *testing.T) {
			t.Parallel()
			run, _ := attempt(t, "architecture={kind: ad-psgd, graph: exponential}", slow)
			named := map[string]bool{}
			for _, i := range run.Incidents {
				named[i.Node] = true
			}
			if run.Outcome != record.Degraded || !named["w1"] || !named["w3"] {
				t.Errorf("%s: %+v", run.Outcome, run.Incidents)
			}
		})
	}
}

// A target that is reached before the first message arrives over a slow link is a result like any other.
func TestATargetReachedWithoutAFarNodeIsDone(t *testing.T) {
	t.Parallel()
	far := []string{"architecture={kind: parameter-server}",
		"nodes=[{name: s, role: server}, {name: w, count: 4, role: worker, compute: {step: 5ms}}]",
		"network.links=[{between: [w4, s], delay: 1h}]"}
	run, _ := attempt(t, append(far, "stop={target: 50%, time: 10s}")...)
	if run.Outcome != record.Done || !run.Reached {
		t.Errorf("at its target: %s: %+v", run.Outcome, run.Incidents)
	}
	run, _ = attempt(t, append(far, "stop={time: 2s}")...)
	if run.Outcome != record.Degraded || len(run.Incidents) != 1 || run.Incidents[0].Node != "w4" {
		t.Errorf("at its end: %s: %+v", run.Outcome, run.Incidents)
	}
}

// An undisturbed run is done however short it is.
func TestRunsThatMadeProgressAreDone(t *testing.T) {
	t.Parallel()
	stops := []string{"{time: 10s}", "{time: 1s}", "{steps: 1}", "{steps: 3}", "{epochs: 3}",
		"{target: 60%, time: 60s}", "{time: 1h, epochs: 3}"}
	for name, architectures := range variants {
		for v, architecture := range architectures {
			for k, stop := range stops {
				set := []string{"architecture=" + architecture, "stop=" + stop}
				t.Run(architecture+", "+stop, func(t *testing.T) {
					turns.Row(t, v+k, len(stops), 3)
					t.Parallel()
					if run, _ := attempt(t, set...); run.Outcome != record.Done || len(run.Incidents) > 0 {
						t.Errorf("%s after %v s and %d steps: %+v", run.Outcome, run.Duration, run.Steps, run.Incidents)
					}
				})
			}
			if name == "federated" {
				t.Run(architecture+", rounds", func(t *testing.T) {
					t.Parallel()
					run, _ := attempt(t, "architecture="+architecture, "stop={rounds: 1}")
					if run.Outcome != record.Done {
						t.Errorf("%s: %+v", run.Outcome, run.Incidents)
					}
				})
			}
		}
	}
}

// However many tries messages take, a run goes on to its end; and a bound of tries is repaired by
// sessions.
func TestRetransmissionLetsRunsGoOn(t *testing.T) {
	t.Parallel()
	for _, architectures := range variants {
		for _, loss := range []string{"{probability: 67%, timeout: 10ms}",
			"{probability: 67%, timeout: 10ms, attempts: 2}"} {
			set := []string{"architecture=" + architectures[0], "network.default.loss=" + loss}
			t.Run(set[0]+", "+loss, func(t *testing.T) {
				t.Parallel()
				run, curve := attempt(t, set...)
				if n := len(curve); run.Outcome != record.Done || curve[n-1].Loss == curve[n-3].Loss {
					t.Errorf("%s: %+v", run.Outcome, run.Incidents)
				}
			})
		}
	}
}

// A node that joins late and is never answered stalled from its join on.
func TestANodeStalledFromItsJoinOn(t *testing.T) {
	t.Parallel()
	run, _ := attempt(t, "architecture={kind: parameter-server, delivery: as-is}",
		"nodes=[{name: s, role: server}, {name: w, count: 4, role: worker, compute: {step: 5ms}}]",
		"network.links=[{between: [w4, s], loss: {probability: 100%, kind: drop}}]",
		"schedule=[{at: 3s, node: w4, do: join}]")
	if run.Outcome != record.Degraded || len(run.Incidents) == 0 {
		t.Fatalf("%s: %+v", run.Outcome, run.Incidents)
	}
	for _, i := range run.Incidents {
		if i.Node != "w4" || i.At < 3 || !strings.Contains(i.What, "stalled from here to the end, ") {
			t.Errorf("%+v", i)
		}
	}
}
