package link_test

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

// Two messages of 1 kB follow each other over a link of 10 kB/s and 50 ms that fails from 0.3 s to
// 1 s.
func ExampleNetwork() {
	n := link.New(1, []string{"worker", "server"})
	n.Set(0, 1, link.Config{
		Delay: link.Constant{Delay: 50 * time.Millisecond}, Rate: rate.Constant(10_000),
		Outages: []link.Outage{{From: 300 * time.Millisecond, To: time.Second}},
	})
	edge := n.Edge(0, 1)
	for _, at := range []time.Duration{0, 0, 500 * time.Millisecond} {
		t := edge.Send(at, 1000)
		fmt.Println("sent", at, "arrives", t.Arrival)
	}
	// Output:
	// sent 0s arrives 150ms
	// sent 0s arrives 250ms
	// sent 500ms arrives 1.15s
}

// Two messages of 10 kB share a link of 10 kB/s; the second one is sent half a second later.
func ExampleNetwork_ShareFairly() {
	n := link.New(1, []string{"worker", "server"})
	n.ShareFairly()
	n.Set(0, 1, link.Config{Rate: rate.Constant(10_000)})
	n.Edge(0, 1).Send(0, 10_000)
	n.Edge(0, 1).Send(500*time.Millisecond, 10_000)
	for n.Due() < link.Forever {
		if t, settled := n.Settle(n.Due()); settled {
			fmt.Println("arrives", t.Arrival)
		}
	}
	// Output:
	// arrives 1.5s
	// arrives 2s
}
