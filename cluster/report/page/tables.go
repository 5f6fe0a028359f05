package page

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/report/pivot"
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
		at := t.Labels + 2 // behind the runs that arrived and their time
		t.Head = slices.Insert(t.Head, at, "verdict")
		for i, g := range s.Summary.Groups {
			t.Rows[i] = slices.Insert(t.Rows[i], at, string(g.Verdict))
		}
	}
	return t.limitRows()
}

// pivotTable shows a pivot, with a dash for what is missing; nil for none.
func pivotTable(p *pivot.Table) *table {
	if p == nil {
		return nil
	}
	t := &table{Caption: p.Caption, Note: p.Note, Head: p.Head, Labels: p.Labels}
	for _, row := range p.Rows {
		cells := slices.Clone(row)
		for i, cell := range cells {
			if cell == "" {
				cells[i] = report.NoValue
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t.limitRows()
}

// sweepTable is a table whose rows begin with the settings of a point. The first labels columns
// behind these are texts, the others numbers.
func sweepTable(s *Source, caption string, labels int, headings ...string) *table {
	keys := report.SweptKeys(s.Summary)
	return &table{Caption: caption, Labels: len(keys) + labels, keys: keys,
		Head: append(report.ShortKeys(keys), headings...)}
}

// add adds a row of a point.
func (t *table) add(p record.Point, values ...any) {
	var cells []string
	for _, key := range t.keys {
		cells = append(cells, report.ValueName(p.Value(key)))
	}
	for _, v := range values {
		cells = append(cells, short(v))
	}
	t.Rows = append(t.Rows, cells)
}

// short writes a figure with four digits, a whole one with all of its, and what is none as a dash.
func short(value any) string {
	v := math.NaN()
	switch value := value.(type) {
	case float64:
		v = value
	case record.Float:
		v = float64(value)
	case *float64:
		if value != nil {
			v = *value
		}
	default:
		return fmt.Sprint(value)
	}
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
	t := sweepTable(s, "Staleness and waiting, all runs of a point together", 1, "worker",
		"updates", "staleness, mean", "median", "99 %", "age of models, steps, mean", "99 %",
		"waits", "share of the time, %", "a wait, median, s", "99 %, s")
	for _, w := range s.Work {
		t.add(s.Summary.Groups[w.Group].Point, w.NodeName(),
			w.Updates, w.Staleness.Mean(), w.Staleness.Quantile(0.5), w.Staleness.Quantile(0.99),
			w.Age.Mean(), w.Age.Quantile(0.99),
			w.Waiting.Count(), 100*w.Waiting.Total()/w.Seconds, w.Waiting.Quantile(0.5), w.Waiting.Quantile(0.99))
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
	t := sweepTable(s, caption, 2, "from", "to", "messages", "MB", "delay drawn, s", "achieved, s", "lost")
	t.Folded = true
	t.Note = "The first run of each point. Delay achieved: from sending to arrival, with queues, rates, losses and " +
		"outages."
	bySender := false
	for i, trace := range s.Traces {
		for _, l := range trace.Links {
			if l.Messages == 0 || !report.IsFinite(l.DelayAsked) {
				continue // nothing but control
			}
			bySender = bySender || l.To == record.Everyone
			t.add(s.Summary.Runs[i].Point,
				l.From, l.To, l.Messages, float64(l.Bytes)/1e6, l.DelayAsked, l.DelayAchieved, l.Lost)
		}
	}
	if bySender {
		t.Note += " Where there are too many links to count one by one, those of a sender are counted together, as " +
			"one to " + record.Everyone + "."
	}
	return t.limitRows()
}

// incidentTable lists what makes the figures of runs worth less.
func incidentTable(s *Source) *table {
	t := sweepTable(s, "What went wrong", 6, "run", "seed", "outcome", "node", "what", "harms", "at, s")
	for _, r := range s.Summary.Runs {
		for _, n := range r.Incidents {
			t.add(r.Point, r.Number, r.Seed, r.Outcome, n.Node, n.What, n.Harm, n.At)
		}
	}
	return t.limitRows()
}

// faultTable lists what was done to runs.
func faultTable(s *Source) *table {
	t := sweepTable(s, "Faults: what happened to nodes and links, drawn by the seed or scheduled", 2, "run", "seed",
		"what", "nodes", "drawn", "factor", "at, s", "until, s")
	t.Folded = true
	for _, r := range s.Summary.Runs {
		for _, f := range r.Faults {
			t.add(r.Point, r.Number, r.Seed, f.What, strings.Join(f.Nodes, ", "), f.Drawn, f.Factor, f.At, f.Until)
		}
	}
	return t.limitRows()
}

// runTable lists the runs.
func runTable(s *Source) *table {
	t := sweepTable(s, "Every run", 0, "run", "seed", "outcome", "time to target, s", "epochs",
		"final accuracy"+report.JudgedSuffix(s.Summary)+", %", "best, %",
		"steps", "messages", "MB", "length, s", "clock", "digest")
	t.Folded = true
	for _, r := range s.Summary.Runs {
		t.add(r.Point, r.Number, r.Seed, r.Outcome, r.TimeToTarget, r.EpochsToTarget,
			100*r.FinalAccuracy, 100*r.BestAccuracy,
			r.Steps, r.Messages, float64(r.Bytes)/1e6, r.Duration, r.Clock, r.Digest)
	}
	return t.limitRows()
}

// measuredTable shows the latest values of what actors have measured by themselves.
func measuredTable(s *Source) *table {
	t := sweepTable(s, "Measured by actors: each node's latest value", 2, "run", "what", "nodes", "mean", "sum")
	t.Folded = true
	for i, trace := range s.Traces {
		var names []string
		latest := map[string]map[string]float64{}
		for _, m := range trace.Measured {
			if latest[m.Name] == nil {
				names = append(names, m.Name)
				latest[m.Name] = map[string]float64{}
			}
			latest[m.Name][m.Node] = float64(m.Value)
		}
		slices.Sort(names)
		for _, name := range names {
			sum := 0.0
			for _, node := range slices.Sorted(maps.Keys(latest[name])) {
				sum += latest[name][node]
			}
			n := len(latest[name])
			t.add(s.Summary.Runs[i].Point, s.Summary.Runs[i].Number, name, n, sum/float64(n), sum)
		}
	}
	return t.limitRows()
}

func buildTable(s *record.Summary, caption string) *table {
	b, modified := s.Build, ""
	if b.Modified {
		modified = ", with changes"
	}
	t := &table{Caption: caption, Folded: true, Labels: 2, Head: []string{"what", "value"}}
	for _, row := range [][]string{
		{"commit", b.Commit + modified}, {"version", b.Version}, {"Go", b.Go}, {"system", b.GOOS + "/" + b.GOARCH},
		{"instructions", b.GOAMD64}, {"kernels", b.Kernel}, {"node timeout", nodeTimeouts(s.Runs)},
	} {
		if row[1] != "" {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// nodeTimeouts lists the node timeouts of the runs on a cluster; empty without such runs.
func nodeTimeouts(runs []record.Run) string {
	var all []string
	for _, r := range runs {
		if text := fmt.Sprintf("%g s", r.NodeTimeout); r.NodeTimeout > 0 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// csvTables are the CSV files of a page.
var csvTables = []struct {
	name string
	head []string
	rows func(s *Source, row func(values ...any))
}{
	{"groups.csv", slices.Concat([]string{"point", "n", "reached", "done", "degraded", "failed", "of", "target"},
		arrivalHead("time", "time_to_target_s"), arrivalHead("epochs", "epochs_to_target"),
		[]string{"final_accuracy", "accuracy_std", "accuracy_low", "accuracy_high",
			"verdict", "pairs", "repeats_needed", "messages", "bytes"}), groupRows},
	{"runs.csv", []string{"run", "point", "seed", "outcome", "of", "reached", "time_to_target_s", "epochs_to_target",
		"average_model_s", "mean_s", "all_s", "any_s",
		"final_accuracy", "best_accuracy", "steps", "messages", "bytes", "evaluations", "clock", "run_s",
		"digest"}, runRows},
	{"incidents.csv", []string{"run", "point", "seed", "outcome", "at_s", "node", "what", "harm"}, incidentRows},
	{"curves.csv", []string{"point", "over", "x", "accuracy", "low", "high", "band"}, curveRows},
	{"workers.csv", []string{"point", "node", "quantity", "count", "mean", "p1", "p25", "p50", "p75", "p99"}, workRows},
	{"links.csv", []string{"point", "from", "to", "messages", "bytes", "delay_asked_s", "delay_achieved_s", "lost"},
		linkRows},
}

// writeTables writes the CSV files: all that is in the figures and tables, of all records. The last
// columns are the keys of the sweeps.
func (b *builder) writeTables() error {
	var keys []string
	for _, s := range b.sources {
		for _, key := range report.SweptKeys(s.Summary) {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	for _, t := range csvTables {
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		_ = w.Write(slices.Concat([]string{report.RecordKey}, t.head, keys))
		for _, s := range b.sources {
			t.rows(s, func(values ...any) {
				point := values[slices.IndexFunc(values, isPoint)].(record.Point) //nolint:forcetypeassert // isPoint
				_ = w.Write(append(record.Cells(append([]any{s.Name}, values...)...), point.Columns(keys)...))
			})
		}
		w.Flush() // a buffer takes everything
		if err := record.WriteFile(filepath.Join(b.output.Folder, t.name), text.Bytes()); err != nil {
			return err
		}
		b.output.Tables = append(b.output.Tables, t.name)
	}
	return nil
}

// isPoint reports whether a value of a row is its point, which every row has.
func isPoint(v any) bool {
	_, ok := v.(record.Point)
	return ok
}

// arrivalHead names the columns of how long it takes to the target, the first of which is the mean
// of those that arrived.
func arrivalHead(what, mean string) []string {
	return []string{mean, what + "_std", what + "_restricted", what + "_low", what + "_high", what + "_median",
		what + "_horizon", what + "_method"}
}

func arrivalValues(a *record.Arrivals) []any {
	if a == nil {
		return make([]any, len(arrivalHead("", "")))
	}
	return []any{a.Mean, a.Std, a.Restricted, a.Low, a.High, a.Median, a.Horizon, a.Method}
}

func groupRows(s *Source, row func(...any)) {
	for _, g := range s.Summary.Groups {
		accuracy := make([]any, 4)
		if a := g.FinalAccuracy; a != nil {
			accuracy = []any{a.Mean, a.Std, a.Low, a.High}
		}
		messages, bytes := report.MeanTraffic(s.Summary, g.Point)
		row(slices.Concat(
			[]any{g.Point, g.N, g.Reached, g.Done, g.Degraded, g.Failed, g.Of, g.Target},
			arrivalValues(g.TimeToTarget), arrivalValues(g.EpochsToTarget), accuracy,
			[]any{g.Verdict, g.Pairs, g.Repeats, messages, bytes})...)
	}
}

func runRows(s *Source, row func(...any)) {
	for _, r := range s.Summary.Runs {
		crossing := func(of record.Of) any {
			if at, ok := r.Crossings[of]; ok {
				return at
			}
			return nil
		}
		row(r.Number, r.Point, r.Seed, r.Outcome, r.Of, r.Reached, r.TimeToTarget, r.EpochsToTarget,
			crossing(record.AverageModel), crossing(record.Mean), crossing(record.All), crossing(record.Any),
			r.FinalAccuracy, r.BestAccuracy, r.Steps, r.Messages, r.Bytes, r.Evaluations, r.Clock, r.Duration, r.Digest)
	}
}

func incidentRows(s *Source, row func(...any)) {
	for _, r := range s.Summary.Runs {
		for _, n := range r.Incidents {
			row(r.Number, r.Point, r.Seed, r.Outcome, n.At, n.Node, n.What, n.Harm)
		}
	}
}

// curveRows writes the curves of the points and their bands as the figures have them.
func curveRows(s *Source, row func(...any)) {
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
				row(g.Point, axis.name, x, b.Mean[i], b.Low[i], b.High[i], kind)
			}
		}
	}
}

func workRows(s *Source, row func(...any)) {
	for _, w := range s.Work {
		for _, q := range []struct {
			name string
			figure.Counts
		}{{"staleness", w.Staleness}, {"age", w.Age}, {"waiting_s", w.Waiting}} {
			if q.Count() > 0 {
				row(s.Summary.Groups[w.Group].Point, w.NodeName(), q.name, q.Count(), q.Mean(),
					q.Quantile(0.01), q.Quantile(0.25), q.Quantile(0.5), q.Quantile(0.75), q.Quantile(0.99))
			}
		}
	}
}

func linkRows(s *Source, row func(...any)) {
	for i, t := range s.Traces {
		for _, l := range t.Links {
			row(s.Summary.Runs[i].Point, l.From, l.To, l.Messages, l.Bytes, l.DelayAsked, l.DelayAchieved, l.Lost)
		}
	}
}
