package plan

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// MaxNodeCount bounds the nodes of one plan, groups counted by their members: what a plan can say
// in a line is not to take all memory before anybody can tell how much a run of it needs.
const MaxNodeCount = 1 << 24

// MaxDetect bounds the time until a crash is noticed.
const MaxDetect unit.Duration = 24 * 3600e9

// Coordinator is the name that no node may have: the run's coordinator is addressed by it.
const Coordinator = "coordinator"

// Everyone is what stands for all nodes at the end of a link.
const Everyone = "*"

// Plan is one point of a plan: everything that one run, and its repeats, need to know. [ReadPlan]
// fills it in.
type Plan struct {
	// Version of the plan's language: [Version], also where a plan gives none, or an earlier one that
	// [Upgrade] leaves.
	Version int `plan:"version" words:"4|3" doc:"of the plan's language; default: 4; plans of version 2 are read too; up to 3, an all-reduce without an algorithm is a ring"`
	// Name is used in records and for folders. Default: the name of the plan's file, without its
	// ending.
	Name string `plan:"name" doc:"what records and folders are called; default: the name of the file"`
	// Seed of the first repeat; repeat r uses Seed + r. Default 1.
	Seed uint64 `plan:"seed" doc:"of the first repeat; repeat r uses seed + r"`
	// Repeats is how many runs each point has, from 1 to 10,000. Default 1.
	Repeats int `plan:"repeats" range:"1..10000" doc:"how many runs each point has"`

	// Data, Model, Train and Architecture are read by the catalog. Train may be nil.
	Data         *syntax.Node `plan:"data,required" names:"data" example:"{set: synthetic-digits}" doc:"what is learnt from: the set, what is tested on, who sees which samples"`
	Model        *syntax.Node `plan:"model,required" names:"model" example:"{kind: mlp, layers: [784, 32, 10]}" doc:"the network that is trained"`
	Train        *syntax.Node `plan:"train" names:"train" doc:"how a worker makes its steps: batch, optimizer, class weights"`
	Architecture *syntax.Node `plan:"architecture,required" names:"architecture" example:"{kind: all-reduce}" doc:"who computes what and who exchanges what with whom"`

	// Nodes that take part, groups written out as their members, in the order of the file.
	Nodes   []NodeSpec  `plan:"nodes,required" example:"[{name: w, count: 4}]" doc:"who takes part"`
	Network NetworkSpec `plan:"network" doc:"who is whose neighbour, and what the links are like"`

	Evaluate Evaluate `plan:"evaluate" doc:"when the accuracy is measured, and of which model"`
	Stop     Stop     `plan:"stop" doc:"when a run ends: at the target, or at the first of the bounds"`
	Schedule []Change `plan:"schedule" doc:"what happens during a run: to links, to nodes, to the topology"`
	// Faults are drawn by the seed of each run; nil for none.
	Faults *Faults `plan:"faults,omitzero" doc:"what happens to nodes and between them at random, drawn by the seed of each run"`
	// Detect is the time until a crash of a node is noticed. Default 1.5s.
	Detect unit.Duration `plan:"detect" doc:"until a crash is noticed"`

	// Checkpoint says when the state of a run is saved; nil for never.
	Checkpoint *Checkpoint `plan:"checkpoint,omitzero" doc:"how often the whole state of a run is saved, so that --continue, or another process, goes on within the run: {every: 5m, keep: 3, to: s3://BUCKET/PATH}; default: never"`

	// AnyRole lets nodes have roles that the architecture does not know: the plan is a point of a
	// sweep over several kinds of architectures, of which others know them.
	AnyRole bool

	// Tune is what is chosen for each point before its repeats.
	Tune Tune `plan:"tune,omitzero" doc:"what is chosen for each point of the sweep on a validation split (data: {validation: 10%}), before its repeats: paths of keys, each with a list of values; default: nothing"`
	// Sweep is what the plan is multiplied out over. It is empty in the points that [Points] makes.
	Sweep Sweep `plan:"sweep,omitzero" doc:"what is varied: paths of keys, such as nodes.slow.compute.step, each with a list of values"`
	// Record is RecordSummary, RecordModels or RecordEvents. Default RecordSummary.
	Record string `plan:"record" words:"summary|models|events" doc:"summary: figures, curves and the final model, or each node's where evaluate.of judges several; models: each node's in any case; events: summary, and every event"`
}

// What a run records.
const (
	RecordSummary = "summary" // figures, curves and histograms
	RecordModels  = "models"  // besides, each node's own final model
	RecordEvents  = "events"  // besides, every event
)

// Default returns a plan in which everything that may be left out has its default.
func Default() *Plan {
	return &Plan{
		Version: Version, Seed: 1, Repeats: 1,
		Network: NetworkSpec{
			Topology: syntax.NewMap(syntax.Entry("kind", syntax.NewScalar("complete"))),
			Default:  LinkSettings{Delay: syntax.NewScalar("0ms"), Rate: Unlimited(), Outages: []Outage{}},
			Links:    []LinkSpec{},
		},
		Evaluate: Evaluate{Every: unit.Interval{Epochs: 0.1}, Of: OfMean},
		Schedule: []Change{},
		Detect:   1500e6,
		Record:   RecordSummary,
	}
}

// NodeSpec is a node of the plan.
type NodeSpec struct {
	// Name is unique: a letter or digit, then letters, digits, dots, dashes and underscores,
	// [naming.Max] bytes at most.
	Name string `plan:"name,required" doc:"unique; up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"`
	// Role is what the architecture knows the node as, such as server or worker.
	Role string `plan:"role,omitzero" doc:"what the architecture knows the node as, such as server or worker"`
	// Count, if given, makes a group: name1, name2, … name<count>. It is nil in a plan that was
	// read; see Group.
	Count   *int    `plan:"count" range:"1..16777216" doc:"makes a group of this many nodes: name1, name2, …"`
	Compute Compute `plan:"compute" doc:"how fast the node is: native, {step: 5ms} or {speed: 10 GFLOP/s, cores: 2}; {step: 20ms, wander: {by: 1ms, min: 10ms, max: 80ms}} has the time of a step change; with {threads: 4} a worker's steps are shared without locks"`
	// Uplink and Downlink are shared by all edges of the node: rates, or maps that the catalog
	// reads, such as {kind: mobile, line: lte-driving-up}. Default unlimited.
	Uplink   Rate `plan:"uplink" doc:"what all that the node sends has to share: a rate, or a process with its kind"`
	Downlink Rate `plan:"downlink" doc:"what all that the node receives has to share, likewise"`
	// Delay is of the node's own line: a duration, or a map that the catalog reads; nil is none.
	Delay *syntax.Node `plan:"delay,omitzero" names:"delay" doc:"what its own line adds to the delay of each message that the node sends or receives: a duration, or a model with its kind"`
	// Available is when the node is there; nil is always, but for what the schedule and faults do.
	Available *Available `plan:"available,omitzero" doc:"when the node is there: {on: 8h, off: 16h} in turns, or {file: trace.csv}; it joins and leaves in order, and each node of a group has its own times; default: always"`
	// Group is the name that the node's group has in the plan, empty for a node that was named by
	// itself. Links and the schedule may name it.
	Group string
	// Source is the syntax that the node was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// DefaultSpeed of a node's core, where the plan gives neither a speed nor the time of a step.
const DefaultSpeed unit.Speed = 10e9

// SetDefaults gives the node one core of [DefaultSpeed], and an uplink and a downlink without
// bounds.
func (s *NodeSpec) SetDefaults() {
	s.Compute = Compute{Speed: DefaultSpeed, Cores: 1}
	s.Uplink, s.Downlink = Unlimited(), Unlimited()
}

// Compute says how fast a node is. Exactly one of Native, Step and Speed is given.
type Compute struct {
	// Native is as fast as the machine is. Written as the word native, or as {native: true} beside
	// cores and threads.
	Native bool
	// Step is how long one training step takes, whatever its work.
	Step *unit.Duration
	// Wander is how the time of a step changes from one to the next; nil for not at all.
	Wander *Wander
	// Speed of one core: a job takes its work ÷ (Speed × the cores it takes).
	Speed unit.Speed
	// Cores is how many jobs, of one core each, run side by side. Default Threads, or 1.
	Cores int
	// Threads is how many threads share the steps of a worker between two exchanges, without locks,
	// on Cores ÷ Threads cores each, rounded down. 0 stands for 1.
	Threads int
}

// Wander is a random walk of the time of a step, which begins at [Compute.Step].
type Wander struct {
	// By is how far the time shifts after a step at most, either way, all shifts alike.
	By time.Duration `plan:"by,required" range:"1ns..8760h" doc:"the most by which the time of a step differs from that of the one before"`
	// Min and Max are what the walk stays within.
	Min time.Duration `plan:"min,required" range:"1ns..8760h" doc:"the shortest; the walk goes no lower"`
	Max time.Duration `plan:"max,required" range:"1ns..8760h" doc:"the longest; the walk goes no higher"`
}

const computeForms = "accepted are native, {step: 5ms} and {speed: 10 GFLOP/s}, the latter two with cores: 1 or more"

// computeMap is Compute as a map in the plan.
type computeMap struct {
	Step    *unit.Duration `plan:"step" doc:"how long one training step takes, whatever its work"`
	Wander  *Wander        `plan:"wander,omitzero" with:"step" doc:"how the time of a step changes, as a random walk that the seed draws: {by: 1ms, min: 10ms, max: 40ms}; default: not at all"`
	Speed   *unit.Speed    `plan:"speed" doc:"of one core; a job takes its work ÷ (speed × the cores that it runs on)"`
	Native  bool           `plan:"native,omitzero" doc:"as fast as the machine is, as the word native alone"`
	Cores   int            `plan:"cores" range:"1..4096" doc:"a worker's step runs on cores ÷ threads of them, any other job on one; a time set by step stays; default: as many as threads, or 1"`
	Threads int            `plan:"threads,omitzero" range:"1..4096" doc:"threads of a worker that share the steps between two exchanges without locks (Hogwild), each on cores ÷ threads, rounded down; default: 1"`
}

// UnmarshalPlan reads the word native or a map with native, step or speed, and cores and threads.
func (c *Compute) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.Scalar && n.Text == "native" {
		*c = Compute{Native: true, Cores: 1}
		return nil
	}
	if n.Kind != syntax.Map {
		return syntax.Errorf(n, "found %s; %s", syntax.Found(n), computeForms)
	}
	m := computeMap{Cores: 1}
	if err := settings.Decode(n, &m); err != nil {
		return err
	}
	if _, given := n.Get("cores"); !given {
		m.Cores = max(m.Threads, 1)
	}
	_, native := n.Get("native")
	switch {
	case m.Step != nil && m.Speed != nil:
		return syntax.Errorf(n.At("speed"),
			"step and speed exclude each other; give the time of a step or the speed of a core")
	case native && (m.Step != nil || m.Speed != nil):
		return syntax.Errorf(n.At("native"), "native excludes step and speed; give one of the three")
	case m.Threads > m.Cores:
		return syntax.Errorf(n.At("cores"), "%d threads need a core each, and there are %d; accepted are %d and more, "+
			"or no cores:, which means %d", m.Threads, m.Cores, m.Threads, m.Threads)
	}
	if w := m.Wander; w != nil && (*m.Step < unit.Duration(w.Min) || *m.Step > unit.Duration(w.Max)) {
		return syntax.Errorf(n.At("wander"), "step is %s, where the walk begins; accepted are a min of at most that "+
			"and a max of at least that", m.Step)
	}
	*c = Compute{Step: m.Step, Wander: m.Wander, Native: m.Native, Cores: m.Cores, Threads: m.Threads}
	if m.Speed != nil {
		c.Speed = *m.Speed
	} else if m.Step == nil && !m.Native {
		c.Speed = DefaultSpeed
	}
	return nil
}

// MarshalPlan writes the form that was chosen, with its cores.
func (c Compute) MarshalPlan() (*syntax.Node, error) {
	if c.Native && c.Cores == 1 && c.Threads < 2 {
		return syntax.NewScalar("native"), nil
	}
	m := computeMap{Step: c.Step, Wander: c.Wander, Native: c.Native, Cores: c.Cores}
	if c.Threads > 1 {
		m.Threads = c.Threads
	}
	if c.Step == nil && !c.Native {
		m.Speed = &c.Speed
	}
	return settings.Encode(m)
}

// NetworkSpec is the plan's network: who is whose neighbour, what every link is like, and the links
// that differ.
type NetworkSpec struct {
	// None emulates nothing: messages take the time of the network underneath, none in virtual
	// time. Written as the word none, with a complete topology.
	None bool
	// Topology is a word, or a map that the catalog reads, such as {kind: ring}. Default complete.
	Topology *syntax.Node `plan:"topology" names:"topology" doc:"who is whose neighbour: a word, or a map with settings"`
	// Preset and Matrix say how far sites are from each other, and Sites where nodes are. The delay
	// that follows for a pair stands in place of Default's.
	Preset string `plan:"preset,omitzero" words:"regions-aws-2024|regions-ibm-2026" doc:"how far sites are from each other, as it was measured; gradwire list networks shows them"`
	Matrix string `plan:"matrix,omitzero" doc:"how far sites are from each other: a CSV file beside the plan, whose first line is a unit, such as round_trip_ms, and the sites, and each other one a site and its figures; an empty one is as in the other direction, within a site 0"`
	Sites  Sites  `plan:"sites,omitzero" doc:"where nodes are: nodes or groups, or \"*\" for everyone else, each with a site of the preset or the matrix; default with a matrix: each node is the site of its name"`
	// Fair has messages share uplinks, links and downlinks; otherwise they queue.
	Fair    bool         `plan:"share" words:"fifo|fair" doc:"what messages do that want the same uplink, link or downlink at the same time: fifo: one after the other; fair: all at once, with rates that are max-min fair"`
	Default LinkSettings `plan:"default" doc:"what links are like that are not named below"`
	// Links in the order of the file. Of several that name a pair the last one counts, alone; what
	// it leaves out is as in Default. [Plan.Links] carries this out.
	Links []LinkSpec `plan:"links" doc:"the links that differ; of several that name a pair the last one counts alone: the settings that it leaves out are those of default, even beside a preset or a matrix"`
	// Implied are the links that Preset or Matrix means, which come before Links. The catalog sets
	// them.
	Implied []LinkSpec
	// Source is the syntax that the network was read from, for errors; nil if the plan has none.
	Source *syntax.Node `plan:",node"`
}

// none is NetworkSpec.None as a plan says it.
const none = "none"

// UnmarshalPlan reads the word none, or a map whose absent keys keep what they have.
func (s *NetworkSpec) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.Scalar && n.Text == none {
		s.None = true
		return nil
	}
	if n.Kind != syntax.Map {
		return syntax.Errorf(n, "found %s; accepted are a map of topology, default and links, and the word %s",
			syntax.Found(n), none)
	}
	if links, given := n.Get("links"); given {
		for _, l := range links.Items {
			l.Fields = slices.DeleteFunc(l.Fields, asInDefault)
		}
	}
	type plain NetworkSpec
	return settings.Decode(n, (*plain)(s))
}

// asInDefault reports whether a link gives a key no value, which means the same as to leave it out.
func asInDefault(f syntax.Field) bool {
	return f.Value.Kind == syntax.Null && (f.Key == "rate" || f.Key == "reorder")
}

// MarshalPlan writes the form that was chosen.
func (s NetworkSpec) MarshalPlan() (*syntax.Node, error) {
	if s.None {
		return syntax.NewScalar(none), nil
	}
	type plain NetworkSpec
	return settings.Encode(plain(s))
}

// LinkSettings is what a link is like. Keys that its Source does not have are as in the network's
// default.
type LinkSettings struct {
	// Config holds what a plan sets as it is, such as the overhead; delay, rate, loss and outages
	// stand below in the plan's forms.
	link.Config
	// Delay is a duration, or a map that the catalog reads, such as {kind: random-walk, …}. Default
	// 0ms.
	Delay *syntax.Node `plan:"delay" names:"delay" doc:"how long a message takes: a duration, or a model with its kind"`
	// Rate is by default unlimited.
	Rate    Rate     `plan:"rate" doc:"of the link alone, beside what the nodes' uplinks and downlinks allow: a rate, or a process with its kind"`
	Loss    *Loss    `plan:"loss" doc:"how often messages get lost, and what happens to them"`
	Outages []Outage `plan:"outages,omitzero" doc:"times during which no message departs: a message waits for the end, or is lost if loss has kind: drop; messages on their way arrive: [{from: 30s, for: 5s}], or at random [{kind: gilbert-elliott, up: 30s, down: 5s}]"`
	// Source is the syntax that the link was read from, for errors; nil if the plan has none.
	Source *syntax.Node `plan:",node"`
}

// over returns s with what its source leaves out taken from base.
func (s LinkSettings) over(base LinkSettings) LinkSettings {
	settings.Overlay(&base, &s, s.Source)
	return base
}

// LinkSpec gives some links their settings.
type LinkSpec struct {
	Ends
	LinkSettings
}

// MarshalPlan writes the keys that the link was read from: the others are the default's.
func (s LinkSpec) MarshalPlan() (*syntax.Node, error) {
	type plain LinkSpec
	whole, err := settings.Encode(plain(s))
	if err != nil || s.Source == nil {
		return whole, err
	}
	var other []string
	for _, f := range whole.Fields {
		if _, given := s.Source.Get(f.Key); !given {
			other = append(other, f.Key)
		}
	}
	return whole.Without(other...), nil
}

// Ends names the directed pairs of nodes that a link is about: both directions Between two, or one
// direction From, To. Each end is the name of a node, of a group, which means all its members, or
// [Everyone].
type Ends struct {
	Between []string `plan:"between,omitzero" doc:"the two ends, both directions: nodes, groups, or \"*\" for everyone"`
	From    string   `plan:"from,omitzero" doc:"the end that sends, for one direction: a node, a group, or \"*\""`
	To      string   `plan:"to,omitzero" doc:"the end that receives, for one direction: a node, a group, or \"*\""`
}

// Whose accuracy an evaluation counts.
const (
	OfAverageModel = "average-model" // the model whose parameters are the mean of the nodes' parameters
	OfMean         = "mean"          // the mean of the nodes' accuracies
	OfAll          = "all"           // the worst node's: the target is reached when all have reached it
	OfAny          = "any"           // the best node's: the target is reached when one has reached it
)

// Evaluate says when the model's accuracy is measured, and of which model.
type Evaluate struct {
	// Every so often. Default 0.1 epochs.
	Every unit.Interval `plan:"every" doc:"between two measurements: epochs, steps (a peer's in the mean; with a server, all workers' together), rounds of an architecture that has some, or a duration"`
	// Of says which model is judged: OfAverageModel, OfMean, the default, OfAll or OfAny. Where one
	// node alone holds a model, such as a server, it is that node's in each case.
	Of string `plan:"of" words:"average-model|mean|all|any" doc:"whose accuracy counts: the averaged parameters', the mean of the nodes', the worst node's, the best node's; with a server the server's"`
	// Lag is how long a verdict takes to be known, above 0. Nil means one interval.
	Lag *unit.Duration `plan:"lag" doc:"until a verdict is known; default: the time since the measurement before"`
	// Sample is how many of the models are looked at, at least 1, chosen at random by the run's
	// seed. Nil means all.
	Sample *int `plan:"sample" range:"1.." doc:"how many of the models are looked at, drawn once by the seed; default: all"`
	// Target is an accuracy whose time is reported while the run goes on. Stop's target ends it.
	Target *unit.Fraction `plan:"target" doc:"an accuracy whose time is reported while the run goes on"`
	// Early says that a model is judged only until its accuracy is surely below the target. It
	// needs one, here or in Stop.
	Early bool `plan:"early,omitzero" doc:"judge a model only by as many test samples, drawn by the seed, as make sure that it is below the target (exact bound, confidence 1 - 1e-9), without its loss; an arrival, the evaluation before it and the last one are of all; default: false"`
	// Source is the syntax that this was read from, for errors; nil if the plan has none.
	Source *syntax.Node `plan:",node"`
}

// Stop says when a run ends: when the target is reached, or at the first bound. At least one bound
// is given; 0 is no bound.
type Stop struct {
	Target *unit.Fraction `plan:"target" doc:"an accuracy that ends the run"` // accuracy
	Epochs float64        `plan:"epochs,omitzero" range:">0" doc:"samples processed by all workers ÷ training samples, or ÷ the epoch-share of them"`
	Steps  int            `plan:"steps,omitzero" range:"1.." doc:"of the fastest peer; with a server, of all workers together"`
	Rounds int            `plan:"rounds,omitzero" range:"1.." doc:"of an architecture that trains in rounds"`
	Time   unit.Duration  `plan:"time,omitzero" range:">0s" doc:"on the run's clock"`
	// Source is the syntax that this was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// Node writes the plan as a tree in which everything decided at this level is spelled out; the
// sections that are nodes stay as they are. Members of a group that are alike are written as the
// group. [ReadPlan] reads the tree as an equal plan.
func (p *Plan) Node() (*syntax.Node, error) {
	c := *p
	c.Nodes = foldGroups(p.Nodes)
	n, err := settings.Encode(c)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Name, err)
	}
	return n, nil
}

// foldGroups writes the members of each group as one node with a count.
func foldGroups(nodes []NodeSpec) []NodeSpec {
	var out []NodeSpec
	for i := 0; i < len(nodes); {
		n := 1
		for nodes[i].Group != "" && i+n < len(nodes) && nodes[i+n].Group == nodes[i].Group {
			n++
		}
		out = append(out, foldGroup(nodes[i:i+n])...)
		i += n
	}
	return out
}

func foldGroup(members []NodeSpec) []NodeSpec {
	first := members[0]
	if first.Group == "" {
		return members
	}
	role := first.Role
	for i, m := range members {
		if m.Role != first.Role {
			role = "" // the architecture says which member has which
		}
		alike := m.Name == memberName(m.Group, i) && m.Uplink.Equal(first.Uplink.Node) &&
			m.Downlink.Equal(first.Downlink.Node) && m.Compute.equal(first.Compute) &&
			m.Available == first.Available
		if !alike {
			return slices.Clone(members)
		}
	}
	count := len(members)
	first.Name, first.Role, first.Count = first.Group, role, &count
	return []NodeSpec{first}
}

func (c Compute) equal(d Compute) bool {
	return same(c.Step, d.Step) && same(c.Wander, d.Wander) && c.Native == d.Native && c.Speed == d.Speed &&
		c.Cores == d.Cores && max(c.Threads, 1) == max(d.Threads, 1)
}

// same reports whether two values are, or neither is there.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func memberName(group string, i int) string { return group + strconv.Itoa(i+1) }
