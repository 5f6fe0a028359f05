package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// MaxProbedPanels is how many edges Probes draws one by one; more are drawn by groups.
	MaxProbedPanels = 12
	// dotsDrawn is how many probes are drawn as dots, over all panels; of more there are ranges.
	dotsDrawn = 8000
	// panelSize is the font size in a panel.
	panelSize = vg.Length(10)
	// probeBins is how many stretches of time there are at most where probes are taken together.
	probeBins = 150
)

// Probes draws the delays that probes of edges drew, over time, as path.png and path.svg, with
// outages as bands. Each edge has its panel; of more than MaxProbedPanels edges each group of them
// has one, such as those between two regions, and one more has the share of edges that are down.
// Equal input gives equal bytes.
func Probes(path, title string, all []*report.Probed) error {
	s := &sheetOfPanels{title: title, caption: "Delays that the probes drew."}
	for _, p := range all {
		s.end = max(s.end, p.End)
	}
	s.unit = report.TimeUnit(s.end)
	if len(all) > MaxProbedPanels {
		s.addGroups(all)
		s.addShareDown(all)
	} else {
		s.addEdges(all)
	}
	return save(path, sheet, s.draw)
}

// sheetOfPanels are figures beside and below each other, all over the same time.
type sheetOfPanels struct {
	title, caption string
	end            float64 // in seconds
	unit           report.Unit
	columns        int
	panels         []*Figure
}

// addPanel adds a figure with this vertical axis.
func (s *sheetOfPanels) addPanel(y string) *Figure {
	f := newFigure("", "time, "+s.unit.Name, y, "")
	for _, axis := range []*plot.Axis{&f.X, &f.Y} {
		axis.Tick.Marker = roundTicks{most: 4}
		axis.Tick.Label.Font = sans(panelSize)
		axis.Label.TextStyle.Font = sans(panelSize)
		axis.Label.Padding = 2
	}
	s.panels = append(s.panels, f)
	return f
}

// setAxes ends the axes of a panel that is whole.
func (s *sheetOfPanels) setAxes(f *Figure, top float64) {
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = 0, s.end/s.unit.Seconds, 0, top
}

// above is where an axis of delays ends, up to the longest.
func above(longest float64, u report.Unit) float64 { return max(longest/u.Seconds*1.08, 1e-9) }

func (s *sheetOfPanels) addEdges(all []*report.Probed) {
	dots := 0
	anyDown, anyLost := false, false
	for _, p := range all {
		dots += len(p.Sent)
		anyDown = anyDown || len(p.Down) > 0
		anyLost = anyLost || slices.ContainsFunc(p.Took, func(t float64) bool { return math.IsInf(t, 1) })
	}
	s.columns = 1 + min((len(all)-1)/2, 1) + min((len(all)-1)/6, 1)
	for _, p := range all {
		longest := slices.Max(append([]float64{0}, p.Delay...))
		v, top := report.TimeUnit(longest), 1.0
		if longest > 0 {
			top = above(longest, v)
		}
		f := s.addPanel(v.Name)
		f.heading = p.From + " → " + p.To
		if p.Model != "" {
			f.heading += ": " + p.Model
		}
		f.Add(shade{p.Down, s.unit.Seconds})
		if dots <= dotsDrawn {
			f.addDots(p, s.unit, v)
		} else {
			f.addMedian(s.bandOf(s.stretches(p), 0, 1).times(1/v.Seconds), 60)
		}
		f.Add(rug{p, s.unit.Seconds})
		s.setAxes(f, top)
	}
	if dots > dotsDrawn {
		s.caption += " Band: least to greatest of a stretch of time, line: median."
	}
	if anyDown {
		s.caption += " Shaded: down."
	}
	if anyLost {
		s.caption += " Marks at the top: lost."
	}
}

func (f *Figure) addDots(p *report.Probed, u, v report.Unit) {
	points := make(plotter.XYs, len(p.Sent))
	for i := range points {
		points[i] = plotter.XY{X: p.Sent[i] / u.Seconds, Y: p.Delay[i] / v.Seconds}
	}
	f.addMarks(draw.GlyphStyle{Color: okabeIto[0], Radius: 1.1, Shape: draw.CircleGlyph{}}, points)
}

// stretches divides the delays of an edge by the time of sending.
func (s *sheetOfPanels) stretches(p *report.Probed) [][]float64 {
	all := make([][]float64, max(min(probeBins, len(p.Sent)), 1))
	for i, at := range p.Sent {
		k := min(int(at/s.end*float64(len(all))), len(all)-1)
		all[k] = append(all[k], p.Delay[i])
	}
	return all
}

// bandOf is the median of the values in each stretch of time, and the quantiles low and high
// around it.
func (s *sheetOfPanels) bandOf(stretches [][]float64, low, high float64) (b Band) {
	for i, values := range stretches {
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		b.X = append(b.X, (float64(i)+0.5)*s.end/float64(len(stretches))/s.unit.Seconds)
		b.Mean = append(b.Mean, report.Quantile(values, 0.5))
		b.Low, b.High = append(b.Low, report.Quantile(values, low)), append(b.High, report.Quantile(values, high))
	}
	return b
}

// addMedian draws a band with its middle as a line.
func (f *Figure) addMedian(b Band, opacity uint8) {
	if len(b.X) == 0 {
		return
	}
	f.addBand(b, faded(okabeIto[0], opacity), false)
	middle := make(plotter.XYs, len(b.X))
	for i, x := range b.X {
		middle[i] = plotter.XY{X: x, Y: b.Mean[i]}
	}
	f.addLine(look{color: okabeIto[0], width: 1.4}, middle)
}

// edgeGroup are edges that a panel shows together.
type edgeGroup struct {
	name  string
	edges []*report.Probed
}

// sameDelay is how much longer the next longer delay may be that counts as of the same class.
const sameDelay = 1.5

// groupEdges divides edges by the groups of the nodes at their ends, such as regions, and where
// these tell nothing apart or are too many by the classes of their median delays.
func groupEdges(all []*report.Probed) []edgeGroup {
	by := func(name func(p *report.Probed) string) (groups []edgeGroup) {
		for _, p := range all {
			i := slices.IndexFunc(groups, func(g edgeGroup) bool { return g.name == name(p) })
			if i < 0 {
				i = len(groups)
				groups = append(groups, edgeGroup{name: name(p)})
			}
			groups[i].edges = append(groups[i].edges, p)
		}
		return groups
	}
	directed := by(func(p *report.Probed) string { return report.NodeGroup(p.From) + " → " + report.NodeGroup(p.To) })
	undirected := by(func(p *report.Probed) string {
		ends := []string{report.NodeGroup(p.From), report.NodeGroup(p.To)}
		slices.Sort(ends)
		return ends[0] + " – " + ends[1]
	})
	for _, groups := range [][]edgeGroup{directed, undirected, delayClasses(all)} {
		if len(groups) > 1 && len(groups) <= MaxProbedPanels {
			return groups
		}
	}
	return []edgeGroup{{name: "all edges", edges: all}}
}

// delayClasses divides edges where the next longer median delay is much longer.
func delayClasses(all []*report.Probed) (groups []edgeGroup) {
	median := func(p *report.Probed) float64 {
		delays := slices.Clone(p.Delay)
		slices.Sort(delays)
		return report.Quantile(delays, 0.5)
	}
	medians := map[*report.Probed]float64{}
	for _, p := range all {
		medians[p] = median(p)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *report.Probed) int { return cmp.Compare(medians[a], medians[b]) })
	last := math.Inf(-1)
	for _, p := range sorted {
		if m := medians[p]; len(groups) == 0 || m > sameDelay*last {
			u := report.TimeUnit(m)
			groups = append(groups, edgeGroup{name: fmt.Sprintf("from %.3g %s", m/u.Seconds, u.Name)})
		}
		last = medians[p]
		groups[len(groups)-1].edges = append(groups[len(groups)-1].edges, p)
	}
	return groups
}

// addGroups draws a panel for each group of edges: quantiles over its edges of the mean delay in
// each stretch of time.
func (s *sheetOfPanels) addGroups(all []*report.Probed) {
	s.caption += fmt.Sprintf(" Over %d edges, those of a panel together: line the median, bands 25 to 75 %% and 5 "+
		"to 95 %% of the edges' means in a stretch of time.", len(all))
	groups := groupEdges(all)
	s.columns = 1 + min((len(groups)-1)/2, 2)
	for _, g := range groups {
		s.addQuantiles(g.edges, fmt.Sprintf("%s: %s", g.name, report.Count(len(g.edges), "edge")))
	}
}

// addQuantiles draws quantiles over some edges of the mean delay in each stretch of time.
func (s *sheetOfPanels) addQuantiles(edges []*report.Probed, heading string) {
	var means [][]float64 // of each stretch, of each edge that has probes in it
	for _, p := range edges {
		stretches := s.stretches(p)
		means = append(means, make([][]float64, max(len(stretches)-len(means), 0))...)
		for i, values := range stretches {
			if len(values) > 0 {
				means[i] = append(means[i], stat.Mean(values, nil))
			}
		}
	}
	outer, inner := s.bandOf(means, 0.05, 0.95), s.bandOf(means, 0.25, 0.75)
	longest := slices.Max(append([]float64{0}, outer.High...))
	v := report.TimeUnit(longest)
	f := s.addPanel("delay, " + v.Name)
	f.heading = heading
	f.addMedian(outer.times(1/v.Seconds), 50)
	f.addMedian(inner.times(1/v.Seconds), 50)
	s.setAxes(f, above(longest, v))
}

// addShareDown draws the share of edges that are down, a panel that is left out if none ever is.
func (s *sheetOfPanels) addShareDown(all []*report.Probed) {
	const bins = 4 * probeBins
	width := s.end / bins
	down := make([]float64, bins)
	for _, p := range all {
		for _, o := range p.Down {
			for k := max(int(o[0]/s.end*bins), 0); k < bins && float64(k)*s.end/bins < o[1]; k++ {
				from, to := max(o[0], float64(k)*s.end/bins), min(o[1], float64(k+1)*s.end/bins)
				down[k] += max(to-from, 0) / width / float64(len(all)) * 100
			}
		}
	}
	highest := slices.Max(down)
	if highest == 0 {
		return
	}
	points := make(plotter.XYs, bins)
	for k := range points {
		points[k] = plotter.XY{X: (float64(k) + 0.5) * s.end / bins / s.unit.Seconds, Y: down[k]}
	}
	f := s.addPanel("edges down, %")
	f.addLine(look{color: okabeIto[1], width: 1.4}, points)
	s.setAxes(f, min(highest*1.1, 100))
}

// draw draws the panels in rows.
func (s *sheetOfPanels) draw(canvas vg.CanvasSizer, _ layout) {
	page := insideMargins(canvas)
	page.FillText(textStyle(grey, tickSize, draw.XLeft, draw.YBottom), page.Min, s.caption)
	page.FillText(textStyle(black, titleSize, draw.XCenter, draw.YTop),
		vg.Point{X: (page.Min.X + page.Max.X) / 2, Y: page.Max.Y}, s.title)
	page = draw.Crop(page, 0, 0, 22, -30)
	rows := (len(s.panels) + s.columns - 1) / s.columns
	width, height := page.Size().X/vg.Length(s.columns), page.Size().Y/vg.Length(rows)
	const gap = 5
	for i, f := range s.panels {
		column, row := vg.Length(i%s.columns), vg.Length(i/s.columns)
		panel := draw.Crop(page, column*width+gap, (column+1)*width-page.Size().X-gap, page.Size().Y-(row+1)*height+gap,
			-row*height-gap)
		if f.heading != "" {
			panel = drawHeading(panel, f.heading)
		}
		p := *f.Plot
		if i+s.columns < len(s.panels) {
			p.X.Label.Text = "" // the panel below says it
		}
		p.Draw(panel)
	}
}

// drawHeading writes what fits into the first line of a panel and returns the rest of it.
func drawHeading(panel draw.Canvas, heading string) draw.Canvas {
	style := textStyle(dark, panelSize, draw.XLeft, draw.YTop)
	for style.Width(heading) > panel.Size().X {
		heading = report.Cut(heading, utf8.RuneCountInString(heading)-1)
	}
	panel.FillText(style, vg.Point{X: panel.Min.X, Y: panel.Max.Y}, heading)
	return draw.Crop(panel, 0, 0, 0, -panelSize-4)
}

// shade are bands over the whole height of a plot. Spans are in seconds, and unit is how many of
// them the axis counts as one.
type shade struct {
	spans [][2]float64
	unit  float64
}

// Plot implements plot.Plotter.
func (s shade) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, span := range s.spans {
		left, right := max(x(span[0]/s.unit), c.Min.X), min(x(span[1]/s.unit), c.Max.X)
		right = max(right, left+0.4) // short ones are to be seen too
		fillRectangle(c, faded(okabeIto[1], 70), left, c.Min.Y, right, c.Max.Y)
	}
}

// rug are marks at the top of a plot, one for each probe that was lost.
type rug struct {
	*report.Probed
	unit float64
}

// Plot implements plot.Plotter.
func (r rug) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	style := draw.LineStyle{Color: okabeIto[1], Width: 0.7}
	last := vg.Length(math.Inf(-1))
	for i, took := range r.Took {
		if at := x(r.Sent[i] / r.unit); math.IsInf(took, 1) && at >= last+0.5 {
			c.StrokeLine2(style, at, c.Max.Y-6, at, c.Max.Y)
			last = at
		}
	}
}
