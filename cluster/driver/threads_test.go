package driver_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

// shared are settings of the small plan under which threads have something to share.
var shared = []string{"sweep={}", "repeats=1", "nodes[0].compute={step: 5ms}"}

func TestThreadsTrainTheSameInVirtualTimeWhateverTheMachine(t *testing.T) {
	for _, architecture := range []string{"{kind: parameter-server, every: 6}",
		"{kind: all-reduce, reduce: models, every: 6, roles: {worker: [server, near, far]}}",
		"{kind: local, roles: {peer: [server, near, far]}}"} {
		digest := func(threads int) string {
			set := append([]string{"architecture=" + architecture, "stop={steps: 192}"}, shared...)
			if threads > 0 {
				set = append(set, fmt.Sprintf("nodes[1].compute={step: 5ms, threads: %d}", threads))
			}
			return fmt.Sprint(digests(run(t, load(t, small, set...), driver.Options{})))
		}
		want := digest(3)
		for _, processors := range []int{1, 2} {
			before := runtime.GOMAXPROCS(processors)
			got := digest(3)
			runtime.GOMAXPROCS(before)
			equal(t, fmt.Sprintf("%s with %d processors", architecture, processors), want, got)
		}
		equal(t, architecture+" with one thread", digest(0), digest(1))
		if digest(1) == want {
			t.Errorf("%s: three threads make the digest that one makes", architecture)
		}
	}
}

func TestThreadsTrainInRealTime(t *testing.T) {
	set := append([]string{"architecture={kind: parameter-server, every: 8}", "stop={steps: 320}",
		"nodes[1].compute={native: true, threads: 2}", "nodes[2].compute={step: 1ms, threads: 4}"}, shared...)
	r := run(t, load(t, small, set...), driver.Options{Clock: driver.Real}).Runs[0]
	if r.Steps < 320 || r.BestAccuracy < 0.5 {
		t.Errorf("%d steps, an accuracy of %v", r.Steps, r.BestAccuracy)
	}
}
