package figure

import (
	"math"

	"github.com/gradwire/gradwire/cluster/report"
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

func consensusOverTime(d *Data) (*Figure, error) {
	s := d.Summary
	longest, highest := 0.0, 0.0
	l := &lines{what: consensusDistance + " over time", y: consensusDistance, limit: math.Inf(1), scale: 1,
		caption: caption(s, false)}
	for _, t := range d.Traces {
		var points []xy
		for _, m := range t.Measured {
			if m.Name == consensusDistance && report.IsFinite(m.Time) && math.Abs(float64(m.Value)) < diverged {
				points = append(points, xy{m.Time, float64(m.Value)})
				longest, highest = max(longest, m.Time), max(highest, float64(m.Value))
			}
		}
		l.runs = append(l.runs, points)
	}
	if longest == 0 || highest == 0 {
		return nil, nil // that all models begin equal, or stay so, is no figure
	}
	u := report.TimeUnit(longest)
	l.x = "time, " + u.Name
	for _, points := range l.runs {
		for i := range points {
			points[i].x /= u.Seconds
		}
	}
	l.extent = func(bands []Band) (low, high float64) {
		for _, b := range bands {
			for _, v := range b.High {
				high = max(high, v)
			}
		}
		return 0, high * 1.05
	}
	return l.figure(s)
}
