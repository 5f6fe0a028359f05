package catalog

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan"
)

func TestThreadsAreRefusedWhereTheyHaveNothingToShare(t *testing.T) {
	const (
		sgd      = "{kind: sgd, rate: 0.1}"
		momentum = "{kind: momentum, rate: 0.1}"
		threads  = "[{name: a}, {name: b, compute: {step: 5ms, threads: 4}}]"
		place    = "plan.yaml:6:60: nodes[1].compute.threads: node b has 4 threads: "
	)
	for _, x := range []struct{ architecture, nodes, optimizer, want string }{
		{"{kind: parameter-server, every: 4}", threads, sgd, ""},
		{"{kind: parameter-server, every: 2}", threads, "{kind: sgd, rate: 0.1, weight-decay: 0.1}", ""},
		{"{kind: all-reduce, reduce: models, every: 8}", threads, sgd, ""},
		{"{kind: local}", threads, sgd, ""},
		{"{kind: gossip}", "[{name: a}, {name: b, compute: {threads: 1}}]", momentum, ""},
		{"{kind: parameter-server}", threads, sgd, place + "with every: 1 a worker pushes each gradient, so threads " +
			"have no copy to share; every: 2 or more has one; accepted is 1"},
		{"{kind: all-reduce, every: 8}", threads, sgd, place + "with reduce: gradients the model stays as it is"},
		{"{kind: all-reduce, reduce: models}", threads, sgd, place + "with every: 1 models are averaged after each"},
		{"{kind: gossip, every: 4}", threads, sgd, place + "in this architecture the model is exchanged or merged"},
		{"{kind: d-psgd}", threads, sgd, place + "in this architecture"},
		{"{kind: ad-psgd}", threads, sgd, place + "in this architecture"},
		{"{kind: local}", threads, momentum, place + "threads that share a model need an optimizer that remembers " +
			"nothing of earlier gradients: sgd without momentum; accepted is 1"},
		{"{kind: parameter-server, every: 4}", "[{name: a, compute: {threads: 2}}, {name: b}]", sgd,
			"nodes[0].compute.threads: node a has 2 threads: its role server makes no steps; accepted is 1"},
	} {
		text := "data: {set: synthetic-traffic, split: {kind: iid}}\nmodel: {kind: mlp, layers: [93, 5]}\n" +
			"stop: {epochs: 1}\ntrain: {optimizer: " + x.optimizer + "}\narchitecture: " + x.architecture +
			"\nnodes: " + x.nodes + "\n"
		p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
		if err == nil {
			_, err = Default().Read(p)
		}
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s of %s: %v", x.architecture, x.nodes, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s of %s: got %v\nwant %s", x.architecture, x.nodes, err, x.want)
		}
	}
}
