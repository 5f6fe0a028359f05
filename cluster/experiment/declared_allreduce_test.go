package experiment

const (
	// comings is a schedule in which nodes crash, pause, join and leave.
	comings = "schedule=[{at: 50ms, node: w2, do: crash}, {at: 110ms, node: w3, do: pause, for: 60ms}, " +
		"{at: 190ms, node: w2, do: join}, {at: 230ms, node: w4, do: leave}, {at: 270ms, node: w3, do: crash}, " +
		"{at: 310ms, node: w4, do: join}]"
	// rough is a network that loses, repeats and reorders messages.
	rough = "network.default={delay: {kind: uniform, range: 1ms..9ms}, reorder: true, repeat: 10%, " +
		"loss: {kind: drop, probability: 10%}}"
	noticed = "detect=15ms"
	adam    = "train.optimizer={kind: adam, rate: 0.01}"
	pair    = "nodes=[{name: w, count: 4, compute: {step: 5ms, cores: 2, threads: 2}}]"
	brief   = "stop={time: 400ms}"
)

func init() {
	declaredCases["all-reduce"] = [][]string{
		{"architecture={kind: all-reduce, segment: 100}", comings, noticed, brief},
		{"architecture={kind: all-reduce, segment: 30}", rough, adam, brief},
		{"architecture={kind: all-reduce, algorithm: tree}", rough, comings, noticed, brief},
		{"architecture={kind: all-reduce, algorithm: butterfly}", comings, noticed, adam, brief},
		{"architecture={kind: all-reduce, algorithm: hierarchical}", noticed, brief,
			"nodes=[{name: v, count: 3, compute: {step: 5ms}}, {name: w, count: 3, compute: {step: 7ms}}]",
			"network={preset: regions-aws-2024, sites: {v: fra, w: iad}}",
			"schedule=[{at: 150ms, node: w2, do: crash}, {at: 230ms, node: w2, do: join}]"},
		{"architecture={kind: all-reduce, compress: {up: [{kind: top-k, share: 10%}], feedback: ef}}",
			comings, noticed, brief},
		{"architecture={kind: all-reduce, compress: {up: [{kind: top-k, share: 10%}], feedback: ef21}}",
			comings, noticed, brief},
		{
			"architecture={kind: all-reduce, compress: {up: [{kind: powersgd, rank: 1}], feedback: ef}}",
			rough,
			adam,
			brief,
		},
		{"architecture={kind: all-reduce, preset: diloco, every: 6, fragments: 2, compress: {up: [{kind: random-k, " +
			"share: 10%}, {kind: qsgd}], feedback: none}}", comings, noticed, brief},
		{"architecture={kind: all-reduce, preset: local-sgd, every: 3, moved: 0.1}", comings, noticed, brief},
		{
			"architecture={kind: all-reduce, preset: local-sgd, every: 3, moved: 0.1, compress: {up: [int8]}}",
			adam,
			brief,
		},
		{"architecture={kind: all-reduce, preset: slowmo, every: 3}", rough, comings, noticed, brief},
		{"architecture={kind: all-reduce, preset: local-sgd, every: 3, outer: {kind: adam, rate: 0.1}}",
			comings, noticed, adam, brief},
		{"architecture={kind: all-reduce, preset: streaming-diloco, every: 6, fragments: 2, overlap: 1}",
			comings, noticed, adam, brief},
		{"architecture={kind: all-reduce, preset: streaming-diloco, every: 8, fragments: 4, overlap: 1, compress: " +
			"{up: [{kind: top-k, share: 20%}]}}", rough, brief},
		{"architecture={kind: all-reduce, preset: sparta, every: 2, overlap: 1, mix: 20%, sparse: 10%}",
			comings, noticed, brief},
		{"architecture={kind: all-reduce, preset: local-sgd, every: 6}", pair, comings, noticed, brief},
		{"architecture={kind: all-reduce, preset: diloco, every: 6, fragments: 2}", pair, rough, brief},
	}
}
