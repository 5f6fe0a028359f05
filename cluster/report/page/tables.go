package page

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/text"
)

// limitRows cuts a table to the rows that a page shows.
func (t *table) limitRows() *table {
	if more := len(t.Rows) - maxRows; more > 0 {
		t.Rows = t.Rows[:maxRows]
		t.Note = strings.TrimSpace(fmt.Sprintf("%s And %d more rows, in the CSV file.", t.Note, more))
	}
	return t
}

// summaryTable is the table that ends a run in the terminal.
func summaryTable(s *Source, caption string) *table {
	t := &table{Caption: caption}
	t.Head, t.Rows, t.Labels = text.Cells(s.Summary)
	if report.HasVerdicts(s.Summary) {
		t.Head = append(t.Head, "verdict")
		for i, g := range s.Summary.Groups {
			t.Rows[i] = append(t.Rows[i], string(g.Verdict))
		}
	}
	return t.limitRows()
}

// pointCells are the values of a point for these keys.
func pointCells(p record.Point, keys []string) (cells []string) {
	for _, key := range keys {
		cells = append(cells, report.ValueAt(p, key))
	}
	return cells
}

func headings(all []string, more ...string) []string {
	return append(report.ShortKeys(all), more...)
}

// short writes a figure with four digits, a whole one with all of its, and what is none as a dash.
func short(v float64) string {
	switch {
	case !report.IsFinite(v):
		return report.NoValue
	case v == math.Trunc(v) && math.Abs(v) < 1e12:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// workTable shows staleness and waiting of each worker.
func workTable(s *Source) *table {
	all := report.SweptKeys(s.Summary)
	t := &table{Caption: "Staleness and waiting, all runs of a point together", Labels: len(all) + 1,
		Head: headings(all, "worker",
			"updates", "staleness, mean", "median", "99 %", "age of models, steps, mean", "99 %", "waits",
			"share of the time, %", "a wait, median, s", "99 %, s")}
	for _, w := range s.Work {
		row := append(pointCells(s.Summary.Groups[w.Group].Point, all), w.NodeName(), short(w.Updates),
			short(w.Staleness.Mean()), short(w.Staleness.Quantile(0.5)), short(w.Staleness.Quantile(0.99)),
			short(w.Age.Mean()), short(w.Age.Quantile(0.99)),
			short(w.Waiting.Count()), short(100*w.Waiting.Total()/w.Seconds), short(w.Waiting.Quantile(0.5)),
			short(w.Waiting.Quantile(0.99)))
		t.Rows = append(t.Rows, row)
		if w.Serverless {
			t.Note = serverlessNote
		}
	}
	return t.limitRows()
}

// serverlessNote says why a staleness is not shown.
const serverlessNote = "An architecture without a server has no version to be stale against. Age of models: the " +
	"steps that their node had made since it sent them, when they were merged."

// linkTable shows the links of each point, as its first run used them.
func linkTable(s *Source, caption string) *table {
	all := report.SweptKeys(s.Summary)
	t := &table{Caption: caption, Folded: true, Labels: len(all) + 2,
		Head: headings(all, "from", "to", "messages", "MB", "delay drawn, s", "achieved, s", "lost"),
		Note: "The first run of each point. Delay achieved: from sending to arrival, with queues, rates, losses and " +
			"outages."}
	for i, trace := range s.Traces {
		if trace.Links == nil {
			continue
		}
		for _, l := range figure.UsedLinks(trace.Links) {
			t.Rows = append(t.Rows, append(pointCells(s.Summary.Runs[i].Point, all), l.From, l.To,
				strconv.FormatInt(l.Messages, 10), short(float64(l.Bytes)/1e6),
				short(l.DelayAsked), short(l.DelayAchieved), strconv.FormatInt(l.Lost, 10)))
		}
	}
	return t.limitRows()
}

// incidentTable lists what makes the figures of runs worth less.
func incidentTable(s *Source) *table {
	all := report.SweptKeys(s.Summary)
	t := &table{Caption: "What went wrong", Labels: len(all) + 5,
		Head: headings(all, "run", "seed", "outcome", "node", "what", "at, s")}
	for _, r := range s.Summary.Runs {
		for _, n := range r.Incidents {
			t.Rows = append(t.Rows, append(pointCells(r.Point, all), strconv.Itoa(r.Number),
				strconv.FormatUint(r.Seed, 10),
				string(r.Outcome),
				n.Node, n.What, short(n.At)))
		}
	}
	return t.limitRows()
}

// runTable lists the runs.
func runTable(s *Source) *table {
	all := report.SweptKeys(s.Summary)
	t := &table{Caption: "Every run", Folded: true, Labels: len(all),
		Head: headings(all, "run", "seed", "outcome", "time to target, s",
			"epochs", "final accuracy"+report.JudgedSuffix(s.Summary)+", %", "best, %", "steps", "messages", "MB", "length, s", "clock", "digest")}
	for _, r := range s.Summary.Runs {
		t.Rows = append(t.Rows, append(pointCells(r.Point, all), strconv.Itoa(r.Number), strconv.FormatUint(r.Seed, 10),
			string(r.Outcome),
			short(known(r.TimeToTarget)), short(known(r.EpochsToTarget)), short(100*float64(r.FinalAccuracy)),
			short(100*float64(r.BestAccuracy)),
			strconv.FormatUint(r.Steps, 10), strconv.FormatInt(r.Messages, 10), short(float64(r.Bytes)/1e6),
			short(r.Duration), r.Clock, r.Digest))
	}
	return t.limitRows()
}

// known is NaN where there is nothing.
func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func buildTable(b record.Build, caption string) *table {
	modified := ""
	if b.Modified {
		modified = ", with changes"
	}
	t := &table{Caption: caption, Folded: true, Labels: 2, Head: []string{"what", "value"}}
	for _, row := range [][]string{
		{"commit", b.Commit + modified}, {"version", b.Version}, {"Go", b.Go}, {"system", b.GOOS + "/" + b.GOARCH},
		{"instructions", b.GOAMD64}, {"kernels", b.Kernel},
	} {
		if row[1] != "" {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// csvTables are the CSV files of a page.
var csvTables = []struct {
	name string
	head []string
	rows func(s *Source, row func(cells ...string))
}{
	{"groups.csv", slices.Concat([]string{"point", "n", "reached", "done", "degraded", "failed", "of", "target"},
		arrivalHead("time", "time_to_target_s"), arrivalHead("epochs", "epochs_to_target"),
		[]string{"final_accuracy", "accuracy_std", "accuracy_low", "accuracy_high", "verdict", "pairs",
			"repeats_needed",
			"messages", "bytes"}), groupRows},
	{"runs.csv", []string{"run", "point", "seed", "outcome", "of", "reached", "time_to_target_s", "epochs_to_target",
		"average_model_s", "mean_s", "all_s", "any_s",
		"final_accuracy", "best_accuracy", "steps", "messages", "bytes", "evaluations", "clock", "run_s",
		"digest"}, runRows},
	{"incidents.csv", []string{"run", "point", "seed", "outcome", "at_s", "node", "what"}, incidentRows},
	{"curves.csv", []string{"point", "over", "x", "accuracy", "low", "high", "band"}, curveRows},
	{"workers.csv", []string{"point", "node", "quantity", "count", "mean", "p1", "p25", "p50", "p75", "p99"}, workRows},
	{"links.csv", []string{"point", "from", "to", "messages", "bytes", "delay_asked_s", "delay_achieved_s", "lost"},
		linkRows},
}

// writeTables writes the CSV files: all that is in the figures and tables, of all records.
func (b *builder) writeTables() error {
	for _, t := range csvTables {
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		_ = w.Write(append([]string{sourceKey}, t.head...))
		for _, s := range b.sources {
			t.rows(s, func(cells ...string) { _ = w.Write(append([]string{s.Name}, cells...)) })
		}
		w.Flush() // the writer keeps its first error
		if err := w.Error(); err != nil {
			return err
		}
		if err := record.WriteFile(filepath.Join(b.output.Folder, t.name), text.Bytes()); err != nil {
			return err
		}
		b.output.Tables = append(b.output.Tables, t.name)
	}
	return nil
}

func exact(v float64) string { return record.Float(v).String() }

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return exact(*v)
}

// arrivalHead names the columns of how long it takes to the target, the first of which is the mean
// of those that arrived.
func arrivalHead(what, mean string) []string {
	return []string{mean, what + "_std", what + "_restricted", what + "_low", what + "_high", what + "_median",
		what + "_horizon", what + "_method"}
}

func arrivalCells(a *record.Arrivals) []string {
	if a == nil {
		return make([]string, len(arrivalHead("", "")))
	}
	return []string{
		a.Mean.String(), a.Std.String(), a.Restricted.String(), a.Low.String(), a.High.String(), a.Median.String(),
		a.Horizon.String(), a.Method,
	}
}

func groupRows(s *Source, row func(...string)) {
	for _, g := range s.Summary.Groups {
		cells := []string{
			g.Point.String(), strconv.Itoa(g.N), strconv.Itoa(g.Reached), strconv.Itoa(g.Done),
			strconv.Itoa(g.Degraded), strconv.Itoa(g.Failed),
			string(g.Of), optional(g.Target),
		}
		cells = slices.Concat(cells, arrivalCells(g.TimeToTarget), arrivalCells(g.EpochsToTarget))
		if a := g.FinalAccuracy; a != nil {
			cells = append(cells, a.Mean.String(), a.Std.String(), a.Low.String(), a.High.String())
		} else {
			cells = append(cells, "", "", "", "")
		}
		messages, bytes := report.MeanTraffic(s.Summary, g.Point)
		row(append(cells, string(g.Verdict), strconv.Itoa(g.Pairs), strconv.Itoa(g.Repeats), exact(messages),
			exact(bytes))...)
	}
}

func runRows(s *Source, row func(...string)) {
	for _, r := range s.Summary.Runs {
		cells := []string{
			strconv.Itoa(r.Number), r.Point.String(),
			strconv.FormatUint(r.Seed, 10), string(r.Outcome), string(r.Of), strconv.FormatBool(r.Reached),
			optional(r.TimeToTarget), optional(r.EpochsToTarget),
		}
		for _, of := range []record.Of{record.AverageModel, record.Mean, record.All, record.Any} {
			cell := ""
			if at, ok := r.Crossings[of]; ok {
				cell = exact(at)
			}
			cells = append(cells, cell)
		}
		row(append(cells, r.FinalAccuracy.String(), r.BestAccuracy.String(), strconv.FormatUint(r.Steps, 10),
			strconv.FormatInt(r.Messages, 10),
			strconv.FormatInt(r.Bytes, 10), strconv.Itoa(r.Evaluations), r.Clock, exact(r.Duration), r.Digest)...)
	}
}

func incidentRows(s *Source, row func(...string)) {
	for _, r := range s.Summary.Runs {
		for _, n := range r.Incidents {
			row(strconv.Itoa(r.Number), r.Point.String(), strconv.FormatUint(r.Seed, 10), string(r.Outcome),
				exact(n.At), n.Node,
				n.What)
		}
	}
}

// curveRows writes the curves of the points and their bands as the figures have them.
func curveRows(s *Source, row func(...string)) {
	for _, axis := range []struct {
		name string
		of   func(record.Evaluation) float64
	}{
		{"epoch", func(e record.Evaluation) float64 { return e.Epoch }},
		{"time_s", func(e record.Evaluation) float64 { return e.Time }},
		{"bytes", func(e record.Evaluation) float64 { return float64(e.Bytes) }},
	} {
		for _, g := range s.Summary.Groups {
			b, kind := s.AccuracyBand(g, axis.of)
			for i, x := range b.X {
				row(g.Point.String(), axis.name, exact(x), exact(b.Mean[i]), exact(b.Low[i]), exact(b.High[i]), kind)
			}
		}
	}
}

func workRows(s *Source, row func(...string)) {
	for _, w := range s.Work {
		for _, q := range []struct {
			name string
			of   figure.Counts
		}{{"staleness", w.Staleness}, {"age", w.Age}, {"waiting_s", w.Waiting}} {
			if q.of.Count() > 0 {
				row(s.Summary.Groups[w.Group].Point.String(), w.NodeName(), q.name, exact(q.of.Count()),
					exact(q.of.Mean()), exact(q.of.Quantile(0.01)),
					exact(q.of.Quantile(0.25)), exact(q.of.Quantile(0.5)), exact(q.of.Quantile(0.75)),
					exact(q.of.Quantile(0.99)))
			}
		}
	}
}

func linkRows(s *Source, row func(...string)) {
	for i, t := range s.Traces {
		for _, l := range t.Links {
			row(s.Summary.Runs[i].Point.String(), l.From, l.To, strconv.FormatInt(l.Messages, 10),
				strconv.FormatInt(l.Bytes, 10),
				exact(l.DelayAsked), exact(l.DelayAchieved), strconv.FormatInt(l.Lost, 10))
		}
	}
}
