package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// maxRows is how many rows a panel has at most.
const maxRows = 40

// arrivals is a figure of how long it takes to the target: a row for each point of a panel.
type arrivals struct {
	// quantity is what is drawn, with the target's name in it, unit what its values are in.
	what, quantity, unit string
	scale                float64
	group                func(record.Group) *record.Arrivals
	// run returns when a run arrived, or nil and when it ended.
	run func(record.Run) (at *float64, end float64)
}

func init() {
	toTarget := func(quantity string) func(record.Summary) string {
		return func(s record.Summary) string { return quantity + " to the target" + report.JudgedSuffix(s) }
	}
	register(Kind{Name: "target-time", Section: Target, Place: 1, Drawings: single(toTarget("Time"), timeToTarget)})
	register(Kind{Name: "target-epochs", Section: Target, Place: 2,
		Drawings: single(toTarget("Epochs"), epochsToTarget)})
}

func epochsToTarget(d *Data) *Figure {
	a := &arrivals{
		what: "epochs to ", quantity: "epochs to %s", scale: 1,
		group: func(g record.Group) *record.Arrivals { return g.EpochsToTarget },
		run:   func(r record.Run) (*float64, float64) { return r.EpochsToTarget, r.Epochs },
	}
	return a.figure(d)
}

func timeToTarget(d *Data) *Figure {
	u := report.TimeUnit(report.LongestMean(d.Summary))
	a := &arrivals{
		what: "time to ", quantity: "time to %s, " + u.Name, unit: " " + u.Name, scale: 1 / u.Seconds,
		group: func(g record.Group) *record.Arrivals { return g.TimeToTarget },
		run:   func(r record.Run) (*float64, float64) { return r.TimeToTarget, r.Duration },
	}
	return a.figure(d)
}

const arrivalsCaption = "Dots: runs; crosses: ends of runs that did not reach the target; stroke: median, if half " +
	"of the runs reached it; bar: its 95 % interval, from 6 runs on, with an arrow if too few runs reached the target " +
	"for a bound. Right: median, if there is room, and how many runs reached the target; * fastest, = among the fastest, ? too few repeats."

// figure draws a row for each point; nil without a sweep or a target.
func (a *arrivals) figure(d *Data) *Figure {
	s, layout := d.Summary, d.layout()
	if len(report.Targets(s)) == 0 || len(s.Groups) < 2 {
		return nil
	}
	target := report.TargetName(s) + report.JudgedSuffix(s)
	f := newFigure(title(s, a.what+target), fmt.Sprintf(a.quantity, target), layout.RowHeading(), arrivalsCaption)
	panels, note := panelsOf(layout.Panels(s))
	rows, cut := a.rowsOf(s, layout)
	f.caption += note + cut
	for _, line := range report.Horizons(s) {
		f.caption += " " + line
	}
	f.divide(panels)
	f.setRows(rows)
	values := a.extent(s)
	f.reserve(values)
	styles := d.looks()
	for i, g := range s.Groups {
		panel, row := slices.Index(panels, layout.Panel(g.Point)), slices.Index(rows, layout.Row(g.Point))
		if panel >= 0 && row >= 0 {
			f.in(panel).addArrivals(f.rowAt(row), a, s, g, styles[i], f.X.Min)
		}
	}
	if isLogarithmic(&f.X) {
		f.caption += " The axis is logarithmic."
	}
	return f
}

// rowsOf orders the rows: as the sweep does where it is one of numbers, and else the fastest first.
// What is compared stands together: rows of one value of a circumstance, or of several records.
func (a *arrivals) rowsOf(s record.Summary, l report.Layout) (rows []string, note string) {
	type row struct {
		name     string
		dash, by int
	}
	var all []row
	ranks := map[int]int{} // by the level of By
	for _, g := range s.Groups {
		r := row{name: l.Row(g.Point)}
		if l.By != nil {
			r.by = l.By.Level(g.Point)
		}
		if l.Dash != nil {
			r.dash = l.Dash.Level(g.Point)
		}
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
		for _, other := range s.Groups {
			same := l.Panel(other.Point) == l.Panel(g.Point) &&
				(l.Dash == nil || l.Dash.Level(other.Point) == r.dash)
			if same && a.middle(other) < a.middle(g) {
				ranks[r.by]++
			}
		}
	}
	_, numbered := scale(l.By)
	slices.SortStableFunc(all, func(x, y row) int {
		order, dash := cmp.Compare(ranks[x.by], ranks[y.by]), cmp.Compare(x.dash, y.dash)
		if numbered {
			order = cmp.Compare(x.by, y.by)
		}
		if l.Dash != nil && l.Dash.Key == report.RecordKey {
			return cmp.Or(order, cmp.Compare(x.by, y.by), dash)
		}
		return cmp.Or(dash, order)
	})
	for _, r := range all[:min(len(all), maxRows)] {
		rows = append(rows, r.name)
	}
	if more := len(all) - maxRows; more > 0 {
		note = fmt.Sprintf(" %d more rows are not shown; gradwire report --where chooses.", more)
	}
	return rows, note
}

// middle orders points: by their medians, then by their restricted means; one that never arrived
// comes last.
func (a *arrivals) middle(g record.Group) float64 {
	all := a.group(g)
	switch {
	case all == nil:
		return math.Inf(1)
	case report.IsFinite(float64(all.Median)):
		return float64(all.Median)
	}
	return max(float64(all.Restricted), float64(all.Horizon))
}

// extent is the range of all that is drawn.
func (a *arrivals) extent(s record.Summary) extent {
	e := newExtent()
	for _, g := range s.Groups {
		arrived, ended := a.marks(s, g.Point)
		e.add(arrived...)
		e.add(ended...)
		if all := a.group(g); all != nil {
			e.add(float64(all.Median) * a.scale)
			if all.Method != stats.TooFew {
				e.add(float64(all.High) * a.scale)
			}
		}
	}
	return e
}

// marks are the runs of a point: those that arrived, and the ends of those that were censored.
func (a *arrivals) marks(s record.Summary, p record.Point) (arrived, ended []float64) {
	for _, r := range s.Runs {
		if !slices.Equal(r.Point, p) {
			continue
		}
		switch at, end := a.run(r); {
		case r.Reached && at != nil && report.IsFinite(*at):
			arrived = append(arrived, *at*a.scale)
		case !r.Reached && r.Outcome != record.Failed && report.IsFinite(end):
			ended = append(ended, end*a.scale)
		}
	}
	return arrived, ended
}

// addArrivals draws a point in its row: its runs, and below them the median with its interval.
// Values below the axis's least are drawn at its edge.
func (f *Figure) addArrivals(y float64, a *arrivals, s record.Summary, g record.Group, l look, least float64) {
	const above, below = 0.17, -0.22
	arrived, ended := a.marks(s, g.Point)
	mark := report.VerdictMarks[g.Verdict]
	n := rowNote{y: y, short: strings.TrimSpace(fmt.Sprintf("%d/%d %s", g.Reached, g.N, mark))}
	switch all := a.group(g); {
	case all == nil:
		n.short = report.NotReached(g)
		n.long = n.short
	case !report.IsFinite(float64(all.Median)):
		n.long = n.short
	default:
		middle := float64(all.Median) * a.scale
		n.long = fmt.Sprintf("%.3g%s, %s", middle, a.unit, n.short)
		f.addLine(look{color: black, width: 2}, segment(middle, y+below-0.17, middle, y+below+0.17))
	}
	if all := a.group(g); all != nil && all.Method != stats.TooFew {
		low, high := max(float64(all.Low)*a.scale, least), float64(all.High)*a.scale
		bar := look{color: l.color, width: 0.6}
		if report.IsFinite(high) {
			f.addRectangle(low, max(low, high), y+below-0.1, y+below+0.1, bar, 110)
		} else {
			f.addOpenBar(low, max(low, float64(all.Horizon)*a.scale), y+below-0.1, y+below+0.1, bar, 110)
		}
	}
	f.addMarks(draw.GlyphStyle{Color: l.color, Radius: 3, Shape: l.dot()},
		level(arrived, y+above))
	f.addMarks(draw.GlyphStyle{Color: l.color, Radius: 3, Shape: draw.CrossGlyph{}}, level(ended, y+above))
	f.Add(n)
}

// level are values in a row.
func level(values []float64, y float64) plotter.XYs {
	dots := make(plotter.XYs, len(values))
	for i, v := range values {
		dots[i] = plotter.XY{X: v, Y: y}
	}
	return dots
}
