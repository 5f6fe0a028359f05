package report

import (
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// Edge is a directed edge of a network.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Model is the model of its delay, in a few words, and RateModel of its rate where that is a
	// process.
	Model     string  `json:"delay_model,omitempty"`
	RateModel string  `json:"rate_model,omitempty"`
	Rate      float64 `json:"rate_bytes_per_s"` // mean; 0 is unlimited
}

// Probed is what came of the probes of one edge. Times are in seconds.
type Probed struct {
	Edge
	End   float64 // of the time in which probes were sent
	Tries int     // of all probes together
	// Sent, Delay and Took are of each probe: when it was sent, what was drawn, and how long it was
	// under way in all, infinite if it was lost.
	Sent, Delay, Took []float64
	// Down are the beginnings and ends of its outages, in order; the picture needs them no finer
	// than its dots.
	Down [][2]float64
	// DownShare is the share of time that the edge is down.
	DownShare float64
}

// Quantiles are of times in seconds, infinite where a probe was lost. They are NaN where there are
// none.
type Quantiles struct {
	P50 record.Float `json:"p50_s"`
	P95 record.Float `json:"p95_s"`
	Max record.Float `json:"max_s"`
}

// ProbeSummary sums up the probes of an edge, or of several together.
type ProbeSummary struct {
	Edge
	Sent int `json:"probes"`
	// PerMinute is how many probes of the edge were sent in a minute.
	PerMinute float64 `json:"probes_per_min"`
	// Delay is what was drawn, Took the time under way of those that were not lost.
	Delay Quantiles `json:"delay"`
	Took  Quantiles `json:"took"`
	// Down is the share of time that the edge was down, Lost the share of probes that never arrive,
	// Resent how often a probe was sent again in the mean.
	Down   float64 `json:"down_share"`
	Lost   float64 `json:"lost_share"`
	Resent float64 `json:"resent_mean"`
}

// Summary sums the probes of one edge up.
func (p *Probed) Summary() ProbeSummary {
	s := SummarizeProbes([]*Probed{p})
	s.Edge = p.Edge
	return s
}

// SummarizeProbes sums up the probes of several edges that were probed alike.
func SummarizeProbes(all []*Probed) ProbeSummary {
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
	return Quantiles{record.Float(Quantile(values, 0.5)), record.Float(Quantile(values, 0.95)),
		record.Float(Quantile(values, 1))}
}

// Quantile returns the smallest of sorted values that a share of all do not exceed; NaN if there
// are none.
func Quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}
