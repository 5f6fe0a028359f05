package figure

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// segment is a straight line from one point to another.
func segment(fromX, fromY, toX, toY float64) plotter.XYs {
	return plotter.XYs{{X: fromX, Y: fromY}, {X: toX, Y: toY}}
}

// addLine draws a line through points. The points of all shapes must be finite.
func (f *Figure) addLine(l look, points plotter.XYs) *plotter.Line {
	line := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: l.color, Width: l.width, Dashes: l.dash}}
	f.Add(line)
	return line
}

// addMarks draws a mark at each point.
func (f *Figure) addMarks(style draw.GlyphStyle, points plotter.XYs) *plotter.Scatter {
	marks := &plotter.Scatter{XYs: points, GlyphStyle: style}
	if len(points) > 0 {
		f.Add(marks)
	}
	return marks
}

// addRectangle draws a rectangle, whose area lets through what is behind it.
func (f *Figure) addRectangle(left, right, low, high float64, l look, opacity uint8) *plotter.Polygon {
	r := &plotter.Polygon{
		XYs:   []plotter.XYs{{{X: left, Y: low}, {X: left, Y: high}, {X: right, Y: high}, {X: right, Y: low}}},
		Color: faded(l.color, opacity), LineStyle: draw.LineStyle{Color: l.color, Width: l.width, Dashes: l.dash},
	}
	f.Add(r)
	return r
}

// addOpenBar draws a rectangle with an arrow to the right in place of its right side.
func (f *Figure) addOpenBar(left, right, low, high float64, l look, opacity uint8) {
	f.Add(&plotter.Polygon{
		XYs:   []plotter.XYs{{{X: left, Y: low}, {X: left, Y: high}, {X: right, Y: high}, {X: right, Y: low}}},
		Color: faded(l.color, opacity), LineStyle: draw.LineStyle{Color: color.Transparent},
	})
	f.addLine(l, plotter.XYs{{X: right, Y: low}, {X: left, Y: low}, {X: left, Y: high}, {X: right, Y: high}})
	f.addMarks(draw.GlyphStyle{Color: l.color, Radius: 6, Shape: arrowGlyph{}},
		plotter.XYs{{X: right, Y: (low + high) / 2}})
}

// arrowGlyph is an arrow from its place to the right.
type arrowGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (arrowGlyph) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	shaft, tip := at.X+2*style.Radius, at.X+3.5*style.Radius
	c.StrokeLine2(draw.LineStyle{Color: style.Color, Width: 1.6}, at.X, at.Y, shaft, at.Y)
	c.FillPolygon(style.Color, []vg.Point{{X: tip, Y: at.Y}, {X: shaft, Y: at.Y + 0.8*style.Radius},
		{X: shaft, Y: at.Y - 0.8*style.Radius}})
}

// addBand fills what lies between the low and the high values of a band, on a horizontal axis that
// may be logarithmic.
func (f *Figure) addBand(b Band, fill color.Color, logarithmic bool) {
	if len(b.X) == 0 {
		return
	}
	outline := make(plotter.XYs, 0, 2*len(b.X))
	for i, x := range b.X {
		outline = append(outline, plotter.XY{X: x, Y: b.High[i]})
	}
	for i := len(b.X) - 1; i >= 0; i-- {
		outline = append(outline, plotter.XY{X: b.X[i], Y: b.Low[i]})
	}
	f.Add(&plotter.Polygon{XYs: []plotter.XYs{thin(outline, logarithmic)}, Color: fill,
		LineStyle: draw.LineStyle{Color: color.Transparent}})
}

// fillRectangle fills a rectangle of a canvas.
func fillRectangle(c draw.Canvas, fill color.Color, left, bottom, right, top vg.Length) {
	c.FillPolygon(fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}

// textStyle is how a text of this colour and size is written, and which place in it is that where
// it is put.
func textStyle(c color.Color, size vg.Length, x draw.XAlignment, y draw.YAlignment) text.Style {
	return text.Style{Color: c, Font: sans(size), XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}
