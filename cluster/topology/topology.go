// Package topology says which nodes of a run are neighbours, that is, whom an architecture talks
// to: regular graphs, random ones, and lists of edges. There is a link between any two nodes,
// neighbours or not.
package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// MaxGraphEdges bounds the edges of a topology that is not complete.
const MaxGraphEdges = 1 << 22

// Graph is an undirected topology: for each node the positions of its neighbours, ascending. A nil
// Graph is the complete one.
type Graph [][]int32

// Topology describes who is whose neighbour. A description is plain data, never changed by its use.
// Programs can add their own kinds.
type Topology interface {
	// Validate returns an error if the description is none, or does not fit nodes of these names,
	// in the order of the plan. It is a *field.Error where a field is at fault.
	Validate(nodes []string) error
	// Edges returns the edges as pairs of positions in nodes, each in either direction; one that is
	// named twice counts once. It is called after Validate has returned nil. Whatever is left to
	// chance is drawn from r alone.
	Edges(nodes []string, r *rand.Rand) ([][2]int32, error)
}

// NewGraph carries a topology out. Everybody can reach everybody in what it returns; the error
// names two nodes that cannot.
func NewGraph(t Topology, nodes []string, r *rand.Rand) (Graph, error) {
	if err := t.Validate(nodes); err != nil {
		return nil, err
	}
	if _, complete := t.(Complete); complete {
		return nil, nil
	}
	edges, err := t.Edges(nodes, r)
	if err != nil {
		return nil, err
	}
	for _, e := range edges {
		if e[0] == e[1] || min(e[0], e[1]) < 0 || int(max(e[0], e[1])) >= len(nodes) {
			return nil, fmt.Errorf("the topology has an edge from node %d to node %d; an edge joins two of nodes 0 "+
				"to %d", e[0], e[1], len(nodes)-1)
		}
	}
	if b := beyond(len(nodes), edges); b > 0 {
		return nil, fmt.Errorf("nodes %s and %s cannot reach each other in this topology", nodes[0], nodes[b])
	}
	return adjacency(len(nodes), edges), nil
}

// adjacency lists the neighbours of each of n nodes, in one piece of memory.
func adjacency(n int, edges [][2]int32) Graph {
	ends := make([]int, n+1)
	for _, e := range edges {
		ends[e[0]+1]++
		ends[e[1]+1]++
	}
	for i := range n {
		ends[i+1] += ends[i]
	}
	all := make([]int32, ends[n])
	free := slices.Clone(ends[:n])
	for _, e := range edges {
		all[free[e[0]]] = e[1]
		all[free[e[1]]] = e[0]
		free[e[0]]++
		free[e[1]]++
	}
	g := make(Graph, n)
	for i := range g {
		neighbours := all[ends[i]:ends[i+1]:ends[i+1]]
		slices.Sort(neighbours)
		g[i] = slices.Compact(neighbours)
	}
	return g
}

// beyond returns the first node that cannot be reached from node 0, or 0 if there is none:
// union-find with path halving.
func beyond(n int, edges [][2]int32) int {
	parent := make([]int32, n)
	for i := range parent {
		parent[i] = int32(i)
	}
	root := func(i int32) int32 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, e := range edges {
		// The smaller root stays, so that node 0 is the root of all that it can reach.
		a, b := root(e[0]), root(e[1])
		parent[max(a, b)] = min(a, b)
	}
	for i := range n {
		if root(int32(i)) != 0 {
			return i
		}
	}
	return 0
}

// Complete joins every two nodes.
type Complete struct{}

// Ring joins each node with the next one, and the last with the first.
type Ring struct{}

// Star joins one node with all others.
type Star struct {
	// Centre is the name of the node in the middle; empty for the first.
	Centre string `plan:"centre,omitzero" doc:"the node in the middle; default: the first"`
}

// Tree is balanced: the parent of node i > 0 is node ⌊(i−1)/Branching⌋.
type Tree struct {
	// Branching is how many children a node has that has them all, at least 1; 1 makes a line.
	Branching int `plan:"branching" range:"1.." doc:"children of a node"`
}

// Grid lays the nodes out row by row and joins each with those above, below, left and right.
// Without rows and columns it is as square as its nodes allow, and at least two of each; of one
// that is given the other follows.
type Grid struct {
	// 0 = as the nodes allow.
	Rows    int `plan:"rows,omitzero" range:"0.." doc:"default: nodes ÷ columns, or as square as the nodes allow"`
	Columns int `plan:"columns,omitzero" range:"0.." doc:"default: nodes ÷ rows, or as square as the nodes allow"`
}

// Torus is a grid whose last column is joined with the first one and whose last row is with the
// first one.
type Torus Grid

// Hypercube joins nodes whose positions differ in one binary digit. It needs 2^k nodes.
type Hypercube struct{}

// ExponentialGraph joins node i with nodes i ± (2^j + 1) mod n for j = 0 … ⌊log2(n−1)⌋ (Lian et al.
// 2018, "Asynchronous decentralized parallel stochastic gradient descent", section 5). It needs 3
// nodes. Because of j = 0 it is not bipartite.
type ExponentialGraph struct{}

var (
	_ Topology = Complete{}
	_ Topology = Ring{}
	_ Topology = Star{}
	_ Topology = Tree{}
	_ Topology = Grid{}
	_ Topology = Torus{}
	_ Topology = Hypercube{}
	_ Topology = ExponentialGraph{}
	_ Topology = RandomRegular{}
	_ Topology = ErdosRenyi{}
	_ Topology = SmallWorld{}
	_ Topology = EdgeList{}
)

// Validate accepts any nodes.
func (Complete) Validate([]string) error { return nil }

// Edges returns all pairs. NewGraph does without them.
func (Complete) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	var edges [][2]int32
	for i := range nodes {
		for j := range i {
			edges = append(edges, edge(j, i))
		}
	}
	return edges, nil
}

func edge(a, b int) [2]int32 { return [2]int32{int32(a), int32(b)} }

// Validate accepts any nodes.
func (Ring) Validate([]string) error { return nil }

// Edges returns the ring's edges: n, or n − 1 for one or two nodes.
func (Ring) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	edges, _ := Tree{Branching: 1}.Edges(nodes, nil)
	if n := len(nodes); n > 2 {
		edges = append(edges, edge(0, n-1))
	}
	return edges, nil
}

// Validate reports a centre that is no node, as a *field.Error.
func (t Star) Validate(nodes []string) error {
	if t.Centre != "" && !slices.Contains(nodes, t.Centre) {
		return field.Errorf(t, "Centre", "the name of a node")
	}
	return nil
}

// Edges returns n − 1 edges to the centre.
func (t Star) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	centre := max(slices.Index(nodes, t.Centre), 0)
	var edges [][2]int32
	for i := range nodes {
		if i != centre {
			edges = append(edges, edge(centre, i))
		}
	}
	return edges, nil
}

// Validate reports a branching below 1, as a *field.Error.
func (t Tree) Validate([]string) error { return field.Check(t) }

// Edges returns n − 1 edges, each from a parent to a child.
func (t Tree) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	edges := make([][2]int32, 0, len(nodes))
	for i := 1; i < len(nodes); i++ {
		edges = append(edges, edge((i-1)/t.Branching, i))
	}
	return edges, nil
}

// Validate returns an error if the nodes do not fill the grid, as a *field.Error where a field is
// at fault.
func (t Grid) Validate(nodes []string) error {
	_, _, err := t.shape(len(nodes))
	return err
}

// shape returns the rows and columns of a grid of n nodes.
func (t Grid) shape(n int) (rows, columns int, err error) {
	rows, columns = t.Rows, t.Columns
	if err := field.Check(t); err != nil {
		return 0, 0, err
	}
	switch {
	case rows > 0 && n%rows != 0:
		return 0, 0, field.Errorf(t, "Rows", "a divisor of the %d nodes", n)
	case columns > 0 && n%columns != 0:
		return 0, 0, field.Errorf(t, "Columns", "a divisor of the %d nodes", n)
	case rows > 0 && columns > 0 && n/rows != columns:
		return 0, 0, field.Errorf(t, "Columns", "%d: there are %d nodes in %d rows", n/rows, n, rows)
	case rows > 0:
		return rows, n / rows, nil
	case columns > 0:
		return n / columns, columns, nil
	}
	for d := 2; d <= n/d; d++ {
		if n%d == 0 {
			rows = d
		}
	}
	if rows == 0 {
		return 0, 0, fmt.Errorf("%d nodes fill no rows and columns, two or more of each; take another number of "+
			"nodes, or give rows: 1", n)
	}
	return rows, n / rows, nil
}

// Edges returns rows·(columns − 1) + columns·(rows − 1) edges.
func (t Grid) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	_, columns, err := t.shape(len(nodes))
	var edges [][2]int32
	for i := range nodes {
		if (i+1)%columns != 0 {
			edges = append(edges, edge(i, i+1))
		}
		if i+columns < len(nodes) {
			edges = append(edges, edge(i, i+columns))
		}
	}
	return edges, err
}

// Validate returns an error if the nodes do not fill the torus, as a *field.Error where a field is
// at fault.
func (t Torus) Validate(nodes []string) error { return Grid(t).Validate(nodes) }

// Edges returns two edges for each node where there are three or more rows and columns: of two, the
// last one is the neighbour of the first one already.
func (t Torus) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	rows, columns, err := Grid(t).shape(len(nodes))
	edges, _ := Grid(t).Edges(nodes, nil)
	if columns > 2 {
		for r := range rows {
			edges = append(edges, edge(r*columns, (r+1)*columns-1))
		}
	}
	if rows > 2 {
		for c := range columns {
			edges = append(edges, edge(c, (rows-1)*columns+c))
		}
	}
	return edges, err
}

// Validate returns an error if there are not 2^k nodes.
func (Hypercube) Validate(nodes []string) error {
	if n := len(nodes); n == 0 || n&(n-1) != 0 {
		return fmt.Errorf("%d nodes are no hypercube; it needs a power of two of them", n)
	}
	return nil
}

// Edges returns n·log2(n)/2 edges.
func (Hypercube) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	edges := [][2]int32{}
	for bit := 1; bit < len(nodes); bit <<= 1 {
		for i := range nodes {
			if i&bit == 0 {
				edges = append(edges, edge(i, i|bit))
			}
		}
	}
	return edges, nil
}

// Validate returns an error if there are fewer than three nodes.
func (ExponentialGraph) Validate(nodes []string) error {
	if n := len(nodes); n < 3 {
		return fmt.Errorf("%d nodes are no exponential graph; it needs at least 3", n)
	}
	return nil
}

// Edges returns at most n·(⌊log2(n−1)⌋ + 1) different edges.
func (ExponentialGraph) Edges(nodes []string, _ *rand.Rand) ([][2]int32, error) {
	n := len(nodes)
	var edges [][2]int32
	for power := 1; power <= n-1; power <<= 1 {
		for i := range n {
			if j := (i + power + 1) % n; j != i {
				edges = append(edges, edge(i, j))
			}
		}
	}
	return edges, nil
}
