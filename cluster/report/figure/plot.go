package figure

import (
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// title names the plan and what a figure shows of it.
func title(s record.Summary, what string) string { return report.Cut(s.Plan+": "+what, maxTitle) }

// maxTitle is how many characters a title has room for.
const maxTitle = 95

const (
	dotsPerInch = 120
	pageWidth   = 1400 * vg.Inch / dotsPerInch
	pageHeight  = 900 * vg.Inch / dotsPerInch
	margin      = vg.Length(12)

	titleSize, labelSize, tickSize, legendSize = 15, 13, 11, 11
)

// Figure is a plot with a legend beside it and a line of explanation below.
type Figure struct {
	*plot.Plot
	legend  plot.Legend
	heading string // of the legend; empty if there is none
	names   []string
	caption string
	rows    []string  // names of rows from the top; nil for a vertical scale of numbers
	panels  []*Figure // parts beside and below each other with the same axes; nil for a single one
	square  bool      // panels are about as high as they are wide
}

func newFigure(title, x, y, caption string) *Figure {
	p := plot.New()
	p.BackgroundColor = nil // the sheet is white
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
	f := &Figure{Plot: p, legend: plot.NewLegend(), caption: caption}
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

// legendLetters is how many letters of a name stand on a line of a legend.
const legendLetters = 36

// entry adds a line to the legend.
func (f *Figure) entry(name string, thumbs ...plot.Thumbnailer) {
	f.names = append(f.names, name)
	f.legend.Add(strings.Join(wrapName(name, legendLetters), "\n"), thumbs...)
}

// headEntries writes a heading above the entries of the legend that follow.
func (f *Figure) headEntries(text string) { f.legend.Add(text) }

// Save writes the figure as path.png and path.svg.
func (f *Figure) Save(path string) error { return save(path, f.sheet(), f.drawPage) }

// sheet is the format of the figure's files: as high as its panels need.
func (f *Figure) sheet() layout {
	l := sheet
	l.height = max(pageHeight, f.heightFor(pageWidth-2*margin, 0)+120)
	if scratch := draw.New(vgsvg.New(l.width, l.height)); len(f.names) > 0 {
		l.height = max(l.height, f.legend.Rectangle(scratch).Size().Y+100)
	}
	return l
}

// save writes what a function draws on a sheet as path.png and path.svg.
func save(path string, sheet layout, paint func(vg.CanvasSizer, layout)) error {
	canvas := vgimg.NewWith(vgimg.UseWH(sheet.width, sheet.height), vgimg.UseDPI(dotsPerInch))
	paint(canvas, sheet)
	if err := record.WriteFile(path+".png", encodePNG(canvas.Image())); err != nil {
		return err
	}
	return record.WriteFile(path+".svg", []byte(strings.ReplaceAll(drawSVG(sheet, paint), fontFamily, fontFamilies)))
}

// drawSVG returns what a function draws as SVG, on white, as images are.
func drawSVG(l layout, paint func(vg.CanvasSizer, layout)) string {
	drawing := vgsvg.NewWith(vgsvg.UseWH(l.width, l.height))
	page := draw.New(drawing)
	page.SetColor(white)
	page.Fill(page.Path())
	paint(drawing, l)
	var b strings.Builder
	_, _ = drawing.WriteTo(&b) // which takes everything
	return b.String()
}

const (
	fontFamily = "font-family:Liberation Sans;"
	// fontFamilies names fonts of the same widths, for machines without the first.
	fontFamilies = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
)

// layout is a format that a figure is drawn in.
type layout struct {
	width, height vg.Length
	// titled figures show their title and caption; a page has these as text beside them.
	titled bool
	// below puts the legend there, not beside.
	below bool
}

// sheet is the format of files.
var sheet = layout{width: pageWidth, height: pageHeight, titled: true}

// insideMargins is a canvas without its margins.
func insideMargins(canvas vg.CanvasSizer) draw.Canvas {
	return draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
}

// drawPage draws the figure with its legend and caption.
func (f *Figure) drawPage(canvas vg.CanvasSizer, l layout) {
	page := insideMargins(canvas)
	p := *f.Plot
	if l.titled {
		page = drawCaption(page, f.caption)
	} else {
		p.Title.Text = ""
	}
	switch {
	case len(f.names) == 0:
	case l.below:
		page = f.drawLegendBelow(page, f.legend)
	default:
		page = f.drawLegend(page, f.legend)
	}
	if len(f.panels) > 0 {
		shared := *f
		shared.Plot = &p
		shared.drawPanels(page)
		return
	}
	f.nameRows(&p, page.Size().X, true)
	p.Draw(page)
}

// drawCaption writes a caption at the foot, in as many lines as it needs, and returns what it
// leaves of the page.
func drawCaption(page draw.Canvas, caption string) draw.Canvas {
	const lineHeight = 15
	small := textStyle(grey, tickSize, draw.XLeft, draw.YBottom)
	var lines []string
	for _, word := range strings.Fields(caption) {
		last := len(lines) - 1
		if last >= 0 && small.Width(lines[last]+" "+word) <= page.Size().X {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	for i, line := range lines {
		page.FillText(small, vg.Point{X: page.Min.X, Y: page.Min.Y + vg.Length(len(lines)-1-i)*lineHeight}, line)
	}
	return draw.Crop(page, 0, 0, 22+vg.Length(max(len(lines)-1, 0))*lineHeight, 0)
}

// drawLegend draws the legend at the right and returns what it leaves of the page.
func (f *Figure) drawLegend(page draw.Canvas, legend plot.Legend) draw.Canvas {
	style := legend.TextStyle
	width := max(legend.Rectangle(page).Size().X, style.Width(f.heading)) + 6
	side := draw.Crop(page, page.Size().X-width, 0, 0, -34)
	side.FillText(style, vg.Point{X: side.Min.X, Y: side.Max.Y}, f.heading)
	legend.Draw(draw.Crop(side, 0, 0, 0, -8))
	return draw.Crop(page, 0, -width-14, 0, 0)
}

// legendHeading is the height of the line above a legend.
const legendHeading = 18

// drawLegendBelow draws the legend at the foot and returns what it leaves of the page.
func (f *Figure) drawLegendBelow(page draw.Canvas, legend plot.Legend) draw.Canvas {
	height := legend.Rectangle(page).Size().Y
	foot := draw.Crop(page, 0, 0, 0, height-page.Size().Y)
	foot.FillText(legend.TextStyle, vg.Point{X: foot.Min.X, Y: foot.Max.Y + 6}, f.heading)
	legend.Draw(foot)
	return draw.Crop(page, 0, 0, height+legendHeading, 0)
}
