package adpsgd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors"
)

// partners are, for each active node, the nodes that it chooses from, ascending; passive nodes have
// none. Absent nodes are included, and edges of all topologies of the run.
func (a Architecture) partners(view *actors.View) ([][]int32, error) {
	if a.Graph == Exponential {
		return exponential(view)
	}
	n, ever := len(view.Members), view.Ever()
	if ever.Complete() && n > 2 {
		return nil, fmt.Errorf("the complete topology of %d nodes is not bipartite, as ad-psgd needs it; %s", n,
			alternatives)
	}
	active, err := colours(ever)
	if err != nil {
		return nil, err
	}
	choices := make([][]int32, n)
	for i := range choices {
		if active[i] {
			choices[i] = ever.Potential(i)
		}
	}
	return choices, nil
}

const alternatives = "take an even ring, a grid, a hypercube, or graph: exponential without a topology"

// colours says which nodes are active: those at an even distance from the first node of
// their connected part.
func colours(view *actors.View) ([]bool, error) {
	const none = -1
	distance := make([]int, len(view.Members))
	for i := range distance {
		distance[i] = none
	}
	var queue []int
	for first := range distance {
		if distance[first] != none {
			continue
		}
		distance[first] = 0
		for queue = append(queue[:0], first); len(queue) > 0; queue = queue[1:] {
			i := queue[0]
			for _, j := range view.Potential(i) {
				switch {
				case distance[j] == none:
					distance[j] = distance[i] + 1
					queue = append(queue, int(j))
				case (distance[j]-distance[i])%2 == 0:
					return nil, fmt.Errorf("the topology, with all edges that the schedule gives it, is not "+
						"bipartite, as ad-psgd needs it: %s and %s are neighbours and on an odd ring; %s",
						view.Members[i].Name, view.Members[j].Name, alternatives)
				}
			}
		}
	}
	active := make([]bool, len(distance))
	for i, d := range distance {
		active[i] = d%2 == 0
	}
	return active, nil
}

var errOwnTopology = errors.New(
	"graph: exponential brings its own topology, and the run has another; leave one of them out")

// exponential are the choices of Exponential.
func exponential(view *actors.View) ([][]int32, error) {
	n := len(view.Members)
	if !view.Ever().Complete() {
		return nil, errOwnTopology
	}
	if n%2 != 0 {
		return nil, fmt.Errorf("graph: exponential needs an even number of peers, there are %d", n)
	}
	choices := make([][]int32, n)
	for i := 0; i < n; i += 2 {
		choices[i] = append(choices[i], int32(i+1))
		for power := 2; power+1 < n; power *= 2 {
			choices[i] = append(choices[i], int32((i+power+1)%n))
		}
		slices.Sort(choices[i])
	}
	return choices, nil
}

// present are the choices that the view's topology has.
func present(view *actors.View, choices [][]int32) [][]int32 {
	now := make([][]int32, len(choices))
	for i, others := range choices {
		for _, j := range others {
			if view.Linked(i, int(j)) {
				now[i] = append(now[i], j)
			}
		}
	}
	return now
}

// choosers are, ascending, the nodes that choose from among others a passive one.
func choosers(choices [][]int32, node int) (nodes []int32) {
	for i, others := range choices {
		if _, ok := slices.BinarySearch(others, int32(node)); ok {
			nodes = append(nodes, int32(i))
		}
	}
	return nodes
}
