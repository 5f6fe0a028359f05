package peer

import (
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// viewOf returns a view of n nodes with an edge wherever edge says so.
func viewOf(n int, edge func(i, j int) bool) *actors.View {
	d := &world.Deployment{Nodes: make([]world.Node, n), Topologies: []actors.Graph{make(actors.Graph, n)}}
	for i := range n {
		for j := range n {
			if i != j && edge(i, j) {
				d.Topologies[0][i] = append(d.Topologies[0][i], int32(j))
			}
		}
	}
	return d.Views().First()
}

func ringEdge(n int) func(i, j int) bool {
	return func(i, j int) bool { return (i+1)%n == j || (j+1)%n == i }
}

func TestSpectralGapsAreThoseOfClosedForms(t *testing.T) {
	cosine := func(k, n int) float64 { return math.Cos(2 * math.Pi * float64(k) / float64(n)) }
	for _, c := range []struct {
		name string
		view *actors.View
		want float64
	}{
		// All weights are 1/n.
		{"complete", (&world.Deployment{Nodes: make([]world.Node, 7)}).Views().First(), 1},
		{"one node", (&world.Deployment{Nodes: make([]world.Node, 1)}).Views().First(), 1},
		// Circulant: 1/3 + 2/3 cos(2πk/n).
		{"ring of 5", viewOf(5, ringEdge(5)), 2.0 / 3 * (1 - cosine(1, 5))},
		{"ring of 64", viewOf(64, ringEdge(64)), 2.0 / 3 * (1 - cosine(1, 64))},
		{"ring of 700", viewOf(700, ringEdge(700)), 2.0 / 3 * (1 - cosine(1, 700))},
		// I − L/n with the Laplacian's eigenvalues 0, 1 (n−2 times) and n.
		{"star of 9", viewOf(9, func(i, j int) bool { return i == 0 || j == 0 }), 1.0 / 9},
		{"star of 600", viewOf(600, func(i, j int) bool { return i == 0 || j == 0 }), 1.0 / 600},
		// (1 + Σ ±1)/(d+1): the second largest is (d−1)/(d+1), the smallest (1−d)/(1+d).
		{"hypercube of 16", viewOf(16, func(i, j int) bool { return bits.OnesCount(uint(i^j)) == 1 }), 2.0 / 5},
		{"hypercube of 1024", viewOf(1024, func(i, j int) bool { return bits.OnesCount(uint(i^j)) == 1 }), 2.0 / 11},
		{"two nodes apart", viewOf(2, func(int, int) bool { return false }), 0},
	} {
		if gap := Metropolis(c.view).SpectralGap(); !(math.Abs(gap-c.want) < 1e-9) {
			t.Errorf("%s: spectral gap %v, want %v", c.name, gap, c.want)
		}
	}
}

func TestLanczosAgreesWithTheDenseDecomposition(t *testing.T) {
	for n := 3; n < 60; n += 7 {
		m := Metropolis(viewOf(n, func(i, j int) bool { return ringEdge(n)(i, j) || (i*j)%5 == 3 }))
		if a, b := m.denseRadius(), m.lanczosRadius(); !(math.Abs(a-b) < 1e-9) {
			t.Errorf("%d nodes: dense %v, Lanczos %v", n, a, b)
		}
	}
}

func TestMetropolisIsDoublyStochasticAndHasTheWeightsOfTheFormula(t *testing.T) {
	// A path of three with a triangle at its end: degrees 1, 2, 3, 2, 2.
	edges := map[[2]int]float64{{0, 1}: 1.0 / 3, {1, 2}: 1.0 / 4, {2, 3}: 1.0 / 4, {2, 4}: 1.0 / 4, {3, 4}: 1.0 / 3}
	m := Metropolis(viewOf(5, func(i, j int) bool { return edges[[2]int{min(i, j), max(i, j)}] > 0 }))
	for i := range 5 {
		sum := 0.0
		for j := range 5 {
			w := m.Weight(i, j)
			if want := edges[[2]int{min(i, j), max(i, j)}]; i != j && w != want {
				t.Errorf("entry (%d, %d) is %v, want %v", i, j, w, want)
			}
			sum += w
		}
		if math.Abs(sum-1) > 1e-15 {
			t.Errorf("row %d sums to %v", i, sum)
		}
	}
}

func TestExpectedMixingIsTheMeanOfAllPairwiseAverages(t *testing.T) {
	// A path 0–1–2–3 whose nodes 0 and 2 choose: 0 always 1, 2 one of 1 and 3.
	m := ExpectedMixing([][]int32{{1}, nil, {1, 3}, nil})
	want := [4][4]float64{}
	for pair, p := range map[[2]int]float64{{0, 1}: 0.5, {2, 1}: 0.25, {2, 3}: 0.25} {
		var w [4][4]float64
		for i := range 4 {
			w[i][i] = 1
		}
		for _, i := range pair {
			for _, j := range pair {
				w[i][j] = 0.5
			}
		}
		for i := range 4 {
			for j := range 4 {
				for k := range 4 {
					want[i][j] += p * w[k][i] * w[k][j]
				}
			}
		}
	}
	for i := range 4 {
		for j := range 4 {
			if math.Abs(m.Weight(i, j)-want[i][j]) > 1e-15 {
				t.Errorf("entry (%d, %d) is %v, want %v", i, j, m.Weight(i, j), want[i][j])
			}
		}
	}
	// Two nodes agree after one exchange.
	if gap := ExpectedMixing([][]int32{{1}, nil}).SpectralGap(); math.Abs(gap-1) > 1e-12 {
		t.Errorf("gap of two nodes %v, want 1", gap)
	}
	// On a ring of n each edge has probability 1/n: eigenvalues 1 − (1 − cos(2πk/n))/n.
	ring := ExpectedMixing([][]int32{{1, 5}, nil, {1, 3}, nil, {3, 5}, nil})
	if gap, want := ring.SpectralGap(), (1-math.Cos(math.Pi/3))/6; math.Abs(gap-want) > 1e-12 {
		t.Errorf("gap of a ring of 6 %v, want %v", gap, want)
	}
}

func TestGivenMatrixIsRefusedWhereItIsNoMixingMatrix(t *testing.T) {
	view := viewOf(3, func(i, j int) bool { return i+j == 1 || i+j == 3 }) // a path
	good := [][]float64{{0.5, 0.5, 0}, {0.5, 0.25, 0.25}, {0, 0.25, 0.75}}
	m, err := GivenMixing(view, good)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for j, w := range good[i] {
			if m.Weight(i, j) != w {
				t.Errorf("entry (%d, %d) is %v, want %v", i, j, m.Weight(i, j), w)
			}
		}
	}
	for _, c := range []struct {
		rows [][]float64
		want string
	}{
		{nil, "no rows"},
		{[][]float64{{1, 0}, {0, 1}, {0, 0}}, "row 0 of the mixing matrix has 2 entries"},
		{[][]float64{{1, 0}, {0, 1}}, "2 rows for 3 nodes"},
		{[][]float64{{1.5, -0.5, 0}, {-0.5, 1.5, 0}, {0, 0, 1}}, "entry (0, 1) of the mixing matrix is -0.5"},
		{[][]float64{{0.5, 0.5, 0}, {0.25, 0.5, 0.25}, {0, 0.25, 0.75}}, "must be symmetric"},
		{[][]float64{{0.5, 0.4, 0}, {0.4, 0.6, 0}, {0, 0, 1}}, "row 0 of the mixing matrix sums to 0.9"},
		{[][]float64{{0.5, 0, 0.5}, {0, 1, 0}, {0.5, 0, 0.5}}, "no edge"},
		{[][]float64{{math.NaN(), 0, 0}, {0, 1, 0}, {0, 0, 1}}, "NaN"},
	} {
		if _, err := GivenMixing(view, c.rows); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.rows, err, c.want)
		}
	}
}
