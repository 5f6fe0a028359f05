package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// synonyms are what the field calls things that plans write otherwise: by the sort of thing and the
// name, in lower case without dashes, what to write instead in flow style.
var synonyms = map[string]map[string]string{
	"architecture": {
		"ps":              "{kind: parameter-server}",
		"centralized":     "{kind: parameter-server}",
		"async":           "{kind: parameter-server, consistency: asp}",
		"asgd":            "{kind: parameter-server, consistency: asp}",
		"downpour":        "{kind: parameter-server, consistency: asp}",
		"hogwild":         "{kind: parameter-server, consistency: asp}",
		"sync":            "{kind: parameter-server, consistency: bsp}",
		"switchml":        "{kind: in-network}",
		"horovod":         "{kind: all-reduce, algorithm: ring}",
		"ddp":             "{kind: all-reduce}",
		"fsdp":            "{kind: all-reduce}",
		"nccl":            "{kind: all-reduce}",
		"gloo":            "{kind: all-reduce}",
		"mpi":             "{kind: all-reduce}",
		"allgather":       "{kind: all-reduce, algorithm: all-to-all}",
		"halvingdoubling": "{kind: all-reduce, algorithm: butterfly}",
		"localupdate":     "{kind: all-reduce, preset: local-sgd}",
		"postlocalsgd":    "{kind: all-reduce, preset: local-sgd}",
		"easgd":           "{kind: all-reduce, preset: local-sgd}",
		"opendiloco":      "{kind: all-reduce, preset: diloco}",
		"fl":              "{kind: federated}",
		"fedsgd":          "{kind: federated, preset: fedavg}",
		"fedopt":          "{kind: federated, preset: fedadam}",
		"fedadagrad":      "{kind: federated, outer: {kind: adaptive, second: adagrad}}",
		"dsgd":            "{kind: d-psgd}",
		"decentralized":   "{kind: d-psgd}",
		"swarm":           "{kind: ad-psgd}",
		"choco":           "{kind: d-psgd, choco: {compress: [{kind: top-k, share: 1%}]}}",
		"chocosgd":        "{kind: d-psgd, choco: {compress: [{kind: top-k, share: 1%}]}}",
		"p2p":             "{kind: gossip}",
		"peertopeer":      "{kind: gossip}",
		"gosgd":           "{kind: gossip, exchange: push}",
		"none":            "{kind: local}",
		"standalone":      "{kind: local}",
		"single":          "{kind: local}",
	},
	"consistency": {
		"async": "asp", "asynchronous": "asp", "sync": "bsp", "synchronous": "bsp", "bulksynchronous": "bsp",
		"stale": "{kind: ssp, bound: 3}", "stalesynchronous": "{kind: ssp, bound: 3}",
	},
	"model": {
		"lenet": "{kind: lenet-5}", "cnn": "{kind: small-cnn}", "convnet": "{kind: small-cnn}",
		"resnet": "{kind: big-cnn}", "vgg": "{kind: big-cnn}", "alexnet": "{kind: big-cnn}",
		"logistic": "{kind: mlp, layers: [2, 2]}", "logisticregression": "{kind: mlp, layers: [2, 2]}",
		"softmax": "{kind: mlp, layers: [2, 2]}", "dnn": "{kind: mlp, layers: [2, 8, 2]}",
		"fc": "{kind: mlp, layers: [2, 8, 2]}", "nn": "{kind: mlp, layers: [2, 8, 2]}",
		"perceptron": "{kind: mlp, layers: [2, 2]}", "svm": "{kind: linear, inputs: 2}",
		"linearregression": "{kind: linear, inputs: 2, loss: squared}",
		"adaline":          "{kind: linear, inputs: 2, loss: squared}",
		"sequential":       "{kind: network, input: [1, 28, 28], layers: [flatten, {kind: dense, outputs: 10}]}",
	},
	"layer": {
		"conv": "{kind: conv2d, channels: 3, kernel: 5}", "convolution": "{kind: conv2d, channels: 3, kernel: 5}",
		"linear": "{kind: dense, outputs: 10}", "fc": "{kind: dense, outputs: 10}", "maxpool2d": "max-pool",
		"avgpool": "average-pool", "avgpool2d": "average-pool", "meanpool": "average-pool",
	},
	"optimizer": {
		"nesterov": "{kind: momentum}", "nag": "{kind: momentum}", "sgdm": "{kind: momentum}",
		"heavyball": "{kind: momentum}", "adamw": "{kind: adam}", "rmsprop": "{kind: adam}", "lion": "{kind: adam}",
		"adamax": "{kind: adam}", "nadam": "{kind: adam}", "gd": "{kind: sgd}",
	},
	"rate schedule": {
		"cosineannealing":   "{kind: cosine, first: 0.1, steps: 1000}",
		"cosineannealinglr": "{kind: cosine, first: 0.1, steps: 1000}",
		"cosinedecay":       "{kind: cosine, first: 0.1, steps: 1000}",
		"steplr":            "{kind: step, first: 0.1, every: 100}",
		"multistep":         "{kind: step, first: 0.1, every: 100}",
		"stepdecay":         "{kind: step, first: 0.1, every: 100}",
		"exponentiallr":     "{kind: exponential, first: 0.1, decay: 0.99}",
		"exp":               "{kind: exponential, first: 0.1, decay: 0.99}",
		"exponentialdecay":  "{kind: exponential, first: 0.1, decay: 0.99}",
		"inversetime":       "{kind: inverse, first: 0.1, half: 1000}",
		"1/t":               "{kind: inverse, first: 0.1, half: 1000}",
		"linear":            "{kind: warmup, steps: 10, then: 0.1}",
		"linearwarmup":      "{kind: warmup, steps: 10, then: 0.1}",
	},
	"split": {
		"lda": "{kind: dirichlet, alpha: 0.5}", "noniid": "{kind: dirichlet, alpha: 0.5}",
		"latentdirichlet": "{kind: dirichlet, alpha: 0.5}", "random": "{kind: iid}", "uniform": "{kind: iid}",
		"even": "{kind: iid}", "shuffle": "{kind: iid}", "pathological": "{kind: shards}",
		"natural": "{kind: column, column: site}", "sortandpartition": "{kind: shards}",
	},
	"data set": {
		"kdd":       "{set: nsl-kdd}",
		"fmnist":    "{set: fashion-mnist}",
		"adult":     "{set: a9a}",
		"svmlight":  "{set: libsvm, file: a.txt}",
		"table":     "{set: csv, file: t.csv}",
		"tsv":       "{set: csv, file: t.tsv, separator: tab}",
		"numpy":     "{set: npy, x: x.npy, y: y.npy}",
		"digits":    "{set: synthetic-digits}",
		"traffic":   "{set: synthetic-traffic}",
		"synthetic": "{set: synthetic-digits}",
		"random":    "{set: synthetic-digits}",
	},
	"compressor": {
		"fp16": "float16", "half": "float16", "bf16": "bfloat16", "terngrad": "ternary", "signsgd": "sign",
		"quantize": "quantise", "quantization": "quantise", "dgc": "{kind: top-k, share: 1%}",
		"sparsify": "{kind: top-k, share: 1%}", "randk": "{kind: random-k, share: 1%}", "8bit": "int8", "4bit": "int4",
	},
	"delay": {
		"fixed": "{kind: constant, delay: 5ms}", "gaussian": "{kind: normal, mean: 10ms, std: 2ms}",
		"jitter": "{kind: normal, mean: 10ms, std: 2ms}",
		"file":   "{kind: trace, file: trace.csv}",
	},
	"link rate": {"file": "{kind: trace, file: trace.csv}", "cellular": "{kind: mobile, line: verizon-lte-down}"},
	"topology": {
		"full": "complete", "fullyconnected": "complete", "clique": "complete", "mesh": "grid",
		"wattsstrogatz": "small-world", "expander": "{kind: random-regular, degree: 4}", "circle": "ring",
		"random": "{kind: erdos-renyi, probability: 30%}", "hub": "star",
	},
}

// closest are the sorts of which some synonyms name what is not there, and what is nearest to that.
var closest = []string{"model", "optimizer", "data set"}

// unknown is the error about a word that names no kind, with what is meant by it, as far as that is
// known: a kind whose name is nearly the same, a preset, a synonym, or a setting's value.
func (ks *Kinds[T]) unknown(c *Catalog, word *syntax.Node, key string) error {
	plain := syntax.UnknownWord(word, ks.what, ks.names())
	if word.Kind != syntax.Scalar {
		return plain
	}
	folded := syntax.Fold(word.Text)
	if slices.ContainsFunc(ks.names(), func(name string) bool { return syntax.Fold(name) == folded }) {
		return plain
	}
	if write := ks.meant(c, folded, key); write != "" {
		return syntax.Errorf(word, "unknown %s %s; %s (accepted: %s)", ks.what, syntax.Quote(word.Text), write,
			strings.Join(ks.names(), ", "))
	}
	return plain
}

// meant says what to write in the place of a folded name; empty if that is not known.
func (ks *Kinds[T]) meant(c *Catalog, folded, key string) string {
	is := func(other string) bool { return syntax.Fold(other) == folded }
	for _, k := range ks.list {
		for preset := range k.presets {
			if is(preset) {
				return fmt.Sprintf("it is a preset of %s: write %s", k.Name, written(key, k.Name, "preset", preset))
			}
		}
	}
	if write := synonyms[ks.what][folded]; write != "" {
		if slices.Contains(closest, ks.what) {
			return "the closest is " + write
		}
		return "write " + write
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

// written is a section with the kind and one of its settings, in flow style.
func written(key, kind, setting, value string) string {
	n := named(key, kind)
	n.Fields = append(n.Fields, syntax.Entry(setting, syntax.NewScalar(value)))
	return n.Flow()
}

// explain adds to errors about unknown keys of a section which other kinds have these.
func (ks *Kinds[T]) explain(given *syntax.Node, kind, key string, err error) error {
	errs := slices.Clone(syntax.Flatten(given, err))
	for i, e := range errs {
		for _, f := range given.Fields {
			unknown := "unknown key " + syntax.Quote(f.Key)
			rest, is := strings.CutPrefix(e.Problem, unknown+" (")
			owners := ks.owners(kind, f.Key)
			if !is || e.Path != f.Value.Path() || owners == nil {
				continue
			}
			has := owners[0] + " has it: write " + written(key, owners[0], f.Key, f.Value.Flow())
			if len(owners) > 1 {
				has = field.List(owners) + " have it"
			}
			told := *e
			told.Problem = unknown + " of " + kind + "; " + has + " (" + rest
			errs[i] = &told
		}
	}
	return syntax.Join(errs)
}

// owners are the other kinds that have a setting.
func (ks *Kinds[T]) owners(kind, key string) (names []string) {
	for _, k := range ks.list {
		if k.Name != kind && slices.ContainsFunc(k.Keys(), func(s Key) bool { return s.Name == key }) {
			names = append(names, k.Name)
		}
	}
	return names
}

// completed is an example of a section without a kind: with the first that has all of its settings.
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
