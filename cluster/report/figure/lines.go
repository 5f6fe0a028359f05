package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// marksPerLine is how many marks a line has.
const marksPerLine = 7

// lines is a figure with lines.
type lines struct {
	// what the figure shows, for its title; x and y label the axes, heading the legend.
	what, x, y, heading, caption string

	curves []curve
	// panels are the names of the panels; strokes is the heading of the dashes in the legend, where
	// these mean something by themselves.
	panels  []string
	strokes string
	// accuracy says that the values are accuracies, as fractions: they are shown in percent.
	accuracy bool
	// spread says that bands are drawn around the lines.
	spread  bool
	targets []float64
}

// curve is a line in the middle of the curves of some runs.
type curve struct {
	look
	// name stands in the legend once, beside the colour; empty if the legend leaves the line out.
	// stroke is the name of its dashes, where these mean something by themselves.
	name, stroke string
	point        string // the point's name, for the caption
	panel        int
	runs         []plotter.XYs
	// optional says that it is left out where no run has a point.
	optional bool
	// arrived says that all runs ended when they reached the target.
	arrived bool
}

func init() {
	for i, k := range []struct {
		name, over string
		draw       func(*Data) *Figure
	}{
		{"accuracy-epochs", " over epochs", accuracyOverEpochs},
		{"accuracy-time", " over time", accuracyOverTime},
		{"accuracy-bytes", " over bytes sent", accuracyOverBytes},
	} {
		title := func(s record.Summary) string { return report.Capitalized(report.Judged(s)) + k.over }
		register(Kind{Name: k.name, Section: Accuracy, Place: 1 + i, Needs: Curves, Drawings: single(title, k.draw)})
	}
}

func accuracyOverEpochs(d *Data) *Figure {
	return accuracyOver(d, "epochs", "epochs", func(e record.Evaluation) float64 { return e.Epoch })
}

func accuracyOverTime(d *Data) *Figure {
	x, time := timeAxis(d.Traces)
	return accuracyOver(d, "time", x, time)
}

// timeAxis returns the axis of time: its label, and an evaluation's place on it.
func timeAxis(traces []record.Trace) (label string, abscissa func(record.Evaluation) float64) {
	longest := 0.0
	for _, t := range traces {
		for _, e := range t.Curve {
			longest = max(longest, e.Time)
		}
	}
	u := report.TimeUnit(longest)
	return "time, " + u.Name, func(e record.Evaluation) float64 { return e.Time / u.Seconds }
}

// accuracyOverBytes leaves out runs whose record does not tell the bytes.
func accuracyOverBytes(d *Data) *Figure {
	most := int64(0)
	counted := &Data{Summary: d.Summary, Traces: make([]record.Trace, len(d.Traces))}
	for i, t := range d.Traces {
		own := int64(0)
		for _, e := range t.Curve {
			own = max(own, e.Bytes)
		}
		if own > 0 {
			counted.Traces[i] = t
		}
		most = max(most, own)
	}
	u := byteUnit(float64(most))
	return accuracyOver(counted, "bytes sent", "sent on all links, "+u.name,
		func(e record.Evaluation) float64 { return float64(e.Bytes) / u.bytes })
}

// accuracyOver draws the accuracy of what is judged.
func accuracyOver(d *Data, over, x string, abscissa func(record.Evaluation) float64) *Figure {
	l := &lines{what: report.Judged(d.Summary) + " over " + over, x: x, y: report.Judged(d.Summary) + ", %",
		caption: caption(d.Summary, true), accuracy: true, targets: report.Targets(d.Summary)}
	if len(l.targets) > maxTargets {
		l.targets = nil
	}
	l.addGroups(d, judgedCurve(abscissa))
	return l.figure(d.Summary)
}

// judgedCurve returns how to read the accuracy of what is judged from a run.
func judgedCurve(abscissa func(record.Evaluation) float64) func(record.Trace) plotter.XYs {
	return func(t record.Trace) plotter.XYs {
		return curveOf(t.Curve, abscissa, func(e record.Evaluation) float64 { return float64(e.Accuracy) })
	}
}

// AccuracyBand returns what the figures of accuracy draw of a point: the middle of its runs'
// curves, what lies around it, and what that is.
func (d *Data) AccuracyBand(g record.Group, abscissa func(record.Evaluation) float64) (b Band, kind string) {
	b = bandOf(d.curves(g.Point, judgedCurve(abscissa)), pointsOf(len(d.Summary.Groups)))
	if g.N >= stats.LeastForInterval {
		return b, "median and 95 % interval"
	}
	return b, "median and range"
}

// curves returns the curves of a point's runs.
func (d *Data) curves(p record.Point, of func(record.Trace) plotter.XYs) (own []plotter.XYs) {
	for i, r := range d.Summary.Runs {
		if slices.Equal(r.Point, p) {
			own = append(own, of(d.Traces[i]))
		}
	}
	return own
}

// endAtTarget reports whether all runs of a point ended at the evaluation that reached the target.
func (d *Data) endAtTarget(p record.Point) bool {
	for i, r := range d.Summary.Runs {
		if !slices.Equal(r.Point, p) {
			continue
		}
		curve := d.Traces[i].Curve
		if n := len(curve); r.TimeToTarget == nil || n > 1 && *r.TimeToTarget < curve[n-2].Time {
			return false // it goes on
		}
	}
	return true
}

const (
	// brightLines is how many lines of a panel have colours: more are drawn in grey, behind these.
	brightLines = 14
	// scaleNames is how many values of a scale of colours the legend names.
	scaleNames = 12
)

// addGroups adds a curve for each point, of what a function reads from its runs.
func (l *lines) addGroups(d *Data, of func(record.Trace) plotter.XYs) {
	layout, styles := d.layout(), d.looks()
	panels, note := panelsOf(layout.Panels(d.Summary))
	l.panels, l.caption = panels, l.caption+note+d.Note
	behind := background(d.Summary, layout)
	numbered, scaled := scale(layout.By)
	for i, g := range d.Summary.Groups {
		c := curve{look: styles[i], panel: slices.Index(panels, layout.Panel(g.Point)), runs: d.curves(g.Point, of),
			point: report.PointName(g.Point), arrived: l.accuracy && d.endAtTarget(g.Point)}
		if c.panel < 0 {
			continue
		}
		if layout.By != nil {
			level := layout.By.Level(g.Point)
			c.name = layout.By.Names()[level]
			if k := slices.Index(numbered, level); scaled && k > 0 && k < len(numbered)-1 &&
				k%(1+len(numbered)/scaleNames) > 0 {
				c.name = "" // its neighbours on the scale tell it
			}
		}
		if layout.Dash != nil {
			c.stroke = layout.Dash.Names()[layout.Dash.Level(g.Point)]
		}
		if behind[i] {
			c.look, c.arrived = look{color: pale, width: 0.8}, false
			c.name = fmt.Sprintf("others (%d)", len(behind))
		}
		l.spread = l.spread || g.N > 1 && !behind[i]
		l.curves = append(l.curves, c)
	}
	slices.SortStableFunc(l.curves, func(a, b curve) int { return cmp.Compare(b.depth(), a.depth()) })
	if layout.By != nil {
		l.heading = layout.By.Name
	}
	if layout.Dash != nil {
		l.strokes = layout.Dash.Name
	}
}

// depth is 1 for a line that lies behind others, 0 for the others.
func (c *curve) depth() int {
	if c.color == pale {
		return 1
	}
	return 0
}

// background are the points that a figure with too many lines draws in grey: all but those that
// reach the target first, or end highest.
func background(s record.Summary, l report.Layout) map[int]bool {
	if _, scaled := scale(l.By); scaled || l.By == nil || l.Dash != nil || len(l.By.Values) <= 2*brightLines {
		return nil
	}
	order := make([]int, len(s.Groups))
	for i := range order {
		order[i] = i
	}
	time, accuracy := func(i int) float64 {
		if a := s.Groups[i].TimeToTarget; a != nil {
			return float64(a.Restricted)
		}
		return math.Inf(1)
	}, func(i int) float64 {
		if a := s.Groups[i].FinalAccuracy; a != nil {
			return float64(a.Mean)
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(time(a), time(b)), cmp.Compare(accuracy(b), accuracy(a)))
	})
	behind := map[int]bool{}
	for _, i := range order[brightLines:] {
		behind[i] = true
	}
	return behind
}

// maxTargets is how many targets of points a figure shows.
const maxTargets = 4

// caption says what lines and bands are of, and where accuracy is drawn the target.
func caption(s record.Summary, accuracy bool) string {
	fewest, most := math.MaxInt, 0
	for _, g := range s.Groups {
		fewest, most = min(fewest, g.N), max(most, g.N)
	}
	text := bandText(fewest, most)
	if targets := report.Targets(s); accuracy && len(targets) > 0 && len(targets) <= maxTargets {
		var names []string
		for _, target := range targets {
			names = append(names, report.Percent(target))
		}
		text += " Dashed: target " + strings.Join(names, ", ") + "."
	}
	if accuracy {
		text += estimates(s)
	}
	return text
}

// estimates says so where points of curves of accuracy are estimates.
func estimates(s record.Summary) string {
	if report.Estimates(s) == "" {
		return ""
	}
	return " Below the target: estimates by a part of the test set."
}

// bandText says what the bands show of points with this many runs.
func bandText(fewest, most int) string {
	switch {
	case most <= 1:
		return "One run per point."
	case most < stats.LeastForInterval:
		return fmt.Sprintf("Median of %s, band: lowest to highest; a run that has ended counts with its last value.",
			upTo(fewest, most))
	case fewest >= stats.LeastForInterval:
		return fmt.Sprintf("Median of %s, band: its 95 %% interval; a run that has ended counts with its last value.",
			upTo(fewest, most))
	}
	return fmt.Sprintf("Median and, from %d runs on, band of its 95 %% interval, of fewer the range; an "+
		"ended run keeps its last value.", stats.LeastForInterval)
}

func upTo(fewest, most int) string {
	if fewest == most {
		return report.Count(most, "run")
	}
	return "up to " + report.Count(most, "run")
}

// figure draws the lines; nil if there is nothing to draw.
func (l *lines) figure(s record.Summary) *Figure {
	scale := 1.0
	if l.accuracy {
		scale = 100
	}
	from, end, ok := l.domain()
	if !ok {
		return nil
	}
	bands := make([]Band, len(l.curves))
	for i, c := range l.curves {
		bands[i] = bandFrom(c.runs, pointsOf(len(l.curves)), from)
	}
	f := newFigure(title(s, l.what), l.x, l.y, l.caption)
	f.divide(l.panels)
	if f.X.Min, f.X.Max = from, end; from > 0 {
		logarithmic(&f.X)
		f.caption += " The horizontal axis is logarithmic."
	}
	l.addLines(f, bands, scale)
	f.X.Min, f.X.Max = from, end // a line that was added may have widened the axis
	l.setHeights(f, bands)
	if slices.ContainsFunc(l.curves, func(c curve) bool { return c.arrived }) {
		f.caption += " Ring: all runs have reached the target, and end."
	}
	return f
}

// domain is the range of the horizontal axis, from 0 where it is linear: it is logarithmic where
// the shortest and the longest run are decades apart.
func (l *lines) domain() (from, end float64, ok bool) {
	ends, first := newExtent(), newExtent()
	for _, c := range l.curves {
		for _, points := range c.runs {
			if n := len(points); n > 0 && points[n-1].X > 0 {
				ends.add(points[n-1].X)
				for _, p := range points {
					if p.X > 0 {
						first.add(p.X)
						break
					}
				}
			}
		}
	}
	if ends.spansDecades() {
		from = max(first.low, ends.low/decadeAndHalf)
	}
	return from, ends.high, ends.high > 0
}

// setHeights ends the vertical axis.
func (l *lines) setHeights(f *Figure, bands []Band) {
	if e, least := l.positive(); !l.accuracy && e.spansDecades() {
		f.caption += e.setLogarithmic(&f.Y, "vertical axis", least)
		return
	}
	if f.Y.Min, f.Y.Max = l.extent(bands); f.Y.Min > 0 {
		f.caption += fmt.Sprintf(" The vertical axis begins at %.0f.", f.Y.Min)
	}
}

// positive returns the range of the runs' values above zero, and the least value of all.
func (l *lines) positive() (e extent, least float64) {
	e, least = newExtent(), math.Inf(1)
	for _, c := range l.curves {
		for _, points := range c.runs {
			for _, p := range points {
				if least = min(least, p.Y); p.Y > 0 {
					e.add(p.Y)
				}
			}
		}
	}
	return e, least
}

// addLines draws targets, bands and lines, in this order.
func (l *lines) addLines(f *Figure, bands []Band, scale float64) {
	for panel := range max(len(f.panels), 1) {
		for _, target := range l.targets {
			f.in(panel).addLine(look{color: grey, width: 1.2, dash: []vg.Length{6, 4}},
				segment(f.X.Min, target*scale, f.X.Max, target*scale))
		}
	}
	for i, b := range bands {
		if c := l.curves[i]; l.spread && c.color != pale {
			f.in(c.panel).addBand(b.times(scale), faded(c.color, l.opacity()), isLogarithmic(&f.X))
		}
	}
	strokes := map[string]look{}
	var order, missing []string
	for i, b := range bands {
		c := l.curves[i]
		if len(b.X) == 0 {
			if !c.optional {
				missing = append(missing, c.point)
			}
			continue
		}
		l.addMean(f, i, b.times(scale))
		if _, known := strokes[c.stroke]; !known && c.stroke != "" {
			strokes[c.stroke] = look{color: black, width: 1.8, dash: c.dash, glyph: c.glyph}
			order = append(order, c.stroke)
		}
	}
	if len(order) > 0 {
		f.headEntries(l.strokes)
	}
	for _, name := range order {
		k := strokes[name]
		f.entry(name, &plotter.Line{LineStyle: draw.LineStyle{Color: k.color, Width: k.width, Dashes: k.dash}},
			&plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: k.color, Radius: 3.4, Shape: k.glyph}})
	}
	f.caption += withoutValues(missing)
	if f.heading = l.heading; len(f.names) == 1 && l.strokes == "" && len(missing) == 0 {
		f.names = nil // one line needs no legend
	}
}

// withoutValues is a caption's sentence about the points that have no values in a figure.
func withoutValues(points []string) string {
	if len(points) == 0 {
		return ""
	}
	return " Without values: " + report.ListSome(points) + "."
}

// opacity is how much of what is behind them bands cover: less the more of them there are.
func (l *lines) opacity() uint8 {
	if len(l.curves) > 5 {
		return 16
	}
	return 45
}

// extent returns the ends of the vertical axis.
func (l *lines) extent(bands []Band) (low, high float64) {
	if l.accuracy {
		return accuracyRange(bands, l.targets)
	}
	for _, b := range bands {
		for _, v := range b.High {
			high = max(high, v)
		}
	}
	return 0, high * 1.05
}

// accuracyRange returns limits in percent, at multiples of 5, around the targets and
// the mean curves but for their lowest tenth: the first steps would take most of
// the height.
func accuracyRange(bands []Band, targets []float64) (low, high float64) {
	var all []float64
	for _, b := range bands {
		all = append(all, b.Mean...)
	}
	slices.Sort(all)
	low, high = all[len(all)/10], all[len(all)-1]
	for _, target := range targets {
		low, high = min(low, target), max(high, target)
	}
	low, high = math.Floor(low*20)*5, math.Ceil(high*20+0.2)*5
	return max(low, 0), min(max(high, low+5), 100)
}

// addMean draws the line of curve i, with marks that are shifted from line to line so that marks of
// neighbouring lines do not cover one another.
func (l *lines) addMean(f *Figure, i int, b Band) {
	c, panel := l.curves[i], f.in(l.curves[i].panel)
	points := make(plotter.XYs, len(b.X))
	var marks plotter.XYs
	place := (0.35 + float64(i)/float64(len(l.curves))) / marksPerLine
	for k, x := range b.X {
		points[k] = plotter.XY{X: x, Y: b.Mean[k]}
		if f.X.Norm(x) >= place {
			marks = append(marks, points[k])
			place += 1.0 / marksPerLine
		}
	}
	if len(marks) == 0 && len(points) > 0 {
		marks = append(marks, points[len(points)-1]) // a short line too shows whose it is
	}
	hue := c.look
	if c.stroke != "" {
		hue.dash = nil
	}
	panel.addLine(c.look, thin(points, isLogarithmic(&f.X)))
	thumbs := []plot.Thumbnailer{&plotter.Line{LineStyle: draw.LineStyle{Color: hue.color, Width: hue.width,
		Dashes: hue.dash}}}
	if c.glyph != nil && len(l.curves) > 1 && c.color != pale {
		style := draw.GlyphStyle{Color: c.color, Radius: 3.4, Shape: c.glyph}
		if panel.addMarks(style, marks); c.stroke == "" {
			thumbs = append(thumbs, &plotter.Scatter{GlyphStyle: style})
		}
	}
	if c.arrived && len(points) > 0 {
		panel.addMarks(draw.GlyphStyle{Color: c.color, Radius: 6, Shape: draw.RingGlyph{}}, points[len(points)-1:])
	}
	if c.name != "" && !slices.Contains(f.names, c.name) || len(l.curves) == 1 {
		f.entry(c.name, thumbs...)
	}
}

// sizeUnit is a unit of data.
type sizeUnit struct {
	name  string
	bytes float64
}

// byteUnit chooses the unit in which a number of bytes is handy.
func byteUnit(bytes float64) sizeUnit {
	switch {
	case bytes < 1e4:
		return sizeUnit{"bytes", 1}
	case bytes < 1e6:
		return sizeUnit{"kB", 1e3}
	case bytes < 2e9:
		return sizeUnit{"MB", 1e6}
	case bytes < 2e12:
		return sizeUnit{"GB", 1e9}
	}
	return sizeUnit{"TB", 1e12}
}
