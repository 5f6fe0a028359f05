package driver_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
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

func TestServersThatComeAndGoTrainTheSameWhateverTheMachine(t *testing.T) {
	for _, consistency := range []string{"asp", "bsp", "{kind: dssp, low: 1, high: 4}"} {
		set := []string{"architecture.consistency=" + consistency}
		first := run(t, load(t, moving, set...), driver.Options{Strict: true})
		want := fmt.Sprint(digests(first))
		for _, processors := range []int{1, 2} {
			before := runtime.GOMAXPROCS(processors)
			got := fmt.Sprint(digests(run(t, load(t, moving, set...), driver.Options{})))
			runtime.GOMAXPROCS(before)
			equal(t, fmt.Sprintf("%s with %d processors", consistency, processors), want, got)
		}
		if r := first.Runs[0]; r.Outcome != record.Done || r.BestAccuracy < 0.6 {
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
