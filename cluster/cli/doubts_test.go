package cli_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// plain is a plan without warnings, which each test changes.
const plain = `name: plain
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: gossip}
nodes: [{name: w, count: 3, compute: {step: 10ms}}]
network: {default: {delay: 1ms}}
evaluate: {every: 200ms}
stop: {time: 1s}
`

func TestPlanCheckWarnsOfWhatMakesRunsPointless(t *testing.T) {
	enter(t, plain)
	for _, x := range []struct {
		set  []string
		want string // part of the warning; empty for none
	}{
		{},
		{set: []string{"train.optimizer.rate=0"}, want: "optimizer.rate: the rate is 0: no step changes"},
		{set: []string{"train.optimizer={kind: adam, rate: 0}"}, want: "rate: the rate is 0: no step"},
		{set: []string{"train.optimizer.rate={kind: cosine, first: 0, steps: 9}"}, want: "rate: the rate is 0: no step"},
		{set: []string{"train.optimizer.rate={kind: cosine, first: 0, last: 1, steps: 9}"}},
		{set: []string{"train.optimizer.rate={kind: warmup, steps: 90, then: 0.1}"}},
		{set: []string{"architecture={kind: federated, roles: {server: added}, outer: {kind: sgd, rate: 0}}"},
			want: "the rate is 0: no update"},
		{set: []string{"train.batch=4096"}, want: "train.batch is 4096, and 3 of 3 workers have fewer samples (w1 has "},
		{set: []string{"evaluate.every=1 epoch", "stop={epochs: 0.1}"},
			want: "evaluate.every: models are evaluated every 1 epoch, and the run ends after 0.1 epochs"},
		{set: []string{"evaluate.every=100 steps", "stop={steps: 50}"}, want: "every 100 steps, and the run ends after 50"},
		{set: []string{"evaluate.every=5s"}, want: "every 5s, and the run ends after 1s"},
		{set: []string{"evaluate.every=1s"}},
		{set: []string{"stop.target=100%"}, want: "stop.target: a target of 100 % is met by a model that makes no"},
		{set: []string{"evaluate.target=100%"}, want: "evaluate.target: a target of 100 % is met"},
		{set: []string{"stop.target=99%"}},
		{set: []string{"architecture={kind: parameter-server}"},
			want: "no node has the role server, so the first has it and trains nothing: w1; roles: {server: w1}"},
		{set: []string{"architecture={kind: federated}"}, want: "no node has the role server"},
		{set: []string{"architecture={kind: parameter-server, roles: {server: w1}}"}},
		{set: []string{"architecture={kind: parameter-server, roles: {server: added}}"}},
	} {
		args := []string{"plan", "check", "plan.yaml"}
		for _, set := range x.set {
			args = append(args, "--set", set)
		}
		code, _, errs := gradwire(t, args...)
		expectCode(t, cli.ExitDone, code, errs)
		warned := strings.Contains(errs, "warning: ")
		if x.want == "" && errs != "" || x.want != "" && !warned || !strings.Contains(errs, x.want) {
			t.Errorf("%v: want %q: %s", x.set, x.want, errs)
		}
	}
}
