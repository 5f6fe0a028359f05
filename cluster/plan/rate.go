package plan

import (
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Rate is what a link, an uplink or a downlink carries: bytes a second, or a map that the catalog
// reads, such as {kind: mobile, line: lte-driving-up}.
type Rate struct{ *syntax.Node }

// Unlimited is the rate of what has no bound.
func Unlimited() Rate { return Rate{syntax.NewScalar(unit.ByteRate(0).String())} }

// Unit names the definition of the schema.
func (Rate) Unit() string { return "link-rate" }

// UnmarshalPlan reads a [unit.ByteRate], or keeps a map.
func (r *Rate) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.Map {
		r.Node = n
		return nil
	}
	var constant unit.ByteRate
	if err := constant.UnmarshalPlan(n); err != nil {
		return err
	}
	written, err := constant.MarshalPlan()
	if err != nil {
		return err
	}
	r.Node = n.Clone()
	r.Text = written.Text
	return nil
}

// MarshalPlan writes the form that was chosen.
func (r Rate) MarshalPlan() (*syntax.Node, error) {
	if r.Node == nil {
		return Unlimited().Node, nil
	}
	return r.Node, nil
}
