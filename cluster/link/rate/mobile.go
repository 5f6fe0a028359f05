package rate

import (
	"fmt"
	"time"
)

// Line is a mobile line of which the quantiles of its rate were measured, in windows of a second.
type Line struct {
	Name string
	// Doc says what was measured, by whom and when.
	Doc string
	Quantiles
}

// Mobile are the mobile lines that come with Gradwire: the quantiles of the public traces that
// come with Mahimahi (Winstein, Sivaraman, Balakrishnan 2013, "Stochastic forecasts achieve high
// throughput and low delay over cellular networks", section 5; Netravali et al. 2015).
func Mobile() []Line {
	line := func(name, what string, seconds int, mean, p5, p50, p95 float64, silence time.Duration) Line {
		const mbit = 125e3
		about := fmt.Sprintf("%s: measured in 2026 from a trace of %d s in Mahimahi's repository", what, seconds)
		return Line{name, about, Quantiles{
			Average: mean * mbit, P5: p5 * mbit, P50: p50 * mbit, P95: p95 * mbit,
			Silence: silence, Length: time.Duration(seconds) * time.Second,
		}}
	}
	const ms = time.Millisecond
	return []Line{
		line("verizon-lte-down", "Verizon LTE, downlink", 140, 5.0, 1.1, 4.3, 11.1, 1400*ms),
		line("verizon-lte-up", "Verizon LTE, uplink", 140, 6.0, 1.2, 5.7, 11.5, 1700*ms),
		line("tmobile-lte-down", "T-Mobile LTE, downlink", 140, 16.7, 4.1, 13.8, 37.2, 900*ms),
		line("tmobile-lte-up", "T-Mobile LTE, uplink", 140, 13.3, 2.5, 11.8, 27.8, 700*ms),
		line("lte-driving-down", "AT&T LTE while driving, downlink", 786, 5.2, 0.7, 5.4, 9.5, 1500*ms),
		line("lte-driving-up", "AT&T LTE while driving, uplink", 1012, 0.83, 0, 1.0, 1.2, 78*time.Second),
		line("lte-driving-2016-down", "AT&T LTE while driving in 2016, downlink", 120, 4.6, 0.6, 3.7, 11.2, 1100*ms),
		line("umts-driving-down", "T-Mobile UMTS while driving, downlink", 928, 2.0, 0, 1.9, 5.4, 5800*ms),
		line("evdo-driving-down", "Verizon EV-DO while driving, downlink", 1062, 0.5, 0, 0.4, 1.5, 11600*ms),
	}
}
