package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// marksPerLine is how many marks a line bears.
const marksPerLine = 7

// lines is a figure with a line for each group.
type lines struct {
	// what the figure shows, for its title; x and y are the axes' labels.
	what, x, y string
	// runs are the curves of each run of the summary.
	runs [][]xy
	// limit is the highest value that is possible, scale turns values into those shown.
	limit, scale float64
	targets      []float64
	caption      string
	// extent returns the ends of the vertical axis.
	extent func(bands []Band) (low, high float64)
}

func init() {
	for i, k := range []struct {
		name, over string
		draw       func(*Data) (*Figure, error)
	}{
		{"accuracy-epochs", " over epochs", accuracyOverEpochs},
		{"accuracy-time", " over time", accuracyOverTime},
		{"accuracy-bytes", " over bytes sent", accuracyOverBytes},
	} {
		title := func(s record.Summary) string { return report.Capitalized(report.Judged(s)) + k.over }
		register(Kind{Name: k.name, Section: Accuracy, Place: 1 + i, Needs: Curves, Drawings: single(title, k.draw)})
	}
}

func accuracyOverEpochs(d *Data) (*Figure, error) {
	return accuracyOver(d.Summary, d.Traces, "epochs", "epochs", func(e record.Evaluation) float64 { return e.Epoch })
}

func accuracyOverTime(d *Data) (*Figure, error) {
	x, time := timeAxis(d.Traces)
	return accuracyOver(d.Summary, d.Traces, "time", x, time)
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
func accuracyOverBytes(d *Data) (*Figure, error) {
	most := int64(0)
	counted := make([]record.Trace, len(d.Traces))
	for i, t := range d.Traces {
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
	return accuracyOver(d.Summary, counted, "bytes sent", "sent on all links, "+u.name,
		func(e record.Evaluation) float64 { return float64(e.Bytes) / u.bytes })
}

// accuracyOver draws the accuracy of what is judged.
func accuracyOver(s record.Summary, traces []record.Trace, over, x string,
	abscissa func(record.Evaluation) float64) (*Figure, error) {
	l := &lines{
		what: report.Judged(s) + " over " + over, x: x, y: report.Judged(s) + ", %", limit: 1, scale: 100,
		targets: report.Targets(s),
		caption: caption(s, true),
	}
	l.extent = func(bands []Band) (low, high float64) { return accuracyRange(bands, l.targets) }
	if len(l.targets) > maxTargets {
		l.targets = nil
	}
	for _, t := range traces {
		l.runs = append(l.runs, curveOf(t.Curve, abscissa, judgedAccuracy))
	}
	return l.figure(s)
}

func judgedAccuracy(e record.Evaluation) float64 { return float64(e.Accuracy) }

// AccuracyBand returns what the figures of accuracy draw of a point: the middle of its runs'
// curves, what lies around it, and what that is.
func (d *Data) AccuracyBand(g record.Group, abscissa func(record.Evaluation) float64) (b Band, kind string) {
	b = bandOf(d.curves(g.Point, abscissa, judgedAccuracy), 1, pointsOf(len(d.Summary.Groups)))
	if g.N >= manyRuns {
		return b, "mean and 95 % interval"
	}
	return b, "median and range"
}

// curves returns the curves of a point's runs.
func (d *Data) curves(p record.Point, abscissa, value func(record.Evaluation) float64) (own [][]xy) {
	for i, r := range d.Summary.Runs {
		if slices.Equal(r.Point, p) {
			own = append(own, curveOf(d.Traces[i].Curve, abscissa, value))
		}
	}
	return own
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
	return text
}

// bandText says what the bands show of points with this many runs.
func bandText(fewest, most int) string {
	switch {
	case most <= 1:
		return "One run per point."
	case most < manyRuns:
		return fmt.Sprintf("Median of %s, band: lowest to highest; a run that has ended counts with its last value.",
			upTo(fewest, most))
	case fewest >= manyRuns:
		return fmt.Sprintf("Mean of %s, band: its 95 %% interval (t); a run that has ended counts with its last value.",
			upTo(fewest, most))
	}
	return fmt.Sprintf("From %d runs on mean and band of its 95 %% interval (t), of fewer median and range; an "+
		"ended run keeps its last value.", manyRuns)
}

func upTo(fewest, most int) string {
	if fewest == most {
		return report.Count(most, "run")
	}
	return "up to " + report.Count(most, "run")
}

// figure draws a line for each group; nil if there is nothing to draw.
func (l *lines) figure(s record.Summary) (*Figure, error) {
	bands := make([]Band, len(s.Groups))
	end, repeats := 0.0, 0
	for i, g := range s.Groups {
		bands[i] = bandOf(l.curvesOf(s, g.Point), l.limit, pointsOf(len(s.Groups)))
		repeats = max(repeats, g.N)
		if n := len(bands[i].X); n > 0 {
			end = max(end, bands[i].X[n-1])
		}
	}
	if end == 0 {
		return nil, nil
	}
	f := newFigure(title(s, l.what), l.x, l.y, l.caption)
	if err := f.addTargets(l.targets, end); err != nil {
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
		m := markedLine{Band: b, look: styles[i], group: i, groups: len(bands),
			name: report.PointName(s.Groups[i].Point), end: end, scale: l.scale}
		if err := f.addMean(m); err != nil {
			return nil, err
		}
	}
	if len(s.Groups) == 1 {
		f.names = nil // one line needs no legend
	} else {
		f.heading = report.Cut(heading(report.SweptKeys(s)), report.MaxName+4)
	}
	f.X.Min, f.X.Max = 0, end
	f.Y.Min, f.Y.Max = l.extent(bands)
	return f, nil
}

// curvesOf returns the curves of a point's runs.
func (l *lines) curvesOf(s record.Summary, p record.Point) (own [][]xy) {
	for i, r := range s.Runs {
		if slices.Equal(r.Point, p) {
			own = append(own, l.runs[i])
		}
	}
	return own
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

// addTargets draws each target as a dashed line.
func (f *Figure) addTargets(targets []float64, end float64) error {
	for _, target := range targets {
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: target * 100}, {X: end, Y: target * 100}})
		if err != nil {
			return err
		}
		line.Color, line.Width, line.Dashes = grey, 1.2, []vg.Length{6, 4}
		f.Add(line)
	}
	return nil
}

// addSpread draws a group's band, lighter the more groups there are.
func (f *Figure) addSpread(b Band, l look, groups int, scale float64) error {
	alpha := uint8(45)
	if groups > 5 {
		alpha = 16
	}
	return f.addBand(b, scale, faded(l.color, alpha))
}

// addBand fills what lies between the low and the high values of a band, all of them times scale.
func (f *Figure) addBand(b Band, scale float64, fill color.Color) error {
	if len(b.X) == 0 {
		return nil
	}
	outline := make(plotter.XYs, 0, 2*len(b.X))
	for i, x := range b.X {
		outline = append(outline, plotter.XY{X: x, Y: b.High[i] * scale})
	}
	for i := len(b.X) - 1; i >= 0; i-- {
		outline = append(outline, plotter.XY{X: b.X[i], Y: b.Low[i] * scale})
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
	Band
	look
	group, groups int
	name          string
	end, scale    float64
}

// addMean draws a group's line, with marks that are shifted from group to group so that marks of
// neighbouring lines do not cover one another.
func (f *Figure) addMean(m markedLine) error {
	points := make(plotter.XYs, len(m.X))
	var marks plotter.XYs
	next := m.end / marksPerLine * (0.35 + float64(m.group)/float64(m.groups))
	for i, x := range m.X {
		points[i] = plotter.XY{X: x, Y: m.Mean[i] * m.scale}
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
