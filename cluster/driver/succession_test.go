package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
)

// halfSeconds is a plan of short runs.
const halfSeconds = `name: brief
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: gossip}
nodes: [{name: peer, count: 3, compute: {step: 10ms}}]
evaluate: {every: 100ms}
stop: {steps: 50}
repeats: 4
`

func TestAnotherProcessGoesOnWithTheQueueOfOneThatLeaves(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	leave := c.serve("a")
	for _, name := range []string{"b", "c"} {
		defer c.serve(name)()
	}
	operator := c.client(identity.Operator)
	c.gather(operator, 3)
	running, waiting := submit(t, operator, halfSeconds), submit(t, operator, halfSeconds, "repeats=1")
	watched, cancel := context.WithCancel(t.Context())
	defer cancel()
	before, err := operator.Watch(watched, running, func(s driver.Submission) {
		if s.Done > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || before.Process != "a" || len(before.Holders) != 3 {
		t.Fatalf("%+v, %v", before, err)
	}
	leave()
	for id, runs := range map[string]int{running: 4, waiting: 1} {
		summary, _ := c.end(operator, id)
		if summary.RunsPlanned != runs || len(summary.Runs) != runs {
			t.Errorf("%d runs of %d, want %d", len(summary.Runs), summary.RunsPlanned, runs)
		}
	}
	made, finished := "", 0
	err = operator.Logs(t.Context(), running, false, func(line string) {
		if strings.Contains(line, "goes on at process") {
			made = line
		} else if strings.Contains(line, " done: seed ") && made != "" {
			finished++
		}
	})
	if err != nil || strings.Contains(made, " 0 of 4 runs") || finished == 0 || finished > 3 {
		t.Errorf("%d runs were made after %q, %v", finished, made, err)
	}
}

func TestSubmissionThatNobodyElseHoldsSaysSo(t *testing.T) {
	t.Parallel()
	c, operator := gathered(t, "a", "b")
	note := ""
	options := driver.SubmitOptions{Note: func(text string) { note = text }}
	id, err := operator.Submit(t.Context(), load(t, halfSeconds), options)
	want := "submission " + id + " does not survive process a: that takes three processes, and the cluster has 2"
	if err != nil || note != want {
		t.Errorf("%v, told %q, want %q", err, note, want)
	}
	c.end(operator, id)
}
