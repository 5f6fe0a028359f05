package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

func mustParse(t *testing.T, text string) *syntax.Node {
	t.Helper()
	n, err := syntax.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func readGood(t *testing.T, name string) *syntax.Node {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata/good", name))
	if err != nil {
		t.Fatal(err)
	}
	n, err := syntax.Parse(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheDesignsExampleIsRead(t *testing.T) {
	root := readGood(t, "async-ps-unequal-links.yaml")
	points, err := Points(root)
	if err != nil {
		t.Fatal(err)
	}
	var labels [][]Label
	for _, p := range points {
		labels = append(labels, p.Labels)
	}
	if diff := cmp.Diff([][]Label{{{"data.split", "iid"}}, {{"data.split", "share 20 %"}}}, labels); diff != "" {
		t.Error(diff)
	}
	p, err := ReadPlan(points[1].Root)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Data.Flow(); got != "{set: nsl-kdd, encoding: 93, test: 25%, split: {kind: classes, workers: {fast: "+
		"{dos: 100%, u2r: 20%}, slow: {u2r: 80%}}}}" {
		t.Errorf("data of the second point: %s", got)
	}
	if p.Name != "async-ps-unequal-links" || p.Seed != 1 || p.Repeats != 20 || p.Record != RecordSummary ||
		p.Sweep != nil {
		t.Errorf("top: %+v", p)
	}
	if *p.Stop.Target != 0.94 || p.Stop.Epochs != 10 || p.Stop.Time != unit.Duration(10*time.Minute) ||
		p.Stop.Steps != 0 {
		t.Errorf("stop: %+v", p.Stop)
	}
	if p.Evaluate.Every != (unit.Interval{Epochs: 0.05}) || p.Evaluate.Lag != nil {
		t.Errorf("evaluate: %+v", p.Evaluate)
	}
	if len(p.Nodes) != 3 || *p.Nodes[1].Compute.Step != unit.Duration(5*time.Millisecond) ||
		p.Nodes[0].Compute.Speed != DefaultSpeed {
		t.Errorf("nodes: %+v", p.Nodes)
	}
	links := p.Links()
	for pair, want := range map[[2]string]string{{"server", "fast"}: "1ms", {"fast", "server"}: "1ms",
		{"slow", "server"}: "100ms", {"slow", "fast"}: "0ms"} {
		if got := links.Edge(pair[0], pair[1]).Delay.Text; got != want {
			t.Errorf("delay %v = %s, want %s", pair, got, want)
		}
	}
}

func TestGroupsLinksAndScheduleAreRead(t *testing.T) {
	points, err := Points(readGood(t, "groups.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 4 || points[1].Labels[0].Value != "2" || points[1].Labels[1].Value != "walk" ||
		points[2].Labels[0].Value != "4" {
		t.Fatalf("points: %+v", points)
	}
	p, err := ReadPlan(points[3].Root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range p.Nodes {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff([]string{"hub", "edge1", "edge2", "edge3", "edge4", "gpu"}, names); diff != "" {
		t.Error(diff)
	}
	if p.Seed != 1<<64-1 || p.Data.Text != "synthetic" || !p.Nodes[5].Compute.Native ||
		p.Nodes[0].Uplink.Text != "1 Gbit/s" ||
		p.Nodes[1].Downlink.Text != "12 Mbit/s" {
		t.Errorf("plan: %+v", p)
	}
	links := p.Links()
	if e := links.Edge("edge1", "hub"); e.Delay.Text != "2ms" || !e.Loss.Drop || !e.Reorder ||
		e.Rate.Text != "unlimited" {
		t.Errorf("the last entry, completed from the default, should count: %+v", e)
	}
	if e := links.Edge("edge2", "hub"); e.Delay.Flow() != "{kind: random-walk, first: 1s}" ||
		e.Rate.Text != "819.2 kbit/s" ||
		e.Loss.Probability != 0.005 || e.Loss.Attempts != 0 {
		t.Errorf("group's link: %+v", e)
	}
	if e := links.Edge("gpu", "edge3"); len(e.Outages) != 2 || e.Outages[1].From != unit.Duration(time.Minute) {
		t.Errorf("everyone's link: %+v", e)
	}
	count := 0
	for from, to := range p.Names().Pairs(p.Schedule[1].Ends()) {
		count++
		if from != 0 || !strings.HasPrefix(p.Nodes[to].Name, "edge") {
			t.Errorf("pair %d -> %d", from, to)
		}
	}
	if count != 4 {
		t.Errorf("%d pairs from hub to edge", count)
	}
}

// TestEdgeIsTheLastEntryThatNamesThePair compares the lookup with a walk over all entries.
func TestEdgeIsTheLastEntryThatNamesThePair(t *testing.T) {
	points, err := Points(readGood(t, "groups.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPlan(points[2].Root)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]LinkSettings{}
	for _, l := range p.Network.Links {
		for from, to := range p.Names().Pairs(l.Ends) {
			want[p.Nodes[from].Name+">"+p.Nodes[to].Name] = l.over(p.Network.Default)
		}
	}
	links := p.Links()
	for _, a := range p.Nodes {
		for _, b := range p.Nodes {
			w, named := want[a.Name+">"+b.Name]
			if !named {
				w = p.Network.Default
			}
			if diff := cmp.Diff(w, links.Edge(a.Name, b.Name)); a.Name != b.Name && diff != "" {
				t.Errorf("%s -> %s: %s", a.Name, b.Name, diff)
			}
		}
	}
}

func TestAResolvedPlanSpellsDefaultsOutAndReadsBackEqual(t *testing.T) {
	for _, name := range []string{"async-ps-unequal-links.yaml", "groups.yaml", "comings-and-goings.yaml", "bare.yaml",
		"intermittent.yaml", "threads.yaml"} {
		root := readGood(t, name)
		points, err := Points(root)
		if err != nil {
			t.Fatal(err)
		}
		for i, point := range points {
			p, err := ReadPlan(point.Root)
			if err != nil {
				t.Fatal(err)
			}
			if p.Sweep, err = Axes(root); err != nil {
				t.Fatal(err)
			}
			tree, err := p.Node()
			if err != nil {
				t.Fatal(err)
			}
			text := tree.YAML()
			if i == 0 {
				expectFile(t, "testdata/resolved/"+name, text)
			}
			again, err := ReadPlan(mustParse(t, text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			second, err := again.Node()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, second.YAML()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			more, err := Points(tree)
			if err != nil || len(more) != len(points) || !slices.Equal(more[i].Labels, points[i].Labels) {
				t.Errorf("the resolved sweep: %v %+v", err, more)
			}
		}
	}
}

func TestMembersThatDifferAreNotFolded(t *testing.T) {
	points, _ := Points(readGood(t, "groups.yaml"))
	p, err := ReadPlan(points[0].Root)
	if err != nil {
		t.Fatal(err)
	}
	p.Nodes[2].Uplink = Rate{syntax.NewScalar("1 MB/s")}
	n, err := p.Node()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(n.At("nodes").Items); got != 4 {
		t.Errorf("%d nodes written, want hub, edge1, edge2, gpu", got)
	}
}

func TestPointsAreTheProductWithTheLastAxisFastest(t *testing.T) {
	root := mustParse(t,
		"a: 0\nsweep: {a: [1, {label: two, value: 2}], b.c: [x, {label: y, value: [0, 1]}, {label: z, k: 1}]}\n")
	before := root.Flow()
	points, err := Points(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, fmt.Sprint(p.Labels, p.Root))
	}
	want := []string{
		"[{a 1} {b.c x}] {a: 1, b: {c: x}}", "[{a 1} {b.c y}] {a: 1, b: {c: [0, 1]}}",
		"[{a 1} {b.c z}] {a: 1, b: {c: {k: 1}}}",
		"[{a two} {b.c x}] {a: 2, b: {c: x}}", "[{a two} {b.c y}] {a: 2, b: {c: [0, 1]}}",
		"[{a two} {b.c z}] {a: 2, b: {c: {k: 1}}}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if root.Flow() != before {
		t.Error("the plan was changed")
	}
	if points, err := Points(mustParse(t, "a: 1\n")); err != nil || len(points) != 1 || len(points[0].Labels) != 0 {
		t.Errorf("no sweep: %v %v", points, err)
	}
}

func TestSweepKeepsItsLabelsWhenItIsWritten(t *testing.T) {
	for _, sweep := range []string{
		"{a: [1, x]}", "{a: [{label: one, value: 1}, 2]}", "{a: [{label: a list, value: [1, 2]}, [3]]}",
		"{a: [{label: m, k: 1}, {k: 2}]}", "{a: [{label: v, value: {value: 1}}, {value: 2}]}",
		"{a: [{label: none}, {}]}",
		"{a: [{label: l, value: {label: m, k: 1}}]}", "{a: [{label: " + strings.Repeat("l", MaxLabel) + ", value: 1}]}",
	} {
		axes, err := Axes(mustParse(t, "sweep: "+sweep+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		written, err := axes.MarshalPlan()
		if err != nil || written.Flow() != sweep {
			t.Errorf("%s is written as %s, %v", sweep, written.Flow(), err)
		}
	}
	if _, err := Axes(mustParse(t, "sweep: {a: [{label: "+strings.Repeat("l",
		MaxLabel+1)+", value: 1}]}\n")); err == nil || !strings.Contains(err.Error(), "1 to 200 bytes") {
		t.Errorf("a label that is too long: %v", err)
	}
}

func TestPointsOfALargePlanAreBounded(t *testing.T) {
	numbers := strings.TrimSuffix(strings.Repeat("1, ", 30_000), ", ")
	axis := make([]string, 300)
	for i := range axis {
		axis[i] = fmt.Sprint(i)
	}
	root := mustParse(t, "a: ["+numbers+"]\nsweep: {seed: ["+strings.Join(axis, ", ")+"]}\n")
	if _, err := Points(root); err == nil || !strings.Contains(err.Error(), "8000000") {
		t.Errorf("error: %v", err)
	}
}

func TestSetAndLookupFollowThePathsThatErrorsPrint(t *testing.T) {
	root := readGood(t, "groups.yaml")
	var walk func(n *syntax.Node)
	walk = func(n *syntax.Node) {
		if path := n.Path(); path != "" {
			if got, ok := root.Lookup(path); !ok || got != n {
				t.Errorf("%s leads to %v", path, got)
			}
		}
		for _, c := range n.Items {
			walk(c)
		}
		for _, f := range n.Fields {
			walk(f.Value)
		}
	}
	walk(root)
	for path, want := range map[string]string{
		"nodes.edge.compute.step": "1m30s", "nodes.0.name": "hub", "network.links.edge-hub.delay.first": "1s..5s",
		"network.links.hub-edge.delay.first": "1s..5s", "network.links.edge1->hub.reorder": "true",
		"network.links[2].between[1]": "gpu",
	} {
		if n, ok := root.Lookup(path); !ok || n.Text != want {
			t.Errorf("%s leads to %v, want %s", path, n, want)
		}
	}
	for _, path := range []string{"", "nodes.none", "nodes[9]", "seed.x", "nodes..x", "nodes[x]", "nodes[1", `"nodes`,
		"nodes[0]x", "nodes[-1]", "network[0]"} {
		if n, ok := root.Lookup(path); ok {
			t.Errorf("%q leads to %v", path, n)
		}
	}
}

func TestSetPutsTheValueWhereLookupFindsIt(t *testing.T) {
	for _, path := range []string{
		"seed", "data", "model.layers", "model.new.key", "nodes.edge.count", "nodes[2].compute",
		"network.links.hub-edge.delay",
		"stop.target", `sweep."nodes.edge.count"[1]`, "train.optimizer.rate",
	} {
		root := readGood(t, "groups.yaml")
		value := syntax.NewScalar("7")
		if err := root.Set(path, value); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, ok := root.Lookup(path); !ok || got != value {
			t.Errorf("%s leads to %v", path, got)
		}
	}
}

func TestAssignmentsFromTheCommandLine(t *testing.T) {
	for _, c := range []struct{ in, path, value string }{
		{"seed=5", "seed", "5"},
		{"nodes.fast.compute.step = 5ms", "nodes.fast.compute.step", "5ms"},
		{"model={kind: mlp, layers: [1, 2]}", "model", "{kind: mlp, layers: [1, 2]}"},
		{"network.links.server->slow.delay=1ms", "network.links.server->slow.delay", "1ms"},
		{`data.note="a=b"`, "data.note", `a=b`},
		{`sweep."data.x"=[1, 2]`, `sweep."data.x"`, "[1, 2]"},
		{"train=null", "train", "null"},
	} {
		path, value, err := syntax.ParseAssignment(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		got := value.Flow()
		if value.Kind == syntax.Scalar {
			got = value.Text
		}
		if path != c.path || got != c.value {
			t.Errorf("%s: %s = %s", c.in, path, got)
		}
	}
}

func TestErrorsFromTheCommandLineShowTheArgument(t *testing.T) {
	root := readGood(t, "async-ps-unequal-links.yaml")
	var b strings.Builder
	for _, in := range []string{
		"seed", "seed=", "=5", "a..b=5", "seed=[1", "seed={a: 1, a: 2}", "nodes.fsat.compute=native",
		"nodes.fast.compute.step=5",
		"stop.epoch=3", "seed=&a 1", "seed=1\x00", "größe.α=1", "data.split.α=*x",
		"repeats=" + strings.Repeat("9", 500), "stop.target=\n101%",
	} {
		path, value, err := syntax.ParseAssignment(in)
		tree := root.Clone().Without("sweep")
		if err == nil {
			err = tree.Set(path, value)
		}
		if err == nil {
			_, err = ReadPlan(tree)
		}
		if err == nil {
			fmt.Fprintf(&b, "%q is accepted here\n", in)
			continue
		}
		var e *syntax.Error
		if !errors.As(err, &e) || e.Pos.File != "--set" {
			t.Errorf("%s: %v has no place", in, err)
		}
		fmt.Fprintln(&b, err)
	}
	expectFile(t, "testdata/set.txt", b.String())
}

func TestAPlanOfNoVersionIsReadAsOneOfThisVersion(t *testing.T) {
	const rest = "data: {set: mnist}\nmodel: {kind: mlp}\narchitecture: {kind: gossip}\nnodes: [{name: a}]\nstop: " +
		"{epochs: 1}\n"
	var texts []string
	for _, version := range []string{"", "version: 4\n"} {
		p, err := ReadPlan(mustParse(t, version+rest))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := p.Node()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, tree.YAML())
	}
	if texts[0] != texts[1] || !strings.HasPrefix(texts[0], "version: 4\n") || !strings.Contains(texts[0], "of: mean") {
		t.Errorf("without a version:\n%s\nwith it:\n%s", texts[0], texts[1])
	}
}

func TestALinkWithoutAValueForARateIsAsInTheDefault(t *testing.T) {
	p, err := ReadPlan(mustParse(t, `data: {set: mnist}
model: {kind: mlp}
architecture: {kind: gossip}
nodes: [{name: a}, {name: b}]
network: {default: {rate: 2 MB/s, reorder: true}, links: [{between: [a, b], delay: 1ms, rate: null, reorder: }]}
stop: {epochs: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Links().Edge("a", "b"); e.Rate.Text != "16 Mbit/s" || !e.Reorder || e.Delay.Text != "1ms" {
		t.Errorf("rate %v, reorder %v, delay %v", e.Rate, e.Reorder, e.Delay)
	}
}

func TestPairedValuesGoOnTogether(t *testing.T) {
	for sweep, want := range map[string][]string{
		"{zip: {a: [1, 2, 3], b: [x, y, z]}}":                       {"1x", "2y", "3z"},
		"{zip: {a: [1, 1, 2], b: [x, y, x]}}":                       {"1x", "1y", "2x"},
		"{c: [p, q], zip: {a: [1, 2], b: [x, y]}}":                  {"1xp", "2yp", "1xq", "2yq"},
		"{zip: {a: [1, 2], b: [x, y]}, c: [p, q]}":                  {"1xp", "1xq", "2yp", "2yq"},
		"{zip: [{a: [1, 2], b: [x, y]}, {c: [p, q], d: [r, s]}]}":   {"1xpr", "1xqs", "2ypr", "2yqs"},
		"{zip: {a: [1, {label: two, value: 2}], b: [x, {k: 1}]}}":   {"1x", "2{k: 1}"},
		"{d: [r, s], zip: [{a: [1], b: [x]}, {c: [p]}], e: [t, u]}": {"1xprt", "1xpru", "1xpst", "1xpsu"},
	} {
		root := mustParse(t, "sweep: "+sweep+"\n")
		points, err := Points(root)
		if err != nil {
			t.Fatalf("%s: %v", sweep, err)
		}
		var got []string
		for _, p := range points {
			text := ""
			for _, key := range []string{"a", "b", "c", "d", "e"} {
				if v, ok := p.Root.Get(key); ok {
					text += v.Flow()
				}
			}
			got = append(got, text)
			for k, v := range p.Values {
				if axes, _ := Axes(root); !v.Equal(axes[k].Values[p.Choice[k]].Value) {
					t.Errorf("%s: value %d of axis %d is %s", sweep, p.Choice[k], k, v)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", sweep, diff)
		}
		axes, err := Axes(root)
		if err != nil {
			t.Fatal(err)
		}
		if written, err := axes.MarshalPlan(); err != nil || written.Flow() != sweep {
			t.Errorf("%s is written as %s, %v", sweep, written.Flow(), err)
		}
	}
}
