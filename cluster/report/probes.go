package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
)

// Probed is what probes of one directed edge have told. Times are in seconds.
type Probed struct {
	From, To string
	Model    string  // of its delay, in a few words
	Rate     float64 // bytes per second; 0 is unlimited
	End      float64 // of the time in which probes were sent
	Tries    int     // of all probes together
	// Sent, Delay and Took are of each probe: when it was sent, what was drawn, and how long it was under way in all, infinite
	// if it was lost.
	Sent, Delay, Took []float64
	// Down are the beginnings and ends of its outages, in order; the picture needs them no finer than its dots.
	Down [][2]float64
	// DownShare is the share of time that the edge is down.
	DownShare float64
}

// Quantiles are of times in seconds, infinite where a probe was lost. They are NaN where there are none.
type Quantiles struct {
	P50 record.Float `json:"p50_s"`
	P95 record.Float `json:"p95_s"`
	Max record.Float `json:"max_s"`
}

// ProbeSummary is what is told of an edge, or of several together.
type ProbeSummary struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Model string  `json:"delay_model,omitempty"`
	Rate  float64 `json:"rate_bytes_per_s"` // 0 is unlimited
	Sent  int     `json:"probes"`
	// PerMinute is how many probes of the edge were sent in a minute.
	PerMinute float64 `json:"probes_per_min"`
	// Delay is what was drawn, Took the time under way of those that were not lost.
	Delay Quantiles `json:"delay"`
	Took  Quantiles `json:"took"`
	// Down is the share of time that the edge was down, Lost that of probes that never arrive, Resent how often a probe was
	// sent again in the mean.
	Down   float64 `json:"down_share"`
	Lost   float64 `json:"lost_share"`
	Resent float64 `json:"resent_mean"`
}

// Summary sums the probes of one edge up.
func (p *Probed) Summary() ProbeSummary {
	s := summaryOf([]*Probed{p})
	s.From, s.To, s.Model, s.Rate = p.From, p.To, p.Model, p.Rate
	return s
}

// summaryOf sums the probes of edges up that were probed alike.
func summaryOf(all []*Probed) ProbeSummary {
	var s ProbeSummary
	var delays, took []float64
	tries, end := 0, 0.0
	for _, p := range all {
		s.Sent += len(p.Sent)
		tries += p.Tries
		end += p.End
		s.Down += p.DownShare / float64(len(all))
		delays = append(delays, p.Delay...)
		for _, t := range p.Took {
			if math.IsInf(t, 1) {
				s.Lost++
			} else {
				took = append(took, t)
			}
		}
	}
	if s.Sent > 0 {
		s.Resent = float64(tries-s.Sent) / float64(s.Sent)
		s.Lost /= float64(s.Sent)
		s.PerMinute = float64(s.Sent) / end * 60
	}
	s.Delay, s.Took = quantilesOf(delays), quantilesOf(took)
	return s
}

func quantilesOf(values []float64) Quantiles {
	slices.Sort(values)
	return Quantiles{record.Float(rank(values, 0.5)), record.Float(rank(values, 0.95)), record.Float(rank(values, 1))}
}

// rank returns the smallest of sorted values that a share of all do not exceed; NaN where there are none.
func rank(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

const (
	// MaxProbedRows is how many edges ProbeTable has rows for; of more it sums up.
	MaxProbedRows = 40
	// extremes is how many of the fastest and of the slowest edges stand below such a sum.
	extremes = 5
)

// ProbeTable writes a row for each probed edge, all of them probed as often: median, 95th percentile and maximum of the delays that were
// drawn, 95th percentile of the time under way, the shares of time down, of probes lost and of probes sent again, and the
// rate; columns in which there is nothing are left out. Of more than MaxProbedRows edges it writes a row for all of them
// together, and of those of the least and the greatest median of delays. It keeps to the width of w as [Table] does; a narrow
// terminal has no room for the rate first, and for the time down last.
func ProbeTable(w io.Writer, all []*Probed) error {
	rows := make([]ProbeSummary, len(all))
	for i, p := range all {
		rows[i] = p.Summary()
	}
	var notes []string
	if len(rows) > MaxProbedRows {
		slices.SortStableFunc(rows, func(a, b ProbeSummary) int { return cmp.Compare(a.Delay.P50, b.Delay.P50) })
		sum := summaryOf(all)
		sum.From, sum.Rate = fmt.Sprintf("all %d", len(all)), math.NaN()
		rows = slices.Concat([]ProbeSummary{sum}, rows[:extremes], rows[len(rows)-extremes:])
		notes = append(notes, fmt.Sprintf("Below the row of all edges those of the %d least and of the %d greatest medians of delays.", extremes, extremes))
	}
	notes = append(notes, "delay: drawn; took: from sending to arrival, without those lost.")
	if slices.ContainsFunc(rows, func(r ProbeSummary) bool { return r.Resent > 0 }) {
		notes = append(notes, "resent: repetitions per probe.")
	}
	columns := probeColumns(rows)
	columns = slices.DeleteFunc(columns, func(c column) bool {
		return !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" && cell != nothing })
	})
	return writeTable(w, columns, len(rows), notes)
}

func probeColumns(rows []ProbeSummary) []column {
	longest := 0.0
	for _, r := range rows {
		longest = max(longest, float64(r.Delay.P95))
	}
	u := timeUnit(longest)
	edge := column{heading: "edge", label: true}
	model := column{heading: "model", label: true, leave: 3, brief: &column{heading: "model", label: true}}
	rate := column{heading: "rate", leave: 1}
	for _, r := range rows {
		name := r.From
		if r.To != "" {
			name += " → " + r.To
		}
		kind, _, _ := strings.Cut(r.Model, " ")
		model.cells, model.brief.cells = append(model.cells, r.Model), append(model.brief.cells, kind)
		edge.cells, rate.cells = append(edge.cells, name), append(rate.cells, rateCell(r.Rate))
	}
	numbers := func(leave int, heading, brief string, of func(ProbeSummary) string) column {
		c := column{heading: heading, leave: leave, brief: &column{heading: brief}}
		for _, r := range rows {
			c.cells = append(c.cells, of(r))
		}
		c.brief.cells = c.cells
		return c
	}
	times := func(leave int, heading, brief string, of func(ProbeSummary) record.Float) column {
		return numbers(leave, heading+", "+u.name, brief, func(r ProbeSummary) string { return digits(float64(of(r)) / u.seconds) })
	}
	return []column{
		edge, model,
		times(0, "delay p50", "p50, "+u.name, func(r ProbeSummary) record.Float { return r.Delay.P50 }),
		times(5, "p95", "p95", func(r ProbeSummary) record.Float { return r.Delay.P95 }),
		times(2, "max", "max", func(r ProbeSummary) record.Float { return r.Delay.Max }),
		times(7, "took p95", "took p95", func(r ProbeSummary) record.Float { return r.Took.P95 }),
		numbers(8, "down", "down", func(r ProbeSummary) string { return share(r.Down) }),
		numbers(6, "lost", "lost", func(r ProbeSummary) string { return share(r.Lost) }),
		numbers(4, "resent", "resent", func(r ProbeSummary) string { return share(r.Resent) }),
		rate,
	}
}

// digits writes a number with three digits, without an exponent.
func digits(v float64) string {
	switch {
	case math.IsNaN(v):
		return nothing
	case v == 0:
		return "0"
	}
	return fmt.Sprintf("%.*f", max(0, min(2-int(math.Floor(math.Log10(math.Abs(v)))), 6)), v)
}

// share writes a share in percent, or nothing for none.
func share(v float64) string {
	if v == 0 {
		return nothing
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
		return nothing
	case bits < 1e6:
		return digits(bits/1e3) + " kbit/s"
	case bits < 1e9:
		return digits(bits/1e6) + " Mbit/s"
	}
	return digits(bits/1e9) + " Gbit/s"
}
