package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gradwire/gradwire/cluster/record"
)

// marksPerLine is how many marks a line bears.
const marksPerLine = 7

// lines is a figure with a line for each group.
type lines struct {
	x, y string
	// runs are the curves of each run of the summary.
	runs    []models
	combine func([]float64) float64
	// limit is the highest value that is possible, scale turns values into those shown.
	limit, scale float64
	target       *float64
	caption      string
	// extent returns the ends of the vertical axis.
	extent func(bands []band) (low, high float64)
}

func accuracyOverEpochs(s record.Summary, traces []record.Trace) (*figure, error) {
	return accuracyOver(s, traces, "epochs", func(e record.Evaluation) float64 { return e.Epoch })
}

func accuracyOverTime(s record.Summary, traces []record.Trace) (*figure, error) {
	x, time := timeAxis(traces)
	return accuracyOver(s, traces, x, time)
}

// timeAxis returns the axis of time: its label, and an evaluation's place on it.
func timeAxis(traces []record.Trace) (label string, abscissa func(record.Evaluation) float64) {
	longest := 0.0
	for _, t := range traces {
		for _, e := range t.Curve {
			longest = max(longest, e.Time)
		}
	}
	u := timeUnit(longest)
	return "time, " + u.name, func(e record.Evaluation) float64 { return e.Time / u.seconds }
}

// accuracyOverBytes leaves out runs whose record does not tell the bytes.
func accuracyOverBytes(s record.Summary, traces []record.Trace) (*figure, error) {
	most := int64(0)
	counted := make([]record.Trace, len(traces))
	for i, t := range traces {
		own := int64(0)
		for _, e := range t.Curve {
			own = max(own, e.Bytes)
		}
		if own > 0 {
			counted[i] = t
		}
		most = max(most, own)
	}
	u := byteUnit(float64(most))
	return accuracyOver(s, counted, "sent on all links, "+u.name, func(e record.Evaluation) float64 { return float64(e.Bytes) / u.bytes })
}

func accuracyOver(s record.Summary, traces []record.Trace, x string, abscissa func(record.Evaluation) float64) (*figure, error) {
	l := accuracyLines(s, traces, x, abscissa)
	if several(l.runs) {
		l.y = "accuracy, mean over nodes, %"
	}
	return l.figure(s)
}

// bestOverTime draws at each instant the accuracy of the node that is then the best;
// nil if no run has several models.
func bestOverTime(s record.Summary, traces []record.Trace) (*figure, error) {
	x, time := timeAxis(traces)
	l := accuracyLines(s, traces, x, time)
	if !several(l.runs) {
		return nil, nil
	}
	l.y, l.combine = "accuracy, best node, %", slices.Max[[]float64]
	l.caption += " At each instant the best node."
	return l.figure(s)
}

// several reports whether a run has several models.
func several(runs []models) bool {
	return slices.ContainsFunc(runs, func(m models) bool { return len(m) > 1 })
}

func accuracyLines(s record.Summary, traces []record.Trace, x string, abscissa func(record.Evaluation) float64) *lines {
	l := &lines{
		x: x, y: "accuracy, %", combine: meanOf, limit: 1, scale: 100, target: s.Target, caption: caption(s, "accuracy"),
		extent: func(bands []band) (low, high float64) { return accuracyRange(bands, s.Target) },
	}
	for _, t := range traces {
		l.runs = append(l.runs, byNode(t.Curve, abscissa))
	}
	return l
}

// consensusDistance is the name of the measurement that consensusOverTime draws.
const consensusDistance = "consensus distance"

// diverged is a distance at which models have nothing to do with each other: its square is
// still a number.
const diverged = 1e100

func consensusOverTime(s record.Summary, traces []record.Trace) (*figure, error) {
	longest, highest := 0.0, 0.0
	l := &lines{y: consensusDistance, combine: meanOf, limit: math.Inf(1), scale: 1, caption: caption(s, "distance")}
	for _, t := range traces {
		var points []xy
		for _, m := range t.Measured {
			if m.Name == consensusDistance && finite(m.Time) && math.Abs(float64(m.Value)) < diverged {
				points = append(points, xy{m.Time, float64(m.Value)})
				longest, highest = max(longest, m.Time), max(highest, float64(m.Value))
			}
		}
		var own models
		if len(points) > 0 {
			own = models{points}
		}
		l.runs = append(l.runs, own)
	}
	if longest == 0 || highest == 0 {
		return nil, nil // that all models begin equal, or stay so, is no figure
	}
	u := timeUnit(longest)
	l.x = "time, " + u.name
	for _, m := range l.runs {
		for _, points := range m {
			for i := range points {
				points[i].x /= u.seconds
			}
		}
	}
	l.extent = func(bands []band) (low, high float64) {
		for _, b := range bands {
			for _, v := range b.high {
				high = max(high, v)
			}
		}
		return 0, high * 1.05
	}
	return l.figure(s)
}

// caption says what lines and bands are of.
func caption(s record.Summary, quantity string) string {
	repeats := 0
	for _, g := range s.Groups {
		repeats = max(repeats, g.N)
	}
	text := "One run per point."
	if repeats > 1 {
		text = fmt.Sprintf("Mean of up to %d seeds, band ± 1 standard deviation; a run that has ended counts with its last %s.", repeats, quantity)
	}
	if s.Target != nil && quantity == "accuracy" {
		text += " Dashed: target " + percent(*s.Target) + "."
	}
	return text
}

// figure draws a line for each group; nil if there is nothing to draw.
func (l *lines) figure(s record.Summary) (*figure, error) {
	bands := make([]band, len(s.Groups))
	end, repeats := 0.0, 0
	for i, g := range s.Groups {
		bands[i] = bandOf(l.of(s, g.Point), l.combine, l.limit, pointsOf(len(s.Groups)))
		repeats = max(repeats, g.N)
		if n := len(bands[i].x); n > 0 {
			end = max(end, bands[i].x[n-1])
		}
	}
	if end == 0 {
		return nil, nil
	}
	f := newFigure(s.Plan, l.x, l.y, l.caption)
	if err := f.addTarget(l.target, end); err != nil {
		return nil, err
	}
	styles := looks(s.Groups)
	if repeats > 1 {
		for i, b := range bands {
			if err := f.addSpread(b, styles[i], len(s.Groups), l.scale); err != nil {
				return nil, err
			}
		}
	}
	for i, b := range bands {
		m := markedLine{band: b, look: styles[i], group: i, groups: len(bands), name: name(s.Groups[i].Point), end: end, scale: l.scale}
		if err := f.addMean(m); err != nil {
			return nil, err
		}
	}
	if len(s.Groups) == 1 {
		f.names = nil // one line needs no legend
	} else {
		f.heading = cut(heading(keys(s)), maxLegendText+4)
	}
	f.X.Min, f.X.Max = 0, end
	f.Y.Min, f.Y.Max = l.extent(bands)
	return f, nil
}

// of returns the curves of a point's runs.
func (l *lines) of(s record.Summary, p record.Point) (own []models) {
	for i, r := range s.Runs {
		if slices.Equal(r.Point, p) {
			own = append(own, l.runs[i])
		}
	}
	return own
}

// accuracyRange returns limits in percent, at multiples of 5, around the target and
// the mean curves but for their lowest tenth: the first steps would take most of
// the height.
func accuracyRange(bands []band, target *float64) (low, high float64) {
	var all []float64
	for _, b := range bands {
		all = append(all, b.mean...)
	}
	slices.Sort(all)
	low, high = all[len(all)/10], all[len(all)-1]
	if target != nil {
		low, high = min(low, *target), max(high, *target)
	}
	low, high = math.Floor(low*20)*5, math.Ceil(high*20+0.2)*5
	return max(low, 0), min(max(high, low+5), 100)
}

// addTarget draws the target as a dashed line.
func (f *figure) addTarget(target *float64, end float64) error {
	if target == nil {
		return nil
	}
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: *target * 100}, {X: end, Y: *target * 100}})
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = grey, 1.2, []vg.Length{6, 4}
	f.Add(line)
	return nil
}

// addSpread draws a group's band, lighter the more groups there are.
func (f *figure) addSpread(b band, l look, groups int, scale float64) error {
	alpha := uint8(45)
	if groups > 5 {
		alpha = 16
	}
	return f.addBand(b, scale, faded(l.color, alpha))
}

// addBand fills what lies between the low and the high values of a band, all of them times scale.
func (f *figure) addBand(b band, scale float64, fill color.Color) error {
	if len(b.x) == 0 {
		return nil
	}
	outline := make(plotter.XYs, 0, 2*len(b.x))
	for i, x := range b.x {
		outline = append(outline, plotter.XY{X: x, Y: b.high[i] * scale})
	}
	for i := len(b.x) - 1; i >= 0; i-- {
		outline = append(outline, plotter.XY{X: b.x[i], Y: b.low[i] * scale})
	}
	polygon, err := plotter.NewPolygon(thin(outline))
	if err != nil {
		return err
	}
	polygon.Color, polygon.LineStyle = fill, draw.LineStyle{Color: color.Transparent}
	f.Add(polygon)
	return nil
}

// markedLine is a group's line in a figure that ends at the abscissa end.
type markedLine struct {
	band
	look
	group, groups int
	name          string
	end, scale    float64
}

// addMean draws a group's line, with marks that are shifted from group to group so
// that those of lines close to each other do not cover one another.
func (f *figure) addMean(m markedLine) error {
	points := make(plotter.XYs, len(m.x))
	var marks plotter.XYs
	next := m.end / marksPerLine * (0.35 + float64(m.group)/float64(m.groups))
	for i, x := range m.x {
		points[i] = plotter.XY{X: x, Y: m.mean[i] * m.scale}
		if x >= next {
			marks = append(marks, points[i])
			next += m.end / marksPerLine
		}
	}
	if len(marks) == 0 && len(points) > 0 {
		marks = append(marks, points[len(points)-1]) // a short line too shows whose it is
	}
	line, err := plotter.NewLine(thin(points))
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = m.color, m.width, m.dash
	f.Add(line)
	thumbs := []plot.Thumbnailer{line}
	if m.glyph != nil && m.groups > 1 {
		style := draw.GlyphStyle{Color: m.color, Radius: 3.4, Shape: m.glyph}
		scatter := &plotter.Scatter{XYs: marks, GlyphStyle: style}
		if len(marks) > 0 {
			f.Add(scatter)
		}
		thumbs = append(thumbs, scatter)
	}
	f.entry(m.name, thumbs...)
	return nil
}
