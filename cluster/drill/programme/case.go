package programme

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Case is a random plan, in parts that can be left out to make it smaller.
type Case struct {
	// Seed is that of the plan, and what the case was drawn from.
	Seed uint64
	// Nodes is how many there are, n1 to nNodes. The first Servers of them serve, with the
	// architectures that have servers.
	Nodes, Servers int
	// Milliseconds is how long the run lasts.
	Milliseconds int
	// Architecture, Optimizer, Topology and Delay are sections in flow style; Sites are keys of the
	// network, empty for none; Available is when the last node is there, empty for always.
	Architecture, Optimizer, Topology, Delay, Sites, Available string
	// Settings are further keys of the architecture, Links those of the default link, Schedule the
	// entries of the schedule and Faults the keys of the faults.
	Settings, Links, Schedule, Faults []string
	// Split says which worker sees which samples; empty for equal shares.
	Split string
	// Late is how many milliseconds messages of the control protocol take at most; see sim.Config.
	Late int
}

// kind is a kind of architecture.
type kind struct {
	sections []string
	servers  bool // it has some
	rounds   bool // it is federated: it has one
	sites    bool // it is gaia: each site has one
	switches int  // how many of its nodes hold no model and train nothing
	even     bool // it needs an even number of nodes, in a topology of two parts
}

// consistencies are those of the parameter server.
var consistencies = []string{"asp", "bsp", "{kind: ssp, bound: 2}", "{kind: ssp, bound: 0}",
	"{kind: dssp, low: 1, high: 3}", "{kind: bounded-delay, bound: 2}"}

var kinds = []kind{
	{sections: []string{"kind: local"}},
	{sections: []string{"kind: all-reduce", "kind: all-reduce, algorithm: tree",
		"kind: all-reduce, algorithm: butterfly",
		"kind: all-reduce, algorithm: all-to-all", "kind: all-reduce, every: 3, reduce: models",
		"kind: all-reduce, preset: diloco, every: 4",
		"kind: all-reduce, preset: streaming-diloco, every: 6, fragments: 2, overlap: 1",
		"kind: all-reduce, preset: sparta",
		"kind: all-reduce, algorithm: all-to-all, compress: {up: [{kind: top-k, share: 10%}]}"}},
	{sections: []string{"kind: d-psgd", "kind: d-psgd, track: true", "kind: d-psgd, lead: 1",
		"kind: d-psgd, choco: {compress: [{kind: top-k, share: 10%}], rate: 0.3}"}},
	{sections: []string{"kind: ad-psgd", "kind: ad-psgd, compress: {models: [{kind: quantise, bits: 4}]}"}, even: true},
	{sections: []string{"kind: gossip", "kind: gossip, wait: false", "kind: gossip, exchange: pull, lead: 2",
		"kind: gossip, exchange: push-pull", "kind: gossip, period: 30ms, merge: age",
		"kind: gossip, compress: {models: [{kind: quantise, bits: 4}]}"}},
	{sections: []string{"kind: gossip-learning, period: 20ms", "kind: gossip-learning, period: 15ms, create: rw",
		"kind: gossip-learning, period: 30ms, create: um, merge: age, predict: vote",
		"kind: gossip-learning, period: 25ms, flow: {kind: randomized, capacity: 8, reactivity: 3}"}},
	{sections: []string{"kind: noloco, every: 1, outer: {rate: 1, momentum: 0}", "kind: noloco, every: 4",
		"kind: noloco, every: 3, group: 3"}},
	{sections: []string{"kind: in-network, slots: 2, values: 60, roles: {switch: [n1]}",
		"kind: in-network, roles: {switch: [n1]}, delivery: reliable"}, switches: 1},
	{servers: true},
	{servers: true},
	{servers: true},
	{rounds: true},
	{sites: true},
}

// New draws the case of a seed.
func New(seed uint64) Case {
	d := drawer{rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
	c := Case{Seed: seed, Nodes: 3 + d.IntN(4), Milliseconds: 600 + d.IntN(1000)}
	c.Optimizer = d.one("{kind: sgd, rate: 0.1}", "{kind: momentum, rate: 0.05}", "{kind: adam, rate: 0.003}")
	c.Topology = d.one("complete", "ring", "complete", "{kind: exponential}")
	c.Delay = d.one("2ms", "0ms", "{kind: uniform, range: 1ms..20ms}", "{kind: exponential, mean: 8ms, max: 100ms}",
		"{kind: random-walk, first: 1ms..9ms, step: 2ms, min: 1ms}")
	k := kinds[d.IntN(len(kinds))]
	c.Servers = k.switches
	if k.even {
		c.Nodes, c.Topology = 4, "ring"
	}
	switch {
	case k.servers:
		c.Architecture = d.server(&c)
	case k.rounds:
		c.Architecture = d.federated(&c)
	case k.sites:
		c.Architecture = d.gaia(&c)
	default:
		c.Architecture = d.one(k.sections...)
	}
	if strings.Contains(c.Architecture, "butterfly") {
		c.Nodes = 4
	}
	// In a star nodes have other numbers of neighbours. Its hub may go, and a lead that is bounded
	// needs the others connected.
	if strings.HasPrefix(c.Architecture, "kind: d-psgd") && !strings.Contains(c.Architecture, "lead") && d.chance(3) {
		c.Topology = "star"
	}
	d.links(&c)
	d.schedule(&c)
	d.faults(&c)
	d.available(&c)
	if d.chance(2) {
		c.Late = 1 + d.IntN(40)
	}
	if k.rounds && d.chance(2) { // plain FedAvg with unequal clients
		c.Split, c.Settings = "{kind: dirichlet, alpha: 1, min: 4}", nil
		c.Architecture = "kind: federated, roles: {server: [n1]}, local: " + d.one("{steps: 1}", "{steps: 4}") +
			d.one("", ", share: 60%", ", deadline: 120ms, delivery: as-is")
	}
	return c
}

// drawer draws from the stream of a case.
type drawer struct{ *rand.Rand }

func (d drawer) one(of ...string) string { return of[d.IntN(len(of))] }

// chance is true in one of n cases.
func (d drawer) chance(n int) bool { return d.IntN(n) == 0 }

// server draws a parameter server.
func (d drawer) server(c *Case) string {
	c.Servers = 1 + d.IntN(2)
	copied := d.chance(3)
	if copied {
		c.Servers = 3
	}
	c.Nodes += c.Servers - 1
	servers := make([]string, c.Servers)
	for i := range servers {
		servers[i] = fmt.Sprintf("n%d", i+1)
	}
	model := d.one(consistencies...)
	var keys []string
	if d.chance(3) {
		keys = append(keys, "every: 3")
	}
	if d.chance(3) {
		keys = append(keys, "scale: mean")
	}
	if d.chance(3) && !copied {
		keys = append(keys, "servers: {shard: 500 B}")
	}
	if d.chance(3) && !strings.Contains(model, "bounded") {
		keys = append(keys, d.one("compress: {up: [{kind: top-k, share: 10%}]}",
			"compress: {up: [{kind: top-k, share: 10%}], feedback: ef21}",
			"compress: {up: [{kind: quantise, bits: 4}], down: [{kind: quantise, bits: 8}]}",
			"compress: {up: [float16], down: [float16]}", "compress: {up: [float16], feedback: ef21}"))
	}
	if d.chance(4) && model == "bsp" {
		keys = append(keys, "backup: 1")
	}
	if d.chance(4) {
		keys = append(keys, "epoch-share: 75%")
	}
	if d.chance(4) {
		keys = append(keys, "staleness-rate: inverse")
	}
	c.Settings = keys
	kind := "kind: parameter-server, consistency: " + model + ", roles: {server: [" + strings.Join(servers, ", ") + "]}"
	if copied {
		kind += ", servers: {shard: 500 B, replicas: 1}"
	}
	return kind
}

// federated draws federated learning. Messages come as they are only where rounds have a deadline.
func (d drawer) federated(c *Case) string {
	c.Servers = 1
	for _, key := range []string{"share: 60%", "spare: 50%", "proximal: 0.1", "controls: true", "state: kept",
		"weights: steps-normalised", "outer: {kind: momentum, rate: 0.5}"} {
		if d.chance(3) {
			c.Settings = append(c.Settings, key)
		}
	}
	if set := strings.Join(c.Settings, " "); d.chance(3) && !strings.Contains(set, "controls") &&
		!strings.Contains(set, "normalised") {
		c.Settings = append(c.Settings, d.one("mean: {kind: median}", "mean: {kind: geometric-median}"))
	}
	local := ", local: " + d.one("{steps: 1}", "{steps: 4}", "{epochs: 1, time: 60ms}")
	kind := "kind: federated, roles: {server: [n1]}" + local
	if c.Nodes > 3 && d.chance(3) {
		c.Settings = slices.DeleteFunc(c.Settings, func(key string) bool {
			return strings.HasPrefix(key, "controls") || strings.HasPrefix(key, "weights")
		})
		return "kind: federated, roles: {server: [n1], aggregator: [n2]}, under: {n2: [n3]}" + local
	}
	if d.chance(4) {
		c.Settings = slices.DeleteFunc(c.Settings, func(key string) bool {
			return strings.HasPrefix(key, "spare") || strings.HasPrefix(key, "controls") ||
				strings.HasPrefix(key, "mean") // late updates count less, and a median has no weights
		})
		return kind + d.one(", preset: fedasync", ", preset: fedbuff, buffer: 2", ", buffer: 3")
	}
	if set := strings.Join(c.Settings, " "); d.chance(2) && !strings.Contains(set, "controls") &&
		!strings.Contains(set, "kept") {
		c.Settings = append(c.Settings, "population: 12")
	}
	return kind + d.one("", ", deadline: 120ms", ", grace: {mads: 1}", ", deadline: 120ms, grace: {quorum: 30%}",
		", deadline: 120ms, delivery: as-is")
}

// gaia draws a site, or two far from each other.
func (d drawer) gaia(c *Case) string {
	c.Servers = 1
	kind := "kind: gaia, roles: {server: [n1]}"
	if !d.chance(3) {
		c.Servers, c.Nodes = 2, max(c.Nodes, 4)
		c.Sites = ", preset: regions-aws-2024, sites: {n1: fra, n2: lhr, n3: fra, \"*\": lhr}"
		kind = "kind: gaia, roles: {server: [n1, n2]}"
	}
	for _, key := range []string{"significance: " + d.one("0%", "10%"), "clock: " + d.one("0", "2"), "scale: mean",
		"rate: 100 kbit/s"} {
		if d.chance(2) {
			c.Settings = append(c.Settings, key)
		}
	}
	return kind + ", consistency: " + d.one("bsp", "asp", "{kind: ssp, bound: 1}")
}

// links draws what links do to messages.
func (d drawer) links(c *Case) {
	if d.chance(3) {
		c.Links = append(c.Links, "rate: "+d.one("1 Mbit/s", "10 Mbit/s"))
	}
	if d.chance(2) {
		c.Links = append(c.Links, "loss: "+d.one("{probability: 5%, kind: drop}", "{probability: 20%, kind: drop}",
			"{probability: 5%, timeout: 20ms}", "{kind: drop, bursts: {p: 5%, r: 60%}}"))
	}
	if d.chance(4) {
		c.Links = append(c.Links, "repeat: 10%")
	}
	if d.chance(4) {
		c.Links = append(c.Links, "reorder: true")
	}
	if d.chance(4) {
		c.Links = append(c.Links, "outages: "+d.one("[{from: 200ms, for: 100ms}]",
			"[{kind: gilbert-elliott, up: 200ms, down: 30ms}]"))
	}
}

// schedule draws what happens to nodes, one thing after the other: never to the last one, so that
// somebody trains, and to servers only what they survive: a crash of one where others have copies,
// and that one of two leaves. One in three of those that crash or leave are not back.
func (d drawer) schedule(c *Case) {
	at, gone, copied := 50, map[int]bool{}, strings.Contains(c.Architecture, "replicas")
	leaver := 0 // the server that leaves; the other one takes over what it has
	if c.Servers == 2 && strings.Contains(c.Architecture, "parameter-server") {
		leaver = 1 + d.IntN(2)
	}
	for range d.IntN(4) {
		node := 1 + d.IntN(c.Nodes-1)
		length := 20 + d.IntN(150)
		do := d.one("restart", "restart", "pause", "pause", "pause", "slow, factor: 4", "preempt, notice: 25ms",
			"crash", "leave")
		if node <= c.Servers {
			do = d.one("pause", "slow, factor: 4")
			switch {
			case copied:
				do, copied = d.one("restart", "crash", "leave"), false
			case node == leaver:
				do = d.one(do, "leave", "leave")
			}
		}
		if gone[node] {
			continue
		}
		entry := fmt.Sprintf("{at: %dms, node: n%d, do: %s", at, node, do)
		ends := do == "crash" || do == "leave"
		gone[node] = (ends || strings.HasPrefix(do, "preempt")) && d.chance(3)
		if !ends && !gone[node] {
			entry += fmt.Sprintf(", for: %dms", length)
		}
		if entry, at = entry+"}", at+length; ends && !gone[node] {
			entry += fmt.Sprintf(", {at: %dms, node: n%d, do: join}", at, node)
		}
		c.Schedule = append(c.Schedule, entry)
		at += 30 + d.IntN(200)
	}
	if d.chance(3) {
		c.Schedule = append(c.Schedule, fmt.Sprintf("{at: %dms, cut: [n1, n%d], for: %dms}", at, c.Nodes,
			20+d.IntN(150)))
	}
}

// faults draws faults that the plan's seed draws.
func (d drawer) faults(c *Case) {
	var trainers []string
	for i := c.Servers + 1; i < c.Nodes; i++ {
		trainers = append(trainers, fmt.Sprintf("n%d", i))
	}
	if len(trainers) < 2 {
		return
	}
	nodes := "nodes: [" + strings.Join(trainers, ", ") + "]"
	if d.chance(4) {
		c.Faults = append(c.Faults, "crash: {mtbf: 600ms, back: 100ms, "+nodes+"}")
	}
	if d.chance(4) {
		c.Faults = append(c.Faults, "pause: {mtbf: 400ms, for: 60ms, sigma: 1, "+nodes+"}")
	}
	if d.chance(6) {
		c.Faults = append(c.Faults, "preempt: {mtbf: 600ms, notice: 40ms, back: 100ms, "+nodes+"}")
	}
	if d.chance(6) {
		c.Faults = append(c.Faults, "swizzle: {mtbf: 500ms, for: 100ms, "+nodes+"}")
	}
}

// available draws whether the last node comes and goes where nothing else happens to nodes, unless
// a round can do without too many then.
func (d drawer) available(c *Case) {
	if len(c.Schedule)+len(c.Faults) == 0 && !slices.Contains(c.Settings, "backup: 1") && d.chance(2) {
		c.Available = d.one("{on: 150ms, off: 100ms}", "{on: 60ms, off: 200ms}", "{on: 100ms, off: 20ms, first: 90ms}")
	}
}

// YAML is the plan of a case.
func (c *Case) YAML() string {
	var b strings.Builder
	if c.Late > 0 {
		fmt.Fprintf(&b, "# With messages of the control protocol that take up to %d ms.\n", c.Late)
	}
	fmt.Fprintf(&b, "name: case-%d\nseed: %d\n", c.Seed, c.Seed)
	split := ""
	if c.Split != "" {
		split = ", split: " + c.Split
	}
	fmt.Fprintf(&b, "data: {set: synthetic-traffic, samples: 400%s}\nmodel: {kind: mlp, layers: [93, 5]}\n", split)
	fmt.Fprintf(&b, "train: {batch: 8, optimizer: %s}\narchitecture: {%s}\nnodes:\n", c.Optimizer,
		strings.Join(append([]string{c.Architecture}, c.Settings...), ", "))
	for i := range c.Nodes {
		available := ""
		if i == c.Nodes-1 && c.Available != "" {
			available = ", available: " + c.Available
		}
		fmt.Fprintf(&b, "  - {name: n%d, compute: {step: %dms}%s}\n", i+1, 8+3*i, available)
	}
	fmt.Fprintf(&b, "network: {topology: %s%s, default: {delay: %s", c.Topology, c.Sites, c.Delay)
	for _, key := range c.Links {
		b.WriteString(", " + key)
	}
	every := 200
	if c.Late > 0 { // so that some looks at the model come before views that explain them
		every = 50
	}
	fmt.Fprintf(&b, "}}\nevaluate: {every: %dms}\nstop: {time: %dms}\ndetect: 20ms\n", every, c.Milliseconds)
	section := func(name, open, end string, parts []string) {
		if len(parts) > 0 {
			fmt.Fprintf(&b, "%s: %s%s%s\n", name, open, strings.Join(parts, ", "), end)
		}
	}
	section("schedule", "[", "]", c.Schedule)
	section("faults", "{", "}", c.Faults)
	return b.String()
}

// spare reports whether the last node can be left out: nothing names it, and the architecture takes
// any number of them.
func (c *Case) spare() bool {
	last := fmt.Sprintf("n%d", c.Nodes)
	named := func(entry string) bool { return strings.Contains(entry, last) }
	return c.Nodes > max(c.Servers+2, 3) && !slices.ContainsFunc(c.Schedule, named) &&
		!slices.ContainsFunc(c.Faults, named) && !strings.Contains(c.Architecture, "butterfly") &&
		!strings.Contains(c.Architecture, "ad-psgd")
}

// Smaller are the cases that leave out a part of this one, larger parts first.
func (c *Case) Smaller() (cases []Case) {
	change := func(do func(s *Case)) {
		s := *c
		s.Links, s.Schedule, s.Faults = slices.Clone(c.Links), slices.Clone(c.Schedule), slices.Clone(c.Faults)
		s.Settings = slices.Clone(c.Settings)
		do(&s)
		cases = append(cases, s)
	}
	without := func(of func(s *Case) *[]string) {
		if len(*of(c)) > 1 {
			change(func(s *Case) { *of(s) = nil })
		}
		for i := range *of(c) {
			change(func(s *Case) { *of(s) = slices.Delete(*of(s), i, i+1) })
		}
	}
	if c.Late > 0 {
		change(func(s *Case) { s.Late = 0 })
	}
	without(func(s *Case) *[]string { return &s.Faults })
	without(func(s *Case) *[]string { return &s.Schedule })
	without(func(s *Case) *[]string { return &s.Links })
	without(func(s *Case) *[]string { return &s.Settings })
	if c.spare() {
		change(func(s *Case) { s.Nodes-- })
	}
	if c.Milliseconds > 300 {
		change(func(s *Case) { s.Milliseconds = max(c.Milliseconds/2, 300) })
	}
	topology := "complete"
	if strings.Contains(c.Architecture, "ad-psgd") {
		topology = "ring" // in two parts
	}
	for _, plain := range []struct {
		of   func(s *Case) *string
		text string
	}{
		{func(s *Case) *string { return &s.Delay }, "2ms"},
		{func(s *Case) *string { return &s.Optimizer }, "{kind: sgd, rate: 0.1}"},
		{func(s *Case) *string { return &s.Topology }, topology},
		{func(s *Case) *string { return &s.Available }, ""},
		{func(s *Case) *string { return &s.Split }, ""},
	} {
		if *plain.of(c) != plain.text {
			change(func(s *Case) { *plain.of(s) = plain.text })
		}
	}
	return cases
}
