package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// LeastRepeats is the fewest values that an interval or a comparison is made of.
const LeastRepeats = 3

// Interval is a mean with its 95 % confidence interval.
type Interval struct {
	N int
	// Mean is NaN where N is 0, Std, the sample's (n − 1), where N is below 2.
	Mean, Std float64
	// Low and High are NaN where Method is TooFew.
	Low, High float64
	Method    string
}

// MeanOf is the mean of values with its interval by Student's t.
func MeanOf(values []float64) Interval {
	i := Interval{N: len(values), Mean: math.NaN(), Std: math.NaN(), Low: math.NaN(), High: math.NaN(), Method: TooFew}
	if i.N == 0 {
		return i
	}
	i.Mean = stat.Mean(values, nil)
	if i.N > 1 {
		i.Std = stat.StdDev(values, nil)
	}
	if i.N >= LeastRepeats {
		half := quantile(i.N-1) * stat.StdErr(i.Std, float64(i.N))
		i.Low, i.High, i.Method = i.Mean-half, i.Mean+half, StudentT
	}
	return i
}

// quantile is how many standard errors an interval reaches to either side.
func quantile(freedom int) float64 {
	level := Level
	if freedom < manyRepeats-1 {
		level = carefully
	}
	return student(freedom).Quantile((1 + level) / 2)
}

func student(freedom int) distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}
}
