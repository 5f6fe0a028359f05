package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// maxLevelNames is how many names stand level around the circle; more are turned outwards.
	maxLevelNames = 16
	// maxLabelledNodes and maxLabels are how many nodes and delays leave room for the delays'
	// labels.
	maxLabelledNodes, maxLabels = 12, 30
	// labelAt is where on a stroke its label stands: not in the middle, where diameters cross.
	labelAt = 0.34
	// labelRoom is how much of the square of the circle's radius a label needs.
	labelRoom = vg.Length(800)
	barWidth  = 90 // of the page, kept for the colour bar
)

// diagram is a network whose nodes stand on a circle, in their order, from the top
// clockwise.
type diagram struct {
	nodes     []string
	strokes   []stroke
	low, high float64 // delays in seconds
	unit      report.Unit
	oneWay    bool // some link was used in one direction only
	bent      bool // some directions differ
}

// stroke is a link, or both of a pair of nodes.
type stroke struct {
	from, to int
	delay    float64 // asked, in seconds
	achieved float64 // 0 if unknown
	arrow    bool
	bent     bool
}

func newDiagram(n *network, low, high float64, u report.Unit) *diagram {
	d := &diagram{nodes: n.nodes, low: low, high: high, unit: u}
	place := map[string]int{}
	for i, node := range n.nodes {
		place[node] = i
	}
	links := map[[2]int]record.Link{}
	for _, l := range n.links {
		links[[2]int{place[l.From], place[l.To]}] = l
	}
	for _, l := range n.links {
		s := stroke{from: place[l.From], to: place[l.To], delay: l.DelayAsked, achieved: l.DelayAchieved, arrow: true}
		back, both := links[[2]int{s.to, s.from}]
		switch {
		case !both:
			d.oneWay = true
		case !sameDelays(l, back):
			s.bent, d.bent = true, true
		case s.from < s.to:
			share := float64(l.Messages) / (float64(l.Messages) + float64(back.Messages))
			mean := func(one, other float64) float64 { return float64(one*share) + float64(other*(1-share)) }
			s.delay, s.achieved = mean(s.delay, back.DelayAsked), mean(s.achieved, back.DelayAchieved)
			s.arrow = false
		default:
			continue // the stroke of the way back stands for both
		}
		d.strokes = append(d.strokes, s)
	}
	// The longest delays are drawn last, on top: they are what a run waits for.
	slices.SortStableFunc(d.strokes, func(a, b stroke) int { return cmp.Compare(a.delay, b.delay) })
	return d
}

// uniform reports whether all delays are the same, but for a hundredth.
func (d *diagram) uniform() bool { return d.high-d.low <= 0.01*d.high }

func (d *diagram) labelled() bool {
	worth := !d.uniform() || slices.ContainsFunc(d.strokes, stroke.late)
	return worth && len(d.nodes) <= maxLabelledNodes && len(d.strokes) <= maxLabels
}

func (d *diagram) caption() string {
	text := "Links that were used, by the mean of the delays that they drew."
	if d.uniform() {
		text = "Links that were used. Each has a mean delay of " + d.label(d.high) + " " + d.unit.Name + "."
	}
	if d.labelled() {
		text += " Labels in " + d.unit.Name + "."
		if slices.ContainsFunc(d.strokes, stroke.late) {
			text = strings.TrimSuffix(text, ".") + ", drawn → achieved where messages took longer."
		}
	}
	if d.bent {
		text += " Bent: the directions differ."
	}
	if d.oneWay {
		text += " Straight with an arrow: one direction only."
	}
	return text
}

// late reports whether messages took longer than the delays that were drawn for them,
// because they queued, were sent again or waited for an outage to end. Less than was drawn is
// achieved where messages were still on their way at the end.
func (s stroke) late() bool { return s.achieved > 1.01*s.delay }

// strokeLabel writes the delay that was drawn, and the one achieved if it is another.
func (d *diagram) strokeLabel(s stroke) string {
	if !s.late() {
		return d.label(s.delay)
	}
	return d.label(s.delay) + " → " + d.label(s.achieved)
}

// label writes a delay in the diagram's unit with three digits.
func (d *diagram) label(delay float64) string { return fmt.Sprintf("%.3g", delay/d.unit.Seconds) }

// share places a delay between the lowest and the highest.
func (d *diagram) share(delay float64) float64 {
	switch e := (extent{d.low, d.high}); {
	case d.uniform():
		return 0
	case e.spansDecades():
		return math.Log(delay/d.low) / math.Log(d.high/d.low)
	}
	return (delay - d.low) / (d.high - d.low)
}

// Plot implements plot.Plotter.
func (d *diagram) Plot(c draw.Canvas, _ *plot.Plot) {
	if !d.uniform() {
		d.drawScale(draw.Crop(c, c.Size().X-barWidth, 0, 30, -30))
		c = draw.Crop(c, 0, -barWidth, 0, 0)
	}
	places, radius := d.places(c)
	paths := make([][]vg.Point, len(d.strokes))
	for i, s := range d.strokes {
		paths[i] = s.path(places)
		d.drawStroke(c, s, paths[i])
	}
	for i, p := range places {
		c.DrawGlyph(draw.GlyphStyle{Color: white, Radius: d.radius() + 1.5, Shape: draw.CircleGlyph{}}, p)
		c.DrawGlyph(draw.GlyphStyle{Color: dark, Radius: d.radius(), Shape: draw.CircleGlyph{}}, p)
		d.drawName(c, i, p)
	}
	if d.labelled() && vg.Length(len(d.strokes))*labelRoom < radius*radius {
		for i, s := range d.strokes {
			d.drawLabel(c, paths[i][int(labelAt*arcSteps)], d.strokeLabel(s))
		}
	}
}

// radius is the radius of a node's mark.
func (d *diagram) radius() vg.Length {
	if len(d.nodes) <= maxLevelNames {
		return 6
	}
	return 3.5
}

// angle is where a node stands.
func (d *diagram) angle(node int) float64 {
	return math.Pi/2 - 2*math.Pi*float64(node)/float64(len(d.nodes))
}

// places puts the nodes on a circle that leaves room for their names.
func (d *diagram) places(c draw.Canvas) (places []vg.Point, radius vg.Length) {
	style := d.nameStyle()
	room := vg.Length(0)
	for _, node := range d.nodes {
		room = max(room, style.Width(report.Cut(node, nameLetters(c))))
	}
	high := vg.Length(26)
	if len(d.nodes) > maxLevelNames {
		high = room + 14 // names at the top and bottom stand upright
	}
	radius = max(min(c.Size().X/2-room-18, c.Size().Y/2-high), 1)
	places = make([]vg.Point, len(d.nodes))
	for i := range places {
		sin, cos := math.Sincos(d.angle(i))
		places[i] = vg.Point{X: c.Center().X + radius*vg.Length(cos), Y: c.Center().Y + radius*vg.Length(sin)}
	}
	return places, radius
}

func (d *diagram) nameStyle() text.Style {
	size := vg.Length(labelSize)
	if len(d.nodes) > maxLevelNames {
		size = 9
	}
	return textStyle(black, size, draw.XLeft, draw.YBottom)
}

// nameLetters is how many letters of a name a page of this width has room for.
func nameLetters(c draw.Canvas) int {
	return min(max(int(c.Size().X/27), 8), report.MaxName)
}

// drawName writes a node's name outside of the circle.
func (d *diagram) drawName(c draw.Canvas, node int, at vg.Point) {
	angle, style, name := d.angle(node), d.nameStyle(), report.Cut(d.nodes[node], nameLetters(c))
	sin, cos := math.Sincos(angle)
	gap := d.radius() + 6
	at.X, at.Y = at.X+gap*vg.Length(cos), at.Y+gap*vg.Length(sin)
	style.YAlign = draw.YCenter
	switch {
	case cos < -0.01:
		style.XAlign = draw.XRight
	case cos < 0.01:
		style.XAlign = draw.XCenter
	}
	if len(d.nodes) > maxLevelNames {
		style.XAlign, style.Rotation = draw.XLeft, angle
		if cos < -0.01 {
			style.XAlign, style.Rotation = draw.XRight, angle-math.Pi
		}
	} else if style.XAlign == draw.XCenter {
		at.Y += vg.Length(4 * sin)
	}
	c.FillText(style, at, name)
}

// arcSteps is how many straight pieces a stroke is drawn of.
const arcSteps = 50

// path returns the stroke's points, bent aside where its way back differs.
func (s stroke) path(places []vg.Point) []vg.Point {
	a, b := places[s.from], places[s.to]
	bend := vg.Length(0)
	if s.bent {
		bend = 0.09
	}
	path := make([]vg.Point, arcSteps+1)
	for i := range path {
		t := vg.Length(i) / arcSteps
		off := 4 * bend * t * (1 - t)
		path[i] = vg.Point{X: a.X*(1-t) + b.X*t + (b.Y-a.Y)*off, Y: a.Y*(1-t) + b.Y*t - (b.X-a.X)*off}
	}
	return path
}

// drawStroke draws a link: the longer its delay, the lighter and wider.
func (d *diagram) drawStroke(c draw.Canvas, s stroke, path []vg.Point) {
	width := vg.Length(1 + 1.8*d.share(s.delay))
	if len(d.strokes) > 10*maxLabels {
		width *= 0.5
	}
	hue := color.Color(along(d.share(s.delay)))
	if s.arrow {
		path = d.drawArrow(c, hue, path, width)
	}
	c.StrokeLines(draw.LineStyle{Color: hue, Width: width}, path)
}

// drawArrow draws the head of an arrow before the node where the path ends, and
// returns the path that is left.
func (d *diagram) drawArrow(c draw.Canvas, hue color.Color, path []vg.Point, width vg.Length) []vg.Point {
	end, long := path[len(path)-1], 6+2*width
	distance := func(p vg.Point) vg.Length { return vg.Length(math.Hypot(float64(p.X-end.X), float64(p.Y-end.Y))) }
	tip := len(path) - 1
	for tip > 1 && distance(path[tip]) < d.radius()+2 {
		tip--
	}
	foot := tip - 1
	for foot > 1 && distance(path[foot])-distance(path[tip]) < long {
		foot--
	}
	dx, dy := path[tip].X-path[foot].X, path[tip].Y-path[foot].Y
	wide := 0.4 * long / max(vg.Length(math.Hypot(float64(dx), float64(dy))), 1e-6)
	c.FillPolygon(hue, []vg.Point{
		path[tip], {X: path[foot].X - dy*wide, Y: path[foot].Y + dx*wide},
		{X: path[foot].X + dy*wide, Y: path[foot].Y - dx*wide},
	})
	return path[:foot+1]
}

// drawLabel writes a delay on a white ground.
func (d *diagram) drawLabel(c draw.Canvas, at vg.Point, label string) {
	style := textStyle(black, tickSize, draw.XCenter, draw.YCenter)
	x, y := style.Width(label)/2+2, vg.Length(tickSize)/2+1
	fillRectangle(c, white, at.X-x, at.Y-y, at.X+x, at.Y+y)
	c.FillText(style, at, label)
}

// drawScale draws what delay a colour stands for.
func (d *diagram) drawScale(c draw.Canvas) {
	seconds := d.unit.Seconds
	share := func(v float64) float64 { return d.share(v * seconds) }
	drawScale(c, extent{d.low / seconds, d.high / seconds}, share, "delay, "+d.unit.Name)
}

// drawScale draws what values the colours stand for that a function places.
func drawScale(c draw.Canvas, values extent, share func(float64) float64, title string) {
	const pieces = 128
	left, right := c.Min.X+20, c.Min.X+36
	style := textStyle(black, tickSize, draw.XLeft, draw.YCenter)
	step := (c.Max.Y - c.Min.Y) / pieces
	for i := range pieces {
		y := c.Min.Y + vg.Length(i)*step
		top := min(y+2*step, c.Max.Y) // the next piece covers the rest, so that there is no seam
		fillRectangle(c, along(float64(i)/(pieces-1)), left, y, right, top)
	}
	ticks := plot.Ticker(roundTicks{})
	if values.spansDecades() {
		ticks = logTicks{}
	}
	for _, tick := range ticks.Ticks(values.low, values.high) {
		if tick.Label == "" {
			continue
		}
		y := c.Min.Y + vg.Length(share(tick.Value))*(c.Max.Y-c.Min.Y)
		c.StrokeLine2(draw.LineStyle{Color: black, Width: 0.8}, right, y, right+4, y)
		c.FillText(style, vg.Point{X: right + 7, Y: y}, tick.Label)
	}
	style.YAlign = draw.YBottom
	c.FillText(style, vg.Point{X: c.Min.X, Y: c.Max.Y + 8}, title)
}
