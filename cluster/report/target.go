package report

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/gradwire/gradwire/cluster/record"
)

const (
	// maxTicks is how many points can be named below a figure.
	maxTicks = 60
	// maxLevel is how many points leave room for a level note above each.
	maxLevel = 24
	// levelHeight is the share of a figure's height that is kept free for such a note,
	// upwardsHeight that for one of 20 letters which runs upwards.
	levelHeight, upwardsHeight = 0.06, 0.26
)

func epochsToTarget(s record.Summary) (*figure, error) {
	return toTarget(s, "epochs to %s", func(r record.Run) *float64 { return r.EpochsToTarget })
}

func timeToTarget(s record.Summary) (*figure, error) {
	u := timeUnit(longestMean(s))
	return toTarget(s, "time to %s, "+u.name, func(r record.Run) *float64 {
		if r.TimeToTarget == nil {
			return nil
		}
		v := *r.TimeToTarget / u.seconds
		return &v
	})
}

// toTarget draws a bar for each point, and says how many of its runs arrived; nil
// without a sweep or a target.
func toTarget(s record.Summary, quantity string, of func(record.Run) *float64) (*figure, error) {
	if s.Target == nil || len(s.Groups) < 2 || len(s.Groups) > maxTicks {
		return nil, nil
	}
	f := newFigure(s.Plan, heading(keys(s)), fmt.Sprintf(quantity, percent(*s.Target)),
		"Bars: mean ± 1 standard deviation of the runs that reached the target; dots: these runs; above: how many of all runs they are.")
	styles := looks(s.Groups)
	top := 0.0
	for i, g := range s.Groups {
		values := arrivals(s, g.Point, of)
		highest := reach(values)
		if err := f.addBar(float64(i), values, styles[i]); err != nil {
			return nil, err
		}
		n := note{x: float64(i), y: highest, text: fmt.Sprintf("%d/%d", g.Reached, g.N), upwards: len(s.Groups) > maxLevel}
		height := levelHeight
		if len(values) == 0 {
			n.text, n.upwards = "not reached ("+n.text+")", true
		}
		if n.upwards {
			height = upwardsHeight * float64(utf8.RuneCountInString(n.text)) / 20
		}
		f.Add(n)
		top = max(top, highest/(1-height))
	}
	if top == 0 {
		top = 1 // no run of any point has arrived
	}
	for _, g := range s.Groups {
		f.ticks = append(f.ticks, name(g.Point))
	}
	f.X.Min, f.X.Max = -0.6, float64(len(s.Groups))-0.4
	f.Y.Min, f.Y.Max = 0, top*1.02
	return f, nil
}

// arrivals returns the values of those runs of a point that reached the target.
func arrivals(s record.Summary, p record.Point, of func(record.Run) *float64) []float64 {
	var values []float64
	for _, r := range s.Runs {
		if !slices.Equal(r.Point, p) || !r.Reached {
			continue
		}
		if v := of(r); v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
			values = append(values, *v)
		}
	}
	return values
}

// reach returns how high the marks of a group's values go.
func reach(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := record.SpreadOf(values)
	if math.IsNaN(float64(s.Std)) {
		return float64(s.Max)
	}
	return max(float64(s.Max), float64(s.Mean+s.Std))
}

// addBar draws a group: the mean of its runs as a bar, the error bar, and the runs.
func (f *figure) addBar(x float64, values []float64, l look) error {
	if len(values) == 0 {
		return nil
	}
	spread := record.SpreadOf(values)
	mean := float64(spread.Mean)
	bar, err := plotter.NewPolygon(plotter.XYs{{X: x - 0.35, Y: 0}, {X: x - 0.35, Y: mean}, {X: x + 0.35, Y: mean}, {X: x + 0.35, Y: 0}})
	if err != nil {
		return err
	}
	bar.Color, bar.LineStyle = faded(l.color, 110), draw.LineStyle{Color: l.color, Width: 1.2, Dashes: l.dash}
	f.Add(bar)
	if spread.Std > 0 {
		dots := make(plotter.XYs, len(values))
		for i, v := range values {
			dots[i] = plotter.XY{X: x - 0.2, Y: v}
		}
		f.Add(&plotter.Scatter{XYs: dots, GlyphStyle: draw.GlyphStyle{Color: l.color, Radius: 2, Shape: draw.CircleGlyph{}}})
		whiskers, err := plotter.NewYErrorBars(errorBar{plotter.XYs{{X: x, Y: mean}}, float64(spread.Std)})
		if err != nil {
			return err
		}
		whiskers.Color, whiskers.Width, whiskers.CapWidth = black, 1.2, 8
		f.Add(whiskers)
	}
	return nil
}

// errorBar is a bar of equal length to both sides.
type errorBar struct {
	plotter.XYs
	std float64
}

func (e errorBar) YError(int) (low, high float64) { return e.std, e.std }

// note is a text above a point, or one that runs upwards from it.
type note struct {
	x, y    float64
	text    string
	upwards bool
}

func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := text.Style{Color: grey, Font: sans(tickSize), XAlign: draw.XCenter, YAlign: draw.YBottom, Handler: plot.DefaultTextHandler}
	if n.upwards || style.Width(n.text) > x(n.x+1)-x(n.x) {
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XLeft, draw.YCenter
	}
	c.FillText(style, vg.Point{X: x(n.x), Y: y(n.y) + 5}, n.text)
}

// nameTicks writes the names of a plot's ticks below it, slanted or upright where so
// wide a page has no room for them level.
func (f *figure) nameTicks(p *plot.Plot, width vg.Length) {
	if f.ticks == nil {
		return
	}
	ticks := make([]plot.Tick, len(f.ticks))
	letters := 0
	for i, name := range f.ticks {
		ticks[i] = plot.Tick{Value: float64(i), Label: cut(name, maxLegendText)}
		letters += utf8.RuneCountInString(ticks[i].Label) + 2
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	style := &p.X.Tick.Label
	switch {
	case width/vg.Length(len(ticks)) < slantedTick:
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XRight, draw.YCenter
	case width < vg.Length(letters)*letterWidth:
		style.Rotation, style.XAlign, style.YAlign = math.Pi/5, draw.XRight, draw.YTop
	}
}

const (
	// letterWidth is about the room that a letter of a tick takes level, slantedTick and
	// uprightTick that of a whole name that slants or stands upright.
	letterWidth, slantedTick, uprightTick = vg.Length(8), vg.Length(19), vg.Length(13)
)
