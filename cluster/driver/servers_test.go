package driver_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// moving is a plan whose servers come and go, compressed in both directions.
const moving = `
seed: 3
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: momentum, rate: 0.05}}
architecture:
  kind: parameter-server
  servers: {shard: 512 B}
  compress: {up: [{kind: random-k, share: 20%}, {kind: qsgd, levels: 7}], down: [{kind: top-k, share: 10%}]}
nodes:
  - {name: s, count: 3, role: server}
  - {name: w, count: 3, role: worker, compute: {step: 5ms}}
network: {default: {delay: {kind: exponential, mean: 5ms, max: 50ms}}}
schedule:
  - {at: 200ms, node: s2, do: leave}
  - {at: 500ms, node: s2, do: join}
  - {at: 700ms, node: s1, do: leave}
  - {at: 800ms, node: w1, do: crash}
  - {at: 900ms, node: w1, do: join}
evaluate: {every: 100ms}
stop: {time: 1500ms}
`

// sameWhateverTheMachine runs a plan strictly, and on one and two processors. It returns the first
// run.
func sameWhateverTheMachine(t *testing.T, text string, set ...string) record.Run {
	t.Helper()
	first := run(t, load(t, text, set...), driver.Options{Strict: true})
	want := fmt.Sprint(digests(first))
	for _, processors := range []int{1, 2} {
		before := runtime.GOMAXPROCS(processors)
		got := fmt.Sprint(digests(run(t, load(t, text, set...), driver.Options{})))
		runtime.GOMAXPROCS(before)
		equal(t, fmt.Sprintf("%v with %d processors", set, processors), want, got)
	}
	return first.Runs[0]
}

func TestServersThatComeAndGoTrainTheSameWhateverTheMachine(t *testing.T) {
	for _, consistency := range []string{"asp", "bsp", "{kind: dssp, low: 1, high: 4}"} {
		r := sameWhateverTheMachine(t, moving, "architecture.consistency="+consistency)
		if r.Outcome != record.Done || r.BestAccuracy < 0.6 {
			t.Errorf("%s: %s with an accuracy of %v, %+v", consistency, r.Outcome, r.BestAccuracy, r.Incidents)
		}
	}
}

func TestServersComeAndGoInRealTime(t *testing.T) {
	plan := load(t, moving, "architecture.compress={up: [{kind: int8}]}")
	r := run(t, plan, driver.Options{Clock: driver.Real}).Runs[0]
	if r.Outcome != record.Done || r.Steps < 30 || r.Duration < 1.5 {
		t.Errorf("%s after %d steps and %v s, %+v", r.Outcome, r.Steps, r.Duration, r.Incidents)
	}
}

// crashing has servers whose shards are copied crash, one for good, and links lose messages.
const crashing = `
name: crashing
data: {set: synthetic-traffic, samples: 600}
model: {kind: mlp, layers: [93, 24, 5]}
train: {batch: 16, optimizer: {kind: momentum, rate: 0.05}}
architecture:
  kind: parameter-server
  consistency: {kind: ssp, bound: 2}
  servers: {shard: 2 kB, replicas: 1}
nodes:
  - {name: s, count: 3, role: server}
  - {name: w, count: 3, role: worker, compute: {step: 5ms}}
network: {default: {delay: {kind: uniform, range: 1ms..5ms}, loss: {kind: drop, probability: 2%}}}
schedule:
  - {at: 200ms, node: s2, do: restart, for: 300ms}
  - {at: 900ms, node: s1, do: crash}
  - {at: 1100ms, node: w1, do: restart, for: 100ms}
detect: 20ms
evaluate: {every: 100ms}
stop: {time: 2s}
`

// coded has both ends of gradients and of models remember what has travelled.
const coded = "{up: [{kind: top-k, share: 10%}], down: [{kind: int8}], feedback: ef21}"

func TestServersWhoseShardsAreCopiedCrashAndTrainingGoesOnTheSameWhateverTheMachine(t *testing.T) {
	for _, set := range []string{"consistency=asp", "consistency=bsp", "consistency={kind: bounded-delay, bound: 2}",
		"compress=" + coded} {
		r := sameWhateverTheMachine(t, crashing, "architecture."+set)
		if r.Outcome == record.Failed || r.BestAccuracy < 0.6 || r.Duration < 2 {
			t.Errorf("%s: %s with an accuracy of %v, %+v", set, r.Outcome, r.BestAccuracy, r.Incidents)
		}
	}
}

func TestServersWhoseShardsAreCopiedCrashInRealTime(t *testing.T) {
	turns.Take(t, 0, 3)
	for _, compress := range []string{"{}", coded} {
		r := run(t, load(t, crashing, "architecture.compress="+compress), driver.Options{Clock: driver.Real}).Runs[0]
		if r.Outcome == record.Failed || r.Steps < 30 || r.Duration < 2 {
			t.Errorf("with codes %s: %s after %d steps and %v s, %+v", compress, r.Outcome, r.Steps, r.Duration,
				r.Incidents)
		}
	}
}
