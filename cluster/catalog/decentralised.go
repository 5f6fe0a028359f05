package catalog

import (
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// mixing is a matrix by which peers average: metropolis, or its rows.
type mixing struct{ rows [][]float64 }

const metropolis = "metropolis"

// UnmarshalPlan reads metropolis or a list of rows.
func (m *mixing) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.List {
		return settings.Decode(n, &m.rows)
	}
	if n.Kind != syntax.Scalar || n.Text != metropolis {
		return syntax.Errorf(n, "a mixing matrix is %s or a list of rows, such as [[0.5, 0.5], [0.5, 0.5]]", metropolis)
	}
	m.rows = nil
	return nil
}

// MarshalPlan is the inverse of UnmarshalPlan.
func (m mixing) MarshalPlan() (*syntax.Node, error) {
	if m.rows == nil {
		return syntax.NewText(metropolis), nil
	}
	return settings.Encode(m.rows)
}

// lead is how many steps a peer may be ahead of the slowest, for an optional key; negative is no
// bound.
func lead(bound *int) int {
	if bound == nil {
		return -1
	}
	return *bound
}

// addDecentralised adds the architectures whose peers average models with their neighbours, and the
// one without exchange that they are to be compared with.
func addDecentralised(c *Catalog) {
	type dPSGD struct {
		Matrix mixing  `plan:"matrix" doc:"metropolis, or a list of rows: the weights by which peers average"`
		Moved  float64 `plan:"moved" range:"0.." doc:"only what has moved by more than this (Euclidean norm of the parameters) is sent again; 0 sends always"`
		Lead   *int    `plan:"lead" range:"0.." doc:"steps that no peer may be ahead of the slowest; default: no bound"`
	}
	c.Architectures.Add(Define("d-psgd", "peers without a server average models with all their neighbours after every step (Lian et al. 2017)",
		func() dPSGD { return dPSGD{} },
		func(_ *Catalog, s *dPSGD) (train.Architecture, error) {
			a := dpsgd.Architecture{Matrix: s.Matrix.rows, Moved: s.Moved, Lead: lead(s.Lead)}
			return a, a.Validate()
		}))
	type adPSGD struct {
		Graph string  `plan:"graph" words:"topology|exponential" doc:"whom a peer may choose: neighbours of the network's topology, which must be bipartite, or hops of 2^j + 1"`
		Moved float64 `plan:"moved" range:"0.." doc:"only what has moved by more than this (Euclidean norm of the parameters) is sent again; 0 sends always"`
		Lead  *int    `plan:"lead" range:"0.." doc:"steps that no peer may be ahead of the slowest; default: no bound"`
	}
	c.Architectures.Add(Define("ad-psgd", "peers without a server average models with one random neighbour at a time and wait for nobody else (Lian et al. 2018)",
		func() adPSGD { return adPSGD{Graph: string(adpsgd.Topology)} },
		func(_ *Catalog, s *adPSGD) (train.Architecture, error) {
			a := adpsgd.Architecture{Graph: adpsgd.Graph(s.Graph), Moved: s.Moved, Lead: lead(s.Lead)}
			return a, a.Validate()
		}))
	c.Architectures.Add(Define("local", "the baseline: peers train alone and exchange nothing",
		func() none { return none{} },
		func(*Catalog, *none) (train.Architecture, error) { return local.Architecture{}, nil }))
}
