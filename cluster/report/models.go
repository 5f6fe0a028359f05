package report

import (
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

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

// modelDrawings are the figures of what each of the four accuracies gives, for the first points of several models.
func modelDrawings(s record.Summary, traces []record.Trace) (all []drawing) {
	if !several(s) {
		return nil
	}
	for _, g := range s.Groups {
		if len(all) == maxModelFigures || !severalOf(s, g.Point) {
			continue
		}
		text := "Which model: the four accuracies"
		if len(g.Point) > 0 {
			text += " of " + name(g.Point)
		}
		all = append(all, drawing{fmt.Sprintf("models-%d", len(all)+1), text, func() (*figure, error) { return whichModel(s, traces, g) }})
	}
	return all
}

// whichModel draws the four accuracies of a point over time; the one that is judged is the widest line.
func whichModel(s record.Summary, traces []record.Trace, g record.Group) (*figure, error) {
	x, time := timeAxis(traces)
	bands, end := make([]band, len(fourOf)), 0.0
	for k, one := range fourOf {
		var runs [][]xy
		for i, r := range s.Runs {
			if slices.Equal(r.Point, g.Point) {
				runs = append(runs, curveOf(traces[i].Curve, time, one.at))
			}
		}
		bands[k] = bandOf(runs, 1, gridPoints)
		if n := len(bands[k].x); n > 0 {
			end = max(end, bands[k].x[n-1])
		}
	}
	if end == 0 {
		return nil, nil
	}
	what := "which model"
	if len(g.Point) > 0 {
		what += " (" + name(g.Point) + ")"
	}
	text := "One run."
	if g.N > 1 {
		text = fmt.Sprintf("Lines: median of %d runs.", g.N)
	}
	if g.N >= manyRuns {
		text = fmt.Sprintf("Lines: mean of %d runs.", g.N)
	}
	text += " Wide: what is judged, the " + judgedNames[g.Of] + "."
	var targets []float64
	if g.Target != nil {
		targets = append(targets, *g.Target)
		text += " Dashed: target " + percent(*g.Target) + "."
	}
	f := newFigure(title(s, what), x, "accuracy, %", text)
	if err := f.addTargets(targets, end); err != nil {
		return nil, err
	}
	for k, b := range bands {
		if len(b.x) == 0 {
			continue // the average model of records that did not judge it
		}
		l := look{color: okabeIto[k], width: 1.6, glyph: glyphs[k]}
		if fourOf[k].of == g.Of {
			l.width = 3.2
		}
		m := markedLine{band: b, look: l, group: k, groups: len(bands), name: judgedWords[fourOf[k].of], end: end, scale: 100}
		if err := f.addMean(m); err != nil {
			return nil, err
		}
	}
	f.heading = "accuracy of"
	f.X.Min, f.X.Max = 0, end
	f.Y.Min, f.Y.Max = accuracyRange(bands, targets)
	return f, nil
}
