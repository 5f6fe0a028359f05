package figure

import (
	"image/color"
	"slices"

	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// maxBeside is how many workers have their boxes in the row of a point.
const maxBeside = 4

// boxes is a figure of distributions, a box for each group, or for each worker of each.
type boxes struct {
	what, x, caption string

	of    func(*Workload) Counts
	scale float64
}

const boxCaption = "Boxes: the middle half, with the median; whiskers: from 1 % to 99 %; ring: the mean. "

func init() {
	register(Kind{Name: "staleness", Section: Work, Place: 1, Needs: Workers,
		Drawings: single(titled("Staleness of updates"), stalenessBoxes)})
	register(Kind{Name: "waiting", Section: Work, Place: 2, Needs: Workers,
		Drawings: single(titled("Waiting"), waitingBoxes)})
}

func stalenessBoxes(d *Data) *Figure {
	b := &boxes{
		what: "staleness of updates", x: "staleness, versions", scale: 1,
		of:      func(w *Workload) Counts { return w.Staleness },
		caption: boxCaption + "Staleness: the version that an update met less the one that it was computed on.",
	}
	return b.figure(d)
}

func waitingBoxes(d *Data) *Figure {
	longest := 0.0
	for _, w := range d.Work {
		if q := w.Waiting.Quantile(0.99); q > longest { // it may be NaN
			longest = q
		}
	}
	u := report.TimeUnit(longest)
	b := &boxes{
		what: "waiting", x: "a wait, " + u.Name, scale: 1 / u.Seconds,
		of:      func(w *Workload) Counts { return w.Waiting },
		caption: boxCaption + "Waits of workers, for whatever cause.",
	}
	return b.figure(d)
}

// figure draws the boxes; nil if there is nothing to draw.
func (b *boxes) figure(d *Data) *Figure {
	s, layout := d.Summary, d.layout()
	work := slices.DeleteFunc(slices.Clone(d.Work), func(w *Workload) bool { return b.of(w).Count() == 0 })
	single := len(s.Groups) == 1 && len(work) <= maxRows
	if !single && len(workers(work)) > maxBeside {
		work = poolWorkers(work)
	}
	if !slices.ContainsFunc(work, func(w *Workload) bool { return b.of(w).Quantile(0.99) > 0 || b.of(w).Mean() > 0 }) {
		return nil // that nobody was ever late is no figure
	}
	f := newFigure(title(s, b.what), b.x, layout.RowHeading(), b.caption)
	panels, note := panelsOf(layout.Panels(s))
	f.divide(panels)
	var rows []string
	row := func(w *Workload) string {
		if single {
			return w.NodeName()
		}
		return layout.Row(s.Groups[w.Group].Point)
	}
	for _, w := range work {
		if name := row(w); !slices.Contains(rows, name) && len(rows) < maxRows {
			rows = append(rows, name)
		}
	}
	if single {
		f.Y.Label.Text = "worker"
	}
	f.setRows(rows)
	f.caption += note + d.Note + b.missing(d, work)
	b.setAxis(f, work)
	axis := extent{f.X.Min, f.X.Max}
	names, styles := workers(work), d.looks()
	for _, w := range work {
		place := boxPlace{y: f.rowAt(slices.Index(rows, row(w))), height: 0.6}
		panel := slices.Index(panels, layout.Panel(s.Groups[w.Group].Point))
		if panel < 0 || !slices.Contains(rows, row(w)) {
			continue
		}
		if !single {
			place.split(slices.Index(names, w.node), len(names))
		}
		b.add(f, f.in(panel), w, place, names, styles[w.Group].color)
	}
	f.X.Min, f.X.Max = axis.low, axis.high // a box that was added may have widened the axis
	return f
}

// missing names the points without values.
func (b *boxes) missing(d *Data, work []*Workload) string {
	var names []string
	for i, g := range d.Summary.Groups {
		if !slices.ContainsFunc(work, func(w *Workload) bool { return w.Group == i }) {
			names = append(names, report.PointName(g.Point))
		}
	}
	return withoutValues(names)
}

// boxPlace is where a box lies: around a height, so high.
type boxPlace struct{ y, height float64 }

// split is the part of a place that one of several boxes has.
func (p *boxPlace) split(one, of int) {
	p.height = 0.8 / float64(of)
	p.y -= (float64(one) - float64(of-1)/2) * p.height
	p.height *= 0.8
}

// setAxis ends the axis of values: logarithmic where none is zero and they span decades.
func (b *boxes) setAxis(f *Figure, work []*Workload) {
	all := newExtent()
	for _, w := range work {
		all.add(b.of(w).Quantile(0.01)*b.scale, b.of(w).Quantile(0.99)*b.scale, b.of(w).Mean()*b.scale)
	}
	if all.spansDecades() {
		f.caption += all.setLogarithmic(&f.X, "axis", all.low)
		return
	}
	if f.X.Min, f.X.Max = 0, all.high*1.05; !(all.high > 0) {
		f.X.Max = 1 // no mean is known
	}
}

// add draws a worker's box into a panel, in its point's colour: where several share a row, each has
// its own.
func (b *boxes) add(f, panel *Figure, w *Workload, at boxPlace, names []string, hue color.NRGBA) {
	if len(names) > 1 && len(names) <= maxBeside {
		hue = okabeIto[slices.Index(names, w.node)%len(okabeIto)]
	}
	l := look{color: hue, width: 1.4}
	box := panel.addBox(b.of(w), at, b.scale, l)
	if len(f.rows) > 0 && f.Y.Label.Text != "worker" && len(names) > 1 && !slices.Contains(f.names, w.NodeName()) {
		f.heading = "worker"
		f.entry(w.NodeName(), box)
	}
}

// addBox draws a distribution: the box, its whiskers and the mean.
func (f *Figure) addBox(c Counts, p boxPlace, scale float64, l look) plot.Thumbnailer {
	at := func(share float64) float64 { return c.Quantile(share) * scale }
	low, high := p.y-p.height/2, p.y+p.height/2
	box := f.addRectangle(at(0.25), at(0.75), low, high, l, 90)
	whisker, median := look{color: l.color, width: l.width}, look{color: l.color, width: 2 * l.width}
	f.addLine(whisker, segment(at(0.01), p.y, at(0.25), p.y))
	f.addLine(whisker, segment(at(0.75), p.y, at(0.99), p.y))
	for _, end := range []float64{0.01, 0.99} {
		f.addLine(whisker, segment(at(end), p.y-p.height/5, at(end), p.y+p.height/5))
	}
	f.addLine(median, segment(at(0.5), low, at(0.5), high))
	if mean := c.Mean() * scale; report.IsFinite(mean) {
		f.addMarks(draw.GlyphStyle{Color: black, Radius: 2.6, Shape: draw.RingGlyph{}}, plotter.XYs{{X: mean, Y: p.y}})
	}
	return box
}
