package experiment

import (
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/memory"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/wire"
)

// Check says what is wrong with the plan, if anything, as far as that can be told without data:
// every name at every point of its sweep, and whether messages and this machine's memory can hold
// the models. A nil catalog stands for catalog.Default().
func (p *Plan) Check(c *catalog.Catalog) error {
	_, err := p.Estimate(c)
	return err
}

// sendable returns an error about a model that no message can carry.
func sendable(s *catalog.Spec) error {
	if n := s.Model.Params(); n > wire.MaxValues {
		return syntax.Errorf(s.ModelSection, "the model has %d parameters, %s; a message carries at most %d, %s", n,
			memory.Text(4*float64(n)), wire.MaxValues, memory.Text(4*wire.MaxValues))
	}
	return nil
}

// need is the least memory in bytes that the models of one run take: those that nodes hold, and for
// each node that trains the one that it computes on and its gradient.
func need(s *catalog.Spec) float64 {
	vectors := 1 + held(s.Roles) // with the initial one
	for i, r := range s.Roles {
		if r.Trains {
			vectors += 1 + teamVectors(s, i)
		}
	}
	return 4 * float64(vectors) * float64(s.Model.Params())
}

// held is how many models nodes of these roles hold. Those of a joint role have one among them.
func held(roles []train.Role) (n int) {
	joint := map[string]bool{}
	for _, r := range roles {
		if r.Holds && !joint[r.Name] {
			n++
			joint[r.Name] = r.Joint
		}
	}
	return n
}

// teamVectors is how many vectors as long as a model the threads of a node have: the one that they
// share, and what each has read and its gradient; none where there is one thread.
func teamVectors(s *catalog.Spec, node int) int {
	if n := s.Plan.Nodes[node].Compute.Threads; n > 1 {
		return 1 + 2*n
	}
	return 0
}

// affordable returns an error about the first point whose models do not fit into the memory that
// this process may have.
func affordable(points []Point, limit memory.Bound) error {
	for i := range points {
		s := points[i].Spec
		if n := need(s); limit.Bytes > 0 && n > limit.Bytes {
			err := syntax.Errorf(
				s.ModelSection,
				"%d nodes with models of %d parameters need %s of memory or more, and %s %s; give the plan fewer nodes "+
					"or a smaller model",
				len(s.Roles),
				s.Model.Params(),
				memory.Text(n),
				limit.By,
				memory.Text(limit.Bytes),
			)
			return refusal.Input(points[i].About(err))
		}
	}
	return nil
}

// side is how many of some runs fit side by side into the memory that this process may have, at
// least one.
func side(points []Point, limit memory.Bound, most int) int {
	for i := range points {
		if n := need(points[i].Spec); limit.Bytes > 0 && n > 0 {
			most = min(most, int(limit.Bytes/n))
		}
	}
	return max(most, 1)
}
