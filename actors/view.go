package actors

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// View says who takes part in a run. Views are issued and numbered by the run's
// coordinator alone.
type View struct {
	// Number counts the views of the run, from 1.
	Number uint64
	// Members are all nodes of the plan, in its order, those that are not there included;
	// a member's position is its Node.
	Members []Member

	graph   Graph
	union   Graph            // of all topologies of the run
	present []int32          // positions of those that are there, ascending
	roles   map[string][]int // and by role
}

// NewView returns the view with a number, of these nodes, in the order of the plan, with the
// topology of now and the edges of all topologies of the run. It gives the members their ranks.
func NewView(number uint64, members []Member, now, ever Graph) *View {
	v := &View{Number: number, Members: members, graph: now, union: ever, roles: map[string][]int{}}
	for i := range members {
		m := &members[i]
		if m.Rank = -1; m.Present {
			m.Rank = len(v.roles[m.Role])
			v.roles[m.Role] = append(v.roles[m.Role], i)
			v.present = append(v.present, int32(i))
		}
	}
	return v
}

// Has reports whether the run has a node at this position, present or not: the number that a
// message bears is not to be trusted.
func (v *View) Has(node int32) bool { return node >= 0 && int(node) < len(v.Members) }

// Coordinator is the name and address of the node that the coordinator of a run
// lives on. No node of a plan may bear it.
const Coordinator = "coordinator"

// CoordinatorPID addresses the coordinator of a run.
func CoordinatorPID() *actor.PID { return actor.NewPID(Coordinator, Coordinator+"/run") }

// Member is one node of a view.
type Member struct {
	// Name is the node's name in the plan and its address.
	Name string
	// Role is what the architecture calls the node's part, such as "worker".
	Role string
	// Site is a number for where the node is: 0 for all where that is not known.
	Site int32
	// Present says whether the node takes part: it has joined, and neither left nor failed.
	Present bool
	// Leaving says that the node is not Present any longer, and that its actor, a [Leaver], still
	// hands over what it holds.
	Leaving bool
	// Rank is the member's place among the present members of its role, from 0; −1 if it is absent.
	Rank int
	// PID addresses the member's actor.
	PID *actor.PID
}

// Role returns the positions of the present members of a role, in the order of their ranks. They
// are shared and read-only.
func (v *View) Role(role string) []int { return v.roles[role] }

// Degree is the number of a node's neighbours: of those that it has an edge to in
// the topology and that are present. The node itself need not be.
func (v *View) Degree(node int) int {
	if v.graph != nil {
		n := 0
		for _, i := range v.graph[node] {
			if v.Members[i].Present {
				n++
			}
		}
		return n
	}
	if v.Members[node].Present {
		return len(v.present) - 1
	}
	return len(v.present)
}

// Neighbour returns the position of a node's i-th neighbour, in the order of
// the plan; 0 ≤ i < Degree(node). It takes no memory, also where the topology is complete.
func (v *View) Neighbour(node, i int) int {
	if v.graph != nil {
		for _, neighbour := range v.graph[node] {
			if !v.Members[neighbour].Present {
				continue
			}
			if i == 0 {
				return int(neighbour)
			}
			i--
		}
		panic("actors: the node has fewer neighbours")
	}
	if v.Members[node].Present && int(v.present[i]) >= node {
		i++
	}
	return int(v.present[i])
}

// Neighbours returns the positions of a node's neighbours, in the order of the plan.
func (v *View) Neighbours(node int) []int {
	neighbours := make([]int, 0, v.Degree(node))
	if v.graph == nil {
		for i := range v.Degree(node) {
			neighbours = append(neighbours, v.Neighbour(node, i))
		}
		return neighbours
	}
	for _, i := range v.graph[node] {
		if v.Members[i].Present {
			neighbours = append(neighbours, int(i))
		}
	}
	return neighbours
}

// Potential returns the positions of a node's neighbours in the topology, whether they
// are present or not, in the order of the plan. It is shared and read-only where the
// topology is not complete.
func (v *View) Potential(node int) []int32 { return v.graph.neighbours(node, len(v.Members)) }

// Linked reports whether two nodes are neighbours in the topology, present or not.
func (v *View) Linked(i, j int) bool { return v.graph.linked(i, j) }

// Complete reports whether every node is every other's neighbour.
func (v *View) Complete() bool { return v.graph == nil }

// Ever is this view with all edges that any topology of the run has.
func (v *View) Ever() *View {
	ever := *v
	ever.graph = v.union
	return &ever
}

// Graph is an undirected topology: for each node the positions of its neighbours,
// ascending. A nil Graph is the complete one.
type Graph [][]int32

// neighbours returns the positions of a node's neighbours among n nodes. They are shared, and
// read-only, unless the graph is complete.
func (g Graph) neighbours(node, n int) []int32 {
	if g != nil {
		return g[node]
	}
	all := make([]int32, 0, n-1)
	for i := range n {
		if i != node {
			all = append(all, int32(i))
		}
	}
	return all
}

// linked reports whether there is an edge between two nodes.
func (g Graph) linked(i, j int) bool {
	if g == nil {
		return i != j
	}
	_, found := slices.BinarySearch(g[i], int32(j))
	return found
}

// Union is the graph of all edges that any of some graphs has: that graph itself, if there is one,
// and the complete one without any.
func Union(graphs []Graph) Graph {
	if len(graphs) == 0 || slices.ContainsFunc(graphs, func(g Graph) bool { return g == nil }) {
		return nil
	}
	if len(graphs) == 1 {
		return graphs[0]
	}
	all := make(Graph, len(graphs[0]))
	for i := range all {
		for _, g := range graphs {
			all[i] = append(all[i], g[i]...)
		}
		slices.Sort(all[i])
		all[i] = slices.Compact(all[i])
	}
	return all
}

// Validate returns an error that says at which node a graph of n nodes is none:
// neighbours out of range, not ascending, a node that is its own neighbour, or an
// edge that only one of its ends knows.
func (g Graph) Validate(n int) error {
	if g == nil {
		return nil
	}
	if len(g) != n {
		return fmt.Errorf("a topology of %d nodes for %d", len(g), n)
	}
	for i, neighbours := range g {
		for k, j := range neighbours {
			switch {
			case j < 0 || int(j) >= n:
				return fmt.Errorf("node %d has neighbour %d, outside of 0 to %d", i, j, n-1)
			case int(j) == i:
				return fmt.Errorf("node %d is its own neighbour", i)
			case k > 0 && neighbours[k-1] >= j:
				return fmt.Errorf("the neighbours of node %d are not in ascending order", i)
			}
			if _, found := slices.BinarySearch(g[j], int32(i)); !found {
				return fmt.Errorf("node %d has neighbour %d, but not the other way round", i, j)
			}
		}
	}
	return nil
}
