package link_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

func BenchmarkSend(b *testing.B) {
	points := []link.Point{{At: 0, Delay: time.Millisecond}, {At: time.Second, Delay: 2 * time.Millisecond}}
	var rates []rate.Point
	var stamps []uint32
	for i := range 100_000 {
		rates = append(rates, rate.Point{At: time.Duration(i) * time.Millisecond, Rate: 1e9 + float64(i%7)*1e8})
		stamps = append(stamps, uint32(i/8))
	}
	for name, config := range map[string]link.Config{
		"constant":      {Delay: link.Constant{Delay: 100 * time.Millisecond}},
		"constant+rate": {Delay: link.Constant{Delay: 100 * time.Millisecond}, Rate: rate.Constant(1e9)},
		"random-rate": {Delay: link.Constant{Delay: 100 * time.Millisecond}, Rate: rate.RandomWalk{
			FirstMin: 1e9, FirstMax: 1e9, Step: 1e8, Every: time.Millisecond, Min: 5e8, Max: 2e9}},
		"rate-trace": {Delay: link.Constant{Delay: 100 * time.Millisecond}, Rate: rate.NewTrace(rate.Trace{
			Points: rates, Repeat: true})},
		"mahimahi":      {Delay: link.Constant{Delay: 100 * time.Millisecond}, Rate: &rate.Opportunities{At: stamps}},
		"mobile":        {Delay: link.Constant{Delay: 100 * time.Millisecond}, Rate: rate.Mobile()[0].Quantiles},
		"constant+loss": {Loss: link.Loss{Probability: 0.01, Timeout: time.Second}},
		"bursts":        {Loss: link.Loss{Timeout: time.Second, Bursts: &link.Bursts{P: 0.01, R: 0.25, K: 1}}},
		"intermittent": {Intermittent: link.Intermittent{Up: 30 * time.Second, Down: 5 * time.Second},
			Loss: link.Loss{Drop: true}},
		"uniform":     {Delay: link.Uniform{Min: time.Millisecond, Max: time.Second}},
		"normal":      {Delay: link.Normal{Mean: 100 * time.Millisecond, Std: 10 * time.Millisecond}},
		"exponential": {Delay: link.Exponential{Mean: time.Millisecond}},
		"pareto":      {Delay: link.Pareto{Min: time.Millisecond, Alpha: 1.5}},
		"log-normal":  {Delay: link.LogNormal{Median: time.Millisecond, Sigma: 0.5}},
		"random-walk": {Delay: paperWalk},
		"trace":       {Delay: link.Trace{Points: points, Interpolate: true, Repeat: true}},
	} {
		b.Run(name, func(b *testing.B) {
			n := link.New(1, []string{"a", "b"})
			n.Set(0, 1, config)
			e := n.Edge(0, 1)
			b.ReportAllocs()
			var now time.Duration
			for b.Loop() {
				now += 1000
				e.Send(now, 100)
			}
		})
	}
}

func BenchmarkWholeWay(b *testing.B) {
	n := link.New(1, []string{"a", "b"})
	n.SetDefault(link.Config{Delay: link.Constant{Delay: time.Millisecond}, Rate: rate.Constant(1e9)})
	n.SetUplink(0, rate.Constant(1e9))
	n.SetDownlink(1, rate.Constant(1e9))
	b.ReportAllocs()
	var now time.Duration
	for b.Loop() {
		now += 1000
		e := n.Edge(0, 1)
		at := e.Send(now, 100).Arrival
		if e.HasDownlink() {
			e.Receive(at, 100)
		}
		e.Deliver(100, time.Millisecond)
	}
}

func BenchmarkEdge(b *testing.B) {
	for _, size := range []int32{2, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			n := link.New(1, names(int(size)))
			// A star and a ring: what a server and a gossip of many nodes ask for.
			for i := int32(1); i < size; i++ {
				n.Edge(0, i)
				n.Edge(i, 0)
				n.Edge(i, (i+1)%size)
			}
			b.ReportAllocs()
			i := int32(0)
			for b.Loop() {
				i = i%(size-1) + 1
				n.Edge(0, i)
				n.Edge(i, 0)
			}
		})
	}
}

func BenchmarkEdgeComplete1000(b *testing.B) {
	n := link.New(1, names(1000))
	for i := range int32(1000) {
		for j := range int32(1000) {
			n.Edge(i, j)
		}
	}
	b.ReportAllocs()
	at := uint32(1)
	for b.Loop() {
		at = at*1664525 + 1013904223
		n.Edge(int32(at>>8%1000), int32(at>>18%1000))
	}
}
