package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/plotter"
)

const (
	// maxNetworks is how many networks are drawn of a summary.
	maxNetworks = 6
	// maxNodes is how many nodes a network is drawn of; of larger ones the delays are counted.
	maxNodes = 64
	// delayBins is how many classes delays are counted in.
	delayBins = 30
	// maxTitlePoints is how many characters of a title may name points.
	maxTitlePoints = 90
)

func init() {
	register(Kind{Name: "topology", Numbered: true, Section: Network, Needs: Links, Drawings: networkDrawings})
}

func networkDrawings(d *Data) (all []Drawing) {
	for _, n := range networksOf(d.Summary, d.Traces) {
		title := "Topology and delays"
		if len(n.points) < len(d.Summary.Groups) {
			title += fmt.Sprintf(" (%s)", n.listed(maxTitlePoints))
		}
		all = append(all, Drawing{Title: title, Draw: func() *Figure { return n.figure(d.Summary) }})
	}
	return all
}

// network is what messages of a run passed over: its nodes in the order of their
// numbers, and the links that bore any message but control.
type network struct {
	nodes  []string
	links  []record.Link // by source and destination
	points []string      // the groups that ran over it
	point  record.Point  // the first of these, whose links these are
}

// networksOf returns the distinct networks of a summary's points, as their first runs
// used them.
func networksOf(s record.Summary, traces []record.Trace) []*network {
	var all []*network
	seen := map[string]bool{}
	for i, r := range s.Runs {
		if seen[r.Point.Key()] || traces[i].Links == nil {
			continue
		}
		seen[r.Point.Key()] = true
		n := newNetwork(traces[i].Links)
		n.point = r.Point
		same := slices.IndexFunc(all, n.sameAs)
		if same < 0 && len(n.links) > 0 && len(all) < maxNetworks {
			same = len(all)
			all = append(all, n)
		}
		if same >= 0 {
			all[same].points = append(all[same].points, report.PointName(r.Point))
		}
	}
	return all
}

// elsewhere are the sections of a plan that say nothing about the network: points that differ in
// them alone may run over the same one.
var elsewhere = []string{"architecture", "train", "data", "model", "evaluate", "stop", "record"}

// overOneNetwork reports whether the plan gives two points the same network.
func overOneNetwork(a, b record.Point) bool {
	differs := func(s record.Setting, other record.Point) bool {
		section, _, _ := strings.Cut(s.Key, ".")
		return !slices.Contains(elsewhere, section) && !slices.Contains(other, s)
	}
	return !slices.ContainsFunc(a, func(s record.Setting) bool { return differs(s, b) }) &&
		!slices.ContainsFunc(b, func(s record.Setting) bool { return differs(s, a) })
}

func newNetwork(links []record.Link) *network {
	n := &network{}
	known := map[string]bool{}
	add := func(node string) {
		if !known[node] {
			known[node] = true
			n.nodes = append(n.nodes, node)
		}
	}
	for _, l := range links {
		if l.To != record.Everyone && l.Messages > 0 && report.IsFinite(l.DelayAsked) {
			n.links = append(n.links, l)
			add(l.From)
		}
	}
	for _, l := range n.links {
		add(l.To) // nodes that never send are not among the sources
	}
	return n
}

// sameAs reports whether another network is the same in the plan, and was used by the same links of
// the same delays.
func (n *network) sameAs(other *network) bool {
	return overOneNetwork(n.point, other.point) && slices.EqualFunc(n.links, other.links, func(a, b record.Link) bool {
		return a.From == b.From && a.To == b.To && sameDelays(a, b)
	})
}

// sameDelays reports whether two links drew the same delays, and messages took as long on both:
// whether the means are no further apart than chance leaves them, which is three standard errors of
// delays that vary by half their mean, and 2 %.
func sameDelays(a, b record.Link) bool {
	tolerance := 0.02 + 1.5/math.Sqrt(float64(min(a.Messages, b.Messages)))
	same := func(x, y float64) bool { return math.Abs(x-y) <= tolerance*max(x, y) }
	return same(a.DelayAsked, b.DelayAsked) && same(a.DelayAchieved, b.DelayAchieved)
}

// delays returns the lowest and the highest mean delay in seconds.
func (n *network) delays() (low, high float64) {
	low = math.Inf(1)
	for _, l := range n.links {
		low, high = min(low, l.DelayAsked), max(high, l.DelayAsked)
	}
	return low, high
}

// title names the plan, and the points where these have several networks.
func (n *network) title(s record.Summary) string {
	if len(n.points) == len(s.Groups) {
		return title(s, "topology and delays")
	}
	const what = "topology and delays ("
	room := maxTitle - utf8.RuneCountInString(s.Plan+": "+what+")")
	return title(s, what+n.listed(room)+")")
}

// listed names as many points as fit in room characters, and counts the others.
func (n *network) listed(room int) string {
	for shown := len(n.points); shown > 0; shown-- {
		text := strings.Join(n.points[:shown], "; ")
		if more := len(n.points) - shown; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		if utf8.RuneCountInString(text) <= room {
			return text
		}
	}
	if len(n.points) == 1 {
		return report.Cut(n.points[0], max(room, 1))
	}
	return report.Count(len(n.points), "point")
}

// whose says which point's delays a figure of several points shows.
func (n *network) whose() string {
	if len(n.points) < 2 {
		return ""
	}
	return " Delays: as " + n.points[0] + " drew them."
}

// figure draws the network, or counts its delays where it is too large for that.
func (n *network) figure(s record.Summary) *Figure {
	low, high := n.delays()
	u := report.TimeUnit(high)
	if len(n.nodes) > maxNodes {
		return n.histogram(s, low/u.Seconds, high/u.Seconds, u.Name)
	}
	d := newDiagram(n, low, high, u)
	if len(d.strokes) > maxStrokes {
		return n.matrices(s)
	}
	f := newFigure(n.title(s), "", "", "")
	f.HideAxes()
	f.caption = d.caption() + n.whose()
	f.Add(d)
	return f
}

// histogram counts the links by delay, in the unit of low and high.
func (n *network) histogram(s record.Summary, low, high float64, unit string) *Figure {
	scale := 1.0
	if _, highest := n.delays(); highest > 0 {
		scale = high / highest
	}
	if high-low < 1e-9*high || high == 0 {
		low, high = low-0.5, high+0.5
	}
	h := &plotter.Histogram{Bins: make([]plotter.HistogramBin, delayBins), Width: (high - low) / delayBins,
		FillColor: okabeIto[0]}
	h.Color, h.LineStyle.Width = white, 0.7
	for i := range h.Bins {
		h.Bins[i].Min, h.Bins[i].Max = low+float64(i)*h.Width, low+float64(i+1)*h.Width
	}
	most := 0.0
	for _, l := range n.links {
		bin := &h.Bins[min(max(int((l.DelayAsked*scale-low)/h.Width), 0), delayBins-1)]
		bin.Weight++
		most = max(most, bin.Weight)
	}
	caption := fmt.Sprintf("%d links between %d nodes, by the mean of the delays that they drew.",
		len(n.links), len(n.nodes)) + n.whose()
	f := newFigure(n.title(s), "mean delay of a link, "+unit, "links", caption)
	f.Add(h)
	f.X.Min, f.X.Max = max(low-h.Width, 0), high+h.Width
	f.Y.Min, f.Y.Max = 0, most*1.05
	return f
}
