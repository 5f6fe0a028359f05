package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/gradwire/gradwire/cluster/record"
)

const (
	dotsPerInch = 120
	pageWidth   = 1400 * vg.Inch / dotsPerInch
	pageHeight  = 900 * vg.Inch / dotsPerInch
	margin      = vg.Length(12)

	titleSize, labelSize, tickSize, legendSize = 15, 13, 11, 11

	maxLegend     = 27 // entries that fit beside a figure
	maxLegendText = 26 // characters of an entry
	marksPerLine  = 7
)

const curvesNotRuns = "report: Plots needs a curve for each run of the summary"

// Plots draws a summary's figures into an existing or new folder and returns their
// paths: accuracy over epochs and over time, and, where a sweep and a target are
// given, epochs and time to the target by point. curves holds the curve of each of
// s.Runs. Figures without data are left out. Equal input gives equal bytes.
func Plots(dir string, s record.Summary, curves [][]record.Evaluation) ([]string, error) {
	if len(curves) != len(s.Runs) {
		panic(curvesNotRuns)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	figures := []struct {
		file string
		draw func() (*figure, error)
	}{
		{"accuracy-epochs.png", func() (*figure, error) { return accuracyOverEpochs(s, curves) }},
		{"accuracy-time.png", func() (*figure, error) { return accuracyOverTime(s, curves) }},
		{"target-epochs.png", func() (*figure, error) { return epochsToTarget(s) }},
		{"target-time.png", func() (*figure, error) { return timeToTarget(s) }},
	}
	var paths []string
	for _, f := range figures {
		path := filepath.Join(dir, f.file)
		figure, err := f.draw()
		if err != nil {
			return paths, fmt.Errorf("drawing %s: %w", path, err)
		}
		if figure == nil {
			continue
		}
		image, err := figure.render()
		if err != nil {
			return paths, fmt.Errorf("drawing %s: %w", path, err)
		}
		if err := record.WriteFile(path, image); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// figure is a plot with a legend beside it and a line of explanation below.
type figure struct {
	*plot.Plot
	legend  plot.Legend
	heading string // of the legend; empty if there is none
	names   []string
	caption string
}

func newFigure(title, x, y, caption string) *figure {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = 10
	p.Title.TextStyle.Font = sans(titleSize)
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = 6
		axis.Tick.Label.Font = sans(tickSize)
		axis.Width = 0.8
		axis.Tick.Width = 0.8
		axis.Tick.Marker = roundTicks{}
		axis.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = pale, pale
	grid.Horizontal.Width, grid.Vertical.Width = 0.7, 0.7
	p.Add(grid)
	f := &figure{Plot: p, legend: plot.NewLegend(), caption: caption}
	f.legend.TextStyle.Font = sans(legendSize)
	f.legend.Left, f.legend.Top = true, true
	f.legend.ThumbnailWidth = 34
	f.legend.Padding = 3
	f.legend.YPosition = draw.PosCenter
	return f
}

func sans(size vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// entry adds a line to the legend, as long as there is room.
func (f *figure) entry(name string, thumbs ...plot.Thumbnailer) {
	f.names = append(f.names, cut(name, maxLegendText))
	if len(f.names) <= maxLegend {
		f.legend.Add(cut(name, maxLegendText), thumbs...)
	}
}

// render draws the figure as PNG.
func (f *figure) render() ([]byte, error) {
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(pageWidth, pageHeight), vgimg.UseDPI(dotsPerInch))}
	page := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	small := text.Style{Color: grey, Font: sans(tickSize), Handler: plot.DefaultTextHandler}
	page.FillText(small, page.Min, f.caption)
	page = draw.Crop(page, 0, 0, 22, 0)
	if len(f.names) > 0 {
		page = f.drawLegend(page)
	}
	f.Draw(page)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// drawLegend draws the legend at the right and returns what it leaves of the page.
func (f *figure) drawLegend(page draw.Canvas) draw.Canvas {
	if more := len(f.names) - maxLegend; more > 0 {
		f.legend.Add(fmt.Sprintf("… and %d more", more))
	}
	style := f.legend.TextStyle
	width := max(f.legend.Rectangle(page).Size().X, style.Width(f.heading)) + 6
	side := draw.Crop(page, page.Size().X-width, 0, 0, -34)
	side.FillText(style, vg.Point{X: side.Min.X, Y: side.Max.Y}, f.heading)
	f.legend.Draw(draw.Crop(side, 0, 0, 0, -8))
	return draw.Crop(page, 0, -width-14, 0, 0)
}

func accuracyOverEpochs(s record.Summary, curves [][]record.Evaluation) (*figure, error) {
	return accuracyOver(s, curves, "epochs", func(e record.Evaluation) float64 { return e.Epoch })
}

func accuracyOverTime(s record.Summary, curves [][]record.Evaluation) (*figure, error) {
	longest := 0.0
	for _, curve := range curves {
		for _, e := range curve {
			longest = max(longest, e.Time)
		}
	}
	u := timeUnit(longest)
	return accuracyOver(s, curves, "time, "+u.name, func(e record.Evaluation) float64 { return e.Time / u.seconds })
}

// accuracyOver draws a line for each group; nil if there is nothing to draw.
func accuracyOver(s record.Summary, curves [][]record.Evaluation, x string, abscissa func(record.Evaluation) float64) (*figure, error) {
	bands := make([]band, len(s.Groups))
	end, repeats := 0.0, 0
	for i, g := range s.Groups {
		bands[i] = bandOf(curvesOf(s, curves, g.Point), abscissa)
		repeats = max(repeats, g.N)
		if n := len(bands[i].x); n > 0 {
			end = max(end, bands[i].x[n-1])
		}
	}
	if end == 0 {
		return nil, nil
	}
	f := newFigure(s.Plan, x, "accuracy, %", accuracyCaption(repeats, s.Target))
	if err := f.addTarget(s.Target, end); err != nil {
		return nil, err
	}
	styles := looks(s.Groups)
	if repeats > 1 {
		for i, b := range bands {
			if err := f.addSpread(b, styles[i], len(s.Groups)); err != nil {
				return nil, err
			}
		}
	}
	all := keys(s)
	for i, b := range bands {
		if err := f.addMean(b, styles[i], i, len(bands), name(s.Groups[i].Point, all), end); err != nil {
			return nil, err
		}
	}
	if len(s.Groups) == 1 {
		f.names = nil // one line needs no legend
	} else if len(all) == 1 {
		f.heading = shortKey(all[0], all)
	}
	f.X.Min, f.X.Max = 0, end
	f.Y.Min, f.Y.Max = accuracyRange(bands, s.Target)
	return f, nil
}

func accuracyCaption(repeats int, target *float64) string {
	caption := "One run per point."
	if repeats > 1 {
		caption = fmt.Sprintf("Mean of up to %d seeds, band ± 1 standard deviation; a run that has ended counts with its last accuracy.", repeats)
	}
	if target != nil {
		caption += " Dashed: target " + percent(*target) + "."
	}
	return caption
}

func curvesOf(s record.Summary, curves [][]record.Evaluation, p record.Point) [][]record.Evaluation {
	var own [][]record.Evaluation
	for i, r := range s.Runs {
		if slices.Equal(r.Point, p) {
			own = append(own, curves[i])
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
func (f *figure) addSpread(b band, l look, groups int) error {
	if len(b.x) == 0 {
		return nil
	}
	outline := make(plotter.XYs, 0, 2*len(b.x))
	for i, x := range b.x {
		outline = append(outline, plotter.XY{X: x, Y: b.high[i] * 100})
	}
	for i := len(b.x) - 1; i >= 0; i-- {
		outline = append(outline, plotter.XY{X: b.x[i], Y: b.low[i] * 100})
	}
	polygon, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	alpha := uint8(45)
	if groups > 5 {
		alpha = 16
	}
	polygon.Color, polygon.LineStyle = faded(l.color, alpha), draw.LineStyle{Color: color.Transparent}
	f.Add(polygon)
	return nil
}

// addMean draws a group's line, with marks that are shifted from group to group so
// that those of lines close to each other do not cover one another.
func (f *figure) addMean(b band, l look, group, groups int, name string, end float64) error {
	points := make(plotter.XYs, len(b.x))
	var marks plotter.XYs
	next := end / marksPerLine * (0.35 + float64(group)/float64(groups))
	for i, x := range b.x {
		points[i] = plotter.XY{X: x, Y: b.mean[i] * 100}
		if x >= next {
			marks = append(marks, points[i])
			next += end / marksPerLine
		}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = l.color, l.width, l.dash
	f.Add(line)
	thumbs := []plot.Thumbnailer{line}
	if l.glyph != nil && groups > 1 {
		style := draw.GlyphStyle{Color: l.color, Radius: 3.4, Shape: l.glyph}
		scatter := &plotter.Scatter{XYs: marks, GlyphStyle: style}
		if len(marks) > 0 {
			f.Add(scatter)
		}
		thumbs = append(thumbs, scatter)
	}
	f.entry(name, thumbs...)
	return nil
}
