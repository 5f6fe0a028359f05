package cli_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// plain is a plan that nothing is said about; each test changes it.
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
		want string // empty for no warning
	}{
		{},
		{set: []string{"train.optimizer.rate=0"}, want: "optimizer.rate: the rate is 0: no step changes"},
		{set: []string{"train.optimizer={kind: adam, rate: 0}"}, want: "rate: the rate is 0: no step"},
		{set: []string{"train.optimizer.rate={kind: cosine, first: 0, steps: 9}"}, want: "rate: the rate is 0: no step"},
		{set: []string{"train.optimizer.rate={kind: cosine, first: 0, last: 1, steps: 9}"}},
		{set: []string{"train.optimizer.rate={kind: warmup, steps: 90, then: 0.1}"}},
		{set: []string{"architecture={kind: federated, roles: {server: added}, outer: {kind: sgd, rate: 0}}"},
			want: "the rate is 0: nothing that is learnt"},
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

func TestMessagesSayWhatIsMeantInstead(t *testing.T) {
	for _, x := range []struct{ old, by, want string }{
		{"kind: gossip", "kind: gossip, every: 10ms", `"10ms" is no interval of training; write 100, 100 steps, 0.1 epochs`},
		{"rate: 0.1}", "rate: {kind: step, first: 1, every: 10ms}}", `"10ms" is no interval of training`},
		{"delay: 1ms", "rate: 10 MB", "did you mean MB/s?"},
		{"delay: 1ms", "rate: 10 Mb", "did you mean Mbit/s?"},
		{"delay: 1ms", "rate: 10 Mbps", "did you mean Mbit/s?"},
		{"delay: 1ms", "rate: 10 MBps", "did you mean MB/s?"},
		{"delay: 1ms", "rate: 10 mbit", "did you mean Mbit/s?"},
		{"delay: 1ms", "rate: 10 kbytes/s", "did you mean kB/s?"},
		{"step: 10ms", "speed: 10 Gflops", "did you mean GFLOP/s?"},
		{"step: 10ms", "speed: 10 GFLOP", "did you mean GFLOP/s?"},
		{"rate: 0.1", "rate: -0.1", "-0.1 is no rate; accepted is a finite number of 0 or more, such as 0.1"},
		{"nodes: [{name: w, count: 3, compute: {step: 10ms}}]\n", "", "missing: nodes; such as nodes: [{name: w, count: 4}]"},
		{"model: {kind: mlp, layers: [93, 5]}\n", "", "missing: model; such as model: {kind: mlp, layers: [784, 32, 10]}"},
		{"{default: {delay: 1ms}}", "{delay: 1ms}", "did you mean network.default.delay?"},
		{"stop: {time: 1s}", "stop: {time: 1s}\nsweep: {network.delay: [1ms, 2ms]}", "did you mean network.default.delay?"},
		{"stop: {time: 1s}", "stop: {time: 1s}\nepochs: 3", "did you mean stop.epochs?"},
		{"architecture: {kind: gossip}", "architecture: gossip", "write {kind: gossip}"},
	} {
		enter(t, edit(t, plain, x.old, x.by))
		code, _, errs := gradwire(t, "plan", "check", "plan.yaml")
		if code != cli.ExitInput || !strings.Contains(errs, x.want) {
			t.Errorf("%s: code %d, want %q: %s", x.by, code, x.want, errs)
		}
	}
}

func TestContinueSaysThatThereIsNoRecord(t *testing.T) {
	enter(t, plain)
	code, _, errs := gradwire(t, "run", "--continue", "none")
	if code != cli.ExitInput || !strings.Contains(errs, "--continue none: there is no record in this folder") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestProgressNamesRunsOfTune(t *testing.T) {
	enter(t, edit(t, plain, "samples: 1500", "samples: 1500, validation: 10%")+
		"repeats: 2\ntune: {train.optimizer.rate: [0.1, 0.2, 0.4]}\n")
	code, out, errs := gradwire(t, "plan", "check", "plan.yaml")
	if code != cli.ExitDone || !strings.Contains(out, "2 runs and 3 to tune") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	code, _, errs = gradwire(t, "run", "plan.yaml", "--out", "out")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(errs, "0 of 2 runs, ") || !strings.Contains(errs, " of 3 to tune, ") {
		t.Errorf("told: %s", errs)
	}
	if strings.Contains(strings.ReplaceAll(errs, "2 of 2 runs, 100 %", ""), "100 %") {
		t.Errorf("100 %% is told before the end: %s", errs)
	}
}

func TestDrillCountsFaultsThatTheRunDidNotMeet(t *testing.T) {
	late := edit(t, drilled, "node: w1, do: restart, for: 300ms}]",
		"node: w1, do: pause, for: 100ms}, {at: 600ms, node: w2, do: pause, for: 50ms}, "+
			"{at: 1900ms, node: w1, do: pause, for: 10ms}, {at: 1950ms, node: w2, do: pause, for: 10ms}]")
	enter(t, edit(t, late, "stop: {time: 2s}", "stop: {time: 2s, steps: 60}"))
	code, out, errs := gradwire(t, "drill", "plan.yaml", "--out", "drill")
	expectCode(t, cli.ExitDone, code, errs)
	for _, part := range []string{
		"A fault's costs are counted until the next fault", "Not listed: 2 more faults, due after the end of the run at ",
		"\nrecord in ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if strings.Contains(out, "1.9 s: ") {
		t.Errorf("a fault after the end is listed:\n%s", out)
	}
	if !strings.Contains(errs, "5 of 5 runs, 100 %") {
		t.Errorf("told: %s", errs)
	}
}
