package report

import (
	"fmt"
	"math"
	"slices"

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
	// noteHeight is the share of a figure's height that is kept free for a note.
	noteHeight = 0.26
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

// toTarget draws each point's runs, their mean and standard deviation, and says how
// many did not arrive; nil without a sweep or a target.
func toTarget(s record.Summary, quantity string, of func(record.Run) *float64) (*figure, error) {
	if s.Target == nil || len(s.Groups) < 2 || len(s.Groups) > maxTicks {
		return nil, nil
	}
	all := keys(s)
	title := ""
	if len(all) == 1 {
		title = shortKey(all[0], all)
	}
	f := newFigure(s.Plan, title, fmt.Sprintf(quantity, percent(*s.Target)),
		"Points: mean ± 1 standard deviation of the runs that reached the target; small dots: these runs.")
	styles := looks(s.Groups)
	top := 0.0
	for i, g := range s.Groups {
		values := arrivals(s, g.Point, of)
		highest := reach(values)
		if err := f.addPoint(float64(i), values, styles[i]); err != nil {
			return nil, err
		}
		if missed := g.N - g.Reached; missed > 0 {
			f.Add(note{x: float64(i), y: highest, text: fmt.Sprintf("not reached %d/%d", missed, g.N)})
			highest /= 1 - noteHeight
		}
		top = max(top, highest)
	}
	if top == 0 {
		top = 1 // no run of any point has arrived
	}
	f.nameTicks(s, all)
	f.X.Min, f.X.Max = -0.6, float64(len(s.Groups))-0.4
	f.Y.Min, f.Y.Max = 0, top*1.05
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

// addPoint draws a group: its runs, their mean and the error bar.
func (f *figure) addPoint(x float64, values []float64, l look) error {
	if len(values) == 0 {
		return nil
	}
	mean := record.SpreadOf(values)
	centre := plotter.XYs{{X: x, Y: float64(mean.Mean)}}
	if mean.Std > 0 {
		dots := make(plotter.XYs, len(values))
		for i, v := range values {
			dots[i] = plotter.XY{X: x - 0.22, Y: v}
		}
		f.Add(&plotter.Scatter{XYs: dots, GlyphStyle: draw.GlyphStyle{Color: faded(l.color, 110), Radius: 1.8, Shape: draw.CircleGlyph{}}})
		bar, err := plotter.NewYErrorBars(errorBar{centre, float64(mean.Std)})
		if err != nil {
			return err
		}
		bar.Color, bar.Width, bar.CapWidth = l.color, 1.8, 9
		f.Add(bar)
	}
	f.Add(&plotter.Scatter{XYs: centre, GlyphStyle: draw.GlyphStyle{Color: l.color, Radius: 4.5, Shape: draw.CircleGlyph{}}})
	return nil
}

// errorBar is a bar of equal length to both sides.
type errorBar struct {
	plotter.XYs
	std float64
}

func (e errorBar) YError(int) (low, high float64) { return e.std, e.std }

// note is a text that runs upwards from a point.
type note struct {
	x, y float64
	text string
}

func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := text.Style{
		Color: grey, Font: sans(tickSize), Rotation: math.Pi / 2, XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler,
	}
	c.FillText(style, vg.Point{X: x(n.x), Y: y(n.y) + 5}, n.text)
}

// nameTicks writes the points' names below the figure, slanted where they are long.
func (f *figure) nameTicks(s record.Summary, all []string) {
	ticks := make([]plot.Tick, len(s.Groups))
	letters := 0
	for i, g := range s.Groups {
		ticks[i] = plot.Tick{Value: float64(i), Label: cut(name(g.Point, all), maxLegendText)}
		letters += len(ticks[i].Label) + 2
	}
	f.X.Tick.Marker = plot.ConstantTicks(ticks)
	if letters > 100 {
		f.X.Tick.Label.Rotation = math.Pi / 5
		f.X.Tick.Label.XAlign, f.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
}
