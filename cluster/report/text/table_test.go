package text

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/reporttest"
)

// small is a summary of two points, of which one has one late run that arrived and
// one that did not, the other none.
func small() record.Summary {
	first := record.Point{{Key: "data.split", Value: "iid"}, {Key: "network.default.rate", Value: "0.05"}}
	second := record.Point{{Key: "data.split", Value: "by class"}, {Key: "network.default.rate", Value: "0.05"}}
	runs := []record.Run{
		{
			Number: 0, Point: first, Seed: 1, Outcome: record.Done, Of: record.Mean, Reached: true,
			TimeToTarget: new(80.0), EpochsToTarget: new(1.5), FinalAccuracy: 0.95,
			Messages: 100, Bytes: 2e6, Lateness: &record.Lateness{Late: true, P99: 0.0025},
		},
		{Number: 1, Point: first, Seed: 2, Outcome: record.Done, Of: record.Mean, Duration: 120, Epochs: 2,
			FinalAccuracy: 0.91, Messages: 200, Bytes: 4e6, Lateness: &record.Lateness{P99: 0.5}},
		{Number: 2, Point: second, Seed: 1, Outcome: record.Done, Of: record.Mean, Duration: 120, Epochs: 2,
			FinalAccuracy: 0.5, Messages: 300, Bytes: 6e6},
	}
	return record.Summary{Plan: "p", Target: new(0.94), RunsPlanned: 4, Runs: runs,
		Groups: record.GroupRuns(runs, new(0.94))}
}

func TestTableShowsMeansSpreadAndWhatDidNotArrive(t *testing.T) {
	b := screen{columns: 125}
	if err := Table(&b, small()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"                                                               epochs",
		"                                        time to                    to                final  messages     MB",
		"split     rate  reached               target, s                target          accuracy, %     a run  a run",
		"iid       0.05      1/2         80.0 (80.0–∞) ?         1.50 (1.50–∞)  93.00 (91.00–95.00)       150   3.00",
		"by class  0.05      0/1  not reached (1 of 1) ?  not reached (1 of 1)                50.00       300   6.00",
		"? too few repeats to compare (at least 3). Medians, ( ) range of fewer than 6 runs.",
		"The real clock was late in 1 of 3 runs (p99 up to 2.5 ms): their times are not the plan's.",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTableWithoutTargetHasNoColumnsAboutIt(t *testing.T) {
	s := small()
	reporttest.DropTarget(&s)
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	heading := strings.Join(strings.Split(b.String(), "\n")[:2], "\n")
	if want := "                                    final  messages     MB\n" +
		"split     rate  runs          accuracy, %     a run  a run"; heading != want {
		t.Errorf("heading %q, want %q", heading, want)
	}
}

// screen is a terminal with a number of columns.
type screen struct {
	strings.Builder
	columns int
}

func (s *screen) Columns() int { return s.columns }

// headOf splits a table into the lines of its headings, the last of which begins with the first key
// of the sweep, and the lines below.
func headOf(table string) (head, rows []string) {
	lines := strings.Split(table, "\n")
	i := 1 + slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "split") })
	return lines[:i], lines[i:]
}

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
		115: "split     rate  reached               target, s                target          accuracy, %     a run  a run",
		100: "split     rate  reached               target, s                target  accuracy, %     a run  a run",
		80:  "split     rate  reached        target, s  target  accuracy, %     a run  a run",
		70:  "split     rate  reached        target, s  target  accuracy, %  a run",
		52:  "split     rate  reached               target, s",
		40:  "split     rate  reached        target, s",
		30:  "split     rate  target, s",
	} {
		b := screen{columns: columns}
		if err := Table(&b, s); err != nil {
			t.Fatal(err)
		}
		head, _ := headOf(b.String())
		if heading := head[len(head)-1]; heading != want {
			t.Errorf("in %d columns the heading is\n%q, want\n%q", columns, heading, want)
		}
	}
}

func TestTableOfATerminalKeepsEveryLineWithinItsWidth(t *testing.T) {
	labels := []string{"parameter server, scaled sum", "all-reduce every 4, butterfly", "gossip latency 50 %",
		"gossip random 50 %"}
	targeted, _ := reporttest.Sample(labels, 5, 0.9)
	free, _ := reporttest.Sample(labels, 5, 0.9)
	reporttest.DropTarget(&free)
	for name, s := range map[string]record.Summary{"with a target": targeted, "without": free,
		"two keys, not complete": small()} {
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
			head, rows := headOf(text)
			heading, all := strings.Join(head, "\n"), strings.Join(strings.Fields(text), " ")
			left := strings.Contains(all, "No room here for")
			if shown := strings.Contains(heading, "messages"); shown == left || columns >= 80 && !shown &&
				name != "with a target" {
				t.Errorf("%s: in %d columns messages are shown: %v, and something is left out: %v:\n%s",
					name, columns, shown, left, text)
			}
			if columns < 40 || s.Target == nil {
				continue
			}
			marks := strings.Count(strings.Join(rows[:len(s.Groups)], "\n"), " *")
			if strings.Contains(heading, "reached") != (columns > 40 || name != "with a target") ||
				!strings.Contains(heading, "time") || name == "with a target" && marks != 1 {
				t.Errorf("%s: in %d columns runs that arrived, their time or a mark of the best is missing:\n%s",
					name, columns, text)
			}
		}
	}
}

func TestTableWithoutATerminalLeavesNothingOut(t *testing.T) {
	s, _ := reporttest.Sample([]string{strings.Repeat("x", 90), "y"}, 2, 0.9)
	s.Groups[0].Point = append(s.Groups[0].Point, s.Groups[0].Point...)
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	if head, _ := headOf(b.String()); !strings.Contains(strings.Join(head, "\n"), "messages") ||
		strings.Contains(b.String(), "No room") || strings.ContainsAny(b.String(), "\x1b\r\t") {
		t.Errorf("not plain, or not all:\n%s", b.String())
	}
}

func TestTableCutsLabelsOnlyAsFarAsTheWidthAsks(t *testing.T) {
	label := strings.Repeat("a long label ", 5)
	s, _ := reporttest.Sample([]string{label, "short"}, 3, 0.9)
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
		head, rows := headOf(text)
		table := strings.Join(append(head, rows[:2]...), "\n")
		switch n := widest(table); {
		case columns > 0 && n > room:
			t.Errorf("in %d columns %d are taken:\n%s", room, n, table)
		case strings.Contains(table, "…") && n < room:
			t.Errorf("in %d columns a label is cut though %d are taken:\n%s", room, n, table)
		case strings.Contains(table, "…") && strings.Count(rows[1], "(") > 1:
			t.Errorf("in %d columns a label is cut before the results are abbreviated:\n%s", room, table)
		case (columns == 200 || columns == 0) && !strings.Contains(table, strings.TrimSpace(label)):
			t.Errorf("in %d columns a label is cut:\n%s", room, table)
		}
	}
}

// arrivals are 20 runs of a point that take about the given seconds.
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

func TestMethodSaysHowManyEvaluationsAreEstimates(t *testing.T) {
	s := small()
	s.Runs[0].Early = &record.Early{Confidence: 0.999, Partial: 7}
	s.Runs[1].Early = &record.Early{Confidence: 0.99, Partial: 5}
	s.Runs[2].Early = &record.Early{Confidence: 0.9}
	want := "Below the target, 12 evaluations of 2 runs are estimates by a part of the test set, without a loss; " +
		"that they are below it is sure with a probability of 0.99 or more for each model. Arrivals, the evaluations " +
		"before them and the last ones are of the whole set."
	if notes := Method(s); !slices.Contains(notes, want) {
		t.Errorf("notes %q", notes)
	}
	if notes := strings.Join(Method(small()), "\n"); strings.Contains(notes, "estimates") {
		t.Errorf("notes of evaluations of the whole set: %q", notes)
	}
}
