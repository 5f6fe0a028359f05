package link_test

import (
	"fmt"
	"math/rand/v2"
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

func ExampleNewGraph() {
	g, err := link.NewGraph(link.Ring{}, []string{"a", "b", "c", "d"}, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(g, err)
	// Output:
	// [[1 3] [0 2] [1 3] [0 2]] <nil>
}
