package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
)

// limit cuts a table to the rows that a page shows.
func (t *pageTable) limit() *pageTable {
	if more := len(t.Rows) - maxRows; more > 0 {
		t.Rows = t.Rows[:maxRows]
		t.Note = strings.TrimSpace(fmt.Sprintf("%s And %d more rows, in the CSV file.", t.Note, more))
	}
	return t
}

// summaryTable is the table that ends a run in the terminal.
func summaryTable(s *Source, caption string) *pageTable {
	columns := labelColumns(s.Summary)
	t := &pageTable{Caption: caption, Labels: len(columns)}
	columns = append(columns, resultColumns(s.Summary)...)
	for _, c := range columns {
		t.Head = append(t.Head, c.heading)
	}
	for row := range s.Summary.Groups {
		var cells []string
		for _, c := range columns {
			cells = append(cells, strings.TrimSpace(c.cells[row]))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t.limit()
}

// pointCells are the values of a point for these keys.
func pointCells(p record.Point, keys []string) (cells []string) {
	for _, key := range keys {
		cells = append(cells, value(p, key))
	}
	return cells
}

func headings(all []string, more ...string) (head []string) {
	for _, key := range all {
		head = append(head, shortKey(key, all))
	}
	return append(head, more...)
}

// short writes a figure with four digits, a whole one with all of its, and what is none as a dash.
func short(v float64) string {
	switch {
	case !finite(v):
		return nothing
	case v == math.Trunc(v) && math.Abs(v) < 1e12:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// workTable shows staleness and waiting of each worker.
func workTable(s *Source) *pageTable {
	all := keys(s.Summary)
	t := &pageTable{Caption: "Staleness and waiting, all runs of a point together", Labels: len(all) + 1, Head: headings(all, "worker",
		"updates", "staleness, mean", "median", "99 %", "waits", "share of the time, %", "a wait, median, s", "99 %, s")}
	for _, w := range s.work {
		row := append(pointCells(s.Summary.Groups[w.group].Point, all), w.nodeName(), short(w.updates),
			short(w.staleness.mean()), short(w.staleness.quantile(0.5)), short(w.staleness.quantile(0.99)),
			short(w.waiting.count()), short(100*w.waiting.total()/w.seconds), short(w.waiting.quantile(0.5)), short(w.waiting.quantile(0.99)))
		t.Rows = append(t.Rows, row)
	}
	return t.limit()
}

// linkTables show the links of each of a record's networks.
func linkTables(s *Source, caption string) (all []*pageTable) {
	for _, n := range networksOf(s.Summary, s.traces) {
		t := &pageTable{Caption: caption, Folded: true, Labels: 2, Note: "Delay achieved: from sending to arrival, with queues, rates, losses and outages.",
			Head: []string{"from", "to", "messages", "MB", "delay drawn, s", "achieved, s", "lost"}}
		if len(n.points) < len(s.Summary.Groups) {
			t.Caption = fmt.Sprintf("%s (%s)", caption, cut(strings.Join(n.points, "; "), maxTitlePoints))
		}
		for _, l := range n.links {
			t.Rows = append(t.Rows, []string{l.From, l.To, strconv.FormatInt(l.Messages, 10), short(float64(l.Bytes) / 1e6),
				short(l.DelayAsked), short(l.DelayAchieved), strconv.FormatInt(l.Lost, 10)})
		}
		all = append(all, t.limit())
	}
	return all
}

// runTable lists the runs.
func runTable(s *Source) *pageTable {
	all := keys(s.Summary)
	t := &pageTable{Caption: "Every run", Folded: true, Labels: len(all), Head: headings(all, "run", "seed", "time to target, s",
		"epochs", "final accuracy, %", "best, %", "steps", "messages", "MB", "length, s", "clock", "digest")}
	for _, r := range s.Summary.Runs {
		t.Rows = append(t.Rows, append(pointCells(r.Point, all), strconv.Itoa(r.Number), strconv.FormatUint(r.Seed, 10),
			short(known(r.TimeToTarget)), short(known(r.EpochsToTarget)), short(100*float64(r.FinalAccuracy)), short(100*float64(r.BestAccuracy)),
			strconv.FormatUint(r.Steps, 10), strconv.FormatInt(r.Messages, 10), short(float64(r.Bytes)/1e6), short(r.Duration), r.Clock, r.Digest))
	}
	return t.limit()
}

// known is NaN where there is nothing.
func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func buildTable(b record.Build, caption string) *pageTable {
	modified := ""
	if b.Modified {
		modified = ", with changes"
	}
	t := &pageTable{Caption: caption, Folded: true, Labels: 2, Head: []string{"what", "value"}}
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

// writeTables writes the CSV files: all that is in the figures and tables, of all records.
func (b *builder) writeTables() error {
	for _, t := range []struct {
		name string
		head []string
		rows func(s *Source, row func(cells ...string))
	}{
		{"groups.csv", []string{"point", "n", "reached", "time_to_target_s", "time_std", "epochs_to_target", "epochs_std", "final_accuracy", "accuracy_std", "messages", "bytes"}, groupRows},
		{"runs.csv", []string{"run", "point", "seed", "reached", "time_to_target_s", "epochs_to_target", "final_accuracy", "best_accuracy", "steps", "messages", "bytes", "evaluations", "clock", "run_s", "digest"}, runRows},
		{"curves.csv", []string{"point", "over", "x", "accuracy", "low", "high"}, curveRows},
		{"workers.csv", []string{"point", "node", "quantity", "count", "mean", "p1", "p25", "p50", "p75", "p99"}, workRows},
		{"links.csv", []string{"point", "from", "to", "messages", "bytes", "delay_asked_s", "delay_achieved_s", "lost"}, linkRows},
	} {
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

func groupRows(s *Source, row func(...string)) {
	spread := func(s *record.Spread) (mean, std string) {
		if s == nil {
			return "", ""
		}
		return s.Mean.String(), s.Std.String()
	}
	for _, g := range s.Summary.Groups {
		time, timeStd := spread(g.TimeToTarget)
		epochs, epochsStd := spread(g.EpochsToTarget)
		final, finalStd := spread(g.FinalAccuracy)
		messages, bytes := traffic(s.Summary, g.Point)
		row(g.Point.String(), strconv.Itoa(g.N), strconv.Itoa(g.Reached), time, timeStd, epochs, epochsStd, final, finalStd, exact(messages), exact(bytes))
	}
}

func runRows(s *Source, row func(...string)) {
	for _, r := range s.Summary.Runs {
		row(strconv.Itoa(r.Number), r.Point.String(), strconv.FormatUint(r.Seed, 10), strconv.FormatBool(r.Reached),
			optional(r.TimeToTarget), optional(r.EpochsToTarget), r.FinalAccuracy.String(), r.BestAccuracy.String(),
			strconv.FormatUint(r.Steps, 10), strconv.FormatInt(r.Messages, 10), strconv.FormatInt(r.Bytes, 10), strconv.Itoa(r.Evaluations),
			r.Clock, exact(r.Duration), r.Digest)
	}
}

// curveRows writes the mean curves and their bands as the figures have them.
func curveRows(s *Source, row func(...string)) {
	for _, axis := range []struct {
		name string
		of   func(record.Evaluation) float64
	}{
		{"epoch", func(e record.Evaluation) float64 { return e.Epoch }},
		{"time_s", func(e record.Evaluation) float64 { return e.Time }},
		{"bytes", func(e record.Evaluation) float64 { return float64(e.Bytes) }},
	} {
		l := accuracyLines(s.Summary, s.traces, "", axis.of)
		for _, g := range s.Summary.Groups {
			b := bandOf(l.of(s.Summary, g.Point), l.combine, l.limit, pointsOf(len(s.Summary.Groups)))
			for i, x := range b.x {
				row(g.Point.String(), axis.name, exact(x), exact(b.mean[i]), exact(b.low[i]), exact(b.high[i]))
			}
		}
	}
}

func workRows(s *Source, row func(...string)) {
	for _, w := range s.work {
		for _, q := range []struct {
			name string
			of   counts
		}{{"staleness", w.staleness}, {"waiting_s", w.waiting}} {
			if q.of.count() > 0 {
				row(s.Summary.Groups[w.group].Point.String(), w.nodeName(), q.name, exact(q.of.count()), exact(q.of.mean()), exact(q.of.quantile(0.01)),
					exact(q.of.quantile(0.25)), exact(q.of.quantile(0.5)), exact(q.of.quantile(0.75)), exact(q.of.quantile(0.99)))
			}
		}
	}
}

func linkRows(s *Source, row func(...string)) {
	for i, t := range s.traces {
		for _, l := range t.Links {
			row(s.Summary.Runs[i].Point.String(), l.From, l.To, strconv.FormatInt(l.Messages, 10), strconv.FormatInt(l.Bytes, 10),
				exact(l.DelayAsked), exact(l.DelayAchieved), strconv.FormatInt(l.Lost, 10))
		}
	}
}
