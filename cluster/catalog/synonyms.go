package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// synonyms lists names of kinds in other programs and papers: the family of the kind, the text to write in
// a plan instead, and the names, folded by [syntax.Fold].
var synonyms = []struct{ what, write, names string }{
	{"architecture", "{kind: parameter-server}", "ps centralized"},
	{"architecture", "{kind: parameter-server, consistency: asp}", "async asgd downpour hogwild"},
	{"architecture", "{kind: parameter-server, consistency: bsp}", "sync"},
	{"architecture", "{kind: in-network}", "switchml"},
	{"architecture", "{kind: all-reduce, algorithm: ring}", "horovod"},
	{"architecture", "{kind: all-reduce}", "ddp fsdp nccl gloo mpi"},
	{"architecture", "{kind: all-reduce, algorithm: all-to-all}", "allgather"},
	{"architecture", "{kind: all-reduce, algorithm: butterfly}", "halvingdoubling"},
	{"architecture", "{kind: all-reduce, preset: local-sgd}", "localupdate postlocalsgd easgd"},
	{"architecture", "{kind: all-reduce, preset: diloco}", "opendiloco"},
	{"architecture", "{kind: federated}", "fl"},
	{"architecture", "{kind: federated, preset: fedavg}", "fedsgd"},
	{"architecture", "{kind: federated, preset: fedadam}", "fedopt"},
	{"architecture", "{kind: federated, outer: {kind: adaptive, second: adagrad}}", "fedadagrad"},
	{"architecture", "{kind: d-psgd}", "dsgd decentralized"},
	{"architecture", "{kind: ad-psgd}", "swarm"},
	{"architecture", "{kind: d-psgd, choco: {compress: [{kind: top-k, share: 1%}]}}", "choco chocosgd"},
	{"architecture", "{kind: gossip}", "p2p peertopeer"},
	{"architecture", "{kind: gossip, exchange: push}", "gosgd"},
	{"architecture", "{kind: local}", "none standalone single"},
	{"consistency", "asp", "async asynchronous"},
	{"consistency", "bsp", "sync synchronous bulksynchronous"},
	{"consistency", "{kind: ssp, bound: 3}", "stale stalesynchronous"},
	{"model", "{kind: lenet-5}", "lenet"},
	{"model", "{kind: small-cnn}", "cnn convnet"},
	{"model", "{kind: big-cnn}", "resnet vgg alexnet"},
	{"model", "{kind: mlp, layers: [2, 2]}", "logistic logisticregression softmax perceptron"},
	{"model", "{kind: mlp, layers: [2, 8, 2]}", "dnn fc nn"},
	{"model", "{kind: linear, inputs: 2}", "svm"},
	{"model", "{kind: linear, inputs: 2, loss: squared}", "linearregression adaline"},
	{"model", "{kind: network, input: [1, 28, 28], layers: [flatten, {kind: dense, outputs: 10}]}", "sequential"},
	{"layer", "{kind: conv2d, channels: 3, kernel: 5}", "conv convolution"},
	{"layer", "{kind: dense, outputs: 10}", "linear fc"},
	{"layer", "max-pool", "maxpool2d"},
	{"layer", "average-pool", "avgpool avgpool2d meanpool"},
	{"optimizer", "{kind: momentum}", "nesterov nag sgdm heavyball"},
	{"optimizer", "{kind: adam}", "adamw rmsprop lion adamax nadam"},
	{"optimizer", "{kind: sgd}", "gd"},
	{"rate schedule", "{kind: cosine, first: 0.1, steps: 1000}", "cosineannealing cosineannealinglr cosinedecay"},
	{"rate schedule", "{kind: step, first: 0.1, every: 100}", "steplr multistep stepdecay"},
	{"rate schedule", "{kind: exponential, first: 0.1, decay: 0.99}", "exponentiallr exp exponentialdecay"},
	{"rate schedule", "{kind: inverse, first: 0.1, half: 1000}", "inversetime 1/t"},
	{"rate schedule", "{kind: warmup, steps: 10, then: 0.1}", "linear linearwarmup"},
	{"split", "{kind: dirichlet, alpha: 0.5}", "lda noniid latentdirichlet"},
	{"split", "{kind: iid}", "random uniform even shuffle"},
	{"split", "{kind: shards}", "pathological sortandpartition"},
	{"split", "{kind: column, column: site}", "natural"},
	{"data set", "{set: nsl-kdd}", "kdd"},
	{"data set", "{set: fashion-mnist}", "fmnist"},
	{"data set", "{set: a9a}", "adult"},
	{"data set", "{set: libsvm, file: a.txt}", "svmlight"},
	{"data set", "{set: csv, file: t.csv}", "table"},
	{"data set", "{set: csv, file: t.tsv, separator: tab}", "tsv"},
	{"data set", "{set: npy, x: x.npy, y: y.npy}", "numpy"},
	{"data set", "{set: synthetic-digits}", "digits synthetic random"},
	{"data set", "{set: synthetic-traffic}", "traffic"},
	{"compressor", "float16", "fp16 half"},
	{"compressor", "bfloat16", "bf16"},
	{"compressor", "ternary", "terngrad"},
	{"compressor", "sign", "signsgd"},
	{"compressor", "quantise", "quantize quantization"},
	{"compressor", "{kind: top-k, share: 1%}", "dgc sparsify"},
	{"compressor", "{kind: random-k, share: 1%}", "randk"},
	{"compressor", "int8", "8bit"},
	{"compressor", "int4", "4bit"},
	{"delay", "{kind: constant, delay: 5ms}", "fixed"},
	{"delay", "{kind: normal, mean: 10ms, std: 2ms}", "gaussian jitter"},
	{"delay", "{kind: trace, file: trace.csv}", "file"},
	{"link rate", "{kind: trace, file: trace.csv}", "file"},
	{"link rate", "{kind: mobile, line: verizon-lte-down}", "cellular"},
	{"topology", "complete", "full fullyconnected clique"},
	{"topology", "grid", "mesh"},
	{"topology", "small-world", "wattsstrogatz"},
	{"topology", "{kind: random-regular, degree: 4}", "expander"},
	{"topology", "ring", "circle"},
	{"topology", "{kind: erdos-renyi, probability: 30%}", "random"},
	{"topology", "star", "hub"},
}

// closest lists the families with synonyms for kinds that Gradwire lacks: there a hint names the closest
// kind.
var closest = []string{"model", "optimizer", "data set"}

// unknown returns the error about a word that names no kind. It suggests the kind whose name differs
// only in spelling, else a preset, a synonym or a setting's value, else the most similar name.
func (ks *Kinds[T]) unknown(c *Catalog, word *syntax.Node, key string) error {
	err := syntax.UnknownWord(word, ks.what, ks.names())
	folded := syntax.Fold(word.Text)
	if slices.ContainsFunc(ks.names(), func(name string) bool { return syntax.Fold(name) == folded }) {
		return err
	}
	if write := ks.instead(c, folded, key); write != "" {
		return err.Hint("; " + write)
	}
	return err
}

// instead names the text to write instead of a folded name; empty if the name is unknown.
func (ks *Kinds[T]) instead(c *Catalog, folded, key string) string {
	is := func(other string) bool { return syntax.Fold(other) == folded }
	for _, k := range ks.list {
		for preset := range k.presets {
			if is(preset) {
				return fmt.Sprintf("it is a preset of %s: write %s", k.Name, written(key, k.Name, "preset", preset))
			}
		}
	}
	for _, s := range synonyms {
		switch {
		case s.what != ks.what || !slices.Contains(strings.Fields(s.names), folded):
		case slices.Contains(closest, ks.what):
			return "the closest is " + s.write
		default:
			return "write " + s.write
		}
	}
	for _, k := range ks.list {
		for _, setting := range k.Keys() {
			words := setting.Words
			if setting.Name == c.Consistencies.what {
				words = c.Consistencies.names()
			}
			if i := slices.IndexFunc(words, is); i >= 0 && len(words) > 1 {
				return "write " + written(key, k.Name, setting.Name, words[i])
			}
		}
	}
	return ""
}

// written returns a section with the kind and one setting, in flow style.
func written(key, kind, setting, value string) string {
	n := named(key, kind)
	n.Fields = append(n.Fields, syntax.Entry(setting, syntax.NewScalar(value)))
	return n.Flow()
}

// explain adds hints to errors about unknown keys of a section: the other kinds that have the key.
func (ks *Kinds[T]) explain(given *syntax.Node, kind, key string, err error) error {
	errs := slices.Clone(syntax.Flatten(given, err))
	for i, e := range errs {
		for _, f := range given.Fields {
			owners := ks.owners(kind, f.Key)
			if !e.Lacks(f) || owners == nil {
				continue
			}
			has := owners[0] + " has it: write " + written(key, owners[0], f.Key, f.Value.Flow())
			if len(owners) > 1 {
				has = field.List(owners) + " have it"
			}
			errs[i] = e.Hint(" of " + kind + "; " + has)
		}
	}
	return syntax.Join(errs)
}

// owners returns the names of the other kinds that have a setting.
func (ks *Kinds[T]) owners(kind, key string) (names []string) {
	for _, k := range ks.list {
		if k.Name != kind && slices.ContainsFunc(k.Keys(), func(s Key) bool { return s.Name == key }) {
			names = append(names, k.Name)
		}
	}
	return names
}

// completed returns an example for a section that lacks its kind: the section with the first kind that has
// all its settings; empty if no kind has.
func (ks *Kinds[T]) completed(section *syntax.Node, key string) string {
	for _, k := range ks.list {
		has := func(f syntax.Field) bool {
			return slices.ContainsFunc(k.Keys(), func(s Key) bool { return s.Name == f.Key })
		}
		lacks := func(f syntax.Field) bool { return !has(f) }
		if len(section.Fields) > 0 && !slices.ContainsFunc(section.Fields, lacks) {
			n := named(key, k.Name)
			n.Fields = append(n.Fields, section.Fields...)
			return ", such as " + n.Flow()
		}
	}
	return ""
}
