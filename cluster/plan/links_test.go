package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawNodes draws nodes, some of them in groups.
func drawNodes(t *rapid.T) []NodeSpec {
	var nodes []NodeSpec
	for g := range rapid.IntRange(1, 5).Draw(t, "entries") {
		if rapid.Bool().Draw(t, "alone") {
			nodes = append(nodes, NodeSpec{Name: fmt.Sprintf("alone%d", g)})
			continue
		}
		group := fmt.Sprintf("group%d", g)
		for i := range rapid.IntRange(1, 4).Draw(t, "members") {
			nodes = append(nodes, NodeSpec{Name: memberName(group, i), Group: group})
		}
	}
	return nodes
}

// drawEnds draws the ends of a link between the nodes.
func drawEnds(t *rapid.T, nodes []NodeSpec) Ends {
	var known []string
	for _, n := range nodes {
		known = append(known, n.Name, n.Name, Everyone)
		if n.Group != "" {
			known = append(known, n.Group)
		}
	}
	name := rapid.SampledFrom(known)
	a, b := name.Draw(t, "a"), name.Draw(t, "b")
	if rapid.Bool().Draw(t, "both") {
		return Ends{Between: []string{a, b}}
	}
	return Ends{From: a, To: b}
}

// answers reports whether a link's end with this name means the node, among others.
func (s NodeSpec) answers(name string) bool {
	return name == Everyone || name == s.Name || name == s.Group && name != ""
}

// allPairs walks over all pairs of nodes, as [Names.Pairs] does not.
func allPairs(nodes []NodeSpec, e Ends) (pairs [][2]int32) {
	for a := range nodes {
		for b := range nodes {
			named := false
			for _, d := range e.Directions() {
				named = named || nodes[a].answers(d[0]) && nodes[b].answers(d[1])
			}
			if named && a != b {
				pairs = append(pairs, [2]int32{int32(a), int32(b)})
			}
		}
	}
	return pairs
}

func TestPairsAreThoseThatAWalkOverAllPairsFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{Nodes: drawNodes(t)}
		names := p.Names()
		for range 3 {
			ends := drawEnds(t, p.Nodes)
			var got [][2]int32
			for from, to := range names.Pairs(ends) {
				got = append(got, [2]int32{from, to})
			}
			want := allPairs(p.Nodes, ends)
			if !slices.Equal(got, want) || names.Count(ends) != len(want) {
				t.Fatalf("%+v of %+v: %d pairs %v, want %v", ends, p.Nodes, names.Count(ends), got, want)
			}
		}
	})
}
