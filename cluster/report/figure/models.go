package figure

import (
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/plotter"
)

// severalOf reports whether a run of a point has several models.
func severalOf(s record.Summary, p record.Point) bool {
	return slices.ContainsFunc(s.Runs, func(r record.Run) bool { return r.Models > 1 && slices.Equal(r.Point, p) })
}

// maxModelFigures is how many points have a figure of their four accuracies.
const maxModelFigures = 4

// fourOf are the four accuracies, in the order in which they are drawn.
var fourOf = []struct {
	of record.Of
	at func(record.Evaluation) float64
}{
	{record.AverageModel, func(e record.Evaluation) float64 { return float64(e.AverageModel) }},
	{record.Any, func(e record.Evaluation) float64 { return float64(e.Any) }},
	{record.Mean, func(e record.Evaluation) float64 { return float64(e.Mean) }},
	{record.All, func(e record.Evaluation) float64 { return float64(e.All) }},
}

func init() {
	register(Kind{Name: "models", Numbered: true, Section: Accuracy, Place: 4, Needs: Curves, Drawings: modelDrawings})
}

// modelDrawings are the figures of what each of the four accuracies gives, for the first points of
// several models.
func modelDrawings(d *Data) (all []Drawing) {
	for _, g := range d.Summary.Groups {
		if len(all) == maxModelFigures {
			break
		}
		if !severalOf(d.Summary, g.Point) {
			continue
		}
		title := "Which model: the four accuracies"
		if len(g.Point) > 0 {
			title += " of " + report.PointName(g.Point)
		}
		all = append(all, Drawing{Title: title, Draw: func() *Figure { return whichModel(d, g) }})
	}
	return all
}

// whichModel draws the four accuracies of a point over time; the one that is judged is the widest
// line.
func whichModel(d *Data, g record.Group) *Figure {
	x, time := timeAxis(d.Traces)
	l := &lines{what: "which model", x: x, y: "accuracy, %", heading: "accuracy of", accuracy: true,
		caption: "One run."}
	if len(g.Point) > 0 {
		l.what += " (" + report.PointName(g.Point) + ")"
	}
	if g.N > 1 {
		l.caption = fmt.Sprintf("Lines: median of %d runs.", g.N)
	}
	l.caption += " Wide: what is judged, the " + report.JudgedNames[g.Of] + "."
	if g.Target != nil {
		l.targets = []float64{*g.Target}
		l.caption += " Dashed: target " + report.Percent(*g.Target) + "."
	}
	l.caption += estimates(d.Summary)
	for k, one := range fourOf {
		// Old records did not judge the average model.
		c := curve{look: look{color: okabeIto[k], width: 1.6, glyph: glyphs[k]}, name: report.JudgedWords[one.of],
			runs:     d.curves(g.Point, func(t record.Trace) plotter.XYs { return curveOf(t.Curve, time, one.at) }),
			optional: true}
		if one.of == g.Of {
			c.width = 3.2
		}
		l.curves = append(l.curves, c)
	}
	return l.figure(d.Summary)
}
