package plan

import (
	"cmp"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Cut are the sides of a cut, one or two, each the names of nodes, groups or sites. Messages
// between nodes of the two are as during an outage of their links, both ways; of one side alone,
// those between its nodes and all others. What reaches the coordinator still does.
type Cut [][]string

const cutForms = "accepted are [a, b], of which either may be a list of several, and a name alone, which is cut off " +
	"from everyone else"

// UnmarshalPlan reads a name, or a list of one or two sides, each a name or a list of names.
func (c *Cut) UnmarshalPlan(n *syntax.Node) error {
	*c = nil
	sides := []*syntax.Node{n}
	if n.Kind == syntax.List {
		sides = n.Items
	}
	if len(sides) < 1 || len(sides) > 2 {
		return syntax.Errorf(n, "%d sides; %s", len(sides), cutForms)
	}
	for _, side := range sides {
		var names []string
		switch {
		case side.Kind == syntax.Scalar:
			names = []string{side.Text}
		case side.Kind != syntax.List || len(side.Items) == 0:
			return syntax.Errorf(side, "found %s; %s", syntax.Found(side), cutForms)
		default:
			if err := settings.Decode(side, &names); err != nil {
				return err
			}
		}
		*c = append(*c, names)
	}
	return nil
}

// PlanSchema is a name, or a list of one or two sides.
func (*Cut) PlanSchema() *settings.Schema {
	name := settings.SchemaOf(new(string))
	names := &settings.Schema{Type: settings.Types{"array"}, Items: name, MinItems: 1}
	return &settings.Schema{AnyOf: []*settings.Schema{name, {Type: settings.Types{"array"}, MinItems: 1, MaxItems: 2,
		Items: &settings.Schema{AnyOf: []*settings.Schema{name, names}}}}}
}

// Sides says of each node of the plan on which side of a cut it is, 1 or 2; 0 for neither.
func (p *Plan) Sides(cut Cut) []int8 {
	sides := make([]int8, len(p.Nodes))
	named := p.placed()
	for i, names := range cut {
		for _, name := range names {
			for _, node := range named[name] {
				sides[node] = int8(i + 1)
			}
		}
	}
	if len(cut) == 1 {
		for i := range sides {
			sides[i] = 2 - sides[i]
		}
	}
	return sides
}

// Places are the sites that the plan gives its nodes: by their own names, by their groups', or by
// [Everyone]; empty for a node without one.
func (p *Plan) Places() []string {
	of := map[string]string{}
	for _, site := range p.Network.Sites {
		of[site.Of] = site.Name
	}
	at := make([]string, len(p.Nodes))
	for i, n := range p.Nodes {
		at[i] = cmp.Or(of[n.Name], of[n.Group], of[Everyone])
	}
	return at
}

// placed lists the nodes that each name of a node, a group or a site stands for, ascending. A name
// that is a node's or a group's is not a site's.
func (p *Plan) placed() Names {
	names, sites := p.Names(), Names{}
	for node, site := range p.Places() {
		if _, taken := names[site]; site != "" && !taken {
			sites[site] = append(sites[site], int32(node))
		}
	}
	for site, nodes := range sites {
		names[site] = nodes
	}
	return names
}

// cutChange checks a cut of the schedule.
func (c *check) cutChange(p *Plan, change Change) {
	if change.For == 0 {
		c.errorf(change.Source, "how long the cut lasts is missing; give for: 15s")
	}
	named, at := p.placed(), change.Source.At("cut")
	side := map[int32]int{}
	for i, names := range change.Cut {
		for _, name := range names {
			nodes, known := named[name]
			if !known || name == Everyone {
				words := slices.Clone(c.known)
				for _, site := range p.Network.Sites {
					if !slices.Contains(words, site.Name) {
						words = append(words, site.Name)
					}
				}
				c.errorf(at, "there is no node, group or site named %s%s", syntax.Quote(name),
					syntax.Suggest(name, "known", words))
				return
			}
			for _, node := range nodes {
				if before, twice := side[node]; twice && before != i {
					c.errorf(at, "node %s is on both sides of the cut", p.Nodes[node].Name)
					return
				}
				side[node] = i
			}
		}
	}
	if len(change.Cut) == 1 && len(side) == len(p.Nodes) {
		c.errorf(at, "nobody is left on the other side of the cut")
	}
}
