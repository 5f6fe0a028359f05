package topology_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/topology"
)

func nodeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node%d", i)
	}
	return names
}

// mustGraph makes a graph and checks what holds for all: ascending neighbours, both ends of an edge
// know it, no node is its own neighbour, everybody reaches everybody.
func mustGraph(t testing.TB, of topology.Topology, n int, seed uint64) topology.Graph {
	t.Helper()
	g, err := topology.NewGraph(of, nodeNames(n), rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatalf("%+v of %d nodes: %v", of, n, err)
	}
	if len(g) != n {
		t.Fatalf("%+v of %d nodes has %d", of, n, len(g))
	}
	matrix := map[[2]int32]bool{}
	for i, neighbours := range g {
		for k, j := range neighbours {
			if k > 0 && neighbours[k-1] >= j || int(j) == i {
				t.Fatalf("%+v: the neighbours of %d are %v", of, i, neighbours)
			}
			matrix[[2]int32{int32(i), j}] = true
		}
	}
	for e := range matrix {
		if !matrix[[2]int32{e[1], e[0]}] {
			t.Fatalf("%+v: edge %v has one direction", of, e)
		}
	}
	if far := distances(g, 0); len(far) != n {
		t.Fatalf("%+v of %d nodes: node 0 reaches %d", of, n, len(far))
	}
	return g
}

// distances walks breadth first.
func distances(g topology.Graph, from int32) map[int32]int {
	far := map[int32]int{from: 0}
	for queue := []int32{from}; len(queue) > 0; queue = queue[1:] {
		for _, j := range g[queue[0]] {
			if _, seen := far[j]; !seen {
				far[j] = far[queue[0]] + 1
				queue = append(queue, j)
			}
		}
	}
	return far
}

// shape sums a graph up.
type shape struct{ edges, least, most, diameter int }

func shapeOf(g topology.Graph) shape {
	s := shape{least: math.MaxInt}
	for i, neighbours := range g {
		s.edges += len(neighbours)
		s.least, s.most = min(s.least, len(neighbours)), max(s.most, len(neighbours))
		for _, d := range distances(g, int32(i)) {
			s.diameter = max(s.diameter, d)
		}
	}
	s.edges /= 2
	return s
}

func TestFixedTopologiesHaveTheirDegreesEdgesAndDiameters(t *testing.T) {
	for _, c := range []struct {
		topology topology.Topology
		n        int
		want     shape
	}{
		{topology.Ring{}, 1, shape{0, 0, 0, 0}},
		{topology.Ring{}, 2, shape{1, 1, 1, 1}},
		{topology.Ring{}, 3, shape{3, 2, 2, 1}},
		{topology.Ring{}, 17, shape{17, 2, 2, 8}},
		{topology.Star{}, 1, shape{0, 0, 0, 0}},
		{topology.Star{}, 9, shape{8, 1, 8, 2}},
		{topology.Tree{Branching: 1}, 6, shape{5, 1, 2, 5}},
		{topology.Tree{Branching: 2}, 15, shape{14, 1, 3, 6}},
		{topology.Tree{Branching: 3}, 13, shape{12, 1, 4, 4}},
		{topology.Tree{Branching: 100}, 9, shape{8, 1, 8, 2}},
		{topology.Grid{}, 12, shape{17, 2, 4, 5}}, // 3 × 4
		{topology.Grid{Rows: 2}, 12, shape{16, 2, 3, 6}},
		{topology.Grid{Columns: 12}, 12, shape{11, 1, 2, 11}},
		{topology.Grid{}, 25, shape{40, 2, 4, 8}},
		{topology.Torus{}, 12, shape{24, 4, 4, 3}}, // 3 × 4
		{topology.Torus{}, 25, shape{50, 4, 4, 4}},
		{topology.Torus{Rows: 2, Columns: 5}, 10, shape{15, 3, 3, 3}},
		{topology.Torus{}, 4, shape{4, 2, 2, 2}},
		{topology.Torus{Rows: 1}, 7, shape{7, 2, 2, 3}},
		{topology.Hypercube{}, 1, shape{0, 0, 0, 0}},
		{topology.Hypercube{}, 2, shape{1, 1, 1, 1}},
		{topology.Hypercube{}, 32, shape{80, 5, 5, 5}},
	} {
		if got := shapeOf(mustGraph(t, c.topology, c.n, 0)); got != c.want {
			t.Errorf("%T%+v of %d nodes: %+v, want %+v", c.topology, c.topology, c.n, got, c.want)
		}
	}
}

func TestCompleteTopologyIsTheNilGraphAndItsEdgesAreAllPairs(t *testing.T) {
	if g, err := topology.NewGraph(topology.Complete{}, nodeNames(5), nil); g != nil || err != nil {
		t.Errorf("%v, %v", g, err)
	}
	edges, err := topology.Complete{}.Edges(nodeNames(5), nil)
	if len(edges) != 10 || err != nil {
		t.Errorf("%v, %v", edges, err)
	}
}

func TestStarHasTheCentreThatIsNamed(t *testing.T) {
	g := mustGraph(t, topology.Star{Centre: "node3"}, 5, 0)
	if diff := cmp.Diff(topology.Graph{{3}, {3}, {3}, {0, 1, 2, 4}, {3}}, g); diff != "" {
		t.Error(diff)
	}
}

// TestExponentialGraphHasTheHopsOfThePaper compares with the definition, pair by pair.
func TestExponentialGraphHasTheHopsOfThePaper(t *testing.T) {
	for n := 3; n < 70; n++ {
		g := mustGraph(t, topology.ExponentialGraph{}, n, 0)
		want := make(topology.Graph, n)
		for i := range n {
			for j := range n {
				joined := false
				for k := 0; k <= int(math.Log2(float64(n-1))); k++ {
					hop := int(math.Pow(2, float64(k))) + 1
					joined = joined || (i+hop)%n == j || (j+hop)%n == i
				}
				if joined && i != j {
					want[i] = append(want[i], int32(j))
				}
			}
		}
		if diff := cmp.Diff(want, g); diff != "" {
			t.Fatalf("%d nodes: %s", n, diff)
		}
	}
	if got, want := shapeOf(mustGraph(t, topology.ExponentialGraph{}, 16, 0)), (shape{64, 8, 8, 2}); got != want {
		t.Errorf("16 nodes: %+v, want %+v", got, want) // hops 2, 3, 5, 9
	}
}

func TestRandomRegularGraphsAreRegularAndConnected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, degree int }{
		{2, 1}, {4, 2}, {4, 3}, {5, 2}, {10, 3}, {10, 7}, {11, 10}, {50, 2}, {60, 29}, {60, 30}, {100, 49}, {100, 50},
		{101, 96}, {1000, 4},
	} {
		got := shapeOf(mustGraph(t, topology.RandomRegular{Degree: c.degree}, c.n, 7))
		if got.edges != c.n*c.degree/2 || got.least != c.degree || got.most != c.degree {
			t.Errorf("%d nodes with %d neighbours each: %+v", c.n, c.degree, got)
		}
	}
}

// frequencies draws graphs and counts each.
func frequencies(t *testing.T, of topology.Topology, n, draws int) map[string]int {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 12))
	count := map[string]int{}
	for range draws {
		g, err := topology.NewGraph(of, nodeNames(n), r)
		if err != nil {
			t.Fatal(err)
		}
		count[fmt.Sprint(g)]++
	}
	return count
}

// TestSmallRandomGraphsAreAllDrawnAboutEquallyOften counts the graphs that there are: three cycles
// of four nodes, 70 cubic graphs of six (all connected); of three nodes with probability 1/2 the
// triangle and three lines, of the same probability each.
func TestSmallRandomGraphsAreAllDrawnAboutEquallyOften(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine counts for long")
	}
	t.Parallel()
	for _, c := range []struct {
		topology topology.Topology
		n, kinds int
		within   float64 // of the mean
	}{
		{topology.RandomRegular{Degree: 2}, 4, 3, 0.1},
		{topology.RandomRegular{Degree: 3}, 6, 70, 0.5}, // the method is only nearly uniform
		{topology.ErdosRenyi{Probability: 0.5}, 3, 4, 0.1},
		{topology.ErdosRenyi{Degree: 1}, 3, 4, 0.1},
	} {
		const each = 1000
		count := frequencies(t, c.topology, c.n, each*c.kinds)
		if len(count) != c.kinds {
			t.Errorf("%T%+v: %d different graphs, want %d", c.topology, c.topology, len(count), c.kinds)
		}
		for g, n := range count {
			if math.Abs(float64(n)-each) > c.within*each {
				t.Errorf("%T%+v: %s was drawn %d times, want about %d", c.topology, c.topology, g, n, each)
			}
		}
	}
}

func TestErdosRenyiDrawsEveryPairAlike(t *testing.T) {
	const n, draws, p = 24, 2000, 0.3 // practically always connected
	r := rand.New(rand.NewPCG(3, 4))
	count := map[[2]int32]int{}
	total := 0
	for range draws {
		edges, err := topology.ErdosRenyi{Probability: p}.Edges(nodeNames(n), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range edges {
			count[e]++
			total++
		}
	}
	pairs := float64(n * (n - 1) / 2)
	if len(count) != int(pairs) {
		t.Errorf("%d pairs, want %.0f", len(count), pairs)
	}
	for e, k := range count {
		if deviation := (float64(k) - draws*p) / math.Sqrt(draws*p*(1-p)); math.Abs(deviation) > 5 {
			t.Errorf("edge %v: %d of %d, %.1f standard deviations off", e, k, draws, deviation)
		}
	}
	mean, deviation := draws*pairs*p, math.Sqrt(draws*pairs*p*(1-p))
	if math.Abs(float64(total)-mean) > 5*deviation {
		t.Errorf("%d edges, want %.0f ± %.0f", total, mean, deviation)
	}
}

func TestErdosRenyiWithCertaintyIsComplete(t *testing.T) {
	want := shape{36, 8, 8, 1}
	if got := shapeOf(mustGraph(t, topology.ErdosRenyi{Probability: 1}, 9, 1)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSmallWorldIsALatticeThatLosesTheShareThatIsRewired(t *testing.T) {
	const n, k = 400, 6
	near := func(i, j int32) bool {
		d := (int(j) - int(i) + n) % n
		return min(d, n-d) <= k/2
	}
	for _, rewire := range []float64{0, 0.1, 0.5, 1} {
		g := mustGraph(t, topology.SmallWorld{Neighbours: k, Rewire: rewire}, n, 5)
		kept, edges, least := 0, 0, n
		for i, neighbours := range g {
			least = min(least, len(neighbours))
			for _, j := range neighbours {
				edges++
				if near(int32(i), j) {
					kept++
				}
			}
		}
		if edges != n*k || least < k/2 {
			t.Errorf("rewire %v: %d ends of edges, want %d; the least degree is %d, want %d or more", rewire, edges,
				n*k, least, k/2)
		}
		// An edge that is rewired becomes one of the lattice again with a probability of at most
		// k/n.
		if share := float64(kept) / (n * k); math.Abs(share-(1-rewire)) > 0.05 {
			t.Errorf("rewire %v: %.3f of the edges are in the lattice", rewire, share)
		}
	}
	lattice, world := shapeOf(mustGraph(t, topology.SmallWorld{Neighbours: k}, n, 5)), shapeOf(mustGraph(t,
		topology.SmallWorld{Neighbours: k, Rewire: 0.1}, n, 5))
	if lattice != (shape{n * k / 2, k, k, 67}) || world.diameter > 15 { // ⌈200 ÷ 3⌉
		t.Errorf("lattice %+v, small world %+v", lattice, world)
	}
	full := shapeOf(mustGraph(t, topology.SmallWorld{Neighbours: 8, Rewire: 1}, 9, 5))
	if full != (shape{36, 8, 8, 1}) {
		t.Errorf("a lattice that is complete is rewired to %+v", full)
	}
}

func TestRandomTopologiesDependOnTheirStreamOnly(t *testing.T) {
	for _, of := range []topology.Topology{
		topology.RandomRegular{Degree: 4}, topology.RandomRegular{Degree: 30}, topology.ErdosRenyi{Degree: 6},
		topology.SmallWorld{Neighbours: 4, Rewire: 0.2},
	} {
		first := mustGraph(t, of, 40, 1)
		if diff := cmp.Diff(first, mustGraph(t, of, 40, 1)); diff != "" {
			t.Errorf("%T: the same stream gives another graph: %s", of, diff)
		}
		if cmp.Equal(first, mustGraph(t, of, 40, 2)) {
			t.Errorf("%T: another stream gives the same graph", of)
		}
	}
}

// pairsOf is a program's own topology.
type pairsOf [][2]int32

func (pairsOf) Validate([]string) error                          { return nil }
func (p pairsOf) Edges([]string, *rand.Rand) ([][2]int32, error) { return p, nil }
func edgeList(t testing.TB, text string) topology.EdgeList {
	t.Helper()
	list, err := topology.ReadEdges(strings.NewReader(text), "e.csv")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestTopologiesThatDoNotFitSayWhatWould(t *testing.T) {
	for _, c := range []struct {
		topology topology.Topology
		n        int
		want     string
	}{
		{topology.Star{Centre: "hub"}, 3, `Centre is "hub": must be the name of a node`},
		{topology.Tree{}, 3, "Branching is 0: must be 1 or more"},
		{topology.Grid{}, 7, "7 nodes fill no rows and columns, two or more of each"},
		{topology.Torus{}, 1, "1 nodes fill no rows and columns"},
		{topology.Grid{Rows: 5}, 12, "Rows is 5: must be a divisor of the 12 nodes"},
		{topology.Grid{Rows: -1}, 12, "Rows is -1: must be 0 or more"},
		{topology.Torus{Columns: 5}, 12, "Columns is 5: must be a divisor of the 12 nodes"},
		{topology.Torus{Columns: -5}, 12, "Columns is -5"},
		{topology.Torus{Rows: 3, Columns: 3}, 12, "Columns is 3: must be 4: there are 12 nodes in 3 rows"},
		{topology.Hypercube{}, 12, "12 nodes are no hypercube; it needs a power of two"},
		{topology.ExponentialGraph{}, 2, "2 nodes are no exponential graph; it needs at least 3"},
		{topology.RandomRegular{Degree: 5}, 5, "Degree is 5: must be from 1 to 4"},
		{topology.RandomRegular{}, 5, "Degree is 0: must be from 1 to 4"},
		{topology.RandomRegular{Degree: 3}, 5, "Degree is 3: must be even, because the number of nodes, 5, is odd"},
		{topology.RandomRegular{Degree: 1}, 6,
			"none of 1000 random graphs of 6 nodes with 1 neighbours each was connected"},
		{topology.RandomRegular{Degree: 5000}, 10_000,
			"Degree is 5000: must be less: these are 25000000 edges, at most 4194304"},
		{topology.ErdosRenyi{}, 5, "needs the probability of an edge or the mean degree"},
		{topology.ErdosRenyi{Probability: 0.5, Degree: 2}, 5, "one of them"},
		{topology.ErdosRenyi{Probability: -0.5}, 5, "Probability is -0.5: must be above 0 and at most 1"},
		{topology.ErdosRenyi{Probability: math.NaN()}, 5, "Probability is NaN"},
		{topology.ErdosRenyi{Degree: 4.5}, 5, "Degree is 4.5: must be above 0 and at most 4"},
		{topology.ErdosRenyi{Probability: 0.01}, 20,
			"none of 1000 random graphs of 20 nodes with an edge probability of 0.01 (0.19 neighbours in the mean) " +
				"was connected; nearly all are with more than ln n = 3 "},
		{topology.ErdosRenyi{Probability: 1e-300}, 20, "none of 1000 random graphs"},
		{topology.ErdosRenyi{Probability: 0.5}, 10_000, "Probability is 0.5: must be less"},
		{topology.SmallWorld{Neighbours: 3}, 9, "Neighbours is 3: must be even, from 2 to 8"},
		{topology.SmallWorld{Neighbours: 4, Rewire: 1.5}, 9, "Rewire is 1.5: must be from 0 to 1"},
		{topology.SmallWorld{Neighbours: 9998}, 10_000, "Neighbours is 9998: must be less"},
		{edgeList(t, "node0,node1\n\n2,3"), 4, "nodes node0 and node2 cannot reach each other"},
		{edgeList(t, "node0 4"), 4,
			`e.csv:1: there is no node "4"; accepted are names of nodes and positions from 0 to 3`},
		{edgeList(t, "node0 node1\nnode1 1"), 4, `e.csv:2: node node1 is joined with itself`},
		{pairsOf{{0, 1}, {1, 2}}, 4, "nodes node0 and node3 cannot reach each other"},
		{pairsOf{{0, 1}, {3, 4}}, 4, "an edge from node 3 to node 4; an edge joins two of nodes 0 to 3"},
		{pairsOf{{-1, 1}}, 4, "an edge from node -1"},
		{pairsOf{{1, 1}}, 4, "an edge from node 1 to node 1"},
	} {
		g, err := topology.NewGraph(c.topology, nodeNames(c.n), rand.New(rand.NewPCG(1, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || g != nil {
			t.Errorf("%T%+v of %d nodes: error %v, want %q", c.topology, c.topology, c.n, err, c.want)
		}
	}
}

func TestEdgeListsNameNodesOrPositions(t *testing.T) {
	for _, text := range []string{
		"a,b\nb,1\n1,a\n", "# a triangle\na b # first\n\n  b , 1\r\n\t1\ta", "0,b\nb 2\n2,0\nb,0\na,b",
	} {
		list, err := topology.ReadEdges(iotest.OneByteReader(strings.NewReader(text)), "e.csv")
		if err != nil {
			t.Fatal(err)
		}
		// The third node is called 1, which hides the position of the second one.
		g, err := topology.NewGraph(list, []string{"a", "b", "1"}, nil)
		if diff := cmp.Diff(topology.Graph{{1, 2}, {0, 2}, {0, 1}}, g); diff != "" || err != nil {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

func TestReadEdgesSaysWhatIsWrongAndWhere(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		in   io.Reader
		want string
	}{
		{strings.NewReader(""), "e.csv:1: no edges, expected lines such as"},
		{strings.NewReader("# nothing\n\n"), "e.csv:3: no edges"},
		{strings.NewReader("a,b\na\n"), `e.csv:2: "a" names 1 nodes, expected the two ends`},
		{strings.NewReader("a,b,c"), `e.csv:1: "a,b,c" names 3 nodes`},
		{strings.NewReader("a b c"), `e.csv:1: "a b c" names 3 nodes`},
		{strings.NewReader("a,\n"), `e.csv:1: "a," lacks a node`},
		{strings.NewReader("\x00\xff,\n"), `e.csv:1: "\x00\xff," lacks a node`},
		{strings.NewReader("a,b\n#" + strings.Repeat("x", 300)),
			"e.csv:2: line \"#xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"… is longer than 256 bytes"},
		{io.MultiReader(strings.NewReader("a,b\n"), iotest.ErrReader(broken)), "e.csv:2: broken"},
	} {
		list, err := topology.ReadEdges(c.in, "e.csv")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || list.Named != nil {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func FuzzReadEdges(f *testing.F) {
	for _, text := range []string{"a,b", "a b\n#x\n\n1,2\r\n", "a,,b", ",", "a,b#c", strings.Repeat("a,b\n", 50),
		strings.Repeat("x", 300), "\xff,\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := topology.ReadEdges(strings.NewReader(string(text)), "e.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "e.csv:") {
				t.Errorf("the error has no place: %v", err)
			}
			return
		}
		if _, err := topology.NewGraph(list, []string{"a", "b", "x"}, nil); err != nil &&
			len(err.Error()) > 2*topology.MaxEdgeLine*4 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// Such a graph is refused without a thousand draws of a million edges.
func TestRandomGraphThatIsSurelyNotConnectedIsNotDrawn(t *testing.T) {
	_, err := topology.ErdosRenyi{Degree: 8}.Edges(nodeNames(300_000), nil)
	if err == nil || !strings.Contains(err.Error(), "none of 1000 random graphs of 300000 nodes") {
		t.Error(err)
	}
}
