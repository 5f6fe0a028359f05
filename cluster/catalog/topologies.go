package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/topology"
)

// Topology says who is whose neighbour from an instant on.
type Topology struct {
	At       time.Duration
	Topology topology.Topology
	// Section is where the plan says so, for errors.
	Section *syntax.Node
}

func addTopologies(c *Catalog) {
	t := &c.Topologies
	t.Declare("complete", topology.Complete{}, "every two nodes are neighbours")
	t.Declare("ring", topology.Ring{}, "each node has the one before it and the one after it")
	t.Declare("star", topology.Star{}, "one node, the first unless centre names another, has all others")
	t.Declare("tree", topology.Tree{Branching: 2},
		"balanced: each node has its parent and branching children; 1 makes a line")
	t.Declare("grid", topology.Grid{}, "rows and columns, as square as the nodes allow")
	t.Declare("torus", topology.Torus{}, "a grid whose opposite sides are joined")
	t.Declare("hypercube", topology.Hypercube{},
		"a power of two of nodes, joined where their positions differ in one binary digit")
	t.Declare("exponential", topology.ExponentialGraph{}, "hops of 2^j + 1 for j = 0 … ⌊log2(n−1)⌋ (Lian et al. 2018)")
	t.Declare("random-regular", topology.RandomRegular{},
		"degree random neighbours for each node, drawn anew until all are connected (Steger and Wormald 1999)")
	t.Declare(
		"erdos-renyi",
		topology.ErdosRenyi{},
		"every two nodes with one probability, or with degree neighbours in the mean, drawn anew until all are connected "+
			"(Gilbert 1959)",
	)
	t.Declare(
		"small-world",
		topology.SmallWorld{Neighbours: 4, Rewire: 0.1},
		"a ring of the nearest neighbours, each of whose edges is rewired with a probability, drawn anew until all are "+
			"connected (Watts and Strogatz 1998)",
	)
	type file struct {
		File   string       `plan:"file,required" doc:"the edges, beside the plan unless its path is absolute"`
		Source *syntax.Node `plan:",node"`
	}
	t.Add(Define("file",
		"edges from a file beside the plan, one a line: two names, or positions from 0, with a comma between them",
		func() file { return file{} },
		func(c *Catalog, s *file) (topology.Topology, error) {
			return readBeside(c, s.Source.At("file"), &s.File, "edge list", topology.ReadEdges)
		}))
}

// topology reads a topology of nodes of these names: a word, or a map with settings.
func (c *Catalog) topology(n *syntax.Node, nodes []string) (topology.Topology, *syntax.Node, error) {
	t, resolved, err := c.Topologies.readWord(c, n)
	if err != nil {
		return nil, nil, err
	}
	if err := t.Validate(nodes); err != nil {
		return nil, nil, Located(n, err)
	}
	return t, resolved, nil
}

// topologies resolves the network's topology and those that follow it.
func (c *Catalog) topologies(s *Spec) error {
	nodes := make([]string, len(s.Plan.Nodes))
	for i := range nodes {
		nodes[i] = s.Plan.Nodes[i].Name
	}
	add := func(at time.Duration, section **syntax.Node) error {
		t, resolved, err := c.topology(*section, nodes)
		s.Topologies = append(s.Topologies, Topology{At: at, Topology: t, Section: *section})
		*section = resolved
		return err
	}
	if s.Plan.Network.Topology == nil {
		s.Plan.Network.Topology = syntax.NewScalar("complete")
	}
	if err := add(0, &s.Plan.Network.Topology); err != nil {
		return err
	}
	for _, change := range byTime(s.Plan.Schedule) {
		if change.Topology == nil {
			continue
		}
		if err := add(time.Duration(change.At), &change.Topology); err != nil {
			return err
		}
	}
	return nil
}

// byTime sorts changes. Changes at one instant keep the schedule's order.
func byTime(schedule []plan.Change) []*plan.Change {
	changes := make([]*plan.Change, len(schedule))
	for i := range schedule {
		changes[i] = &schedule[i]
	}
	slices.SortStableFunc(changes, func(a, b *plan.Change) int { return cmp.Compare(a.At, b.At) })
	return changes
}

// attendance checks that a run begins with as many nodes of each role as the architecture needs.
// Who goes later may leave too few: what becomes of the others then is what such a schedule asks.
func (s *Spec) attendance() error {
	absent := s.Plan.Absent()
	present := map[string]int{}
	for i, role := range s.Roles {
		if !absent[i] {
			present[role.Name]++
		}
	}
	for _, e := range s.Plan.NodeEvents() {
		if e.Node == len(s.Roles) {
			continue // the coordinator
		}
		if r := s.Roles[e.Node]; present[r.Name] < r.Min {
			return syntax.Errorf(e.Source, "before this %d nodes have the role %s; this architecture needs %s",
				present[r.Name], r.Name, wanted(r))
		}
	}
	return nil
}
