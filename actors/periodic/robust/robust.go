// Package robust holds means of vectors that some attackers among those who send them cannot pull
// where they want. All are pure functions of vectors.
//
// For n vectors, f of which may be an attacker's:
//
//	median            by coordinate (D. Yin et al., "Byzantine-Robust Distributed Learning:
//	                  Towards Optimal Statistical Rates", ICML 2018, definition 1), n ≥ 2f + 1
//	trimmed-mean      by coordinate, without the f least and the f greatest values (definition 2
//	                  there; β = f/n), n ≥ 2f + 1
//	krum              the vector whose n − f − 2 nearest ones are nearest to it (P. Blanchard et
//	                  al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient
//	                  Descent", NeurIPS 2017, section 4), n ≥ 2f + 3
//	multi-krum        the mean of the best vectors by that score (section 4 there), n ≥ 2f + 3
//	bulyan            of the n − 2f vectors that Krum chooses one after the other, by coordinate,
//	                  the mean of the n − 4f values nearest to their median (E. M. El Mhamdi, R.
//	                  Guerraoui and S. Rouault, "The Hidden Vulnerability of Distributed Learning
//	                  in Byzantium", ICML 2018, section 4), n ≥ 4f + 3
//	geometric-median  the point of the least sum of weighted distances, by smoothed steps of
//	                  Weiszfeld (K. Pillutla, S. Kakade and Z. Harchaoui, "Robust Aggregation for
//	                  Federated Learning", IEEE TSP 2022, algorithm 2), n ≥ 2f + 1
//
// Distances of all pairs are computed once, in O(n²d) for d coordinates; what follows is O(n³) for
// bulyan, and O(n²) an iteration for the geometric median, whatever d is. Of vectors with equal
// scores the one whose first value that differs is less counts. A vector with values that are not
// finite is farther from all others than any other one, and has no weight in the geometric median.
package robust

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
)

// Kind is one of the means.
type Kind string

// The means. See the package for all but the first, which is the weighted mean.
const (
	Mean            Kind = "mean"
	Median          Kind = "median"
	TrimmedMean     Kind = "trimmed-mean"
	Krum            Kind = "krum"
	MultiKrum       Kind = "multi-krum"
	Bulyan          Kind = "bulyan"
	GeometricMedian Kind = "geometric-median"
)

// Rule is a mean with its settings.
type Rule struct {
	// Kind is one of the means.
	Kind Kind `plan:"kind" words:"mean|median|trimmed-mean|krum|multi-krum|bulyan|geometric-median" doc:"mean, or one that attackers cannot pull where they want; mean and geometric-median weigh updates, the others count all alike; of equal scores, as bulyan's last choices have, the update is chosen whose first value that differs is less"`
	// Attackers is f. Mean has none, Median and GeometricMedian work without it.
	Attackers int `plan:"attackers,omitzero" range:"1..1000000" doc:"updates of a round that may be an attacker's, f: of n updates median, trimmed-mean and geometric-median need n ≥ 2f + 1, krum and multi-krum 2f + 3, bulyan 4f + 3"`
	// Keep is of how many vectors MultiKrum is the mean, n − f − 2 at most; 0 stands for that.
	Keep int `plan:"keep,omitzero" range:"1..1000000" with:"kind=multi-krum" doc:"updates that multi-krum takes the mean of, n − f − 2 at most; default: that many"`
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (r Rule) Validate() error {
	if err := field.Check(r); err != nil {
		return err
	}
	switch {
	case r.Kind == Mean && r.Attackers > 0:
		return field.Errorf(r, "Attackers", "left out with kind: mean, which one attacker can pull anywhere")
	case r.Attackers == 0 && slices.Contains([]Kind{TrimmedMean, Krum, MultiKrum, Bulyan}, r.Kind):
		return field.Errorf(r, "Attackers", "1 or more with kind: %s", r.Kind)
	}
	return nil
}

// fewest is how many vectors the mean needs.
func (r Rule) fewest() int {
	switch f := r.Attackers; r.Kind {
	case Krum, MultiKrum:
		return max(2*f+3, r.Keep+f+2)
	case Bulyan:
		return 4*f + 3
	default:
		return 2*f + 1
	}
}

// Check returns an error if the mean of n vectors is not what the package says of it.
func (r Rule) Check(n int) error {
	if least := r.fewest(); n < least {
		return fmt.Errorf("a %s with %d attackers is of %d updates at least, and there are %d", r.Kind, r.Attackers,
			least, n)
	}
	return nil
}

// Of writes the mean of one or more vectors, as long as dst, to dst. Weights are those of Mean, and
// of GeometricMedian, where they are positive; the others do not look at them. Of fewer vectors
// than [Rule.Check] accepts it makes what it can, and promises nothing.
func (r Rule) Of(dst []float32, vectors [][]float32, weights []float64) {
	switch n, f := len(vectors), r.Attackers; r.Kind {
	case Median:
		columns(dst, vectors, median)
	case TrimmedMean:
		cut := min(f, (n-1)/2)
		columns(dst, vectors, func(sorted []float32) float32 { return mean(sorted[cut : n-cut]) })
	case Krum:
		combine(dst, vectors, newCrowd(vectors, f).share(1))
	case MultiKrum:
		keep := r.Keep
		if keep == 0 {
			keep = max(n-f-2, 1)
		}
		combine(dst, vectors, newCrowd(vectors, f).share(min(keep, n)))
	case Bulyan:
		chosen := newCrowd(vectors, f).inTurn(max(n-2*f, 1))
		near := max(len(chosen)-2*f, 1)
		columns(dst, chosen, func(sorted []float32) float32 { return nearest(sorted, median(sorted), near) })
	case GeometricMedian:
		combine(dst, vectors, weiszfeld(vectors, weights))
	default:
		clear(dst)
		for i, v := range vectors {
			nn.AddScaled(dst, float32(weights[i]), v)
		}
	}
}

// Work is about how many FLOPs the mean of n vectors of d values takes.
func (r Rule) Work(n, d int) float64 {
	all := float64(n) * float64(d)
	sorts, pairs := all*2*math.Log2(float64(n)+1), all*1.5*float64(n)
	switch r.Kind {
	case Median, TrimmedMean:
		return sorts
	case Krum, MultiKrum, GeometricMedian:
		return pairs + 2*all
	case Bulyan:
		return pairs + sorts
	}
	return 2 * all
}

// block is how many coordinates are looked at together, so that they stay in the cache.
const block = 256

// combine writes the sum of vectors times their shares.
func combine(dst []float32, vectors [][]float32, shares []float64) {
	var sums [block]float64
	for from := 0; from < len(dst); from += block {
		part := dst[from:min(from+block, len(dst))]
		clear(sums[:])
		for i, share := range shares {
			if share == 0 {
				continue // what it multiplies may be infinite
			}
			for k, v := range vectors[i][from : from+len(part)] {
				sums[k] += float64(share * float64(v))
			}
		}
		for k := range part {
			part[k] = float32(sums[k])
		}
	}
}
