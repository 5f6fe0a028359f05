package cli_test

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/nn/kernel"
)

func TestMistypedKeysAndWordsOfAPlanAreAnsweredWithTheLikelyOne(t *testing.T) {
	enter(t, small)
	for assignment, meant := range map[string]string{
		"trian.batch=5":                                               "train",
		"train.bacth=5":                                               "batch",
		"nodes.naer.compute.step=5ms":                                 "near",
		"nodes.near.compute.stpe=5ms":                                 "step",
		"network.topology=rnig":                                       "ring",
		"network.topology.kind=rnig":                                  "ring",
		"network.default.delay={kind: unifrom, range: 1s..2s}":        "uniform",
		"model.kind=mpl":                                              "mlp",
		"model.activation=rleu":                                       "relu",
		"data.set=synthetic-traffik":                                  "synthetic-traffic",
		"data.split={kind: shard}":                                    "shards",
		"data.scale=min-mx":                                           "min-max",
		"architecture.kind=gosip":                                     "gossip",
		"architecture.scale=men":                                      "mean",
		"train.optimizer.kind=sdg":                                    "sgd",
		"train.optimizer.rate={kind: cosin, first: 1, steps: 3}":      "cosine",
		"nodes.near.role=wroker":                                      "worker",
		"network.links.server-naer.delay=5ms":                         "server-near",
		"network.links=[{between: [server, naer]}]":                   "near",
		"schedule=[{at: 1s, node: naer, do: crash}]":                  "near",
		"schedule=[{at: 1s, node: near, do: crahs}]":                  "crash",
		"schedule=[{at: 1s, link: [server, near], do: dwon}]":         "down",
		"record=event":                                                "events",
		"network.default.loss={probability: 1%, kind: dorp}":          "drop",
		"network.default.rate=5 mbit/s":                               "Mbit/s",
		"model={kind: network, input: [1, 28, 28], layers: [flaten]}": "flatten",
		"sweep={trian.batch: [1]}":                                    "train",
		"sweep={nodes.naer.count: [1]}":                               "near",
	} {
		for _, command := range []string{"plan check", "run"} {
			code, _, errs := gradwire(t, append(strings.Fields(command), "plan.yaml", "--set", assignment)...)
			if want := "did you mean " + meant + "?"; code != cli.ExitInput || !strings.Contains(errs, want) {
				t.Errorf("%s --set %s: exit code %d, %q is not in %s", command, assignment, code, want, errs)
			}
		}
	}
}

func TestMistypedCommandsAndFlagsAreAnsweredWithTheLikelyOne(t *testing.T) {
	enter(t, small)
	for line, meant := range map[string]string{
		"rnu plan.yaml":                 "run",
		"sumbit plan.yaml":              "submit",
		"plan shwo plan.yaml":           "show",
		"plan chekc plan.yaml":          "check",
		"list architecture":             "architectures",
		"list architectures gosip":      "gossip",
		"data lst":                      "list",
		"data get mnits":                "mnist",
		"data check fashion-mist":       "fashion-mnist",
		"completion bsah":               "bash",
		"identity isue ca":              "issue",
		"run plan.yaml --repeat 3":      "--repeats",
		"run plan.yaml --clok real":     "--clock",
		"run plan.yaml --clock rael":    "real",
		"run plan.yaml --format jsno":   "json",
		"plan new --architectur gossip": "--architecture",
		"plan new --architecture gosip": "gossip",
		"plan new --data mnits":         "mnist",
		"submit plan.yaml --detatch":    "--detach",
		"nodes --format txt":            "text",
		"diff a b --formt json":         "--format",
	} {
		code, _, errs := gradwire(t, strings.Fields(line)...)
		if want := "did you mean " + meant + "?"; code != cli.ExitInput || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %q is not in %s", line, code, want, errs)
		}
	}
}

// Each line is what a user of Ray, kubectl or Flower types, with the command that does it here.
func TestCommandsOfOtherSystemsAreAnsweredWithTheOneThatDoesItHere(t *testing.T) {
	root := asGradwire(catalog.Default()).Commands(io.Discard, io.Discard)
	quoted := regexp.MustCompile(`'gradwire ([a-z -]+)[A-Z ]*'`)
	for line, want := range map[string]string{
		"start --head --num-cpus=4":           "gradwire up",
		"start":                               "gradwire node",
		"job submit --working-dir . -- x":     "gradwire submit",
		"job list":                            "gradwire submissions",
		"job --help-me":                       "gradwire submissions",
		"ps -a":                               "gradwire submissions",
		"top":                                 "gradwire status",
		"dashboard":                           "gradwire report",
		"init":                                "gradwire plan new",
		"get nodes -o wide":                   "gradwire nodes",
		"get pods":                            "gradwire actors",
		"log 1a2b":                            "gradwire logs",
		"describe pod x":                      "gradwire status",
		"apply -f plan.yaml":                  "gradwire submit",
		"delete 1a2b":                         "gradwire remove",
		"serve plan.yaml":                     "gradwire node",
		"supernode --insecure --superlink=1":  "gradwire node",
		"version":                             "gradwire --version",
		"list nodes":                          "gradwire nodes",
		"plan validate plan.yaml --strict":    "gradwire plan check",
		"data download mnist":                 "gradwire data get",
		"identity create --name a":            "gradwire identity issue",
		"explain gossip.exchange":             "gradwire list KIND NAME",
		"down":                                "gradwire up",
		"validate plan.yaml --format=junit":   "gradwire plan check",
		"cluster-info dump --namespaces=kube": "gradwire nodes",
	} {
		code, out, errs := gradwire(t, strings.Fields(line)...)
		if code != cli.ExitInput || out != "" || !strings.Contains(errs, "'"+want) ||
			strings.Contains(errs, "did you") || !strings.Contains(errs, "\nSee 'gradwire") {
			t.Errorf("%s: exit code %d, want %q in %s", line, code, want, errs)
		}
		for _, named := range quoted.FindAllStringSubmatch(errs, -1) {
			words := strings.Fields(named[1])
			if cmd, _, err := root.Find(words); words[0][0] != '-' && (err != nil || !cmd.HasParent()) {
				t.Errorf("%s: there is no command gradwire %s", line, named[1])
			}
		}
	}
	var out, errs bytes.Buffer
	mine := cli.Program{Name: "mine", Catalog: catalog.Default()}
	_ = mine.Run(context.Background(), []string{"version"}, &out, &errs)
	if !strings.Contains(errs.String(), "'mine --version'") {
		t.Errorf("a program of another name is called %s", errs.String())
	}
}

func TestTheVersionNamesTheBuild(t *testing.T) {
	code, out, errs := gradwire(t, "--version")
	expectCode(t, cli.ExitDone, code, errs)
	b := record.ReadBuild(kernel.Name())
	for _, want := range []string{
		"gradwire " + b.Version, "commit " + b.Commit, b.Go, b.GOOS + "/" + b.GOARCH, "kernels " + b.Kernel,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
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

func TestFlagsWithBadValuesSayWhatIsAccepted(t *testing.T) {
	enter(t, small)
	for _, row := range [][]string{
		{"accepted is a whole number", "run", "plan.yaml", "--repeats", "abc"},
		{"accepted is a whole number", "run", "plan.yaml", "--jobs=1.5"},
		{"accepted is a whole number", "up", "--nodes", "x"},
		{"accepted is a duration such as 5s", "node", "--node-timeout", "5"},
		{"accepted is true or false", "report", "results", "--explain=maybe"},
		{"a whole number from 0", "run", "plan.yaml", "--seed", "x"},
		{"s3://BUCKET/PATH", "run", "plan.yaml", "--out", "s3:/bucket/path"},
	} {
		code, _, errs := gradwireHere(row[1:]...)
		if code != cli.ExitInput || !strings.Contains(errs, row[0]) || strings.Contains(errs, "strconv") {
			t.Errorf("%q: code %d, %s", row[1:], code, errs)
		}
	}
}
