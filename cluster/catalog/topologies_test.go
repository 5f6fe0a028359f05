package catalog

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/topology"
)

func withoutSections(ts []Topology) (bare []Topology) {
	for _, t := range ts {
		bare = append(bare, Topology{At: t.At, Topology: t.Topology})
	}
	return bare
}

func TestTopologiesAreInTheOrderOfTime(t *testing.T) {
	s := mustSpec(t, `
network: {topology: ring}
schedule:
  - {at: 2s, topology: {kind: star, centre: b}}
  - {at: 1s, topology: {kind: erdos-renyi, probability: 50%}}
  - {at: 1s, link: [s, a], do: down}
`)
	equal(t, "topologies", []Topology{
		{Topology: topology.Ring{}}, {At: time.Second, Topology: topology.ErdosRenyi{Probability: 0.5}},
		{At: 2 * time.Second, Topology: topology.Star{Centre: "b"}},
	}, withoutSections(s.Topologies))
	equal(t, "without a word", []Topology{{Topology: topology.Complete{}}}, withoutSections(mustSpec(t, "").Topologies))
}

func TestFileOfEdgesNamesThePlansNodes(t *testing.T) {
	dir := folder(t)
	s, err := spec(t, dir, "network: {topology: {kind: file, file: edges.csv}}")
	if err != nil {
		t.Fatal(err)
	}
	g, err := topology.NewGraph(s.Topologies[0].Topology, []string{"s", "a", "b"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "graph", topology.Graph{{1, 2}, {0}, {0}}, g)

	write(t, filepath.Join(dir, "edges.csv"), "s,a\ns,c\n")
	_, err = spec(t, dir, "network: {topology: {kind: file, file: edges.csv}}")
	for _, want := range []string{filepath.Join(dir, "plan.yaml") + ":7:21: network.topology: ",
		filepath.Join(dir, "edges.csv") + `:2: there is no node "c"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestRolesAreFilledWhenARunBegins(t *testing.T) {
	for _, x := range []struct{ schedule, want string }{
		{"{at: 1s, node: a, do: crash}", ""},
		{"{at: 1s, node: a, do: crash}, {at: 2s, node: a, do: join}, {at: 3s, node: b, do: leave}", ""},
		{"{at: 1s, node: s, do: pause, for: 5s}, {at: 2s, node: coordinator, do: crash}", ""},
		{"{at: 2s, node: b, do: join}, {at: 3s, node: a, do: crash}", ""},
		{"{at: 1s, node: s, do: crash}", ""},
		{"{at: 1s, node: a, do: crash}, {at: 3s, node: b, do: leave}", ""},
		{"{at: 3s, node: b, do: leave}, {at: 1s, node: a, do: crash}, {at: 2s, node: a, do: join}", ""},
		{"{at: 3s, node: b, do: leave}, {at: 1s, node: a, do: crash}, {at: 4s, node: a, do: join}", ""},
		{"{at: 1s, node: a, do: join}, {at: 1s, node: b, do: join}",
			"schedule[0]: before this 0 nodes have the role worker"},
		{"{at: 1s, node: s, do: join}",
			"schedule[0]: before this 0 nodes have the role server; this architecture needs at least 1"},
		{"{at: 2h, node: s, do: join}, {at: 1s, node: a, do: leave}",
			"schedule[0]: before this 0 nodes have the role server"},
	} {
		_, err := spec(t, "", "schedule: ["+x.schedule+"]")
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v\nwant %s", x.schedule, err, x.want)
		}
	}
}

func TestInstantOfAnyChangeIsBounded(t *testing.T) {
	for _, change := range []string{"node: a, do: leave", "topology: ring", "link: [s, a], do: down"} {
		_, err := spec(t, "", "schedule: [{at: 2000000h, "+change+"}]")
		if err == nil || !strings.Contains(err.Error(), "schedule[0].at: 2000000h is later than a run can be") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestTopologyOfTheScheduleIsTriedOnThePlansNodes(t *testing.T) {
	_, err := spec(t, "", "schedule: [{at: 1s, topology: hypercube}]")
	if err == nil || !strings.Contains(err.Error(), "plan.yaml:7:31: schedule[0].topology: 3 nodes are no hypercube") {
		t.Error(err)
	}
}

func TestUsersTopologyStandsBesideTheOthers(t *testing.T) {
	c := Default()
	c.Topologies.Add(Define("line", "one after the other", func() struct{} { return struct{}{} },
		func(*Catalog, *struct{}) (topology.Topology, error) { return topology.Tree{Branching: 1}, nil }))
	got, resolved, err := c.topology(syntax.NewText("line"), []string{"a", "b"})
	if err != nil || got != (topology.Tree{Branching: 1}) || resolved.Flow() != "{kind: line}" {
		t.Errorf("%v, %v, %v", got, resolved, err)
	}
}
