package cli_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
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
