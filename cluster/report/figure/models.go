package figure

import (
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
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
		all = append(all, Drawing{Title: title, Draw: func() (*Figure, error) { return whichModel(d, g) }})
	}
	return all
}

// whichModel draws the four accuracies of a point over time; the one that is judged is the widest
// line.
func whichModel(d *Data, g record.Group) (*Figure, error) {
	x, time := timeAxis(d.Traces)
	bands, end := make([]Band, len(fourOf)), 0.0
	for k, one := range fourOf {
		bands[k] = bandOf(d.curves(g.Point, time, one.at), 1, gridPoints)
		if n := len(bands[k].X); n > 0 {
			end = max(end, bands[k].X[n-1])
		}
	}
	if end == 0 {
		return nil, nil
	}
	what := "which model"
	if len(g.Point) > 0 {
		what += " (" + report.PointName(g.Point) + ")"
	}
	text := "One run."
	if g.N > 1 {
		text = fmt.Sprintf("Lines: median of %d runs.", g.N)
	}
	if g.N >= manyRuns {
		text = fmt.Sprintf("Lines: mean of %d runs.", g.N)
	}
	text += " Wide: what is judged, the " + report.JudgedNames[g.Of] + "."
	var targets []float64
	if g.Target != nil {
		targets = append(targets, *g.Target)
		text += " Dashed: target " + report.Percent(*g.Target) + "."
	}
	f := newFigure(title(d.Summary, what), x, "accuracy, %", text)
	if err := f.addTargets(targets, end); err != nil {
		return nil, err
	}
	for k, b := range bands {
		if len(b.X) == 0 {
			continue // the average model of records that did not judge it
		}
		l := look{color: okabeIto[k], width: 1.6, glyph: glyphs[k]}
		if fourOf[k].of == g.Of {
			l.width = 3.2
		}
		m := markedLine{Band: b, look: l, group: k, groups: len(bands), name: report.JudgedWords[fourOf[k].of],
			end: end, scale: 100}
		if err := f.addMean(m); err != nil {
			return nil, err
		}
	}
	f.heading = "accuracy of"
	f.X.Min, f.X.Max = 0, end
	f.Y.Min, f.Y.Max = accuracyRange(bands, targets)
	return f, nil
}
