package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/datasets"
)

// Drawn draws the samples of each worker by itself: shares of the classes from a symmetric
// Dirichlet distribution (Hsu, Qi & Brown, "Measuring the Effects of Non-Identical Data
// Distribution for Federated Visual Classification", arXiv:1909.06335, 2019), and then each sample
// from a class that is drawn by these shares. Several workers may have the same sample, and one may
// have it twice, so there can be far more workers than samples. What a worker has is a function of
// its place among them, not of how many there are.
type Drawn struct {
	// Samples is how many each worker has, at least 1.
	Samples int `plan:"samples,required" range:"1..1048576" doc:"samples of each worker, drawn with replacement: a worker may have one twice, and workers the same"`
	// Alpha is the concentration, positive.
	Alpha float64 `plan:"alpha,required" range:">0" doc:"small: each worker sees few classes; large: all see all alike"`
}

// Assign implements Split. Errors are also fewer than one sample, and an Alpha that is not positive
// and finite.
func (d Drawn) Assign(set *datasets.Set, workers []string, seed uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	drawn, err := d.over(set, seed)
	if err != nil {
		return nil, err
	}
	assigned := make([][]int32, len(workers))
	for w := range assigned {
		assigned[w] = drawn.Rows(w)
	}
	return finish("drawn", assigned, workers)
}

func (d Drawn) over(set *datasets.Set, seed uint64) (*draws, error) {
	if d.Samples < 1 {
		return nil, fmt.Errorf("split drawn: %d samples a worker; at least 1 is needed", d.Samples)
	}
	if !(d.Alpha > 0) || math.IsInf(d.Alpha, 1) {
		return nil, fmt.Errorf("split drawn: alpha %v; a positive finite number is needed", d.Alpha)
	}
	missing := func(rows []int32) bool { return len(rows) == 0 }
	return &draws{Drawn: d, classes: slices.DeleteFunc(rowsByClass(set), missing), seed: seed}, nil
}

// draws has the rows of the clients of a set, each drawn when it is asked for.
type draws struct {
	Drawn
	classes [][]int32 // the rows of each that has any
	seed    uint64
}

// Rows implements Population.
func (d *draws) Rows(client int) []int32 {
	// An odd factor keeps the streams of clients apart.
	stream := drawnStream + uint64(client)*0x9e3779b97f4a7c15
	rng := rand.New(rand.NewPCG(d.seed, stream))
	shares := make([]float64, len(d.classes))
	drawProportions(shares, d.Alpha, rng)
	rows := make([]int32, d.Samples)
	for i := range rows {
		class, left := 0, rng.Float64()
		for ; class < len(shares)-1 && left >= shares[class]; class++ {
			left -= shares[class]
		}
		of := d.classes[class]
		rows[i] = of[rng.IntN(len(of))]
	}
	slices.Sort(rows)
	return rows
}
