package partition

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/datasets"
)

// shareTolerance is how far the shares of a class may exceed 1 in sum: room
// for decimal fractions that binary numbers cannot hold.
const shareTolerance = 1e-9

// Classes gives each worker a stated share of each class. The rows of a class
// are permuted at random and cut at the rounded cumulated shares, in the order
// of the workers given to Assign. What the shares leave over nobody sees.
type Classes struct {
	Workers []Share
}

// Share is what one worker sees: for each class name a share in [0, 1] of that
// class. Of classes not named it sees nothing.
type Share struct {
	Worker  string
	Classes map[string]float64
}

// Assign implements Split. Errors are also: a worker or class that does not
// exist, a worker listed twice, a share outside [0, 1], and shares of a class
// that add up to more than 1 (by more than 1e-9).
func (c Classes) Assign(set *datasets.Set, workers []string, seed uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	shares, err := c.table(set.Classes, workers)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, classesStream))
	assigned := make([][]int32, len(workers))
	for class, rows := range rowsByClass(set) {
		shuffle(rows, rng)
		cutByShares(rows, shares[class], assigned)
	}
	return finish("classes", assigned, workers)
}

// Check finds what Assign would refuse in the names and sums, before there are any samples: classes
// may be nil where they are not known yet.
func (c Classes) Check(classes, workers []string) error {
	if classes != nil {
		_, err := c.table(classes, workers)
		return err
	}
	for _, s := range c.Workers {
		if !slices.Contains(workers, s.Worker) {
			return fmt.Errorf("split classes: unknown worker %q; there are %q", s.Worker, workers)
		}
	}
	return nil
}

// table returns shares[class][worker] after checking all names and sums.
func (c Classes) table(classes, workers []string) ([][]float64, error) {
	shares := make([][]float64, len(classes))
	for i := range shares {
		shares[i] = make([]float64, len(workers))
	}
	listed := make([]bool, len(workers))
	for _, s := range c.Workers {
		w := slices.Index(workers, s.Worker)
		if w < 0 {
			return nil, fmt.Errorf("split classes: unknown worker %q; there are %q", s.Worker, workers)
		}
		if listed[w] {
			return nil, fmt.Errorf("split classes: worker %q is listed twice", s.Worker)
		}
		listed[w] = true
		for _, name := range slices.Sorted(maps.Keys(s.Classes)) {
			class, share := slices.Index(classes, name), s.Classes[name]
			if class < 0 {
				return nil, fmt.Errorf("split classes: worker %q: unknown class %q; there are %q", s.Worker, name,
					classes)
			}
			if !(share >= 0 && share <= 1) {
				return nil, fmt.Errorf("split classes: worker %q: share %v of class %q; a number from 0 to 1 is needed",
					s.Worker, share, name)
			}
			shares[class][w] = share
		}
	}
	for class := range shares {
		if sum := total(shares[class]); sum > 1+shareTolerance {
			return nil, fmt.Errorf("split classes: the workers' shares of class %q add up to %v; at most 1 can be "+
				"given away", classes[class], sum)
		}
	}
	return shares, nil
}

func total(shares []float64) float64 {
	sum := 0.0
	for _, share := range shares {
		sum += share
	}
	return sum
}

// cutByShares appends to each worker's rows its part of rows, cut at the
// rounded cumulated shares, so that shares adding up to 1 leave no row over.
func cutByShares(rows []int32, shares []float64, assigned [][]int32) {
	from, sum := 0, 0.0
	for w, share := range shares {
		sum += share
		to := min(int(math.Round(sum*float64(len(rows)))), len(rows))
		assigned[w] = append(assigned[w], rows[from:to]...)
		from = to
	}
}
