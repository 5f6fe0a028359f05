package topology

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/link/portable"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// MaxGraphTries bounds how often a random topology is drawn until one is found in which everybody
// can reach everybody.
const MaxGraphTries = 1000

// RandomRegular gives every node the same number of random neighbours (Steger and Wormald 1999,
// "Generating random regular graphs quickly"): nearly uniform among all such graphs, drawn again
// until one is connected. More than half of the other nodes are drawn as the complement of a graph
// of fewer.
type RandomRegular struct {
	// Degree is how many neighbours each node has, from 1 to n − 1; n·Degree must be even.
	Degree int `plan:"degree,required" range:"1.." doc:"neighbours of each node"`
}

// ErdosRenyi joins every two nodes with the same probability, independently of all others (Gilbert
// 1959, "Random graphs"), drawn again until everybody can reach everybody. Exactly one field is
// given.
type ErdosRenyi struct {
	// Probability of an edge, above 0 and at most 1; or
	Probability float64 `plan:"probability,omitzero" unit:"fraction" doc:"that two nodes are neighbours"`
	// Degree, the mean number of neighbours of a node, above 0 and at most n − 1.
	Degree float64 `plan:"degree,omitzero" range:">0" doc:"the mean number of neighbours, in place of probability; connected graphs have more"`
}

// SmallWorld is a ring in which each node is joined with the nearest ones on both sides, and in
// which then every edge gets another end at random, with a probability (Watts and Strogatz 1998,
// "Collective dynamics of 'small-world' networks"). It is drawn again until everybody can reach
// everybody.
type SmallWorld struct {
	// Neighbours of each node before rewiring: even, from 2 to n − 1.
	Neighbours int `plan:"neighbours" range:"2.." doc:"of each node in the ring, an even number, before any edge is rewired"`
	// Rewire is the probability of an edge to be rewired, from 0 to 1.
	Rewire float64 `plan:"rewire" unit:"fraction" doc:"the probability of each edge to be rewired"`
}

// Validate reports the field that does not fit, as a *field.Error.
func (t RandomRegular) Validate(nodes []string) error {
	n := len(nodes)
	switch {
	case t.Degree < 1 || t.Degree >= n:
		return field.Errorf(t, "Degree", "from 1 to %d, the number of other nodes", n-1)
	case n%2 != 0 && t.Degree%2 != 0:
		return field.Errorf(t, "Degree", "even, because the number of nodes, %d, is odd", n)
	}
	return validateEdges(t, "Degree", float64(n)*float64(t.Degree)/2)
}

// validateEdges refuses a field that asks for too many edges.
func validateEdges(v any, name string, edges float64) error {
	if edges > MaxGraphEdges {
		return field.Errorf(v, name,
			"less: these are %.0f edges, at most %d are accepted; a complete topology needs none of them",
			edges, MaxGraphEdges)
	}
	return nil
}

// Edges draws n·Degree/2 edges.
func (t RandomRegular) Edges(nodes []string, r *rand.Rand) ([][2]int32, error) {
	n := len(nodes)
	for range MaxGraphTries {
		if edges := t.draw(n, r); edges != nil && beyond(n, edges) == 0 {
			return edges, nil
		}
	}
	return nil, fmt.Errorf("none of %d random graphs of %d nodes with %d neighbours each was connected; give more "+
		"neighbours", MaxGraphTries, n, t.Degree)
}

// draw returns a random regular graph, connected or not, or nil if it came to a dead end.
func (t RandomRegular) draw(n int, r *rand.Rand) [][2]int32 {
	if fewer := n - 1 - t.Degree; fewer < t.Degree {
		absent, ok := pairing(n, fewer, r)
		if !ok {
			return nil
		}
		edges := make([][2]int32, 0, n*t.Degree/2)
		for i := range n {
			for j := range i {
				if !absent.has(j, i) {
					edges = append(edges, edge(j, i))
				}
			}
		}
		return edges
	}
	pairs, ok := pairing(n, t.Degree, r)
	if !ok {
		return nil
	}
	return pairs.list
}

// pairs is a set of edges that remembers the order in which they were added.
type pairs struct {
	list [][2]int32
	set  map[[2]int32]struct{} // the smaller end first
}

func newPairs(capacity int) *pairs {
	return &pairs{make([][2]int32, 0, capacity), make(map[[2]int32]struct{}, capacity)}
}

func (p *pairs) has(a, b int) bool {
	_, found := p.set[edge(min(a, b), max(a, b))]
	return found
}

func (p *pairs) add(a, b int) {
	p.list = append(p.list, edge(a, b))
	p.set[edge(min(a, b), max(a, b))] = struct{}{}
}

// pairing gives each of n nodes as many points as its degree and joins random pairs of points,
// refusing those that would be loops or repeat an edge; false if at last no pair is left that could
// be joined.
func pairing(n, degree int, r *rand.Rand) (*pairs, bool) {
	points := make([]int32, 0, n*degree)
	for i := range n {
		for range degree {
			points = append(points, int32(i))
		}
	}
	p := newPairs(n * degree / 2)
	suitable := func(a, b int32) bool { return a != b && !p.has(int(a), int(b)) }
	const patience = 64 // refusals in a row after which it pays to look at all pairs
	refused := 0
	for len(points) > 0 {
		i, j := r.IntN(len(points)), r.IntN(len(points))
		if !suitable(points[i], points[j]) {
			if refused++; refused%patience == 0 && !anyPair(points, suitable) {
				return nil, false
			}
			continue
		}
		refused = 0
		p.add(int(points[i]), int(points[j]))
		last := len(points) - 1
		points[max(i, j)] = points[last] // first, in case it is last − 1
		points[min(i, j)] = points[last-1]
		points = points[:last-1]
	}
	return p, true
}

func anyPair(points []int32, suitable func(a, b int32) bool) bool {
	for i, a := range points {
		for _, b := range points[:i] {
			if suitable(a, b) {
				return true
			}
		}
	}
	return false
}

// Validate reports the field that does not fit, as a *field.Error.
func (t ErdosRenyi) Validate(nodes []string) error {
	n := float64(len(nodes))
	switch {
	case (t.Probability != 0) == (t.Degree != 0):
		return fmt.Errorf("a random graph needs the probability of an edge or the mean degree of a node, one of them")
	case t.Degree != 0 && !(t.Degree > 0 && t.Degree <= n-1):
		return field.Errorf(t, "Degree", "above 0 and at most %.0f, the number of other nodes", n-1)
	case t.Degree != 0:
		return validateEdges(t, "Degree", n*t.Degree/2)
	case !(t.Probability > 0 && t.Probability <= 1):
		return field.Errorf(t, "Probability", "above 0 and at most 1")
	}
	return validateEdges(t, "Probability", n*(n-1)/2*t.Probability)
}

// Edges draws p·n·(n−1)/2 edges in the mean.
func (t ErdosRenyi) Edges(nodes []string, r *rand.Rand) ([][2]int32, error) {
	n, p := len(nodes), t.Probability
	if t.Degree != 0 {
		p = t.Degree / float64(n-1)
	}
	var edges [][2]int32
	tries := MaxGraphTries
	if surelyIsolated(n, p) {
		tries = 0
	}
	for range tries {
		edges = independent(edges[:0], n, p, r)
		if beyond(n, edges) == 0 {
			return edges, nil
		}
	}
	return nil, fmt.Errorf("none of %d random graphs of %d nodes with an edge probability of %.3g (%.3g neighbours "+
		"in the mean) was connected; "+
		"nearly all are with more than ln n = %.3g neighbours", MaxGraphTries, n, p, p*float64(n-1),
		portable.Log(float64(n)))
}

// surelyIsolated reports whether a random graph has isolated nodes almost surely: their number is
// about Poisson distributed with a mean above 30, so it is 0 with a probability below 1e-13.
func surelyIsolated(n int, p float64) bool {
	const most = 30
	return portable.Log(float64(n))+float64(n-1)*portable.Log(1-p) > portable.Log(most)
}

// independent appends each pair of n nodes with probability p. What it draws is how many pairs are
// skipped up to the next edge (Batagelj and Brandes 2005, "Efficient generation of large random
// networks", algorithm 1).
func independent(edges [][2]int32, n int, p float64, r *rand.Rand) [][2]int32 {
	total := n * (n - 1) / 2
	row, first := 1, 0 // pairs from first on, of which there are row, have row as their larger end
	for k := 0; ; k++ {
		if p < 1 {
			skip := portable.Log(1-r.Float64()) / portable.Log(1-p)
			if !(skip >= 0 && skip < float64(total)) { // beyond the last pair, or p is too small to be told from 0
				return edges
			}
			k += int(skip)
		}
		if k >= total {
			return edges
		}
		for k-first >= row {
			first += row
			row++
		}
		edges = append(edges, edge(k-first, row))
	}
}

// Validate reports the field that does not fit, as a *field.Error.
func (t SmallWorld) Validate(nodes []string) error {
	n := len(nodes)
	if t.Neighbours < 2 || t.Neighbours%2 != 0 || t.Neighbours >= n {
		return field.Errorf(t, "Neighbours", "even, from 2 to %d, the number of other nodes", n-1)
	}
	return cmp.Or(field.Check(t), validateEdges(t, "Neighbours", float64(n)*float64(t.Neighbours)/2))
}

// Edges draws n·Neighbours/2 edges.
func (t SmallWorld) Edges(nodes []string, r *rand.Rand) ([][2]int32, error) {
	n := len(nodes)
	for range MaxGraphTries {
		if edges := t.draw(n, r); beyond(n, edges) == 0 {
			return edges, nil
		}
	}
	return nil, fmt.Errorf("none of %d small worlds of %d nodes with %d neighbours, rewired with probability %.3g, "+
		"was connected; "+
		"give more neighbours", MaxGraphTries, n, t.Neighbours, t.Rewire)
}

func (t SmallWorld) draw(n int, r *rand.Rand) [][2]int32 {
	p := newPairs(n * t.Neighbours / 2)
	degree := make([]int, n)
	for hop := 1; hop <= t.Neighbours/2; hop++ {
		for i := range n {
			p.add(i, (i+hop)%n)
			degree[i] += 2
		}
	}
	for k := range p.list {
		a, b := int(p.list[k][0]), int(p.list[k][1])
		// A node that is everybody's neighbour has nobody to turn to.
		if r.Float64() >= t.Rewire || degree[a] == n-1 {
			continue
		}
		c := r.IntN(n)
		for c == a || p.has(a, c) {
			c = r.IntN(n)
		}
		delete(p.set, edge(min(a, b), max(a, b)))
		p.set[edge(min(a, c), max(a, c))] = struct{}{}
		p.list[k][1] = int32(c)
		degree[b]--
		degree[c]++
	}
	return p.list
}
