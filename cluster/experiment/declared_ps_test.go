package experiment

// Settings of the steady plan with other nodes.
const (
	threeServers = "nodes=[{name: s, count: 3}, {name: w, count: 4, compute: {step: 20ms}}]"
	serve        = "architecture.roles={server: [s1, s2, s3]}"
	unequal      = "nodes=[{name: w1, compute: {step: 5ms}}, {name: w2, compute: {step: 8ms}}, " +
		"{name: w3, compute: {step: 21ms}}]"
	slower = "nodes=[{name: w, count: 4, compute: {step: 20ms}}]"
)

func init() {
	declaredCases["parameter-server"] = [][]string{
		{"architecture.every=3", "train.optimizer={kind: momentum, rate: 0.05}"},
		{"architecture.every=4", "nodes=[{name: w, count: 4, compute: {step: 5ms, cores: 2, threads: 2}}]"},
		{"architecture.compress={up: [{kind: top-k, share: 10%}], feedback: ef}", slower,
			"architecture.servers={shard: 500 B}"},
		{"architecture.compress={up: [{kind: top-k, share: 10%}], down: [int8], feedback: ef21}", crashAndJoin},
		{"architecture.compress={up: [{kind: powersgd, rank: 1}], down: [{kind: quantise, bits: 4}]}"},
		{"architecture.compress={up: [{kind: random-k, share: 20%}]}", "architecture.every=2"},
		{"architecture.compress={up: [{kind: qsgd, levels: 15}], feedback: none}", "architecture.scale=mean"},
		{"architecture.consistency={kind: ssp, bound: 2}", unequal, "architecture.staleness-rate=inverse"},
		{"architecture.consistency={kind: dssp, low: 1, high: 4}", unequal},
		{"architecture.consistency={kind: bounded-delay, bound: 2}", unequal, "architecture.servers={shard: 500 B}"},
		{"architecture.consistency={kind: bounded-delay}", "network.default.reorder=true",
			"network.default.delay={kind: exponential, mean: 8ms, max: 100ms}"},
		{"architecture.consistency=bsp", "architecture.backup=1", unequal},
		{"architecture.epoch-share=75%", slower, "architecture.servers={shard: 500 B}", crashAndJoin},
		{"architecture.delivery=reliable", "network.default.loss={probability: 20%, kind: drop}",
			"schedule=[{at: 200ms, node: w1, do: pause, for: 200ms}, {at: 400ms, node: w3, do: leave}]"},
		{threeServers, serve, "architecture.servers={shard: 500 B}", "evaluate.every=50ms",
			"network.default.delay={kind: exponential, mean: 8ms, max: 100ms}",
			"architecture.compress={up: [float16], down: [int8], feedback: ef21}",
			"schedule=[{at: 200ms, node: s1, do: leave}, {at: 400ms, node: s1, do: join}, " +
				"{at: 500ms, node: s3, do: leave}, {at: 600ms, node: w1, do: leave}]"},
		{threeServers, serve, "architecture.servers={shard: 500 B, replicas: 1}", "evaluate.every=50ms",
			"train.optimizer={kind: adam, rate: 0.01}",
			"schedule=[{at: 200ms, node: s1, do: crash}, {at: 400ms, node: s1, do: join}, " +
				"{at: 600ms, node: s3, do: leave}, {at: 800ms, node: w1, do: crash}]"},
		{threeServers, serve, "architecture.servers={shard: 500 B, replicas: 2}", "architecture.every=2",
			"architecture.compress={up: [{kind: top-k, share: 10%}], down: [int8], feedback: ef21}",
			"schedule=[{at: 200ms, node: s2, do: crash}, {at: 300ms, node: s3, do: crash}, " +
				"{at: 500ms, node: s3, do: join}]"},
		{threeServers, serve, "architecture.servers={shard: 500 B, replicas: 1}", "architecture.epoch-share=60%",
			"architecture.consistency={kind: bounded-delay, bound: 1}",
			"schedule=[{at: 200ms, node: s2, do: restart, for: 100ms}]"},
	}
}

const crashAndJoin = "schedule=[{at: 300ms, node: w2, do: crash}, {at: 500ms, node: w2, do: join}]"
