package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// maxStrokes is how many links a diagram draws as strokes; more are cells of a matrix.
const maxStrokes = 20

// matrix is a heat map of a figure of the links, from the nodes of its rows to those of its
// columns.
type matrix struct {
	nodes  []string
	values map[[2]int]float64
	extent
	unit string
}

// matrices draws the delays and the bytes of the links side by side.
func (n *network) matrices(s record.Summary) *Figure {
	f := newFigure(n.title(s), "", "", "")
	f.HideAxes()
	sent, whose := "bytes sent", ""
	if len(n.points) > 1 {
		sent += " by " + n.points[0]
		whose = fmt.Sprintf(" Delays and bytes are of the first run of %s; other points send other numbers of bytes.",
			n.points[0])
	}
	f.divide([]string{"mean delay", sent})
	_, slowest := n.delays()
	u := report.TimeUnit(slowest)
	most := int64(0)
	for _, l := range n.links {
		most = max(most, l.Bytes)
	}
	b := byteUnit(float64(most))
	for i, m := range []*matrix{
		n.matrix(u.Name, func(l record.Link) float64 { return l.DelayAsked / u.Seconds }),
		n.matrix(b.name, func(l record.Link) float64 { return float64(l.Bytes) / b.bytes }),
	} {
		f.panels[i].Add(m)
		f.panels[i].HideAxes()
	}
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max, f.square = 0, 1, 0, 1, true
	f.caption = fmt.Sprintf("%d links between %d nodes: from the node of the row to that of the column; white: unused."+
		" Colours are logarithmic where values span a decade and a half.%s", len(n.links), len(n.nodes), whose)
	return f
}

// matrix is the heat map of what a function reads from a link.
func (n *network) matrix(unit string, of func(record.Link) float64) *matrix {
	m := &matrix{nodes: slices.Clone(n.nodes), values: map[[2]int]float64{}, extent: newExtent(), unit: unit}
	slices.SortFunc(m.nodes, report.CompareNames)
	place := map[string]int{}
	for i, node := range m.nodes {
		place[node] = i
	}
	for _, l := range n.links {
		v := of(l)
		m.values[[2]int{place[l.From], place[l.To]}] = v
		m.add(v)
	}
	return m
}

// share places a value between the lowest and the highest.
func (m *matrix) share(v float64) float64 {
	switch {
	case m.spansDecades():
		return math.Log(v/m.low) / math.Log(m.high/m.low)
	case m.uniform():
		return 0
	}
	return (v - m.low) / (m.high - m.low)
}

// Plot implements plot.Plotter.
func (m *matrix) Plot(c draw.Canvas, _ *plot.Plot) {
	scale := draw.Crop(c, c.Size().X-60, 0, 24, -24)
	if m.uniform() {
		label := textStyle(black, tickSize, draw.XRight, draw.YBottom)
		c.FillText(label, vg.Point{X: c.Max.X, Y: scale.Max.Y + 8}, fmt.Sprintf("all %.3g %s", m.high, m.unit))
	} else {
		drawScale(scale, m.extent, m.share, m.unit)
	}
	c = draw.Crop(c, 0, -66, 0, 0)
	size := min(vg.Length(tickSize), 0.9*c.Size().Y/vg.Length(len(m.nodes)+6))
	style := textStyle(black, size, draw.XRight, draw.YCenter)
	room := vg.Length(0)
	for _, node := range m.nodes {
		room = max(room, style.Width(report.Cut(node, nameLetters(c))))
	}
	room += 6
	side := min(c.Size().X, c.Size().Y) - room
	cell, left, top := side/vg.Length(len(m.nodes)), c.Min.X+room, c.Max.Y-room
	for i, node := range m.nodes {
		name, middle := report.Cut(node, nameLetters(c)), (vg.Length(i)+0.5)*cell
		style.XAlign, style.Rotation = draw.XRight, 0
		c.FillText(style, vg.Point{X: left - 4, Y: top - middle}, name)
		style.XAlign, style.Rotation = draw.XLeft, math.Pi/2
		c.FillText(style, vg.Point{X: left + middle, Y: top + 4}, name)
		for k := range m.nodes {
			if v, used := m.values[[2]int{i, k}]; used {
				x, y := left+vg.Length(k)*cell, top-vg.Length(i)*cell
				fillRectangle(c, along(m.share(v)), x, y-cell, x+cell, y)
			}
		}
	}
	c.StrokeLines(draw.LineStyle{Color: grey, Width: 0.6}, []vg.Point{{X: left, Y: top}, {X: left + side, Y: top},
		{X: left + side, Y: top - side}, {X: left, Y: top - side}, {X: left, Y: top}})
}

// uniform reports whether all values are the same, but for a hundredth.
func (m *matrix) uniform() bool { return m.high-m.low <= 0.01*m.high }
