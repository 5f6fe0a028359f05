package experiment

func init() {
	declaredCases["gaia"] = [][]string{
		append(twoSites, "architecture.significance=0%"),
		append(twoSites, "architecture.significance=10%", "architecture.rate=100 kbit/s", "architecture.clock=1"),
		append(
			twoSites,
			"architecture.consistency=asp",
			"architecture.clock=0",
			"architecture.scale=mean",
			"architecture.rate=1 Mbit/s",
			"schedule=[{at: 100ms, node: w1, do: leave}, {at: 200ms, node: w2, do: crash}, "+
				"{at: 600ms, node: w2, do: join}]",
		),
		append(twoSites, "architecture.consistency={kind: ssp, bound: 1}", "architecture.rate=100 kbit/s",
			"train.optimizer={kind: adam, rate: 0.01}", "network.default.loss={probability: 5%, kind: drop}"),
		append(twoSites, "architecture.consistency={kind: dssp, low: 0, high: 2}", "architecture.delivery=reliable",
			"network.default.loss={probability: 20%, kind: drop}",
			"schedule=[{at: 200ms, node: s1, do: pause, for: 200ms}, {at: 500ms, node: w4, do: pause, for: 100ms}]"),
	}
}

// twoSites are settings of a run at two distant sites.
var twoSites = []string{
	"nodes=[{name: s, count: 2}, {name: w, count: 4, compute: {step: 5ms}}]",
	"architecture.roles={server: [s1, s2]}", "network.preset=regions-aws-2024",
	"network.sites={s1: fra, s2: lhr, w1: fra, w2: fra, \"*\": lhr}",
}
