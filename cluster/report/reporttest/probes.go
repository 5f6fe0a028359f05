package reporttest

import (
	"math"

	"github.com/gradwire/gradwire/cluster/report"
)

// Probed is an edge with a count of probes whose delays rise from low on; every tenth is lost.
func Probed(to string, count int, low float64) *report.Probed {
	p := &report.Probed{Edge: report.Edge{From: "hub", To: to, Model: "uniform range 10ms..20ms"}, End: float64(count),
		Down: [][2]float64{{1, 3}}, DownShare: 2 / float64(count)}
	for i := range count {
		p.Sent = append(p.Sent, float64(i))
		p.Delay = append(p.Delay, low+float64(i)/1024)
		took := low + float64(i)/512
		if i%10 == 9 {
			took = math.Inf(1)
		}
		p.Took = append(p.Took, took)
		p.Tries += 1 + i%2
	}
	return p
}
