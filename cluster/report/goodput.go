package report

import (
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// MeanGoodput returns the mean goodput of a point's runs, as a fraction; NaN where none of them has
// one.
func MeanGoodput(s record.Summary, p record.Point) float64 {
	n, sum := 0.0, 0.0
	for _, r := range s.Runs {
		if r.Goodput != nil && slices.Equal(r.Point, p) {
			n++
			sum += r.Goodput.Share
		}
	}
	return sum / n
}

// HasGoodput reports whether any run has a goodput: it had faults, or a schedule that hurts.
func HasGoodput(s record.Summary) bool {
	return slices.ContainsFunc(s.Groups, func(g record.Group) bool { return !math.IsNaN(MeanGoodput(s, g.Point)) })
}
