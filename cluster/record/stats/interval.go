package stats

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval sums up values: their mean, and their median with its 95 % confidence interval.
type Interval struct {
	N int
	// Mean and Median are NaN where N is 0, Std, the sample's (n − 1), where N is below 2.
	Mean, Std, Median float64
	// Low and High are the interval of the median; NaN where Method is TooFew.
	Low, High float64
	Method    string
}

// MeanOf sums values up.
func MeanOf(values []float64) Interval {
	i := Interval{
		N: len(values), Mean: math.NaN(), Std: math.NaN(), Median: math.NaN(), Low: math.NaN(), High: math.NaN(),
		Method: TooFew,
	}
	if i.N == 0 {
		return i
	}
	sorted := slices.Sorted(slices.Values(values))
	i.Mean, i.Median = stat.Mean(values, nil), (sorted[(i.N-1)/2]+sorted[i.N/2])/2
	if i.N > 1 {
		i.Std = stat.StdDev(values, nil)
	}
	if r := Rank(i.N); r > 0 {
		i.Low, i.High, i.Method = sorted[r-1], sorted[i.N-r], OrderStatistics
	}
	return i
}

// Rank is the rank r, from 1, for which the r-th smallest and the r-th greatest of n values of any
// distribution have its median between them in 95 % of all samples or more; 0 where n is below
// LeastForInterval.
func Rank(n int) int {
	if n < LeastForInterval {
		return 0
	}
	below := distuv.Binomial{N: float64(n), P: 0.5}
	return sort.Search(n/2, func(r int) bool { return below.CDF(float64(r)) > (1-Level)/2 })
}

const (
	// leastForHeaps is how many values can be seen to lie in heaps.
	leastForHeaps = 5
	// heapFactor is how much greater the upper heap's least value must be than the lower heap's
	// greatest, and heapGap how many times the gap must be, on a log scale, as wide as any other.
	heapFactor, heapGap = 1.5, 3
)

// Heaps is how many of sorted positive values are in the lower of two heaps; 0 where no gap is much
// wider than all others. It describes values and tests nothing.
func Heaps(sorted []float64) (lower int) {
	widest, second := math.Log(heapFactor), 0.0
	for i := 1; i < len(sorted); i++ {
		switch gap := math.Log(sorted[i] / sorted[i-1]); {
		case gap > widest && lower > 0:
			widest, second, lower = gap, widest, i
		case gap > widest:
			widest, lower = gap, i
		default:
			second = max(second, gap)
		}
	}
	if len(sorted) < leastForHeaps || widest < heapGap*second {
		return 0
	}
	return lower
}

func student(freedom int) distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}
}
