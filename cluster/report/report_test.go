package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
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
)

func pointer(v float64) *float64 { return &v }

// small is a summary of two points, of which one has one late run that arrived and
// one that did not, the other none.
func small() record.Summary {
	first := record.Point{{Key: "data.split", Value: "iid"}, {Key: "network.default.rate", Value: "0.05"}}
	second := record.Point{{Key: "data.split", Value: "by class"}, {Key: "network.default.rate", Value: "0.05"}}
	runs := []record.Run{
		{
			Number: 0, Point: first, Seed: 1, Outcome: record.Done, Of: record.Mean, Reached: true, TimeToTarget: pointer(80), EpochsToTarget: pointer(1.5), FinalAccuracy: 0.95,
			Messages: 100, Bytes: 2e6, Lateness: &record.Lateness{Late: true, P99: 0.0025},
		},
		{Number: 1, Point: first, Seed: 2, Outcome: record.Done, Of: record.Mean, Duration: 120, Epochs: 2,
			FinalAccuracy: 0.91, Messages: 200, Bytes: 4e6, Lateness: &record.Lateness{P99: 0.5}},
		{Number: 2, Point: second, Seed: 1, Outcome: record.Done, Of: record.Mean, Duration: 120, Epochs: 2,
			FinalAccuracy: 0.5, Messages: 300, Bytes: 6e6},
	}
	return record.Summary{Plan: "p", Target: pointer(0.94), RunsPlanned: 4, Runs: runs,
		Groups: record.GroupRuns(runs, pointer(0.94))}
}

func TestTableShowsMeansSpreadAndWhatDidNotArrive(t *testing.T) {
	b := screen{columns: 125}
	if err := Table(&b, small()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"split     rate  reached       time to target, s      epochs to target  final accuracy, %  messages    MB",
		"iid       0.05      1/2                   100 ?                  1.75              93.00       150  3.00",
		"by class  0.05      0/1  not reached (1 of 1) ?  not reached (1 of 1)              50.00       300  6.00",
		"? too few repeats (at least 3): time to 94 %, in pairs of equal seeds, t test.",
		"Too few repeats for an interval of the time to the target: 1 point.",
		"2 of 3 runs did not reach 94 %: censored at their ends; means are restricted to how long runs were watched (Kaplan–Meier).",
		"Not complete: 3 of 4 runs are recorded.",
		"The real clock was late in 1 of 3 runs (p99 up to 2.5 ms): their times are not the plan's.",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func withoutTarget(s *record.Summary) {
	s.Target, s.Groups = nil, record.GroupRuns(s.Runs, nil)
}

func TestTableWithoutTargetHasNoColumnsAboutIt(t *testing.T) {
	s := small()
	withoutTarget(&s)
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(b.String(), "\n")
	if want := "split     rate  runs  final accuracy, %  messages    MB"; heading != want {
		t.Errorf("heading %q, want %q", heading, want)
	}
}

// screen is a terminal of so many columns.
type screen struct {
	strings.Builder
	columns int
}

func (s *screen) Columns() int { return s.columns }

// widest is the number of columns that a text takes.
func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimSpace(line)))
	}
	return n
}

func TestTableAbbreviatesResultsBeforeItCutsLabels(t *testing.T) {
	s := small()
	for columns, want := range map[int]string{
		115: "split     rate  reached       time to target, s      epochs to target  final accuracy, %  messages    MB",
		100: "split     rate  reached  time, s      epochs to target  final accuracy, %  messages    MB",
		80:  "split     rate  reached  time, s  epochs  final accuracy, %  messages    MB",
		73:  "split     rate  reached  time, s  epochs  accuracy, %  messages    MB",
		68:  "split     rate  reached  time, s  epochs  final accuracy, %    MB",
		52:  "split     rate  reached  time, s  final accuracy, %",
		40:  "split     rate  reached  time, s",
		24:  "split     rate  time, s",
	} {
		b := screen{columns: columns}
		if err := Table(&b, s); err != nil {
			t.Fatal(err)
		}
		if heading, _, _ := strings.Cut(b.String(), "\n"); heading != want {
			t.Errorf("in %d columns the heading is\n%q, want\n%q", columns, heading, want)
		}
	}
}

func TestTableOfATerminalKeepsEveryLineWithinItsWidth(t *testing.T) {
	labels := []string{"parameter server, scaled sum", "all-reduce every 4, butterfly", "gossip latency 50 %", "gossip random 50 %"}
	targeted, _ := sample(labels, 5, 0.9)
	free, _ := sample(labels, 5, 0.9)
	withoutTarget(&free)
	for name, s := range map[string]record.Summary{"with a target": targeted, "without": free, "two keys, not complete": small()} {
		for _, columns := range []int{20, 30, 40, 60, 80, 120, 200} {
			b := screen{columns: columns}
			if err := Table(&b, s); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
					t.Errorf("%s: in %d columns a line has %d: %s", name, columns, n, line)
				}
			}
			rows := strings.Split(text, "\n")
			heading, all := rows[0], strings.Join(strings.Fields(text), " ")
			left := strings.Contains(all, "No room here for")
			if shown := strings.Contains(heading, "messages"); shown == left || columns >= 80 && !shown && name != "with a target" {
				t.Errorf("%s: in %d columns messages are shown: %v, and something is left out: %v:\n%s", name, columns, shown, left, text)
			}
			if columns < 40 || s.Target == nil {
				continue
			}
			marks := strings.Count(strings.Join(rows[1:1+len(s.Groups)], "\n"), " *")
			if strings.Contains(heading, "reached") != (columns > 40 || name != "with a target") ||
				!strings.Contains(heading, "time") || name == "with a target" && marks != 1 {
				t.Errorf("%s: in %d columns runs that arrived, their time or a mark of the best is missing:\n%s", name, columns, text)
			}
		}
	}
}

func TestTableWithoutATerminalLeavesNothingOut(t *testing.T) {
	s, _ := sample([]string{strings.Repeat("x", 90), "y"}, 2, 0.9)
	s.Groups[0].Point = append(s.Groups[0].Point, s.Groups[0].Point...)
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	if heading, _, _ := strings.Cut(b.String(), "\n"); !strings.Contains(heading, "messages") || strings.Contains(b.String(), "No room") || strings.ContainsAny(b.String(), "\x1b\r\t") {
		t.Errorf("not plain, or not all:\n%s", b.String())
	}
}

func TestTableCutsLabelsOnlyAsFarAsTheWidthAsks(t *testing.T) {
	label := strings.Repeat("a long label ", 5)
	s, _ := sample([]string{label, "short"}, 3, 0.9)
	for _, columns := range []int{0, 80, 100, 120, 200} {
		var b strings.Builder
		var w io.Writer = &b
		wide := &screen{columns: columns}
		if columns > 0 {
			w = wide
		}
		if err := Table(w, s); err != nil {
			t.Fatal(err)
		}
		text, room := b.String()+wide.String(), columns
		if room == 0 {
			room = 80
		}
		table := strings.Join(strings.SplitAfter(text, "\n")[:3], "")
		switch n := widest(table); {
		case n > room:
			t.Errorf("in %d columns %d are taken:\n%s", room, n, table)
		case strings.Contains(table, "…") && n < room:
			t.Errorf("in %d columns a label is cut though %d are taken:\n%s", room, n, table)
		case strings.Contains(table, "…") && strings.Contains(table, "to target"):
			t.Errorf("in %d columns a label is cut before the results are abbreviated:\n%s", room, table)
		case columns == 200 && !strings.Contains(table, strings.TrimSpace(label)):
			t.Errorf("in %d columns a label is cut:\n%s", room, table)
		}
	}
}

// arrivals are 20 runs of a point that take about so many seconds.
func arrivals(label string, seconds, deviation float64, models int, of record.Of) (runs []record.Run) {
	rng := rand.New(rand.NewPCG(uint64(seconds), 1))
	for seed := range uint64(20) {
		at := seconds + deviation*rng.NormFloat64()
		runs = append(runs, record.Run{
			Point: record.Point{{Key: "k",
				Value: label}}, Seed: seed, Outcome: record.Done, Of: of, Models: models, FinalAccuracy: 0.9,
			Reached: true, TimeToTarget: &at, EpochsToTarget: &at, Duration: at, Epochs: at,
		})
	}
	return runs
}

func joined(target float64, all ...[]record.Run) record.Summary {
	runs := slices.Concat(all...)
	for i := range runs {
		runs[i].Number = i
	}
	return record.Summary{Plan: "p", Target: &target, RunsPlanned: len(runs), Complete: true, Runs: runs,
		Groups: record.GroupRuns(runs, &target)}
}

// tableOf is the table in a terminal that is wide enough.
func tableOf(t *testing.T, s record.Summary) string {
	t.Helper()
	b := screen{columns: 160}
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableNamesTheFastestTheUndecidedAndWhatIsJudged(t *testing.T) {
	text := tableOf(t, joined(0.9, arrivals("slow", 30, 1, 4, record.AverageModel),
		arrivals("fast", 10, 1, 4, record.AverageModel)))
	for _, want := range []string{
		"final accuracy (average model), %", "Judged: the accuracy of the average model.\n", "] *  ",
		"* fastest: time to 90 % (average model), in pairs of equal seeds, t test.\n", "95 % confidence interval of the mean by Student's t",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	text = tableOf(t, joined(0.9, arrivals("a", 10, 1, 1, record.Mean), arrivals("b", 10.3, 2, 1, record.Mean),
		arrivals("c", 40, 1, 1, record.Mean)))
	if strings.Contains(text, "Judged") || strings.Contains(text, "fastest:") == strings.Contains(text, "* fastest") ||
		strings.Count(text, "] =") != 2 ||
		!strings.Contains(text, "= not distinguishable from the fastest: time to 90 %, in pairs of equal seeds, t test, Holm's correction for 3 comparisons.") ||
		!strings.Contains(text, "Repeats that would decide in 4 of 5 experiments: a ") {
		t.Errorf("two that cannot be told apart:\n%s", text)
	}
}

// F8: points of several targets are compared within each, and the notes name them.
func TestTableComparesWithinOneTarget(t *testing.T) {
	var all [][]record.Run
	for i, target := range []float64{0.5, 0.8} {
		for k, seconds := range []float64{10, 20} {
			runs := arrivals(string(rune('a'+2*i+k)), seconds*(1+2*target), 1, 1, record.Mean)
			for n := range runs {
				runs[n].Target = &target
			}
			all = append(all, runs)
		}
	}
	text := tableOf(t, joined(0.5, all...))
	if strings.Count(text, "] *") != 2 || !strings.Contains(text, "* fastest: time to 50 % at 2 points, in pairs") ||
		!strings.Contains(text, "* fastest: time to 80 % at 2 points, in pairs") {
		t.Errorf("%s", text)
	}
}

func TestTableTellsOfRunsThatFailedOrAreDegraded(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 1, record.Mean), arrivals("b", 20, 1, 1, record.Mean))
	for i := range 8 {
		r := &s.Runs[3*i]
		r.Outcome, r.Incidents = record.Degraded, []record.Incident{{At: 6.25, Node: "server", What: "its model was lost"},
			{At: 7, Node: "w1", What: "stood still"}, {At: 8, Node: "w2", What: "x"}}
	}
	r := &s.Runs[0]
	r.Outcome, r.Reached, r.TimeToTarget, r.EpochsToTarget, r.Incidents = record.Failed, false, nil, nil, []record.Incident{{At: 0.5, Node: "peer3", What: "the loss is NaN"}}
	s.Groups = record.GroupRuns(s.Runs, s.Target)
	text := tableOf(t, s)
	for _, want := range []string{
		"Of 40 runs 1 failed, 7 degraded:\n", "run 0 (k=a, seed 0) failed: peer3 at 0.5 s: the loss is NaN.\n",
		"run 3 (k=a, seed 3) degraded: server at 6.25 s: its model was lost; w2 at 8 s: x; and 1 more.\n", "and 3 more.\n",
		"1 of 40 runs did not reach 90 %: censored at their ends, or if they failed never there", "19/20",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestTableNamesASampleOfTheModelsAndWhatWasChosen(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 2, record.Mean), arrivals("b", 20, 1, 1, record.Mean))
	for i := range s.Runs {
		s.Runs[i].Holders = 5
	}
	s.Tunings = []record.Tuning{{
		Point: record.Point{{Key: "k", Value: "a"}}, Chosen: 1, Duration: 106,
		Candidates: []record.Candidate{{}, {Values: record.Point{{Key: "train.optimizer.rate", Value: "0.2"}}}},
	}}
	text := tableOf(t, s)
	for _, want := range []string{
		"Looked at are the models of a sample: 2 of 5 nodes; 1 of 5 nodes (evaluate.sample).\n",
		"Chosen on the validation samples, in the place of what the plan says: a with train.optimizer.rate=0.2.\n",
		"That took 2 further runs of 106 s on their clocks, which no figure here counts.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// Runs that go to a number of epochs end at times of their own.
func TestTableSaysThatRunsEndedTooEarlyToBeCompared(t *testing.T) {
	short := arrivals("short", 10, 1, 1, record.Mean)
	for i := range short {
		r := &short[i]
		r.Reached, r.TimeToTarget, r.EpochsToTarget, r.Bracket, r.Duration, r.Epochs = false, nil, nil, nil, 5, 6
	}
	text := tableOf(t, joined(0.9, arrivals("long", 40, 1, 1, record.Mean), short))
	if !strings.Contains(text, "Compared only up to where the first run that did not arrive ended; a later bound, such as stop.time, would tell more: short.\n") {
		t.Errorf("%s", text)
	}
}

// A run that could not go on had no bound to stand still to: its incident says why it ended.
func TestTableCallsAFailedRunFailedAlone(t *testing.T) {
	s := joined(0.9, arrivals("a", 10, 1, 1, record.Mean))
	s.Runs[0].Outcome, s.Runs[0].Stalled = record.Failed, 0.02
	if text := tableOf(t, s); strings.Contains(text, "stood still") {
		t.Errorf("%s", text)
	}
}

func TestTableSaysHowManyMeasurementsAreMissing(t *testing.T) {
	s := small()
	s.Runs[0].Unmeasured, s.Runs[2].Unmeasured = 5, 7
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	if want := "2 of 3 runs measured more than is kept of a run: 12 measurements are missing.\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
}

func ring(from, to int) float64 {
	if to == (from+1)%5 {
		return 0.01 * float64(1+from)
	}
	return 0
}

func TestPlotsAreOfTheSameBytesEachTime(t *testing.T) {
	s, traces := sample(shares(), 3, 0.94)
	spread(s, traces, 5, ring)
	first, second := t.TempDir(), t.TempDir()
	paths, err := Plots(first, s, traces)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Plots(second, s, traces)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 11 || len(again) != 11 {
		t.Fatalf("%d and %d figures, want 11", len(paths), len(again))
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
		a, b = readImage(t, vector(paths[i])), readImage(t, vector(again[i]))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from one drawing to the next", filepath.Base(vector(paths[i])))
		}
		texts(t, a)
	}
}

func vector(path string) string { return strings.TrimSuffix(path, ".png") + ".svg" }

func readImage(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// texts reads an SVG and returns what is written in it.
func texts(t *testing.T, image []byte) (all []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(image))
	inside := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text"
		case xml.CharData:
			if inside {
				all = append(all, string(token))
			}
		case xml.EndElement:
			inside = false
		}
	}
}

func TestPlotsWithoutSweepTargetOrDataLeaveFiguresOut(t *testing.T) {
	one, oneTraces := sample([]string{""}, 2, 0.94)
	noTarget, noTargetTraces := sample([]string{"a", "b"}, 1, 0.94)
	withoutTarget(&noTarget)
	bare, _ := sample([]string{"a", "b"}, 1, 0.94)
	old, oldTraces := sample([]string{""}, 2, 0.94)
	for i := range oldTraces {
		for k := range oldTraces[i].Curve {
			oldTraces[i].Curve[k].Bytes = 0
		}
	}
	full, fullTraces := sample([]string{"a", "b"}, 1, 0.94)
	spread(full, fullTraces, 5, ring)
	target, accuracy := []string{"target-epochs", "target-time"}, []string{"accuracy-epochs", "accuracy-time", "accuracy-bytes"}
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
			append(append([]string{"models-1", "models-2", "consensus-distance", "topology-1"}, accuracy...), target...)},
	} {
		dir := t.TempDir()
		paths, err := Plots(dir, c.s, c.traces)
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
	s, traces := sample([]string{"a", "b"}, 1, 2)
	for i := range traces[0].Curve {
		traces[0].Curve[i].Accuracy, traces[0].Curve[i].Loss = record.Float(math.NaN()), record.Float(math.Inf(1))
	}
	paths, err := Plots(t.TempDir(), s, traces)
	if err != nil || len(paths) != 5 {
		t.Errorf("%d figures, %v", len(paths), err)
	}
	written := texts(t, readImage(t, vector(paths[len(paths)-1])))
	if n := len(slices.DeleteFunc(written, func(s string) bool { return s != "not reached (0/1)" })); n != 2 {
		t.Errorf("%d points are said not to have arrived, want 2", n)
	}
}

// straight is a curve through points.
func straight(points ...float64) []xy {
	var curve []xy
	for i := 0; i < len(points); i += 2 {
		curve = append(curve, xy{points[i], points[i+1]})
	}
	return curve
}

func TestBandOfFewRunsIsMedianAndRangeWithEndedRunsHeld(t *testing.T) {
	b := bandOf([][]xy{straight(0, 0.2, 1, 0.6), nil, straight(0, 0.2, 2, 0.8), straight(0, 0.1, 2, 0.1)}, 1, gridPoints)
	last := len(b.x) - 1
	for what, c := range map[string][2]float64{
		"first median": {b.mean[0], 0.2}, "first low": {b.low[0], 0.1}, "end": {b.x[last], 2}, "last median": {b.mean[last],
			0.6},
		"last high": {b.high[last], 0.8}, "last low": {b.low[last], 0.1}, "in between": {b.mean[100], 0.2 + 0.3*b.x[100]},
	} {
		if math.Abs(c[0]-c[1]) > 1e-9 {
			t.Errorf("%s is %g, want %g", what, c[0], c[1])
		}
	}
	if b := bandOf([][]xy{straight(0, 0.2, 1, 0.6), straight(0, 0.4, 1, 0.8)}, 1,
		gridPoints); math.Abs(b.mean[0]-0.3) > 1e-12 {
		t.Errorf("the median of two is %g, want 0.3", b.mean[0])
	}
}

func TestBandOfManyRunsIsTheMeanAndItsInterval(t *testing.T) {
	var runs [][]xy
	for i := range 10 {
		runs = append(runs, straight(0, 0.1, 1, float64(i)/10))
	}
	b := bandOf(runs, 0.6, gridPoints)
	last := len(b.x) - 1
	half := 2.2621571628 * math.Sqrt(0.0916666667/10) // of t with 9 degrees of freedom, from a table
	if math.Abs(b.mean[last]-0.45) > 1e-9 || math.Abs(b.low[last]-(0.45-half)) > 1e-9 || b.high[last] != 0.6 ||
		b.high[0] != b.low[0] {
		t.Errorf("mean %g from %g to %g, want 0.45 from %g to the limit", b.mean[last], b.low[last], b.high[last], 0.45-half)
	}
	for n, want := range map[int]string{1: "One run per point.", 9: "Median of 9 runs, band: lowest to highest",
		10: "Mean of 10 runs, band: its 95 % interval (t)"} {
		if got := bandText(n, n); !strings.HasPrefix(got, want) {
			t.Errorf("%d runs: %q", n, got)
		}
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

func TestPointsOfTwoSettingsShareColourOrDashesWithTheirLike(t *testing.T) {
	var groups []record.Group
	for _, a := range []string{"ring", "tree", "butterfly"} {
		for _, b := range []string{"1", "4"} {
			groups = append(groups, record.Group{Point: record.Point{{Key: "x.algorithm", Value: a}, {Key: "x.every", Value: b}}})
		}
	}
	all := looks(groups)
	for i, a := range groups {
		for j, b := range groups {
			if (a.Point[0] == b.Point[0]) != (all[i].color == all[j].color) || (a.Point[1] == b.Point[1]) != slices.Equal(all[i].dash, all[j].dash) {
				t.Errorf("%v is %v, %v is %v", a.Point, all[i], b.Point, all[j])
			}
		}
	}
	if got := name(groups[4].Point); got != "butterfly, 1" {
		t.Errorf("named %q", got)
	}
	long := record.Point{{Key: "a", Value: strings.Repeat("first ", 9)}, {Key: "b", Value: strings.Repeat("second ", 9)}}
	if got := name(long); utf8.RuneCountInString(got) > maxLegendText || !strings.Contains(got, ", second") {
		t.Errorf("named %q", got)
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
