package catalog

import (
	"fmt"

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
		if err := s.team(s.Roles[i]); err != nil {
			return syntax.Errorf(node.Source.At("compute").At("threads"), "node %s has %d threads: %w; accepted is 1",
				node.Name, node.Compute.Threads, err)
		}
	}
	return nil
}

// team says why nodes of a role cannot have several threads.
func (s *Spec) team(role train.Role) error {
	if !role.Trains {
		return fmt.Errorf("its role %s makes no steps", role.Name)
	}
	a, able := s.Architecture.(train.Teams)
	if !able {
		return fmt.Errorf("in this architecture the model is exchanged or merged after each step, so threads have " +
			"nothing to share; parameter-server and all-reduce of models with every: 2 or more, and local, have")
	}
	if err := a.CheckThreads(); err != nil {
		return err
	}
	return train.CheckTeam(s.Method)
}
