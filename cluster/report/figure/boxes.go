package figure

import (
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// maxBeside is how many workers have their boxes side by side at a point.
const maxBeside = 4

// boxes is a figure of distributions, a box for each group, or for each worker of each.
type boxes struct {
	what, y, caption string

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
		what: "staleness of updates", y: "staleness, versions", scale: 1,
		of:      func(w *Workload) Counts { return w.Staleness },
		caption: boxCaption + "Staleness: the version that an update met less the one that it was computed on.",
	}
	return b.figure(d.Summary, d.Work)
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
		what: "waiting", y: "a wait, " + u.Name, scale: 1 / u.Seconds,
		of:      func(w *Workload) Counts { return w.Waiting },
		caption: boxCaption + "Waits of workers, for whatever cause.",
	}
	return b.figure(d.Summary, d.Work)
}

// figure draws the boxes; nil if there is nothing to draw, or no room for it.
func (b *boxes) figure(s record.Summary, work []*Workload) *Figure {
	work = slices.DeleteFunc(slices.Clone(work), func(w *Workload) bool { return b.of(w).Count() == 0 })
	names := workers(work)
	single := len(s.Groups) == 1 && len(work) <= maxTicks
	if !single && (len(names) > maxBeside || len(names)*len(s.Groups) > maxTicks) {
		work = poolWorkers(work)
		names = workers(work)
	}
	if len(work) == 0 || len(s.Groups) > maxTicks {
		return nil
	}
	x, ticks := heading(s), pointNames(s)
	if single {
		x, ticks = "worker", make([]string, len(work))
		for i, w := range work {
			ticks[i] = w.NodeName()
		}
	}
	if !slices.ContainsFunc(work, func(w *Workload) bool { return b.of(w).Quantile(0.99) > 0 || b.of(w).Mean() > 0 }) {
		return nil // that nobody was ever late is no figure
	}
	f := newFigure(title(s, b.what), x, b.y, b.caption)
	b.draw(f, work, names, single)
	f.setTicks(ticks)
	return f
}

// draw adds the boxes: each worker has its place where there is a single group, and elsewhere a
// share of the group's place.
func (b *boxes) draw(f *Figure, work []*Workload, names []string, single bool) {
	top := 0.0
	for i, w := range work {
		c := b.of(w)
		slot := slices.Index(names, w.node)
		x, width, hue := float64(i), 0.6, 0
		if !single {
			width = 0.7 / float64(len(names))
			x, hue = float64(w.Group)+(float64(slot)-float64(len(names)-1)/2)*(width+0.04), slot
		}
		l := look{color: okabeIto[hue%len(okabeIto)], width: 1.4, dash: dashes[hue%len(dashes)]}
		box := f.addBox(c, x, width, b.scale, l)
		if !single && len(names) > 1 && !slices.Contains(f.names, report.Cut(w.NodeName(), report.MaxName)) {
			f.heading = "worker"
			f.entry(w.NodeName(), box)
		}
		top = max(top, c.Quantile(0.99)*b.scale)
		if mean := c.Mean() * b.scale; report.IsFinite(mean) {
			top = max(top, mean)
		}
	}
	if top == 0 {
		top = 1 // no mean is known
	}
	f.Y.Min, f.Y.Max = 0, top*1.05
}

// addBox draws a distribution: the box, its whiskers and the mean.
func (f *Figure) addBox(c Counts, x, width, scale float64, l look) plot.Thumbnailer {
	at := func(share float64) float64 { return c.Quantile(share) * scale }
	left, right := x-width/2, x+width/2
	box := f.addRectangle(left, right, at(0.25), at(0.75), l, 90)
	whisker, median := look{color: l.color, width: l.width}, look{color: l.color, width: 2 * l.width}
	f.addLine(whisker, segment(x, at(0.01), x, at(0.25)))
	f.addLine(whisker, segment(x, at(0.75), x, at(0.99)))
	f.addLine(whisker, segment(x-width/5, at(0.01), x+width/5, at(0.01)))
	f.addLine(whisker, segment(x-width/5, at(0.99), x+width/5, at(0.99)))
	f.addLine(median, segment(left, at(0.5), right, at(0.5)))
	if mean := c.Mean() * scale; report.IsFinite(mean) {
		f.addMarks(draw.GlyphStyle{Color: black, Radius: 2.6, Shape: draw.RingGlyph{}}, plotter.XYs{{X: x, Y: mean}})
	}
	return box
}
