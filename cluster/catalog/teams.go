package catalog

import (
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// rounds refuses to count rounds of an architecture that has none.
func (s *Spec) rounds() error {
	if a, ok := s.Architecture.(train.Rounds); ok && a.InRounds() {
		return nil
	}
	const none = "architecture %s has no rounds; accepted are %s"
	kind := s.ArchitectureSection.At("kind").Text
	if e := &s.Plan.Evaluate; e.Every.Rounds > 0 {
		return syntax.Errorf(e.Source.At("every"), none, kind, "epochs, steps and a duration")
	}
	if s.Plan.Stop.Rounds > 0 {
		return syntax.Errorf(s.Plan.Stop.Source.At("rounds"), none, kind, "epochs, steps and time")
	}
	return nil
}

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
