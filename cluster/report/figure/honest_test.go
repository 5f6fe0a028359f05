package figure

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
	"gonum.org/v1/plot/plotter"
)

// However many values two factors have, each point has its own look.
func TestNoTwoPointsLookAlike(t *testing.T) {
	for levels := 1; levels <= 2*brightLines; levels++ {
		for strokes := 1; strokes <= len(dashes); strokes++ {
			l := report.Layout{By: &report.Factor{Key: "by"}, Dash: &report.Factor{Key: "dash"}}
			var groups []record.Group
			for i := range levels {
				l.By.Values = append(l.By.Values, fmt.Sprintf("value %c", 'a'+i))
			}
			for k := range strokes {
				l.Dash.Values = append(l.Dash.Values, fmt.Sprint(k))
				for _, v := range l.By.Values {
					groups = append(groups, record.Group{Point: record.Point{{Key: "by", Value: v},
						{Key: "dash", Value: fmt.Sprint(k)}}})
				}
			}
			if strokes == 1 {
				l.Dash = nil
			}
			seen := map[string]int{}
			for i, look := range looksOf(groups, l) {
				key := fmt.Sprint(look.color, look.dash)
				if other, known := seen[key]; known {
					t.Fatalf("%d × %d: %v looks like %v", levels, strokes, groups[i].Point, groups[other].Point)
				}
				seen[key] = i
			}
		}
	}
}

func TestAnIntervalWithoutAnEndIsDrawnOpen(t *testing.T) {
	goal := 0.9
	of := func(last float64) *Figure {
		p := record.Point{{Key: "k", Value: "a"}}
		q := record.Point{{Key: "k", Value: "b"}}
		s := reporttest.Summary(&goal, reporttest.Runs(p, nil, nil, 10, 11, 12, 13, 14, last),
			reporttest.Runs(q, nil, nil, 1, 1, 1, 1, 1, 1))
		return timeToTarget(&Data{Summary: s, Traces: make([]record.Trace, len(s.Runs))})
	}
	arrows := func(f *Figure) (n int) {
		images := drawSVG(f.sheet(), f.drawPage)
		return strings.Count(images, "<path")
	}
	if open, closed := arrows(of(-16)), arrows(of(16)); open <= closed {
		t.Errorf("%d paths with an open interval, %d with a closed one", open, closed)
	}
}

func TestALogarithmicAxisSaysWhatLiesBelowIt(t *testing.T) {
	l := &lines{what: "distance", x: "time", y: "distance", curves: []curve{{name: "a", point: "a", runs: []plotter.XYs{
		{{X: 0, Y: 0}, {X: 1, Y: 1e-12}, {X: 2, Y: 1}, {X: 3, Y: 100}}}}}}
	f := l.figure(record.Summary{Plan: "p"})
	if want := "such as 0, are drawn at its edge."; !strings.Contains(f.caption, want) {
		t.Errorf("%q lacks %q", f.caption, want)
	}
	if f.Y.Max/f.Y.Min > 2*math.Pow10(maxDecades) {
		t.Errorf("the axis goes from %g to %g", f.Y.Min, f.Y.Max)
	}
}

// The axis leaves room for waits of seconds, even if one wait took a nanosecond.
func TestTheAxisOfWaitsHasFewDecades(t *testing.T) {
	s, traces := reporttest.Sample([]string{"a", "alone"}, 1, 0.94)
	w := NewWorkloads(2)
	w.Add(0, 60, []record.Update{{Node: "n", Waiting: []record.Waiting{{Cause: "c", Count: 100, Total: 99,
		Buckets: []record.Bucket{
			{Low: 1e-9, High: 2e-9, Count: 5, Total: 5e-9}, {Low: 1, High: 2, Count: 95, Total: 99}}}}}})
	w.Add(1, 60, []record.Update{{Node: "n"}})
	f := waitingBoxes(&Data{Summary: s, Traces: traces, Work: w.Sorted()})
	if f.X.Max/f.X.Min > 2*math.Pow10(maxDecades) {
		t.Errorf("the axis goes from %g to %g", f.X.Min, f.X.Max)
	}
	if want := "Without values: alone."; !strings.Contains(f.caption, want) {
		t.Errorf("%q lacks %q", f.caption, want)
	}
}

// A figure of lines names the points without values, and keeps them out of its legend.
func TestFiguresNameThePointsWithoutValues(t *testing.T) {
	s, traces := reporttest.Sample([]string{"a", "alone", "b"}, 1, 0.94)
	for k := range traces[1].Curve {
		traces[1].Curve[k].Bytes = 0
	}
	f := accuracyOverBytes(&Data{Summary: s, Traces: traces})
	if want := "Without values: alone."; !strings.Contains(f.caption, want) || len(f.names) != 2 {
		t.Errorf("%q lacks %q; the legend has %q", f.caption, want, f.names)
	}
}

func TestTitlesOfNetworksNameWholePointsAndWhoseBytesTheyAre(t *testing.T) {
	var labels []string
	var all [][]record.Link
	for i := range 9 {
		labels = append(labels, fmt.Sprintf("an architecture of a long name, %c", 'a'+i))
		var links []record.Link
		for from := range 9 {
			for to := range 9 {
				if from != to {
					delay := 0.01 * float64(1+i/8)
					links = append(links, between(fmt.Sprint("n", from), fmt.Sprint("n", to), 1000, delay))
				}
			}
		}
		all = append(all, links)
	}
	for n := 2; n <= len(labels); n++ {
		s, traces := over(labels[:n], all[:n]...)
		for _, n := range networksOf(s, traces) {
			if title := n.title(s); strings.Contains(title, "…") && len(n.points) > 1 {
				t.Errorf("the title is cut: %s", title)
			}
			if f := n.figure(s); len(n.points) > 1 && !strings.Contains(f.panels[1].heading, n.points[0]) {
				t.Errorf("of %d points, the bytes are called %q", len(n.points), f.panels[1].heading)
			}
		}
	}
}
