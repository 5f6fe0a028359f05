// Package stats says what repeated runs of an experiment show, and what they do not.
//
// Each point of an experiment has a [Sample]: one [Arrival] for each seed, which says when the run
// arrived at its target, or how long it ran without arriving. [Estimated] sums a sample up: its
// median with a 95 % interval, and its mean restricted to a horizon by the Kaplan–Meier curve.
// [Judge] finds the set of best points, and gives each point a [Verdict]. [MeanOf] sums up plain
// values.
//
// Intervals are of the median, between two order statistics. They assume that repeats are
// independent and nothing about how times are distributed: heaps, skew and bounds do not harm them.
// An interval of the mean cannot do that: where one run in ten takes four times as long, most
// samples of five show nothing of it. Below [LeastForInterval] values no such interval holds what
// 95 % promises; the runs and their median are all that is known then, and the method is [TooFew].
//
// An arrival is known only up to the evaluations around it. Intervals and comparisons take the
// worst case of that: the earliest possible arrivals at one end, the latest at the other.
package stats

const (
	// Level is the confidence of all intervals.
	Level = 0.95
	// Error is the level at which the best point of an experiment is called "slower". It is below
	// 5 % because narrowing the set of best step by step adds up to a tenth.
	Error = 0.045
	// LeastRepeats is the fewest pairs that a comparison is made of.
	LeastRepeats = 3
	// fewRepeats is below how many pairs a comparison also looks at how much other points vary.
	fewRepeats = 5
	// LeastForInterval is the fewest values that an interval is made of: the least and the greatest
	// of six have the median between them in 96.9 % of all samples, those of five in 93.8 %.
	LeastForInterval = 6
)

// The methods that an interval can be made by.
const (
	// OrderStatistics: from a value of low rank to one of high rank, which hold the median of any
	// distribution.
	OrderStatistics = "order statistics"
	// TooFew: no interval, because it would not hold what 95 % promises.
	TooFew = "too few repeats"
)
