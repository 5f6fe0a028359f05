// Command custom-actor is gradwire with its own actors and architecture, a hierarchical
// parameter server for workers at several sites. It has every command of gradwire; without
// arguments it runs its own plan.
package main

import (
	"os"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

//go:generate go run github.com/gradwire/gradwire/protos/generate

// withHierarchy is everything that comes with Gradwire, and the architecture of this program.
func withHierarchy() *catalog.Catalog {
	c := catalog.Default()
	c.Architectures.Declare("hierarchical-server", hierarchy{Every: 1},
		"workers push to the server of their site, which exchanges with the root every N rounds")
	return c
}

func main() {
	if len(os.Args) == 1 {
		os.Args = append(os.Args, "run", "examples/custom-actor/plan.yaml")
	}
	cli.Main(withHierarchy())
}
