package figure

import (
	"image/color"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/goodput"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/plotter"
)

// Drill draws the accuracy of a run with faults and of the undisturbed one over time, of a run that
// ended after some seconds, as path.png and path.svg. Faults are bands, each kind in its color; one
// that is never over is a line at its beginning. Equal input gives equal bytes.
func Drill(path, title string, end float64, disturbed, calm []record.Evaluation, faults []goodput.Fault) error {
	u := report.TimeUnit(end)
	f := newFigure(report.Cut(title, maxTitle), "time, "+u.Name, "accuracy, %", "Bands: faults, from when they "+
		"begin to when what they do is over; lines: those that are never over.")
	for i, kind := range kindsOf(faults) {
		l := look{color: okabeIto[(2+i)%len(okabeIto)], width: 1.2}
		for _, fault := range faults {
			switch at := fault.At / u.Seconds; {
			case fault.What != kind:
			case fault.Until == 0:
				f.addLine(l, segment(at, 0, at, 100))
			default:
				f.addBand(Band{X: []float64{at, min(fault.Until, end) / u.Seconds}, Low: []float64{0, 0},
					High: []float64{100, 100}}, faded(l.color, 70), false)
			}
		}
		f.entry(kind, swatch(faded(l.color, 140)))
	}
	for i, c := range []struct {
		name  string
		curve []record.Evaluation
	}{{"undisturbed", calm}, {"with faults", disturbed}} {
		l := look{color: okabeIto[i], width: 1.8}
		points := curveOf(c.curve, func(e record.Evaluation) float64 { return e.Time / u.Seconds },
			func(e record.Evaluation) float64 { return float64(e.Accuracy) * 100 })
		if len(points) > 0 {
			f.entry(c.name, f.addLine(l, points))
		}
	}
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = 0, max(end/u.Seconds, 1e-9), 0, 100
	return f.Save(path)
}

// swatch is an area in a legend.
func swatch(fill color.Color) *plotter.Polygon { return &plotter.Polygon{Color: fill} }

// kindsOf are the kinds of faults, in the order in which they come first.
func kindsOf(faults []goodput.Fault) (kinds []string) {
	seen := map[string]bool{}
	for _, f := range faults {
		if !seen[f.What] {
			seen[f.What] = true
			kinds = append(kinds, f.What)
		}
	}
	return kinds
}
