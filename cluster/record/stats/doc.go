// Package stats says what repeated runs of an experiment show, and what they do not.
//
// Each point of an experiment has a [Sample]: one [Arrival] for each seed, which says when the run
// arrived at its target, or how long it ran without arriving. [Estimated] sums a sample up by the
// Kaplan–Meier curve: the median, and the mean restricted to a horizon with its 95 % interval.
// [Judge] compares points pair by pair, seed by seed, corrected for how many pairs there are, and
// gives each point a [Verdict]. [MeanOf] is the mean of plain values with its interval.
//
// An arrival is known only up to the evaluations around it. Intervals and comparisons take the
// worst case of that: the earliest possible arrivals at one end, the latest at the other. Where the
// repeats do not support an interval at 95 %, its ends are NaN and its method is [TooFew].
package stats

const (
	// Level is the confidence of all intervals.
	Level = 0.95
	// carefully is the level of Student's t below manyRepeats values: at 95 % so few of a skewed
	// distribution have intervals that hold its mean in 92 of 100 simulated experiments.
	carefully = 0.975
	// manyRepeats is from how many values on an interval trusts to their number.
	manyRepeats = 10
	// Error is the chance that an experiment has any wrong verdict "fastest" or "slower". It is
	// below 5 % because the differences of real repeats are not quite normal.
	Error = 0.03
)

// The methods that an interval can be made by.
const (
	// StudentT: mean ± quantile of Student's t with n − 1 degrees of freedom × standard error.
	StudentT = "t"
	// RestrictedT: the same of the restricted mean, with Greenwood's variance of the Kaplan–Meier
	// curve.
	RestrictedT = "Kaplan–Meier, t"
	// TooFew: no interval, because it would not hold what 95 % promises.
	TooFew = "too few repeats"
)
