package peer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/gradwire/gradwire/actors"
)

// Mixing is a symmetric doubly stochastic matrix over the nodes of a run, by which peers
// average their models. It is sparse: a row has an entry for every neighbour, and the
// diagonal has what is left to 1.
type Mixing struct {
	columns  [][]int32 // by row, the neighbours, ascending
	weights  [][]float64
	diagonal []float64
}

// Size is the number of nodes.
func (m *Mixing) Size() int { return len(m.diagonal) }

// Weight returns entry (i, j).
func (m *Mixing) Weight(i, j int) float64 {
	if i == j {
		return m.diagonal[i]
	}
	if k, ok := slices.BinarySearch(m.columns[i], int32(j)); ok {
		return m.weights[i][k]
	}
	return 0
}

// MetropolisWeight is the weight of two neighbours in the view's topology, absent nodes included:
//
//	W_ij = 1 ÷ (1 + max(d_i, d_j))
//
// with the degrees d (L. Xiao, S. Boyd and S.-J. Kim, "Distributed average consensus
// with least-mean-square deviation", J. Parallel Distrib. Comput. 67(1), 2007, section 1).
func MetropolisWeight(view *actors.View, i, j int) float64 {
	return 1 / float64(1+max(degree(view, i), degree(view, j)))
}

// degree is that in the topology; it takes no memory.
func degree(view *actors.View, node int) int {
	if view.Complete() {
		return len(view.Members) - 1
	}
	return len(view.Potential(node))
}

// Metropolis returns the matrix of the edges in a view's topology. Their Metropolis weights count
// the edges of all topologies of the run, so both ends of an edge use the same weight at any time.
func Metropolis(view *actors.View) *Mixing {
	m, ever := newMixing(len(view.Members)), view.Ever()
	for i := range m.columns {
		m.columns[i] = view.Potential(i)
		for _, j := range m.columns[i] {
			m.weights[i] = append(m.weights[i], MetropolisWeight(ever, i, int(j)))
		}
	}
	return m.settle()
}

// GivenMixing returns the matrix that has those rows, between nodes with an edge in the view's
// topology. It fails where CheckMixing does, and where a weight is not zero between nodes that no
// topology of the run has an edge between.
func GivenMixing(view *actors.View, rows [][]float64) (*Mixing, error) {
	if err := CheckMixing(rows); err != nil {
		return nil, err
	}
	m, ever := newMixing(len(rows)), view.Ever()
	for i := range rows {
		if err := CheckMixingRow(ever, rows, i); err != nil {
			return nil, err
		}
		for j, w := range rows[i] {
			if w != 0 && view.Linked(i, j) {
				m.columns[i] = append(m.columns[i], int32(j))
				m.weights[i] = append(m.weights[i], w)
			}
		}
	}
	return m.settle(), nil
}

// mixingTolerance bounds what a row's sum may differ from 1, and an entry from its mirror image.
const mixingTolerance = 1e-9

// CheckMixing returns an error that says where a matrix is not symmetric, not non-negative,
// or has a row with a sum other than 1.
func CheckMixing(rows [][]float64) error {
	if len(rows) == 0 {
		return errors.New("the mixing matrix has no rows")
	}
	for i, row := range rows {
		if len(row) != len(rows) {
			return fmt.Errorf("row %d of the mixing matrix has %d entries; it has %d rows and must be square", i,
				len(row), len(rows))
		}
	}
	for i, row := range rows {
		sum := 0.0
		for j, w := range row {
			if !(w >= 0) {
				return fmt.Errorf("entry (%d, %d) of the mixing matrix is %v; entries are at least 0", i, j, w)
			}
			if !(math.Abs(w-rows[j][i]) <= mixingTolerance) {
				return fmt.Errorf("entry (%d, %d) of the mixing matrix is %v, but entry (%d, %d) is %v; the matrix "+
					"must be symmetric", i, j, w, j, i, rows[j][i])
			}
			sum += w
		}
		if !(math.Abs(sum-1) <= mixingTolerance) {
			return fmt.Errorf("row %d of the mixing matrix sums to %v instead of 1", i, sum)
		}
	}
	return nil
}

// CheckMixingRow returns an error if row i of a matrix that CheckMixing accepts is not one for
// the view: another number of nodes, or a weight where there is no edge.
func CheckMixingRow(view *actors.View, rows [][]float64, i int) error {
	if len(rows) != len(view.Members) {
		return fmt.Errorf("the mixing matrix has %d rows for %d nodes", len(rows), len(view.Members))
	}
	if view.Complete() {
		return nil
	}
	for j, w := range rows[i] {
		if _, edge := slices.BinarySearch(view.Potential(i), int32(j)); w != 0 && j != i && !edge {
			return fmt.Errorf("entry (%d, %d) of the mixing matrix is %v, but the topology has no edge from %s to %s",
				i, j, w, view.Members[i].Name, view.Members[j].Name)
		}
	}
	return nil
}

// ExpectedMixing returns E[WᵀW] of averaging by pairs: the next to average is one of those
// that have choices, each as likely as any other, with one of its choices, each as likely as
// any other. With p_ij the probability that the pair is i and j,
//
//	E[WᵀW] = E[W] = I − ½ Σ p_ij (e_i−e_j)(e_i−e_j)ᵀ,
//
// since each W is a projection (X. Lian, W. Zhang, C. Zhang and J. Liu, "Asynchronous
// Decentralized Parallel Stochastic Gradient Descent", ICML 2018, assumption 1).
func ExpectedMixing(choices [][]int32) *Mixing {
	choosers := 0
	for _, others := range choices {
		if len(others) > 0 {
			choosers++
		}
	}
	m := newMixing(len(choices))
	for i, others := range choices {
		for _, j := range others {
			half := 0.5 / float64(choosers*len(others))
			m.add(i, int(j), half)
			m.add(int(j), i, half)
		}
	}
	return m.settle()
}

func newMixing(n int) *Mixing {
	return &Mixing{columns: make([][]int32, n), weights: make([][]float64, n), diagonal: make([]float64, n)}
}

// add adds to an entry off the diagonal.
func (m *Mixing) add(i, j int, w float64) {
	k, there := slices.BinarySearch(m.columns[i], int32(j))
	if !there {
		m.columns[i] = slices.Insert(m.columns[i], k, int32(j))
		m.weights[i] = slices.Insert(m.weights[i], k, 0)
	}
	m.weights[i][k] += w
}

// settle puts what is left to 1 on the diagonal.
func (m *Mixing) settle() *Mixing {
	for i := range m.diagonal {
		m.diagonal[i] = 1
		for _, w := range m.weights[i] {
			m.diagonal[i] -= w
		}
	}
	return m
}

// denseSize is up to which a matrix is decomposed as a whole.
const denseSize = 512

// SpectralGap is 1 − max(|λ₂|, |λ_n|) with the eigenvalues 1 = λ₁ ≥ λ₂ ≥ … ≥ λ_n: how fast
// averaging alone leads to a consensus. It is 0 for a topology that is not connected, and 1
// for a single node. Up to 512 nodes it is exact but for rounding; beyond, an estimate to about
// 1e-9 that is never below the true gap by more than rounding.
func (m *Mixing) SpectralGap() float64 {
	n := m.Size()
	if n < 2 {
		return 1
	}
	var radius float64
	if n <= denseSize {
		radius = m.denseRadius()
	} else {
		radius = m.lanczosRadius()
	}
	return max(0, 1-radius)
}

// denseRadius is the largest absolute eigenvalue of W − 11ᵀ/n, which has the eigenvalues of W,
// but 0 instead of λ₁.
func (m *Mixing) denseRadius() float64 {
	n := m.Size()
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			a.SetSym(i, j, -1/float64(n))
		}
		a.SetSym(i, i, m.diagonal[i]-1/float64(n))
		for k, j := range m.columns[i] {
			a.SetSym(i, int(j), m.weights[i][k]-1/float64(n))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(a, false) {
		return m.lanczosRadius()
	}
	values := eigen.Values(nil)
	return max(math.Abs(values[0]), math.Abs(values[n-1]))
}

// multiply puts W·x into y.
func (m *Mixing) multiply(y, x []float64) {
	for i, d := range m.diagonal {
		sum := d * x[i]
		for k, j := range m.columns[i] {
			sum += m.weights[i][k] * x[j]
		}
		y[i] = sum
	}
}

// maxLanczos bounds the iterations, and so the accuracy on very large rings.
const maxLanczos = 20000

// lanczosRadius is what denseRadius is, by Lanczos' iteration (G. Golub and C. Van Loan, "Matrix
// Computations", 4th edition, section 10.1) without reorthogonalisation, which repeats
// extreme eigenvalues but does not move them. The constant vector, λ₁'s, is projected out of
// every vector, so that rounding does not bring it back.
func (m *Mixing) lanczosRadius() float64 {
	n := m.Size()
	before, v, next := make([]float64, n), make([]float64, n), make([]float64, n)
	random := rand.New(actors.Source(0, "mixing", "first vector"))
	for i := range v {
		v[i] = random.NormFloat64()
	}
	center(v)
	scale(v, 1/length(v))
	var alpha, beta []float64
	radius, check := 0.0, 32
	for len(alpha) < maxLanczos {
		m.multiply(next, v)
		a := dot(next, v)
		for i := range next {
			next[i] -= a * v[i]
			if len(beta) > 0 {
				next[i] -= beta[len(beta)-1] * before[i]
			}
		}
		center(next)
		alpha = append(alpha, a)
		b := length(next)
		if b < 1e-14 {
			break // the vectors span an invariant space: its eigenvalues are exact
		}
		if len(alpha) == check {
			now := tridiagonalRadius(alpha, beta)
			if now-radius <= 1e-11*(1-now) {
				return now
			}
			radius, check = now, check+check/4
		}
		scale(next, 1/b)
		beta = append(beta, b)
		before, v, next = v, next, before
	}
	return tridiagonalRadius(alpha, beta[:len(alpha)-1])
}

// tridiagonalRadius is the largest absolute eigenvalue of the symmetric matrix with the diagonal
// and the one beside it, by bisection: how many eigenvalues are below x is the number of negative
// pivots of the matrix − x (Sturm's sequence; Golub and Van Loan, section 8.4). The matrix's
// eigenvalues are in [−1, 1].
func tridiagonalRadius(diagonal, beside []float64) float64 {
	below := func(x float64) (count int) {
		pivot := 1.0
		for i, d := range diagonal {
			previous := pivot
			pivot = d - x
			if i > 0 {
				pivot -= beside[i-1] * beside[i-1] / previous
			}
			if pivot == 0 {
				pivot = 1e-300
			}
			if pivot < 0 {
				count++
			}
		}
		return count
	}
	low, high := 0.0, 2.0 // no eigenvalue is at or above high in absolute value
	for range 60 {
		middle := (low + high) / 2
		if below(-middle) == 0 && below(middle) == len(diagonal) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// center makes the mean zero.
func center(v []float64) {
	mean := 0.0
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for i := range v {
		v[i] -= mean
	}
}

func scale(v []float64, factor float64) {
	for i := range v {
		v[i] *= factor
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func length(v []float64) float64 { return math.Sqrt(dot(v, v)) }
