package partition

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gradwire/gradwire/datasets"
)

// redraws bounds how often Dirichlet tries to give everybody Min samples.
const redraws = 1000

// Dirichlet draws, for each class, the workers' proportions from a symmetric
// Dirichlet distribution: a small Alpha gives each class to few workers, a
// large one approaches an even split. Dirichlet splits as a measure of
// non-identical data are due to Hsu, Qi & Brown, "Measuring the Effects of
// Non-Identical Data Distribution for Federated Visual Classification",
// arXiv:1909.06335, 2019, who draw each client's class mixture; drawing each
// class's proportions over workers, as here, uses every sample exactly once
// (Yurochkin et al., "Bayesian Nonparametric Federated Learning of Neural
// Networks", ICML 2019).
type Dirichlet struct {
	// Alpha is the concentration, positive.
	Alpha float64 `plan:"alpha,required" range:">0" doc:"small: each worker sees few classes; large: all see all alike"`
	// Min is the number of samples that every worker gets at least; 0 means 1.
	// All proportions are drawn again, up to 1000 times, until it holds.
	Min int `plan:"min" range:"1..2147483647" doc:"samples that every worker has at least: the split is drawn anew, up to 1000 times, until they have"`
}

// Assign implements Split. Errors are also an Alpha that is not positive and
// finite, a negative Min, and a Min that no draw has met.
func (d Dirichlet) Assign(set *datasets.Set, workers []string, seed uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	if !(d.Alpha > 0) || math.IsInf(d.Alpha, 1) {
		return nil, fmt.Errorf("split dirichlet: alpha %v; a positive finite number is needed", d.Alpha)
	}
	if d.Min < 0 {
		return nil, fmt.Errorf("split dirichlet: min %d samples a worker; 0 or more is needed", d.Min)
	}
	least := max(d.Min, 1)
	if least > set.Len()/len(workers) {
		return nil, fmt.Errorf("split dirichlet: %d samples for each of %d workers are more than the %d samples of "+
			"data set %q",
			least, len(workers), set.Len(), set.Name)
	}
	rng := rand.New(rand.NewPCG(seed, dirichletStream))
	classes := rowsByClass(set)
	for _, rows := range classes {
		shuffle(rows, rng)
	}
	poorest := 0
	for range redraws {
		assigned := d.draw(classes, len(workers), rng)
		if poorest = shortest(assigned); len(assigned[poorest]) >= least {
			return finish("dirichlet", assigned, workers)
		}
	}
	return nil, fmt.Errorf("split dirichlet: in %d draws with alpha %v some worker always had fewer than %d samples, "+
		"in the last draw %q; a larger alpha or a smaller min is needed",
		redraws, d.Alpha, least, workers[poorest])
}

func (d Dirichlet) draw(classes [][]int32, workers int, rng *rand.Rand) [][]int32 {
	assigned := make([][]int32, workers)
	shares := make([]float64, workers)
	for _, rows := range classes {
		drawProportions(shares, d.Alpha, rng)
		cutByShares(rows, shares, assigned)
	}
	return assigned
}

func shortest(assigned [][]int32) int {
	least := 0
	for w, rows := range assigned {
		if len(rows) < len(assigned[least]) {
			least = w
		}
	}
	return least
}

// drawProportions fills p with one draw of Dir(alpha, …, alpha): normalised
// gamma variates, kept as logarithms because for small alpha nearly all of
// them underflow.
func drawProportions(p []float64, alpha float64, rng *rand.Rand) {
	largest := math.Inf(-1)
	for i := range p {
		p[i] = logGamma(alpha, rng)
		largest = max(largest, p[i])
	}
	sum := 0.0
	for i := range p {
		p[i] = math.Exp(p[i] - largest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
}

// logGamma draws the logarithm of a Gamma(alpha, 1) variate: Marsaglia &
// Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26(3),
// 2000; for alpha < 1 a Gamma(alpha+1) variate times u^(1/alpha).
func logGamma(alpha float64, rng *rand.Rand) float64 {
	boost := 0.0
	if alpha < 1 {
		boost = math.Log(1-rng.Float64()) / alpha
		alpha++
	}
	d := alpha - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		logV := 3 * math.Log(v)
		accept := float64(x*x/2) + d - float64(d*math.Exp(logV)) + float64(d*logV)
		if math.Log(1-rng.Float64()) < accept {
			return math.Log(d) + logV + boost
		}
	}
}
