package text

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
)

const (
	// MaxProbedRows is how many edges Probes has rows for; of more it sums up.
	MaxProbedRows = 40
	// extremes is how many of the fastest and of the slowest edges stand below such a sum.
	extremes = 5
)

// Probes writes a row for each probed edge, all of them probed as often: median, 95th percentile
// and maximum of the delays that were drawn, 95th percentile of the time under way, the shares of
// time down, of probes lost and of probes sent again, and the rate; columns in which there is
// nothing are left out. Of more than MaxProbedRows edges it writes a row for all of them together,
// and rows for the edges with the least and the greatest median of delays. It keeps to the width of
// w as [Table] does; a narrow terminal has no room for the rate first, and for the time down last.
func Probes(w io.Writer, all []*report.Probed) error {
	rows := make([]report.ProbeSummary, len(all))
	for i, p := range all {
		rows[i] = p.Summary()
	}
	var notes []string
	if len(rows) > MaxProbedRows {
		slices.SortStableFunc(rows, func(a, b report.ProbeSummary) int { return cmp.Compare(a.Delay.P50, b.Delay.P50) })
		sum := report.SummarizeProbes(all)
		sum.From, sum.Rate = fmt.Sprintf("all %d", len(all)), math.NaN()
		rows = slices.Concat([]report.ProbeSummary{sum}, rows[:extremes], rows[len(rows)-extremes:])
		notes = append(notes,
			fmt.Sprintf("Below the row of all edges are the edges with the %d least and the %d greatest median delays.",
				extremes, extremes))
	}
	notes = append(notes, "delay: drawn; took: from sending to arrival, without those lost.")
	if slices.ContainsFunc(rows, func(r report.ProbeSummary) bool { return r.Resent > 0 }) {
		notes = append(notes, "resent: repetitions per probe.")
	}
	columns := probeColumns(rows)
	columns = slices.DeleteFunc(columns, func(c column) bool {
		empty := func(cell string) bool { return cell == "" || cell == report.NoValue }
		return !slices.ContainsFunc(c.forms[0].cells, func(cell string) bool { return !empty(cell) })
	})
	return writeTable(w, columns, len(rows), notes)
}

func probeColumns(rows []report.ProbeSummary) []column {
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, float64(r.Delay.P95))
	}
	u := report.TimeUnit(longest)
	edge := func(r report.ProbeSummary) string {
		if r.To == "" {
			return r.From
		}
		return r.From + " → " + r.To
	}
	model := func(r report.ProbeSummary) string { return r.Model }
	kind := func(r report.ProbeSummary) string {
		kind, _, _ := strings.Cut(r.Model, " ")
		return kind
	}
	rate := func(r report.ProbeSummary) string {
		if kind, _, _ := strings.Cut(r.RateModel, " "); kind != "" {
			return kind + ", mean " + rateCell(r.Rate)
		}
		return rateCell(r.Rate)
	}
	numbers := func(leave int, heading, brief string, of func(report.ProbeSummary) string) column {
		return column{leave: leave, forms: []form{formOf(heading, rows, of), formOf(brief, rows, of)}}
	}
	times := func(leave int, heading, brief string, of func(report.ProbeSummary) record.Float) column {
		return numbers(leave, heading+", "+u.Name, brief,
			func(r report.ProbeSummary) string { return digits(float64(of(r)) / u.Seconds) })
	}
	return []column{
		{label: true, forms: []form{formOf("edge", rows, edge)}},
		{label: true, leave: 3, forms: []form{formOf("model", rows, model), formOf("model", rows, kind)}},
		times(0, "delay p50", "p50, "+u.Name, func(r report.ProbeSummary) record.Float { return r.Delay.P50 }),
		times(5, "p95", "p95", func(r report.ProbeSummary) record.Float { return r.Delay.P95 }),
		times(2, "max", "max", func(r report.ProbeSummary) record.Float { return r.Delay.Max }),
		times(7, "took p95", "took p95", func(r report.ProbeSummary) record.Float { return r.Took.P95 }),
		numbers(8, "down", "down", func(r report.ProbeSummary) string { return share(r.Down) }),
		numbers(6, "lost", "lost", func(r report.ProbeSummary) string { return share(r.Lost) }),
		numbers(4, "resent", "resent", func(r report.ProbeSummary) string { return share(r.Resent) }),
		{leave: 1, forms: []form{formOf("rate", rows, rate)}},
	}
}

// digits writes a number with three digits, without an exponent.
func digits(v float64) string {
	switch {
	case math.IsNaN(v):
		return report.NoValue
	case v == 0:
		return "0"
	}
	return fmt.Sprintf("%.*f", max(0, min(2-int(math.Floor(math.Log10(math.Abs(v)))), 6)), v)
}

// share writes a share in percent, or nothing for none.
func share(v float64) string {
	if v == 0 {
		return report.NoValue
	}
	return digits(v*100) + " %"
}

// rateCell writes a rate in bits per second.
func rateCell(bytes float64) string {
	bits := bytes * 8
	switch {
	case math.IsNaN(bits):
		return ""
	case bits == 0:
		return report.NoValue
	case bits < 1e6:
		return digits(bits/1e3) + " kbit/s"
	case bits < 1e9:
		return digits(bits/1e6) + " Mbit/s"
	}
	return digits(bits/1e9) + " Gbit/s"
}
