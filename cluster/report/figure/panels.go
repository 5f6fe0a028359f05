package figure

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// maxPanels is how many panels a figure has at most.
	maxPanels = 12
	// panelWidth is the least width of a panel, panelHeight the least height without named rows.
	panelWidth, panelHeight = vg.Length(165), vg.Length(165)
	// rowHeight is the height of a named row, axisHeight of what stands around the rows.
	rowHeight, axisHeight = vg.Length(21), vg.Length(78)
)

// panelsOf are the panels of a layout that a figure shows, and what a caption says of the others.
func panelsOf(names []string) (shown []string, note string) {
	if more := len(names) - maxPanels; more > 0 {
		return names[:maxPanels], fmt.Sprintf(" %d more panels are not shown; gradwire report --where chooses.", more)
	}
	return names, ""
}

// in returns the figure to draw into for a panel: the figure itself where it has one panel alone.
func (f *Figure) in(panel int) *Figure {
	if len(f.panels) == 0 {
		return f
	}
	return f.panels[panel]
}

// divide gives a figure a panel for each name, where there are several.
func (f *Figure) divide(names []string) {
	if len(names) < 2 {
		return
	}
	for _, name := range names {
		p := newFigure("", "", "", "")
		p.heading = name
		f.panels = append(f.panels, p)
	}
}

// columnsFor is how many panels stand beside each other in a width.
func (f *Figure) columnsFor(width vg.Length) int {
	n, least := len(f.panels), panelWidth
	if f.square {
		least = 300
	}
	most := max(int(width/least), 1)
	if n <= most {
		return n
	}
	rows := (n + most - 1) / most
	return (n + rows - 1) / rows
}

// heightFor is how high a figure of a width is, at least a given height.
func (f *Figure) heightFor(width, least vg.Length) vg.Length {
	one := max(vg.Length(len(f.rows))*rowHeight, 60) + axisHeight
	if len(f.panels) == 0 {
		if f.rows == nil {
			return least
		}
		return max(one, least)
	}
	columns := f.columnsFor(width)
	rows := (len(f.panels) + columns - 1) / columns
	switch {
	case f.square:
		one = 0.9*width/vg.Length(columns) - 20
	case f.rows == nil:
		one = panelHeight
	}
	return max(vg.Length(rows)*one+30, min(least, one*2))
}

// drawPanels draws the panels of a figure in rows, all with its axes.
func (f *Figure) drawPanels(page draw.Canvas) {
	columns := f.columnsFor(page.Size().X)
	rows := (len(f.panels) + columns - 1) / columns
	if f.Title.Text != "" {
		style := f.Title.TextStyle
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		page.FillText(style, vg.Point{X: page.Center().X, Y: page.Max.Y}, f.Title.Text)
		page = draw.Crop(page, 0, 0, 0, -30)
	}
	if f.X.Label.Text != "" {
		style := f.X.Label.TextStyle
		style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
		page.FillText(style, vg.Point{X: page.Center().X, Y: page.Min.Y}, f.X.Label.Text)
		page = draw.Crop(page, 0, 0, 18, 0)
	}
	if f.Y.Label.Text != "" {
		style := f.Y.Label.TextStyle
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XCenter, draw.YTop
		page.FillText(style, vg.Point{X: page.Min.X, Y: page.Center().Y}, fitText(f.Y.Label.Text, page.Size().Y))
		page = draw.Crop(page, 20, 0, 0, 0)
	}
	plots := make([][]*plot.Plot, rows)
	for r := range plots {
		plots[r] = make([]*plot.Plot, columns)
		for c := range plots[r] {
			if i := r*columns + c; i < len(f.panels) {
				plots[r][c] = f.panel(i, c == 0, page.Size().X/vg.Length(columns))
			}
		}
	}
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: 10, PadY: 8}
	canvases := plot.Align(plots, tiles, page)
	for r := range plots {
		for c, p := range plots[r] {
			if p != nil {
				p.Draw(canvases[r][c])
			}
		}
	}
}

// panel is a panel with the axes of its figure, which are named once beside all panels.
func (f *Figure) panel(i int, left bool, width vg.Length) *plot.Plot {
	p := *f.panels[i].Plot
	p.Title.Text, p.Title.Padding = fitText(f.panels[i].heading, width), 4
	p.Title.TextStyle.Font = sans(labelSize)
	for _, axis := range []struct{ own, shared *plot.Axis }{{&p.X, &f.X}, {&p.Y, &f.Y}} {
		axis.own.Min, axis.own.Max, axis.own.Scale = axis.shared.Min, axis.shared.Max, axis.shared.Scale
		axis.own.Tick.Marker = axis.shared.Tick.Marker
	}
	if _, round := p.X.Tick.Marker.(roundTicks); round {
		p.X.Tick.Marker = roundTicks{most: 4}
	}
	f.nameRows(&p, width, left)
	return &p
}

// fitText cuts a text to a width.
func fitText(text string, width vg.Length) string {
	style := textStyle(dark, labelSize, draw.XLeft, draw.YTop)
	for style.Width(text) > width && utf8.RuneCountInString(text) > 4 {
		text = report.Cut(text, utf8.RuneCountInString(text)-1)
	}
	return text
}

// setRows gives a figure named rows, the first at the top.
func (f *Figure) setRows(names []string) {
	f.rows = names
	f.Y.Min, f.Y.Max = -0.6, float64(len(names))-0.4
}

// rowAt is the height of a row.
func (f *Figure) rowAt(row int) float64 { return float64(len(f.rows) - 1 - row) }

// nameRows writes the names of rows at the left of a plot, in lines that take no more than a share
// of its width.
func (f *Figure) nameRows(p *plot.Plot, width vg.Length, named bool) {
	if f.rows == nil {
		return
	}
	ticks := make([]plot.Tick, len(f.rows))
	letters := min(max(int(width/15), 14), report.MaxName)
	for i, name := range f.rows {
		ticks[i] = plot.Tick{Value: f.rowAt(i), Label: " "}
		if named {
			ticks[i].Label = strings.Join(wrapName(name, letters), "\n")
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length = 0
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = draw.XRight, draw.YCenter
}

// nameLines is how many lines a name has in a figure.
const nameLines = 2

// wrapName breaks a name between words into at most two lines, the last of which is cut.
func wrapName(name string, letters int) (lines []string) {
	for _, word := range strings.Fields(name) {
		last := len(lines) - 1
		switch {
		case last < 0:
			lines = append(lines, word)
		case utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= letters || last == nameLines-1:
			lines[last] += " " + word
		default:
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = report.Cut(lines[i], letters)
	}
	return lines
}

// rowNote is a text at the right end of a row: the long one where it leaves room for the data.
type rowNote struct {
	y           float64
	long, short string
}

// noteShare is the share of a panel's width that is kept free for notes.
const noteShare = 0.26

// Plot implements plot.Plotter.
func (n rowNote) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	style := textStyle(grey, tickSize, draw.XRight, draw.YCenter)
	text := n.long
	if style.Width(text) > noteShare*c.Size().X {
		text = n.short
	}
	c.FillText(style, vg.Point{X: c.Max.X - 3, Y: y(n.y)}, text)
}

// reserve widens a horizontal axis of values so that notes have room at its right.
func (f *Figure) reserve(values extent) {
	const room = 1 / (1 - noteShare)
	switch {
	case values.spansDecades():
		logarithmic(&f.X)
		f.X.Min = values.low / 1.15
		f.X.Max = f.X.Min * math.Pow(values.high/f.X.Min, room)
	case values.high > 0:
		f.X.Min, f.X.Max = 0, values.high*room
	default:
		f.X.Min, f.X.Max = 0, 1
	}
}
