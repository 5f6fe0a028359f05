package catalog

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/cluster/topology"
)

const plainPlan = `
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes: [{name: s, role: server}, {name: a, role: worker}, {name: b, role: worker}]
stop: {epochs: 1}
`

func spec(t testing.TB, dir, more string) (*Spec, error) { return specOf(t, dir, plainPlan+more) }

func specOf(t testing.TB, dir, text string) (*Spec, error) {
	t.Helper()
	p, err := plan.ReadPlan(parse(t, filepath.Join(dir, "plan.yaml"), text))
	if err != nil {
		t.Fatal(err)
	}
	return Default().Read(p)
}

func mustSpec(t testing.TB, more string) *Spec {
	t.Helper()
	s, err := spec(t, "", more)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// position is where a node stands.
func (s *Spec) position(name string) int32 {
	return int32(slices.IndexFunc(s.Plan.Nodes, func(n plan.NodeSpec) bool { return n.Name == name }))
}

// edge is what the network of a spec makes of an edge before the run.
func (s *Spec) edge(from, to string) link.Config {
	return s.Links.Between(s.position(from), s.position(to)).Config
}

// changed is a change of one edge.
type changed struct {
	At       time.Duration
	From, To string
	Config   link.Config
}

// changes are what the schedule does to the edges, in the order of time, and of one instant in that
// of the nodes.
func (s *Spec) changes() (changes []changed) {
	for a, b := range s.Plan.Names().Pairs(plan.Ends{From: "*", To: "*"}) {
		for _, c := range s.Links.Between(a, b).Changes {
			changes = append(changes, changed{c.At, s.Plan.Nodes[a].Name, s.Plan.Nodes[b].Name, c.Config})
		}
	}
	slices.SortStableFunc(changes, func(a, b changed) int { return cmp.Compare(a.At, b.At) })
	return changes
}

func constant(d time.Duration) link.Delay { return link.Constant{Delay: d} }

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const ms = time.Millisecond

func TestLaterLinksWinAndTakeTheRestFromTheDefault(t *testing.T) {
	s := mustSpec(t, `
network:
  default: {delay: 3ms, rate: 8 kbit/s, outages: [{from: 1s, for: 1s}]}
  links:
    - {between: [s, "*"], delay: 10ms, rate: 80 kbit/s}
    - {between: [s, a], delay: 20ms}
    - {from: a, to: s, delay: 30ms, outages: [{from: 5s, for: 2s}, {from: 6s, for: 3s}]}
`)
	always := []link.Outage{{From: time.Second, To: 2 * time.Second}}
	for name, want := range map[string]link.Config{
		"a b": {Delay: constant(3 * ms), Rate: rate.Constant(1000), Outages: always},
		"s b": {Delay: constant(10 * ms), Rate: rate.Constant(10_000), Outages: always},
		"b s": {Delay: constant(10 * ms), Rate: rate.Constant(10_000), Outages: always},
		"s a": {Delay: constant(20 * ms), Rate: rate.Constant(1000), Outages: always},
		// Outages that a link names stand instead of the default's; those that touch are one.
		"a s": {Delay: constant(30 * ms), Rate: rate.Constant(1000), Outages: []link.Outage{{From: 5 * time.Second,
			To: 9 * time.Second}}},
	} {
		from, to, _ := strings.Cut(name, " ")
		equal(t, name, want, s.edge(from, to))
	}
}

func TestEdgesAgreeWithWhatThePlanSaysOfThem(t *testing.T) {
	s := mustSpec(t, `
network:
  default: {delay: 3ms, outages: [{from: 1s, for: 1s}]}
  links:
    - {between: [s, "*"], rate: 80 kbit/s, outages: []}
    - {from: "*", to: a, delay: 20ms, loss: {probability: 10%}}
    - {from: b, to: s, reorder: true}
`)
	links := s.Plan.Links()
	for a, b := range s.Plan.Names().Pairs(plan.Ends{From: "*", To: "*"}) {
		from, to := s.Plan.Nodes[a].Name, s.Plan.Nodes[b].Name
		settings := links.Edge(from, to)
		got := s.edge(from, to)
		var written unit.ByteRate
		if err := written.UnmarshalPlan(settings.Rate.Node); err != nil {
			t.Fatal(err)
		}
		if bound, limited := got.Rate.(rate.Constant); limited != (written > 0) || float64(bound) != float64(written) ||
			settings.Reorder != got.Reorder ||
			len(settings.Outages) != len(got.Outages) ||
			(settings.Loss != nil) != (got.Loss.Probability > 0) {
			t.Errorf("%s to %s: %+v, the plan says %+v", from, to, got, settings)
		}
	}
}

func TestOutagesAtRandomAndBurstsReachTheirEdges(t *testing.T) {
	s := mustSpec(t, `
network:
  default: {outages: [{from: 1s, for: 1s}, {kind: gilbert-elliott, up: 30s, down: 5s}]}
  links:
    - from: s
      to: a
      outages: [{kind: gilbert-elliott, up: 1m, down: 1s}]
      loss: {kind: drop, bursts: {p: 1%, r: 25%, k: 99%}}
    - {from: a, to: s, outages: []}
schedule: [{at: 10s, link: [s, a], delay: 1ms}]
`)
	always := []link.Outage{{From: time.Second, To: 2 * time.Second}}
	minute := link.Intermittent{Up: time.Minute, Down: time.Second}
	losses := link.Loss{Drop: true, Bursts: &link.Bursts{P: 0.01, R: 0.25, K: 0.99}, Timeout: 200 * ms}
	equal(t, "default", link.Config{Delay: constant(0), Outages: always,
		Intermittent: link.Intermittent{Up: 30 * time.Second, Down: 5 * time.Second}}, s.Default)
	equal(t, "s to a", link.Config{Delay: constant(0), Intermittent: minute, Loss: losses}, s.edge("s", "a"))
	equal(t, "a to s", link.Config{Delay: constant(0)}, s.edge("a", "s"))
	for _, c := range s.changes() {
		want := s.edge(c.From, c.To)
		want.Delay = constant(ms)
		equal(t, "changed "+c.From+" to "+c.To, want, c.Config)
	}
}

func TestScheduleMakesOutagesOfDownAndUp(t *testing.T) {
	s := mustSpec(t, `
network: {links: [{between: [s, a], delay: 1ms, outages: [{from: 10s, for: 1s}]}]}
schedule:
  - {at: 30s, link: [s, a], do: up}
  - {at: 20s, link: [s, a], do: down}
  - {at: 40s, link: [s, b], do: down}
  - {at: 50s, from: s, to: a, do: down}
  - {at: 50s, from: s, to: a, do: up}
`)
	const sec = time.Second
	both := []link.Outage{{From: 10 * sec, To: 11 * sec}, {From: 20 * sec, To: 30 * sec}}
	forever := []link.Outage{{From: 40 * sec, To: link.Forever}}
	for name, want := range map[string][]link.Outage{"s a": both, "a s": both, "s b": forever, "b s": forever,
		"a b": nil} {
		from, to, _ := strings.Cut(name, " ")
		equal(t, name, want, s.edge(from, to).Outages)
	}
	for _, c := range s.changes() {
		equal(t, fmt.Sprintf("change of %s to %s at %v", c.From, c.To, c.At), s.edge(c.From, c.To).Outages,
			c.Config.Outages)
		if err := c.Config.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestScheduledSettingsPileUpInTheOrderOfTime(t *testing.T) {
	s := mustSpec(t, `
network: {default: {delay: 1ms}, links: [{from: s, to: a, rate: 8 kbit/s}]}
schedule:
  - {at: 2s, from: s, to: a, rate: 16 kbit/s}
  - {at: 1s, link: [s, a], delay: 2s}
  - {at: 3s, from: s, to: "*", loss: {probability: 5%, kind: drop}}
`)
	type seen struct {
		At       time.Duration
		From, To string
		Delay    link.Delay
		Rate     rate.Rate
		Loss     float64
	}
	var got []seen
	for _, c := range s.changes() {
		got = append(got, seen{c.At, c.From, c.To, c.Config.Delay, c.Config.Rate, c.Config.Loss.Probability})
	}
	const sec = time.Second
	want := []seen{
		{sec, "s", "a", constant(2 * sec), rate.Constant(1000), 0}, {sec, "a", "s", constant(2 * sec), nil, 0},
		{2 * sec, "s", "a", constant(2 * sec), rate.Constant(2000), 0},
		{3 * sec, "s", "a", constant(2 * sec), rate.Constant(2000), 0.05}, {3 * sec, "s", "b", constant(ms), nil, 0.05},
	}
	equal(t, "changes", want, got)
}

func TestMistakesOfRolesAndSchedulesAreToldWithTheirPlace(t *testing.T) {
	for _, x := range []struct{ replace, by, more, want string }{
		{"name: a, role: worker", "name: a, role: boss", "",
			"plan.yaml:5:50: nodes[1].role: node a has the role \"boss\", which this architecture does not know " +
				"(accepted: server, worker)"},
		{"name: s, role: server", "name: s, role: worker", "",
			"0 nodes have the role server, which holds the model, or some shards of it, and applies the workers' " +
				"gradients; this architecture needs at least 1"},
		{"name: s, role: server", "name: s, role: worker", "schedule: [{at: 1s, node: s, do: crash}]",
			"0 nodes have the role server"},
		{"", "", "schedule: [{at: 1s, link: [s, a], do: up}]",
			"schedule[0].do: the link from s to a is not down at 1s"},
		{"", "", "schedule: [{at: 200000h, link: [s, a], do: down}, {at: 1000000h, link: [s, a], do: up}]",
			"schedule[1].at: 1000000h is later than a run can be"},
		{"", "", "network: {links: [{between: [s, a], outages: [{from: 1s, for: 2562047h}]}]}",
			"network.links[0].outages: an outage from 1s for 2562047h ends later than a run can; accepted is an end " +
				"up to 876000h"},
		{"", "", "network: {default: {outages: [{from: 2562047h, for: 2562047h}]}}",
			"plan.yaml:7:30: network.default.outages: an outage from 2562047h"},
		{"", "", "network: {links: [{between: [s, a], outages: [{kind: gilbert-elliott, up: 1s, down: 1s}, {kind: " +
			"gilbert-elliott, up: 1s, down: 1s}]}]}",
			"plan.yaml:7:46: network.links[0].outages: the outages name gilbert-elliott twice"},
		{"", "", "train: {batch: 0}", "plan.yaml:7:16: train.batch: 0 is out of range; accepted is 1 to 65536"},
		{"", "", "train: {optimiser: {kind: sgd}}", "train.optimiser: unknown key"},
	} {
		t.Run(x.want, func(t *testing.T) {
			text := strings.Replace(plainPlan, x.replace, x.by, 1) + x.more
			p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
			if err == nil {
				_, err = Default().Read(p)
			}
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v\nwant %s", err, x.want)
			}
		})
	}
}

func TestModelAndSplitAreComparedWithTheDataSetBeforeItIsLoaded(t *testing.T) {
	for _, x := range []struct{ data, model, want string }{
		{"set: nsl-kdd", "layers: [90, 5]", "plan.yaml:2:8: model: the model takes 90 inputs, data set nsl-kdd has 93"},
		{"set: nsl-kdd, encoding: 122", "layers: [93, 5]", "the model takes 93 inputs, data set nsl-kdd has 122"},
		{"set: mnist", "layers: [784, 9]", `the model tells 9 classes apart, data set mnist has 10, ["0" "1" "2" "3" "4" ` +
			`"5" "6" "7"] and 2 more; accepted is layers: [784, 10]`},
		{"set: nsl-kdd, split: {kind: classes, workers: {a: {DOS: 1%}}}", "layers: [93, 5]",
			`plan.yaml:1:29: data.split: split classes: worker "a": unknown class "DOS"; there are ["Normal" "DoS"`},
		{"set: fashion-mnist, split: {kind: classes, workers: {a: {Hat: 1%}}}", "layers: [784, 10]",
			`unknown class "Hat"`},
		{"set: a9a, split: {kind: classes, workers: {c: {+1: 1%}}}", "layers: [123, 2]",
			`unknown worker "c"; there are ["a" "b"]`},
		{"set: a9a, split: {kind: classes, workers: {s: {+1: 1%}}}", "layers: [123, 2]",
			`unknown worker "s"; there are ["a" "b"]`},
		{"set: a9a, split: {kind: classes, workers: {a: {+1: 1%}, b: {-1: 1%}}}", "layers: [123, 2]", ""},
	} {
		text := "data: {" + x.data + "}\nmodel: {kind: mlp, " + x.model +
			"}\narchitecture: {kind: parameter-server}\n" +
			"nodes: [{name: s, role: server}, {name: a}, {name: b}]\nstop: {epochs: 1}\n"
		p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
		if err == nil {
			_, err = Default().Read(p)
		}
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: got %v\nwant %s", x.data, err, x.want)
		}
	}
}

func TestStepsThatTakeNoTimeNeedSomethingToWaitFor(t *testing.T) {
	const nodes = "nodes: [{name: n, count: 3, compute: {step: 0s}}]\n"
	for _, x := range []struct {
		architecture, more string
		refused            bool
	}{
		{"{kind: gossip, wait: false}", "network: {default: {delay: 5ms}}\nstop: {time: 1s}\n", true},
		{"{kind: gossip, wait: false, lead: 2}", "network: {default: {delay: 5ms}}\nstop: {time: 1s}\n", false},
		{"{kind: gossip, period: 1s, wait: false}", "network: {default: {delay: 5ms}}\nstop: {target: 90%, time: 1s}\n",
			true},
		{"{kind: local}", "network: {default: {delay: 5ms}}\nstop: {time: 1s}\n", true},
		{"{kind: local}", "stop: {time: 1s, epochs: 3}\n", false},
		{"{kind: gossip}", "stop: {time: 1s}\n", true},
		{"{kind: gossip}", "network: {default: {delay: 5ms}}\nstop: {time: 1s}\n", false},
		{"{kind: gossip}", "network: {default: {rate: 1 Mbit/s}}\nstop: {time: 1s}\n", false},
		{"{kind: all-reduce}", "network: none\nstop: {time: 1s}\n", true},
		{"{kind: all-reduce}", "network: none\nstop: {steps: 10}\n", false},
		{"{kind: parameter-server, roles: {server: added}}", "stop: {time: 1s}\n", false}, // the server takes time
	} {
		text := "data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\narchitecture: " + x.architecture +
			"\n" + nodes + x.more
		p, err := plan.ReadPlan(parse(t, "plan.yaml", text))
		if err == nil {
			_, err = Default().Read(p)
		}
		if x.refused != (err != nil) || err != nil && !strings.Contains(err.Error(),
			"plan.yaml:4:38: nodes[0].compute: the steps of n1 take no time") {
			t.Errorf("%s with %s: %v", x.architecture, x.more, err)
		}
	}
}

func TestResolvedPlanReadsAsItself(t *testing.T) {
	dir := folder(t)
	s, err := spec(t, dir, `
network:
  default: {delay: {kind: trace, file: trace.csv}}
  links:
    - {between: [s, a], delay: {kind: random-walk, first: 1s..5s, step: 0.5s, min: 50ms}}
    - {from: b, to: s, delay: 7ms}
  topology: {kind: file, file: edges.csv}
schedule:
  - {at: 50s, topology: {kind: file, file: edges.csv}}
  - {at: 30s, link: [s, a], delay: {kind: normal, mean: 1s, std: 1ms}}
  - {at: 40s, link: [s, b], do: down}
  - {at: 45s, topology: tree}
  - {at: 1m, node: a, do: crash}
evaluate: {every: 5 steps}
`)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Plan.Node()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.ReadPlan(parse(t, filepath.Join(dir, "resolved.yaml"), first.YAML()))
	if err != nil {
		t.Fatalf("%v\n%s", err, first.YAML())
	}
	again, err := Default().Read(p)
	if err != nil {
		t.Fatalf("%v\n%s", err, first.YAML())
	}
	second, err := again.Plan.Node()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "resolved text", first.YAML(), second.YAML())
	for _, a := range s.Plan.Nodes {
		for _, b := range s.Plan.Nodes {
			equal(t, "link from "+a.Name+" to "+b.Name, s.edge(a.Name, b.Name), again.edge(a.Name, b.Name))
		}
	}
	equal(t, "changes", s.changes(), again.changes())
	equal(t, "topologies", withoutSections(s.Topologies), withoutSections(again.Topologies))
	for _, spelled := range []string{"{at: 45s, topology: {kind: tree, branching: 2}}", "min: 0s",
		filepath.Join(dir, "edges.csv"), "detect: 1.5s"} {
		if !strings.Contains(first.YAML(), spelled) {
			t.Errorf("%s does not stand in\n%s", spelled, first.YAML())
		}
	}
}

// FuzzRead checks that no plan makes the catalog panic, and that what it makes of one
// is fit for a network.
func FuzzRead(f *testing.F) {
	f.Add(plainPlan)
	f.Add(plainPlan + "network: {default: {delay: {kind: random-walk, first: 1s..5s, step: 0.5s}, loss: " +
		"{probability: 5%}}}")
	f.Add(plainPlan + "schedule: [{at: 1s, link: [s, a], do: down}, {at: 1s, link: [s, '*'], do: up, rate: 8 bit/s}]")
	f.Add(plainPlan + "train: {batch: 8, optimizer: {kind: adam, rate: {kind: warmup, steps: 3, then: 0.1}}}")
	f.Add(strings.Replace(plainPlan, "traffic}",
		"traffic, split: {kind: classes, workers: {a: {DoS: 50%}, b: {DoS: 51%}}}}", 1))
	f.Add(plainPlan + "network: {topology: {kind: small-world, neighbours: 2, rewire: 50%}}\nschedule: [{at: 1s, " +
		"topology: ring}, {at: 2s, topology: {kind: star, centre: b}}]")
	f.Add(plainPlan + "schedule: [{at: 1s, node: a, do: crash}, {at: 2s, node: a, do: join}, {at: 1s, node: b, do: " +
		"join}]\ndetect: 0s")
	f.Fuzz(func(t *testing.T, text string) {
		root, err := syntax.Parse("plan.yaml", []byte(text))
		if err != nil {
			return
		}
		p, err := plan.ReadPlan(root)
		if err != nil {
			return
		}
		c := Default()
		c.Delays.list = c.Delays.list[:len(c.Delays.list)-1] // traces would open files of any name
		c.LinkRates.list = slices.DeleteFunc(c.LinkRates.list,
			func(k Kind[rate.Rate]) bool { return k.Name == "trace" })
		c.Topologies.list = slices.DeleteFunc(c.Topologies.list,
			func(k Kind[topology.Topology]) bool { return k.Name == "file" })
		s, err := c.Read(p)
		if err != nil {
			return
		}
		looked := 0
		for a, b := range s.Plan.Names().Pairs(plan.Ends{From: "*", To: "*"}) {
			if looked++; looked > 10_000 {
				break // of a plan of many nodes not each pair
			}
			course := s.Links.Between(a, b)
			if err := course.Config.Validate(); err != nil {
				t.Errorf("link from %d to %d: %v", a, b, err)
			}
			for _, change := range course.Changes {
				if err := change.Config.Validate(); err != nil {
					t.Errorf("change from %d to %d at %v: %v", a, b, change.At, err)
				}
			}
		}
	})
}

// The tags of outages at random write out the bounds that links have.
func TestOutagesThatAPlanAcceptsAreThoseThatLinksDo(t *testing.T) {
	const least, most, ratio = ms, link.MaxDelay, 1000
	for _, x := range []struct {
		up, down time.Duration
		good     bool
	}{
		{least, least, true}, {most, most, true}, {most, least, true}, {least, ratio * least, true},
		{least - 1, least, false}, {least, least - 1, false}, {most + 1, most, false}, {most, most + 1, false},
		{least, ratio * (least + 1), false},
	} {
		n, err := syntax.Parse("p", fmt.Appendf(nil, "at: {kind: gilbert-elliott, up: %v, down: %v}",
			unit.Duration(x.up), unit.Duration(x.down)))
		if err != nil {
			t.Fatal(err)
		}
		read, given := settings.Decode(n.At("at"), &plan.Outage{}), link.Intermittent{Up: x.up, Down: x.down}.Validate()
		if (read == nil) != x.good || (given == nil) != x.good {
			t.Errorf("up %v, down %v: of a plan %v, of a link %v", x.up, x.down, read, given)
		}
	}
}

func TestOverheadIsThatOfTheLinkOrOfTheDefault(t *testing.T) {
	s := mustSpec(t, `
network:
  default: {overhead: 78 B}
  links: [{between: [s, a], overhead: 1 KiB}, {between: [s, b], delay: 1ms}]
`)
	for pair, want := range map[string]int64{"s a": 1024, "a s": 1024, "s b": 78, "a b": 78} {
		from, to, _ := strings.Cut(pair, " ")
		equal(t, pair, want, s.edge(from, to).Overhead)
	}
	equal(t, "resolved", "{between: [s, b], delay: 1ms}", s.Plan.Network.Source.At("links").Items[1].Flow())
	_, err := plan.ReadPlan(parse(t, "plan.yaml", plainPlan+"network: {default: {overhead: 78}}\n"))
	if err == nil || !strings.Contains(err.Error(), "network.default.overhead: \"78\" has no unit") {
		t.Error(err)
	}
}
