package topology_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/topology"
)

func ExampleNewGraph() {
	g, err := topology.NewGraph(topology.Ring{}, []string{"a", "b", "c", "d"}, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(g, err)
	// Output:
	// [[1 3] [0 2] [1 3] [0 2]] <nil>
}
