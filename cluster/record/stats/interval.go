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

func student(freedom int) distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}
}
