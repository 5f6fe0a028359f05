package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Topology says who is whose neighbour from an instant on.
type Topology struct {
	At       time.Duration
	Topology link.Topology
	// Section is where the plan says so, for errors.
	Section *syntax.Node
}

func addTopologies(c *Catalog) {
	fixed := func(name, doc string, t link.Topology) {
		c.Topologies.Add(Define(name, doc, func() none { return none{} },
			func(*Catalog, *none) (link.Topology, error) { return t, nil }))
	}
	fixed("complete", "every two nodes are neighbours", link.Complete{})
	fixed("ring", "each node has the one before it and the one after it", link.Ring{})
	type star struct {
		Centre string `plan:"centre,omitzero" doc:"the node in the middle; default: the first"`
	}
	c.Topologies.Add(Define("star", "one node, the first unless centre names another, has all others",
		func() star { return star{} },
		func(_ *Catalog, s *star) (link.Topology, error) { return link.Star{Centre: s.Centre}, nil }))
	type tree struct {
		Branching int `plan:"branching" range:"1.." doc:"children of a node"`
	}
	c.Topologies.Add(Define("tree", "balanced: each node has its parent and branching children; 1 makes a line",
		func() tree { return tree{2} },
		func(_ *Catalog, s *tree) (link.Topology, error) { return link.Tree{Branching: s.Branching}, nil }))
	type grid struct {
		Rows    int `plan:"rows,omitzero" range:"0.." doc:"default: as square as the nodes allow"`
		Columns int `plan:"columns,omitzero" range:"0.." doc:"default: as square as the nodes allow"`
	}
	c.Topologies.Add(Define("grid", "rows and columns, as square as the nodes allow", func() grid { return grid{} },
		func(_ *Catalog, s *grid) (link.Topology, error) {
			return link.Grid{Rows: s.Rows, Columns: s.Columns}, nil
		}))
	c.Topologies.Add(Define("torus", "a grid whose opposite sides are joined", func() grid { return grid{} },
		func(_ *Catalog, s *grid) (link.Topology, error) {
			return link.Torus{Rows: s.Rows, Columns: s.Columns}, nil
		}))
	fixed("hypercube", "a power of two of nodes, joined where their positions differ in one binary digit",
		link.Hypercube{})
	fixed("exponential", "hops of 2^j + 1 for j = 0 … ⌊log2(n−1)⌋ (Lian et al. 2018)", link.ExponentialGraph{})
	addRandomTopologies(c)
	type file struct {
		File   string       `plan:"file,required" doc:"the edges, beside the plan unless its path is absolute"`
		Source *syntax.Node `plan:",node"`
	}
	c.Topologies.Add(Define("file",
		"edges from a file beside the plan, one a line: two names, or positions from 0, with a comma between them",
		func() file { return file{} },
		func(c *Catalog, s *file) (link.Topology, error) {
			return readBeside(c, s.Source.At("file"), &s.File, "edge list", link.ReadEdges)
		}))
}

// addRandomTopologies adds those that differ from seed to seed.
func addRandomTopologies(c *Catalog) {
	type regular struct {
		Degree int `plan:"degree,required" range:"1.." doc:"neighbours of each node"`
	}
	c.Topologies.Add(Define("random-regular", "degree random neighbours for each node (Steger and Wormald 1999)",
		func() regular { return regular{} },
		func(_ *Catalog, s *regular) (link.Topology, error) { return link.RandomRegular{Degree: s.Degree}, nil }))
	type erdosRenyi struct {
		Probability unit.Fraction `plan:"probability,omitzero" doc:"that two nodes are neighbours"`
		Degree      float64       `plan:"degree,omitzero" range:">0" doc:"the mean number of neighbours, in place of probability"`
	}
	c.Topologies.Add(Define("erdos-renyi",
		"every two nodes with one probability, or so that degree is the mean number of neighbours (Gilbert 1959)",
		func() erdosRenyi { return erdosRenyi{} },
		func(_ *Catalog, s *erdosRenyi) (link.Topology, error) {
			return link.ErdosRenyi{Probability: float64(s.Probability), Degree: s.Degree}, nil
		}))
	type smallWorld struct {
		Neighbours int           `plan:"neighbours" range:"1.." doc:"of each node in the ring, before any edge is rewired"`
		Rewire     unit.Fraction `plan:"rewire" doc:"the share of the edges that is rewired"`
	}
	c.Topologies.Add(Define("small-world",
		"a ring of the nearest neighbours, a share of whose edges is rewired at random (Watts and Strogatz 1998)",
		func() smallWorld { return smallWorld{Neighbours: 4, Rewire: 0.1} },
		func(_ *Catalog, s *smallWorld) (link.Topology, error) {
			return link.SmallWorld{Neighbours: s.Neighbours, Rewire: float64(s.Rewire)}, nil
		}))
}

// topology reads a topology of nodes of these names: a word, or a map with settings.
func (c *Catalog) topology(n *syntax.Node, nodes []string) (link.Topology, *syntax.Node, error) {
	section := n
	if n.Kind == syntax.Scalar {
		section = n.As("kind")
	}
	t, resolved, err := c.Topologies.read(c, section, "kind")
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

// byTime sorts changes; those of one instant stay in the order of the schedule.
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
