package catalog

import (
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// teams refuses nodes of several threads that would have nothing to share.
func (s *Spec) teams() error {
	for i := range s.Plan.Nodes {
		node := &s.Plan.Nodes[i]
		if node.Compute.Threads < 2 {
			continue
		}
		if err := train.CheckThreads(s.Architecture, s.Roles[i], s.Method); err != nil {
			return syntax.Errorf(node.Source.At("compute").At("threads"), "node %s has %d threads: %w; accepted is 1",
				node.Name, node.Compute.Threads, err)
		}
	}
	return nil
}
