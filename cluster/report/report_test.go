package report

import (
	"bytes"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/record"
)

func pointer(v float64) *float64 { return &v }

// small is a summary of two points, of which one has one late run that arrived and
// one that did not, the other none.
func small() record.Summary {
	first := record.Point{{Key: "data.split", Value: "iid"}, {Key: "train.optimizer.rate", Value: "0.05"}}
	second := record.Point{{Key: "data.split", Value: "by class"}, {Key: "train.optimizer.rate", Value: "0.05"}}
	runs := []record.Run{
		{
			Number: 0, Point: first, Seed: 1, Reached: true, TimeToTarget: pointer(80), EpochsToTarget: pointer(1.5), FinalAccuracy: 0.95,
			Messages: 100, Bytes: 2e6, Lateness: &record.Lateness{Late: true, P99: 0.0025},
		},
		{Number: 1, Point: first, Seed: 2, FinalAccuracy: 0.91, Messages: 200, Bytes: 4e6, Lateness: &record.Lateness{P99: 0.5}},
		{Number: 2, Point: second, Seed: 1, FinalAccuracy: 0.5, Messages: 300, Bytes: 6e6},
	}
	return record.Summary{Plan: "p", Target: pointer(0.94), RunsPlanned: 4, Runs: runs, Groups: record.GroupRuns(runs)}
}

func TestTableShowsMeansSpreadAndWhatDidNotArrive(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, small()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"split     rate  reached     time to target, s      epochs to target  final accuracy, %  messages    MB",
		"iid       0.05      1/2                  80.0                  1.50       93.00 ± 2.83       150  3.00",
		"by class  0.05      0/1  not reached (1 of 1)  not reached (1 of 1)              50.00       300  6.00",
		"Not complete: 3 of 4 runs are recorded.",
		"2 of 3 runs did not reach 94 %; means to the target are over those that did.",
		"The real clock was late in 1 of 3 runs (p99 up to 2.5 ms): their times are not the plan's.",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTableWithoutTargetHasNoColumnsAboutIt(t *testing.T) {
	s := small()
	s.Target = nil
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(b.String(), "\n")
	if want := "split     rate  runs  final accuracy, %  messages    MB"; heading != want {
		t.Errorf("heading %q, want %q", heading, want)
	}
}

func TestTableCutsLongLabelsToFit(t *testing.T) {
	s, _ := sample([]string{strings.Repeat("a long label ", 10), "short"}, 3, 0.9)
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > tableWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestPlotsArePNGsOfTheSameBytesEachTime(t *testing.T) {
	s, curves := sample(shares(), 3, 0.94)
	first, second := t.TempDir(), t.TempDir()
	paths, err := Plots(first, s, curves)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Plots(second, s, curves)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 4 || len(again) != 4 {
		t.Fatalf("%d and %d figures, want 4", len(paths), len(again))
	}
	for i := range paths {
		a, b := readImage(t, paths[i]), readImage(t, again[i])
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from one drawing to the next", filepath.Base(paths[i]))
		}
		config, err := png.DecodeConfig(bytes.NewReader(a))
		if err != nil || config.Width != 1400 || config.Height != 900 {
			t.Errorf("%s: %v, %d × %d pixels", paths[i], err, config.Width, config.Height)
		}
	}
}

func readImage(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPlotsWithoutSweepTargetOrDataLeaveFiguresOut(t *testing.T) {
	one, oneCurves := sample([]string{""}, 2, 0.94)
	noTarget, noTargetCurves := sample([]string{"a", "b"}, 1, 0.94)
	noTarget.Target = nil
	bare, _ := sample([]string{"a", "b"}, 1, 0.94)
	for _, c := range []struct {
		name   string
		s      record.Summary
		curves [][]record.Evaluation
		want   int
	}{
		{"one point", one, oneCurves, 2},
		{"no target", noTarget, noTargetCurves, 2},
		{"no curves", bare, make([][]record.Evaluation, 2), 2},
		{"no runs", record.Summary{Plan: "p"}, nil, 0},
	} {
		paths, err := Plots(t.TempDir(), c.s, c.curves)
		if err != nil || len(paths) != c.want {
			t.Errorf("%s: %d figures (%v), want %d", c.name, len(paths), err, c.want)
		}
	}
}

func TestPlotsBearDivergedRunsAndNoArrivalAtAll(t *testing.T) {
	s, curves := sample([]string{"a", "b"}, 1, 2)
	for i := range curves[0] {
		curves[0][i].Accuracy, curves[0][i].Loss = record.Float(math.NaN()), record.Float(math.Inf(1))
	}
	if paths, err := Plots(t.TempDir(), s, curves); err != nil || len(paths) != 4 {
		t.Errorf("%d figures, %v", len(paths), err)
	}
}

func TestBandIsMeanAndDeviationWithEndedRunsHeld(t *testing.T) {
	epoch := func(e record.Evaluation) float64 { return e.Epoch }
	curve := func(points ...float64) []record.Evaluation {
		var es []record.Evaluation
		for i := 0; i < len(points); i += 2 {
			es = append(es, record.Evaluation{Epoch: points[i], Accuracy: record.Float(points[i+1])})
		}
		return es
	}
	b := bandOf([][]record.Evaluation{curve(0, 0.2, 1, 0.6), curve(0, 0.2, 2, 0.8)}, epoch)
	last := len(b.x) - 1
	deviation := math.Sqrt(0.02) // of 0.6 and 0.8
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	near("first mean", b.mean[0], 0.2)
	near("first deviation", b.high[0]-b.low[0], 0)
	near("end", b.x[last], 2)
	near("last mean", b.mean[last], 0.7)
	near("last high", b.high[last], 0.7+deviation)
	near("last low", b.low[last], 0.7-deviation)
	// Where both run, straight lines: (0.2 + 0.4 x + 0.2 + 0.3 x) / 2.
	x := b.x[100]
	near("a mean in between", b.mean[100], 0.2+0.35*x)
}

func TestBandAveragesTheModelsOfARun(t *testing.T) {
	curve := []record.Evaluation{
		{Node: "a", Epoch: 0, Accuracy: 0}, {Node: "b", Epoch: 0, Accuracy: 0.4},
		{Node: "a", Epoch: 1, Accuracy: 0.5}, {Node: "b", Epoch: 2, Accuracy: 0.8},
	}
	b := bandOf([][]record.Evaluation{curve}, func(e record.Evaluation) float64 { return e.Epoch })
	if got := b.mean[0]; got != 0.2 {
		t.Errorf("first mean %g, want 0.2", got)
	}
	if got := b.mean[len(b.mean)-1]; math.Abs(got-0.65) > 1e-12 {
		t.Errorf("last mean %g, want 0.65", got)
	}
}

func TestTwelvePointsLookDifferent(t *testing.T) {
	for _, labels := range [][]string{shares(), strings.Split("a b c d e f g h i j k l m n o p q r s t", " ")} {
		s, _ := sample(labels, 1, 0.94)
		seen := map[string]int{}
		for i, l := range looks(s.Groups) {
			key := strings.Join([]string{cmp.Diff(nil, l.color), cmp.Diff(nil, l.dash)}, "|")
			if before, ok := seen[key]; ok {
				t.Errorf("points %d and %d have the same colour and dashes", before, i)
			}
			seen[key] = i
		}
	}
}

func TestTicksAreRoundAndFewEnough(t *testing.T) {
	for _, c := range []struct {
		low, high   float64
		first, last string
	}{
		{0, 10, "0", "10"}, {0, 0.7, "0.0", "0.7"}, {35, 100, "40", "100"}, {0, 132, "0", "120"}, {0, 3e6, "0", "3000000"},
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
