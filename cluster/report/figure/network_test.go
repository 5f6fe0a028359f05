package figure

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// over gives a summary of the labels with one run each, over the given links.
func over(labels []string, links ...[]record.Link) (record.Summary, []record.Trace) {
	s, traces := reporttest.Sample(labels, 1, 0.94)
	for i := range traces {
		traces[i].Links = links[i]
	}
	return s, traces
}

func between(from, to string, messages int64, delay float64) record.Link {
	return record.Link{From: from, To: to, Messages: messages, DelayAsked: delay}
}

func TestPointsOfOneNetworkShareAFigure(t *testing.T) {
	base := []record.Link{between("a", "b", 10_000, 0.02), between("b", "a", 10_000, 0.05),
		{From: "coordinator", To: "a", Control: 4}}
	jitter := []record.Link{between("a", "b", 100, 0.022), between("b", "a", 100, 0.046)}
	slower := []record.Link{between("a", "b", 10_000, 0.02), between("b", "a", 10_000, 0.06)}
	another := append(slices.Clone(base), between("c", "a", 1, 0.02))
	s, traces := over(strings.Split("v w x y z", " "), base, jitter, slower, another, nil)
	var got []string
	for _, n := range networksOf(s, traces) {
		got = append(got, fmt.Sprint(n.nodes, n.points))
	}
	want := []string{"[a b] [v w]", "[a b] [x]", "[a b c] [y]"}
	if !slices.Equal(got, want) {
		t.Errorf("networks %q, want %q", got, want)
	}
}

func TestOnlyTheFirstRunOfAPointShowsItsNetwork(t *testing.T) {
	s, traces := reporttest.Sample([]string{"a", "b"}, 3, 0.94)
	for i := range traces {
		if i%3 == 0 {
			traces[i].Links = []record.Link{between("p", "q", 5, 0.1)}
		}
	}
	if n := networksOf(s, traces); len(n) != 1 || len(n[0].points) != 2 {
		t.Errorf("%d networks", len(n))
	}
}

func TestTopologyNamesNodesAndDelays(t *testing.T) {
	links := []record.Link{
		between("server", "fast", 100, 0.005), between("fast", "server", 300, 0.005), // alike
		between("server", "slow & far", 100, 0.025), between("slow & far", "server", 100, 0.2), // asymmetric
		between("fast", "slow & far", 100, 0.04), // one direction
	}
	s, traces := over([]string{""}, links)
	n := networksOf(s, traces)
	low, high := n[0].delays()
	d := newDiagram(n[0], low, high, report.TimeUnit(high))
	kinds := map[string]int{}
	for _, s := range d.strokes {
		kinds[fmt.Sprintf("arrow %v, bent %v", s.arrow, s.bent)]++
	}
	if kinds["arrow false, bent false"] != 1 || kinds["arrow true, bent true"] != 2 ||
		kinds["arrow true, bent false"] != 1 {
		t.Errorf("drawn: %v", kinds)
	}
	dir := t.TempDir()
	if _, err := drawAll(dir, &Data{Summary: s, Traces: traces}); err != nil {
		t.Fatal(err)
	}
	written := reporttest.Texts(t, reporttest.ReadFile(t, filepath.Join(dir, "topology-1.svg")))
	for _, want := range []string{"server", "fast", "slow & far", "5", "25", "200", "40"} {
		if !slices.Contains(written, want) {
			t.Errorf("%q is not among %q", want, written)
		}
	}
}

func TestDelaysAchievedAreTold(t *testing.T) {
	there, back := between("a", "b", 1e6, 0.25), between("b", "a", 1e6, 0.25)
	for _, c := range []struct {
		name          string
		there, back   float64
		labels, bends int
		want          string
	}{
		{"as drawn", 0.25, 0.25, 0, 0, ""},
		{"longer both ways", 0.5, 0.5, 1, 0, "250 → 500"},
		{"longer one way", 0.5, 0.25, 2, 2, "250 → 500"},
		{"still on their way", 0.2, 0.2, 0, 0, ""},
	} {
		there.DelayAchieved, back.DelayAchieved = c.there, c.back
		n := newNetwork([]record.Link{there, back})
		low, high := n.delays()
		d := newDiagram(n, low, high, report.TimeUnit(high))
		bends, labels := 0, []string{}
		for _, s := range d.strokes {
			if s.bent {
				bends++
			}
			labels = append(labels, d.strokeLabel(s))
		}
		if d.labelled() != (c.labels > 0) || bends != c.bends || c.labels > 0 &&
			(len(labels) != c.labels || !slices.Contains(labels, c.want)) {
			t.Errorf("%s: labelled %v with %q, %d bends", c.name, d.labelled(), labels, bends)
		}
		if told := strings.Contains(d.caption(), "drawn → achieved"); told != (c.labels > 0) {
			t.Errorf("%s: caption %q", c.name, d.caption())
		}
	}
}

func TestStrokesEndAtTheirNodesAndBendApart(t *testing.T) {
	d := &diagram{nodes: make([]string, 7)}
	seen := map[string]bool{}
	for i := range d.nodes {
		sin, cos := math.Sincos(d.angle(i))
		seen[fmt.Sprintf("%.3f %.3f", sin, cos)] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d places for 7 nodes", len(seen))
	}
	places, _ := d.places(draw.New(vgimg.New(400, 300)))
	there, back := stroke{from: 1, to: 4, bent: true}.path(places), stroke{from: 4, to: 1, bent: true}.path(places)
	last := len(there) - 1
	if there[0] != places[1] || there[last] != places[4] || back[0] != places[4] || back[last] != places[1] {
		t.Error("a stroke does not join its nodes")
	}
	distance := func(a, b vg.Point) float64 { return math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)) }
	if gap, length := distance(there[last/2], back[last/2]),
		distance(places[1], places[4]); math.Abs(gap-0.18*length) > 1e-6*length {
		t.Errorf("the two directions are %g apart in the middle of %g", gap, length)
	}
}

func TestLargeNetworksAreCountedByDelay(t *testing.T) {
	s, traces := reporttest.Sample([]string{""}, 1, 0.94)
	sums := map[float64]int{}
	reporttest.Spread(s, traces, 80, func(from, to int) float64 {
		if (from+to)%3 > 0 {
			return 0.01 * float64((from+to)%3)
		}
		return 0
	})
	for _, l := range traces[0].Links {
		sums[l.DelayAsked]++
	}
	n := networksOf(s, traces)[0]
	f := n.figure(s)
	if want := float64(max(sums[0.01], sums[0.02])) * 1.05; math.Abs(f.Y.Max-want) > 1e-9 {
		t.Errorf("the axis ends at %g, want %g", f.Y.Max, want)
	}
	if f.X.Min > 10 || f.X.Max < 20 || !strings.Contains(f.X.Label.Text, "ms") {
		t.Errorf("%g to %g %s", f.X.Min, f.X.Max, f.X.Label.Text)
	}
	dir := t.TempDir()
	if _, err := drawAll(dir, &Data{Summary: s, Traces: traces}); err != nil {
		t.Fatal(err)
	}
	if written := reporttest.Texts(t, reporttest.ReadFile(t,
		filepath.Join(dir, "topology-1.svg"))); !slices.Contains(written, "links") {
		t.Errorf("written: %q", written)
	}
}

func TestConsensusDistanceIsDrawnAsMeasured(t *testing.T) {
	s, traces := reporttest.Sample([]string{""}, 2, 0.94)
	traces[0].Measured = []record.Measurement{
		{Time: 0, Name: consensusDistance, Value: 0}, {Time: 1, Name: "spectral gap", Value: 99},
		{Time: 10, Name: consensusDistance, Value: 4},
		{Time: 20, Name: consensusDistance, Value: record.Float(math.NaN())},
	}
	traces[1].Measured = []record.Measurement{{Time: 0, Name: consensusDistance, Value: 0},
		{Time: 10, Name: consensusDistance, Value: 2}}
	f := consensusOverTime(&Data{Summary: s, Traces: traces})
	if want := 4 * 1.05; f.X.Max != 10 || f.Y.Min != 0 || math.Abs(f.Y.Max-want) > 1e-9 {
		t.Errorf("axes to %g and %g, want 10 and %g", f.X.Max, f.Y.Max, want)
	}
}

func TestTheFourAccuraciesOfAPointAreDrawnAndTheJudgedOneIsWide(t *testing.T) {
	s, traces := reporttest.Sample([]string{"a", "b"}, 2, 0.94)
	reporttest.Spread(s, traces, 0, ring)
	for i := range traces {
		for k := range traces[i].Curve {
			traces[i].Curve[k].AverageModel = record.Float(math.NaN()) // as in records of before it was judged
		}
	}
	all := modelDrawings(&Data{Summary: s, Traces: traces})
	if len(all) != 2 || all[1].Title != "Which model: the four accuracies of b" {
		t.Fatalf("%d figures: %+v", len(all), all)
	}
	f := all[1].Draw()
	if want := []string{"best node", "mean of the nodes", "worst node"}; !slices.Equal(f.names, want) ||
		!strings.Contains(f.caption, "Wide: what is judged, the mean of the nodes' accuracies.") {
		t.Errorf("%q, %q", f.names, f.caption)
	}
	if f.Title.Text != "async-ps-unequal-links: which model (b)" {
		t.Errorf("title %q", f.Title.Text)
	}
}

func TestFiguresNameWhatIsJudged(t *testing.T) {
	for of, want := range report.JudgedNames {
		s, traces := reporttest.Sample([]string{""}, 2, 0.94)
		reporttest.Spread(s, traces, 0, ring)
		for i := range s.Runs {
			s.Runs[i].Of = of
		}
		f := accuracyOverTime(&Data{Summary: s, Traces: traces})
		if f.Y.Label.Text != want+", %" || f.Title.Text != "async-ps-unequal-links: "+want+" over time" {
			t.Errorf("%s: axis %q, title %q", of, f.Y.Label.Text, f.Title.Text)
		}
		if d := All(&Data{Summary: s, Traces: traces}); d[0].Title != report.Capitalized(want)+" over epochs" ||
			!strings.Contains(d[len(d)-1].Title, "("+report.JudgedWords[of]+")") {
			t.Errorf("%s: headings %q and %q", of, d[0].Title, d[len(d)-1].Title)
		}
	}
}

// F7: what one point's links bore is not shown for another.
func TestPointsOfOtherNetworksDoNotShareAFigureHoweverLittleTheyDiffer(t *testing.T) {
	few := func(delay float64) []record.Link {
		return []record.Link{between("a", "b", 5, delay), between("b", "a", 47, delay)}
	}
	for _, c := range []struct {
		key  string
		want int
	}{{"network.default.delay", 2}, {"nodes", 2}, {"architecture.every", 1}, {"train.batch", 1}} {
		s, traces := over([]string{"x", "y"}, few(0.010), few(0.011))
		for i := range s.Runs {
			s.Runs[i].Point[0].Key = c.key
		}
		if n := networksOf(s, traces); len(n) != c.want {
			t.Errorf("points of %s have %d networks, want %d", c.key, len(n), c.want)
		}
	}
}

func TestBytesAxisEndsAtTheBytesOfTheLongestRun(t *testing.T) {
	s, traces := reporttest.Sample([]string{""}, 2, 0.94)
	most := int64(0)
	for _, trace := range traces {
		for _, e := range trace.Curve {
			most = max(most, e.Bytes)
		}
	}
	f := accuracyOverBytes(&Data{Summary: s, Traces: traces})
	if f.X.Label.Text != "sent on all links, MB" || math.Abs(f.X.Max-float64(most)/1e6) > 1e-9 {
		t.Errorf("axis %q to %g, want %g", f.X.Label.Text, f.X.Max, float64(most)/1e6)
	}
}
