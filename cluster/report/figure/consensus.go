package figure

import (
	"math"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/plotter"
)

// consensusDistance is the name of the measurement that consensusOverTime draws.
const consensusDistance = "consensus distance"

// diverged is a distance at which models have nothing to do with each other: its square is
// still a number.
const diverged = 1e100

func init() {
	register(Kind{Name: "consensus-distance", Section: Accuracy, Place: 5, Needs: Measurements,
		Drawings: single(titled("Distance from the consensus"), consensusOverTime)})
}

func consensusOverTime(d *Data) *Figure {
	longest, highest := 0.0, 0.0
	for _, t := range d.Traces {
		for _, p := range distances(t, 1) {
			longest, highest = max(longest, p.X), max(highest, p.Y)
		}
	}
	if longest == 0 || highest == 0 {
		return nil // that all models begin equal, or stay so, is no figure
	}
	u := report.TimeUnit(longest)
	l := &lines{what: consensusDistance + " over time", x: "time, " + u.Name, y: consensusDistance,
		caption: caption(d.Summary, false)}
	l.addGroups(d, func(t record.Trace) plotter.XYs { return distances(t, u.Seconds) })
	return l.figure(d.Summary)
}

// distances returns a run's distances from the consensus over time; unit is the unit of time, in
// seconds.
func distances(t record.Trace, unit float64) (points plotter.XYs) {
	for _, m := range t.Measured {
		if m.Name == consensusDistance && report.IsFinite(m.Time) && math.Abs(float64(m.Value)) < diverged {
			points = append(points, plotter.XY{X: m.Time / unit, Y: float64(m.Value)})
		}
	}
	return points
}
