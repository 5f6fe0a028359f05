package experiment

func init() {
	const four = "architecture={kind: in-network, slots: 3, values: 50, roles: {switch: added}"
	declaredCases["in-network"] = [][]string{
		{four + "}", rough, adam, brief},
		{four + ", delivery: reliable}", rough, comings, noticed, brief},
		{four + "}", rough, comings, noticed, brief},
		{
			four + "}",
			"network.default={delay: {kind: exponential, mean: 8ms, max: 100ms}, reorder: true, repeat: 10%, " +
				"loss: {kind: drop, probability: 20%}, outages: [{kind: gilbert-elliott, up: 200ms, down: 80ms}]}",
			"stop={time: 3s}",
		},
		{"architecture={kind: in-network, roles: {switch: added}}", comings, noticed, adam, brief},
		{"architecture={kind: in-network, slots: 4, values: 60, roles: {switch: w1}}", noticed, brief,
			"schedule=[{at: 50ms, node: w1, do: crash}, {at: 110ms, node: w1, do: join}, " +
				"{at: 150ms, node: w3, do: leave}]"},
		{"architecture={kind: in-network, slots: 4, values: 60, roles: {switch: [w1, w2, w3]}}", noticed, brief,
			"nodes=[{name: w, count: 7, compute: {step: 5ms}}]", "network.topology={kind: tree, branching: 2}",
			"schedule=[{at: 50ms, node: w5, do: crash}, {at: 90ms, node: w5, do: join}, " +
				"{at: 130ms, node: w3, do: restart, for: 20ms}, {at: 250ms, node: w6, do: pause, for: 40ms}]"},
		{"architecture={kind: in-network, slots: 4, values: 60, roles: {switch: [w1, w2, w3]}}", rough,
			"nodes=[{name: w, count: 7, compute: {step: 5ms}}]", "network.topology={kind: tree, branching: 2}", brief},
	}
}
