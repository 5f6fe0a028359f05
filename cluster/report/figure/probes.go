package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// MaxProbedPanels is how many edges Probes draws one by one; of more it draws quantiles.
	MaxProbedPanels = 12
	// dotsDrawn is how many probes are drawn as dots, over all panels; of more there are ranges.
	dotsDrawn = 8000
	// panelSize is the font size in a panel.
	panelSize = vg.Length(10)
	// probeBins is how many stretches of time there are at most where probes are taken together.
	probeBins = 150
)

// Probes draws the delays that probes of edges drew, over time, as path.png and path.svg, with
// outages as bands. Each edge has its panel; more than MaxProbedPanels edges share two: quantiles
// over the edges, and the share of edges that are down. Equal input gives equal bytes.
func Probes(path, title string, all []*report.Probed) error {
	s := &sheetOfPanels{title: title, caption: "Delays that the probes drew."}
	end := 0.0
	for _, p := range all {
		end = max(end, p.End)
	}
	u := report.TimeUnit(end)
	var err error
	if len(all) > MaxProbedPanels {
		err = s.addQuantiles(all, end, u)
	} else {
		err = s.addEdges(all, end, u)
	}
	if err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	return save(path, s.draw)
}

// sheetOfPanels are figures beside and below each other.
type sheetOfPanels struct {
	title, caption string
	columns        int
	panels         []*Figure
}

func (s *sheetOfPanels) addEdges(all []*report.Probed, end float64, u report.Unit) error {
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
		v := report.TimeUnit(longest)
		name := p.From + " → " + p.To
		if p.Model != "" {
			name += ": " + p.Model
		}
		f := newPanel("time, "+u.Name, v.Name)
		f.heading = name
		f.Add(shade{p.Down, u.Seconds})
		var err error
		if dots <= dotsDrawn {
			err = f.addDots(p, u, v)
		} else {
			err = f.addRanges(p, end, u, v)
		}
		if err != nil {
			return err
		}
		f.Add(rug{p, u.Seconds})
		f.X.Min, f.X.Max = 0, end/u.Seconds
		f.Y.Min, f.Y.Max = 0, max(longest/v.Seconds*1.08, 1e-9)
		if longest == 0 {
			f.Y.Max = 1
		}
		s.panels = append(s.panels, f)
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
	return nil
}

// newPanel is a figure of which there are several on a sheet.
func newPanel(x, y string) *Figure {
	f := newFigure("", x, y, "")
	for _, axis := range []*plot.Axis{&f.X, &f.Y} {
		axis.Tick.Marker = roundTicks{most: 4}
		axis.Tick.Label.Font = sans(panelSize)
		axis.Label.TextStyle.Font = sans(panelSize)
		axis.Label.Padding = 2
	}
	return f
}

func (f *Figure) addDots(p *report.Probed, u, v report.Unit) error {
	points := make(plotter.XYs, len(p.Sent))
	for i := range points {
		points[i] = plotter.XY{X: p.Sent[i] / u.Seconds, Y: p.Delay[i] / v.Seconds}
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: okabeIto[0], Radius: 1.1, Shape: draw.CircleGlyph{}}
	f.Add(dots)
	return nil
}

// addRanges draws least, median and greatest delay of stretches of time.
func (f *Figure) addRanges(p *report.Probed, end float64, u, v report.Unit) error {
	bins := inBins(p, end)
	b := Band{}
	for i, values := range bins {
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		b.X = append(b.X, (float64(i)+0.5)*end/float64(len(bins))/u.Seconds)
		b.Low, b.Mean, b.High = append(b.Low, values[0]), append(b.Mean, report.Quantile(values, 0.5)),
			append(b.High, values[len(values)-1])
	}
	return f.addMedian(b, 1/v.Seconds, 60)
}

// inBins divides the delays of an edge by the time of sending.
func inBins(p *report.Probed, end float64) [][]float64 {
	bins := make([][]float64, max(min(probeBins, len(p.Sent)), 1))
	for i, at := range p.Sent {
		k := min(int(at/end*float64(len(bins))), len(bins)-1)
		bins[k] = append(bins[k], p.Delay[i])
	}
	return bins
}

// addMedian draws a band with its middle as a line.
func (f *Figure) addMedian(b Band, scale float64, alpha uint8) error {
	if len(b.X) == 0 {
		return nil
	}
	if err := f.addBand(b, scale, faded(okabeIto[0], alpha)); err != nil {
		return err
	}
	middle := make(plotter.XYs, len(b.X))
	for i, x := range b.X {
		middle[i] = plotter.XY{X: x, Y: b.Mean[i] * scale}
	}
	line, err := plotter.NewLine(middle)
	if err != nil {
		return err
	}
	line.Color, line.Width = okabeIto[0], 1.4
	f.Add(line)
	return nil
}

// addQuantiles draws quantiles over the edges of the mean delay in each stretch of time, and how
// many edges are down.
func (s *sheetOfPanels) addQuantiles(all []*report.Probed, end float64, u report.Unit) error {
	s.columns = 1
	s.caption += fmt.Sprintf(" Over %d edges: line the median, bands 25 to 75 %% and 5 to 95 %% of the edges' means "+
		"in a stretch of time.", len(all))
	var means [][]float64 // of each stretch, of each edge that has probes in it
	longest := 0.0
	for _, p := range all {
		bins := inBins(p, end)
		for len(means) < len(bins) {
			means = append(means, nil)
		}
		for i, values := range bins {
			if len(values) > 0 {
				means[i] = append(means[i], stat.Mean(values, nil))
			}
		}
	}
	inner, outer := Band{}, Band{}
	for i, values := range means {
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		x := (float64(i) + 0.5) * end / float64(len(means)) / u.Seconds
		inner.X, inner.Mean = append(inner.X, x), append(inner.Mean, report.Quantile(values, 0.5))
		inner.Low, inner.High = append(inner.Low, report.Quantile(values, 0.25)),
			append(inner.High, report.Quantile(values, 0.75))
		outer.Low, outer.High = append(outer.Low, report.Quantile(values, 0.05)),
			append(outer.High, report.Quantile(values, 0.95))
		longest = max(longest, report.Quantile(values, 0.95))
	}
	outer.X, outer.Mean = inner.X, inner.Mean
	v := report.TimeUnit(longest)
	f := newPanel("time, "+u.Name, "delay, "+v.Name)
	for _, b := range []Band{outer, inner} {
		if err := f.addMedian(b, 1/v.Seconds, 50); err != nil {
			return err
		}
	}
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = 0, end/u.Seconds, 0, max(longest/v.Seconds*1.08, 1e-9)
	s.panels = append(s.panels, f)
	return s.addShareDown(all, end, u)
}

// addShareDown draws the share of edges that are down, a panel that is left out if none ever is.
func (s *sheetOfPanels) addShareDown(all []*report.Probed, end float64, u report.Unit) error {
	const bins = 4 * probeBins
	down := make([]float64, bins)
	for _, p := range all {
		for _, o := range p.Down {
			for k := max(int(o[0]/end*bins), 0); k < bins && float64(k)*end/bins < o[1]; k++ {
				from, to := max(o[0], float64(k)*end/bins), min(o[1], float64(k+1)*end/bins)
				down[k] += max(to-from, 0) / (end / bins) / float64(len(all)) * 100
			}
		}
	}
	highest := slices.Max(down)
	if highest == 0 {
		return nil
	}
	points := make(plotter.XYs, bins)
	for k := range points {
		points[k] = plotter.XY{X: (float64(k) + 0.5) * end / bins / u.Seconds, Y: down[k]}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = okabeIto[1], 1.4
	f := newPanel("time, "+u.Name, "edges down, %")
	f.Add(line)
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = 0, end/u.Seconds, 0, min(highest*1.1, 100)
	s.panels = append(s.panels, f)
	return nil
}

// draw draws the panels in rows.
func (s *sheetOfPanels) draw(canvas vg.CanvasSizer, _ layout) {
	page := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	page.FillText(text.Style{Color: grey, Font: sans(tickSize), Handler: plot.DefaultTextHandler}, page.Min, s.caption)
	title := text.Style{Color: black, Font: sans(titleSize), XAlign: draw.XCenter, YAlign: draw.YTop,
		Handler: plot.DefaultTextHandler}
	page.FillText(title, vg.Point{X: (page.Min.X + page.Max.X) / 2, Y: page.Max.Y}, s.title)
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
	style := text.Style{Color: dark, Font: sans(panelSize), YAlign: draw.YTop, Handler: plot.DefaultTextHandler}
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
		c.FillPolygon(color.NRGBA{0xD5, 0x5E, 0x00, 70},
			[]vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
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
