package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// bars is a figure of how long it takes to the target.
type bars struct {
	// quantity is what is drawn, with the target's name in it.
	what, quantity string
	scale          float64
	group          func(record.Group) *record.Arrivals
	// run returns when a run arrived, or nil and when it ended.
	run func(record.Run) (at *float64, end float64)
}

func init() {
	toTarget := func(quantity string) func(record.Summary) string {
		return func(s record.Summary) string { return quantity + " to the target" + report.JudgedSuffix(s) }
	}
	register(Kind{Name: "target-epochs", Section: Target, Place: 1,
		Drawings: single(toTarget("Epochs"), epochsToTarget)})
	register(Kind{Name: "target-time", Section: Target, Place: 2, Drawings: single(toTarget("Time"), timeToTarget)})
}

func epochsToTarget(d *Data) *Figure {
	b := &bars{
		what: "epochs to ", quantity: "epochs to %s", scale: 1,
		group: func(g record.Group) *record.Arrivals { return g.EpochsToTarget },
		run:   func(r record.Run) (*float64, float64) { return r.EpochsToTarget, r.Epochs },
	}
	return b.figure(d.Summary)
}

func timeToTarget(d *Data) *Figure {
	u := report.TimeUnit(report.LongestMean(d.Summary))
	b := &bars{
		what: "time to ", quantity: "time to %s, " + u.Name, scale: 1 / u.Seconds,
		group: func(g record.Group) *record.Arrivals { return g.TimeToTarget },
		run:   func(r record.Run) (*float64, float64) { return r.TimeToTarget, r.Duration },
	}
	return b.figure(d.Summary)
}

const barCaption = "Bars: median; whiskers: its 95 % interval, from 6 runs on, to the top where too few arrived to " +
	"bound it; dots: runs; crosses: ends of runs that did not arrive. Above: how many arrived; * fastest, = among " +
	"the fastest, ? too few repeats."

// figure draws a bar for each point, and says how many of its runs arrived; nil without a sweep or
// a target.
func (b *bars) figure(s record.Summary) *Figure {
	if len(report.Targets(s)) == 0 || len(s.Groups) < 2 || len(s.Groups) > maxTicks {
		return nil
	}
	target := report.TargetName(s) + report.JudgedSuffix(s)
	f := newFigure(title(s, b.what+target), heading(s), fmt.Sprintf(b.quantity, target), barCaption)
	styles := looks(s.Groups)
	top := 0.0
	for i, g := range s.Groups {
		highest := f.addBar(float64(i), b, s, g, styles[i])
		text := strings.TrimSpace(fmt.Sprintf("%d/%d %s", g.Reached, g.N, report.VerdictMarks[g.Verdict]))
		n := note{x: float64(i), y: highest, text: text, upwards: len(s.Groups) > maxLevel}
		height := levelHeight
		if g.Reached == 0 {
			n.text, n.upwards = fmt.Sprintf("not reached (%d/%d)", g.Reached, g.N), true
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
	f.setTicks(pointNames(s))
	f.Y.Min, f.Y.Max = 0, top*1.02
	return f
}

// marks are the runs of a point: those that arrived, and the ends of those that were censored.
func (b *bars) marks(s record.Summary, p record.Point) (arrived, ended []float64) {
	for _, r := range s.Runs {
		if !slices.Equal(r.Point, p) {
			continue
		}
		switch at, end := b.run(r); {
		case r.Reached && at != nil && report.IsFinite(*at):
			arrived = append(arrived, *at*b.scale)
		case !r.Reached && r.Outcome != record.Failed && report.IsFinite(end):
			ended = append(ended, end*b.scale)
		}
	}
	return arrived, ended
}

// addBar draws a group: the median as a bar, its interval, and the runs. It returns how high these
// go. Where the median is not known, the bar goes to where the runs were no longer watched.
func (f *Figure) addBar(x float64, b *bars, s record.Summary, g record.Group, l look) (highest float64) {
	a := b.group(g)
	if a == nil {
		return 0
	}
	arrived, ended := b.marks(s, g.Point)
	watched := float64(a.Horizon) * b.scale
	middle := float64(a.Median) * b.scale
	if math.IsNaN(middle) {
		middle = watched
	}
	f.addRectangle(x-0.35, x+0.35, 0, middle, look{color: l.color, width: 1.2, dash: l.dash}, 110)
	highest = middle
	for _, marks := range []struct {
		values []float64
		style  draw.GlyphStyle
	}{
		{arrived, draw.GlyphStyle{Color: l.color, Radius: 2, Shape: draw.CircleGlyph{}}},
		{ended, draw.GlyphStyle{Color: black, Radius: 3, Shape: draw.CrossGlyph{}}},
	} {
		if len(marks.values) == 0 || len(arrived)+len(ended) < 2 {
			continue
		}
		dots := make(plotter.XYs, len(marks.values))
		for i, v := range marks.values {
			dots[i] = plotter.XY{X: x - 0.2, Y: v}
			highest = max(highest, v)
		}
		f.addMarks(marks.style, dots)
	}
	if a.Method == stats.TooFew {
		return highest
	}
	low, high := min(float64(a.Low)*b.scale, middle), float64(a.High)*b.scale
	if !report.IsFinite(high) {
		high = max(watched, middle)
	}
	f.Add(&plotter.YErrorBars{
		XYs: plotter.XYs{{X: x, Y: middle}}, YErrors: plotter.YErrors{{Low: middle - low, High: high - middle}},
		LineStyle: draw.LineStyle{Color: black, Width: 1.2}, CapWidth: 8,
	})
	return max(highest, high)
}

// note is a text above a point, or one that runs upwards from it.
type note struct {
	x, y    float64
	text    string
	upwards bool
}

func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := textStyle(grey, tickSize, draw.XCenter, draw.YBottom)
	if n.upwards || style.Width(n.text) > x(n.x+1)-x(n.x) {
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XLeft, draw.YCenter
	}
	c.FillText(style, vg.Point{X: x(n.x), Y: y(n.y) + 5}, n.text)
}

// pointNames are the names of a summary's points.
func pointNames(s record.Summary) []string {
	names := make([]string, len(s.Groups))
	for i, g := range s.Groups {
		names[i] = report.PointName(g.Point)
	}
	return names
}

// setTicks gives the places 0, 1, … of the horizontal axis names.
func (f *Figure) setTicks(names []string) {
	f.ticks = names
	f.X.Min, f.X.Max = -0.6, float64(len(names))-0.4
}

// nameTicks writes the names of a plot's ticks below it, slanted or upright where so
// wide a page has no room for them level.
func (f *Figure) nameTicks(p *plot.Plot, width vg.Length) {
	if f.ticks == nil {
		return
	}
	ticks := make([]plot.Tick, len(f.ticks))
	letters := 0
	for i, name := range f.ticks {
		ticks[i] = plot.Tick{Value: float64(i), Label: report.Cut(name, report.MaxName)}
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
	// uprightTick the room of a whole name that slants or stands upright.
	letterWidth, slantedTick, uprightTick = vg.Length(8), vg.Length(19), vg.Length(13)
)
