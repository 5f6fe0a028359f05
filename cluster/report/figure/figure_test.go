package figure

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
	"gonum.org/v1/plot/plotter"
)

func TestThinnedLinesLookTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		whole := make(plotter.XYs, 400)
		y := 0.0
		for i := range whole {
			y += rng.NormFloat64() * 0.01
			whole[i] = plotter.XY{X: 1e6 * float64(i), Y: y + math.Sin(float64(i)/60)}
		}
		kept := thin(whole, false)
		left, right, low, high := plotter.XYRange(whole)
		if len(kept) > len(whole)*9/10 || kept[0] != whole[0] || kept[len(kept)-1] != whole[399] {
			t.Fatalf("%d of %d points are kept", len(kept), len(whole))
		}
		next := 1
		for _, p := range whole {
			for p.X > kept[next].X {
				next++
			}
			a, b := kept[next-1], kept[next]
			ax, ay := (a.X-p.X)/(right-left), (a.Y-p.Y)/(high-low)
			bx, by := (b.X-p.X)/(right-left), (b.Y-p.Y)/(high-low)
			if distance := math.Abs(ax*by-ay*bx) / math.Hypot(bx-ax, by-ay); distance > thinness*(1+1e-9) {
				t.Fatalf("at %g the line is off by %g", p.X, distance)
			}
		}
	}
	straight := make(plotter.XYs, 400)
	for i := range straight {
		straight[i] = plotter.XY{X: float64(i), Y: float64(2 * i)}
	}
	if kept := thin(straight, false); len(kept) != 2 {
		t.Errorf("a straight line keeps %d points", len(kept))
	}
}

func ring(from, to int) float64 {
	if to == (from+1)%5 {
		return 0.01 * float64(1+from)
	}
	return 0
}

func TestPlotsAreOfTheSameBytesEachTime(t *testing.T) {
	if testing.Short() {
		t.Skip("draws all figures twice")
	}
	s, traces := reporttest.Sample(reporttest.Shares(), 3, 0.94)
	reporttest.Spread(s, traces, 5, ring)
	first, second := t.TempDir(), t.TempDir()
	paths, err := drawAll(first, &Data{Summary: s, Traces: traces})
	if err != nil {
		t.Fatal(err)
	}
	again, err := drawAll(second, &Data{Summary: s, Traces: traces})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 11 || len(again) != 11 {
		t.Fatalf("%d and %d figures, want 11", len(paths), len(again))
	}
	for i := range paths {
		a, b := reporttest.ReadFile(t, paths[i]), reporttest.ReadFile(t, again[i])
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from one drawing to the next", filepath.Base(paths[i]))
		}
		config, err := png.DecodeConfig(bytes.NewReader(a))
		if err != nil || config.Width != 1400 || config.Height != 900 {
			t.Errorf("%s: %v, %d × %d pixels", paths[i], err, config.Width, config.Height)
		}
		a, b = reporttest.ReadFile(t, reporttest.Vector(paths[i])), reporttest.ReadFile(t, reporttest.Vector(again[i]))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from one drawing to the next", filepath.Base(reporttest.Vector(paths[i])))
		}
		reporttest.Texts(t, a)
	}
}

func TestPlotsWithoutSweepTargetOrDataLeaveFiguresOut(t *testing.T) {
	if testing.Short() {
		t.Skip("draws all figures several times")
	}
	one, oneTraces := reporttest.Sample([]string{""}, 2, 0.94)
	noTarget, noTargetTraces := reporttest.Sample([]string{"a", "b"}, 1, 0.94)
	reporttest.DropTarget(&noTarget)
	bare, _ := reporttest.Sample([]string{"a", "b"}, 1, 0.94)
	old, oldTraces := reporttest.Sample([]string{""}, 2, 0.94)
	for i := range oldTraces {
		for k := range oldTraces[i].Curve {
			oldTraces[i].Curve[k].Bytes = 0
		}
	}
	full, fullTraces := reporttest.Sample([]string{"a", "b"}, 1, 0.94)
	reporttest.Spread(full, fullTraces, 5, ring)
	target, accuracy := []string{"target-epochs", "target-time"},
		[]string{"accuracy-epochs", "accuracy-time", "accuracy-bytes"}
	for _, c := range []struct {
		name   string
		s      record.Summary
		traces []record.Trace
		want   []string
	}{
		{"one point", one, oneTraces, accuracy},
		{"no target", noTarget, noTargetTraces, accuracy},
		{"no curves", bare, make([]record.Trace, 2), target},
		{"no runs", record.Summary{Plan: "p"}, nil, nil},
		{"bytes not counted", old, oldTraces, accuracy[:2]},
		{"everything", full, fullTraces,
			slices.Concat([]string{"models-1", "models-2", "consensus-distance", "topology-1"}, accuracy, target)},
	} {
		dir := t.TempDir()
		paths, err := drawAll(dir, &Data{Summary: c.s, Traces: c.traces})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, path := range paths {
			got = append(got, strings.TrimSuffix(filepath.Base(path), ".png"))
		}
		less := func(a, b string) bool { return a < b }
		if diff := cmp.Diff(c.want, got, cmpopts.SortSlices(less), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 2*len(paths) {
			t.Errorf("%s: %d files for %d figures (%v)", c.name, len(files), len(paths), err)
		}
	}
}

func TestPlotsBearDivergedRunsAndNoArrivalAtAll(t *testing.T) {
	s, traces := reporttest.Sample([]string{"a", "b"}, 1, 2)
	for i := range traces[0].Curve {
		traces[0].Curve[i].Accuracy, traces[0].Curve[i].Loss = record.Float(math.NaN()), record.Float(math.Inf(1))
	}
	paths, err := drawAll(t.TempDir(), &Data{Summary: s, Traces: traces})
	if err != nil || len(paths) != 5 {
		t.Errorf("%d figures, %v", len(paths), err)
	}
	written := reporttest.Texts(t, reporttest.ReadFile(t, reporttest.Vector(paths[len(paths)-1])))
	if n := len(slices.DeleteFunc(written, func(s string) bool { return s != "not reached (1 of 1)" })); n != 2 {
		t.Errorf("%d points are said not to have arrived, want 2", n)
	}
}

// straight is a curve through points.
func straight(points ...float64) plotter.XYs {
	var curve plotter.XYs
	for i := 0; i < len(points); i += 2 {
		curve = append(curve, plotter.XY{X: points[i], Y: points[i+1]})
	}
	return curve
}

func TestBandOfFewRunsIsMedianAndRangeWithEndedRunsHeld(t *testing.T) {
	b := bandOf([]plotter.XYs{straight(0, 0.2, 1, 0.6), nil, straight(0, 0.2, 2, 0.8), straight(0, 0.1, 2, 0.1)},
		gridPoints)
	last := len(b.X) - 1
	for what, c := range map[string][2]float64{
		"first median": {b.Mean[0], 0.2}, "first low": {b.Low[0], 0.1}, "end": {b.X[last], 2},
		"last median": {b.Mean[last], 0.6},
		"last high":   {b.High[last], 0.8}, "last low": {b.Low[last], 0.1},
		"in between": {b.Mean[100], 0.2 + 0.3*b.X[100]},
	} {
		if math.Abs(c[0]-c[1]) > 1e-9 {
			t.Errorf("%s is %g, want %g", what, c[0], c[1])
		}
	}
	if b := bandOf([]plotter.XYs{straight(0, 0.2, 1, 0.6), straight(0, 0.4, 1, 0.8)},
		gridPoints); math.Abs(b.Mean[0]-0.3) > 1e-12 {
		t.Errorf("the median of two is %g, want 0.3", b.Mean[0])
	}
}

func TestBandOfManyRunsIsTheMedianAndItsInterval(t *testing.T) {
	var runs []plotter.XYs
	for i := range 10 {
		runs = append(runs, straight(0, 0.1, 1, float64(i)/10))
	}
	b := bandOf(runs, gridPoints)
	last := len(b.X) - 1
	if math.Abs(b.Mean[last]-0.45) > 1e-9 || b.Low[last] != 0.1 || b.High[last] != 0.8 || b.High[0] != b.Low[0] {
		t.Errorf("median %g from %g to %g, want 0.45 from the second to the ninth", b.Mean[last], b.Low[last],
			b.High[last])
	}
	for n, want := range map[int]string{1: "One run per point.", 5: "Median of 5 runs, band: lowest to highest",
		6: "Median of 6 runs, band: its 95 % interval"} {
		if got := bandText(n, n); !strings.HasPrefix(got, want) {
			t.Errorf("%d runs: %q", n, got)
		}
	}
}

func TestTwelvePointsLookDifferent(t *testing.T) {
	for _, labels := range [][]string{reporttest.Shares(),
		strings.Split("a b c d e f g h i j k l m n o p q r s t", " ")} {
		s, _ := reporttest.Sample(labels, 1, 0.94)
		seen := map[string]int{}
		for i, l := range (&Data{Summary: s}).looks() {
			key := strings.Join([]string{cmp.Diff(nil, l.color), cmp.Diff(nil, l.dash)}, "|")
			if before, ok := seen[key]; ok {
				t.Errorf("points %d and %d have the same colour and dashes", before, i)
			}
			seen[key] = i
		}
	}
}

func TestPointsOfTwoSettingsShareColourOrDashesWithTheirLike(t *testing.T) {
	var groups []record.Group
	for _, a := range []string{"ring", "tree", "butterfly"} {
		for _, b := range []string{"1", "4"} {
			groups = append(groups, record.Group{Point: record.Point{{Key: "x.algorithm", Value: a},
				{Key: "x.every", Value: b}}})
		}
	}
	all := (&Data{Summary: record.Summary{Groups: groups}}).looks()
	for i, a := range groups {
		for j, b := range groups {
			if (a.Point[0] == b.Point[0]) != (all[i].color == all[j].color) ||
				(a.Point[1] == b.Point[1]) != slices.Equal(all[i].dash, all[j].dash) {
				t.Errorf("%v is %v, %v is %v", a.Point, all[i], b.Point, all[j])
			}
		}
	}
	if got := report.PointName(groups[4].Point); got != "butterfly, 1" {
		t.Errorf("named %q", got)
	}
	long := record.Point{{Key: "a", Value: strings.Repeat("first ", 9)},
		{Key: "b", Value: strings.Repeat("second ", 9)}}
	if got := report.PointName(long); utf8.RuneCountInString(got) > report.MaxName ||
		!strings.Contains(got, ", second") {
		t.Errorf("named %q", got)
	}
}

func TestTicksAreRoundAndFewEnough(t *testing.T) {
	for _, c := range []struct {
		low, high   float64
		first, last string
	}{
		{0, 10, "0", "10"}, {0, 0.7, "0.0", "0.7"}, {35, 100, "40", "100"}, {0, 132, "0", "120"},
		{0, 3e6, "0", "3000000"},
	} {
		var labels []string
		for _, tick := range (roundTicks{}).Ticks(c.low, c.high) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if n := len(labels); n < 3 || n > maxIntervals+1 || labels[0] != c.first || labels[n-1] != c.last {
			t.Errorf("from %g to %g: %q", c.low, c.high, labels)
		}
	}
}

func TestFiguresOfAccuracySayThatPointsAreEstimates(t *testing.T) {
	const said = " Below the target: estimates by a part of the test set."
	s, traces := reporttest.Sample([]string{"a", "b"}, 3, 0.94)
	reporttest.Spread(s, traces, 0, nil)
	for _, early := range []bool{false, true} {
		if early {
			s.Runs[0].Early = &record.Early{Confidence: 0.9, Partial: 1}
		}
		told := 0
		for _, one := range All(&Data{Summary: s, Traces: traces}) {
			if strings.Contains(one.Draw().caption, said) {
				told++
			}
		}
		if early != (told > 0) || early && told < 4 {
			t.Errorf("early: %v, %d figures say so", early, told)
		}
	}
}

// Runs that end at the target have a ring there; one that goes on, or never arrives, takes it from
// its point. An axis that does not begin at 0 is said to.
func TestFiguresOfAccuracySayWhereCurvesEndAndAxesBegin(t *testing.T) {
	s, traces := reporttest.Sample([]string{"a", "b"}, 3, 0.94)
	for i := range s.Runs {
		curve := traces[i].Curve
		end := curve[len(curve)-1].Time
		s.Runs[i].TimeToTarget = &end
	}
	d := &Data{Summary: s, Traces: traces}
	point := s.Runs[0].Point
	if f := accuracyOverTime(d); !strings.Contains(f.caption, "Ring: ") ||
		strings.Contains(f.caption, "begins at") != (f.Y.Min > 0) || f.Y.Min == 0 {
		t.Errorf("an axis from %v: %q", f.Y.Min, f.caption)
	}
	early := traces[0].Curve[1].Time / 2
	for _, at := range []*float64{nil, &early} {
		if s.Runs[0].TimeToTarget = at; d.endAtTarget(point) {
			t.Errorf("a run that arrives at %v ends there", at)
		}
	}
}

// drawAll draws all figures that there are data for into an existing or new folder, each as NAME.png
// and NAME.svg, and returns the paths of the former.
func drawAll(dir string, d *Data) ([]string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	var paths []string
	for _, one := range All(d) {
		f, path := one.Draw(), filepath.Join(dir, one.Name)
		if f == nil {
			continue
		}
		if err := f.Save(path); err != nil {
			return paths, err
		}
		paths = append(paths, path+".png")
	}
	return paths, nil
}
