package plan

import (
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Site says where a node is, the nodes of a group, or [Everyone] who is not named otherwise.
type Site struct {
	Of, Name string
	// Source is the syntax that the site's name was read from, for errors.
	Source *syntax.Node
}

// Sites are where nodes are, in the order of the plan.
type Sites []Site

// UnmarshalPlan reads a map from names to sites.
func (s *Sites) UnmarshalPlan(n *syntax.Node) error {
	*s = nil
	if n.Kind != syntax.Map {
		return syntax.Errorf(n, "found %s; accepted is a map from nodes or groups to sites, such as {server: fra, "+
			"phones: lhr}, with \"*\" for everyone else", syntax.Found(n))
	}
	var errs syntax.Errors
	for _, f := range n.Fields {
		site := Site{Of: f.Key, Source: f.Value}
		err := settings.Decode(f.Value, &site.Name)
		errs = append(errs, syntax.Flatten(f.Value, err)...)
		*s = append(*s, site)
	}
	return syntax.Join(errs)
}

// MarshalPlan writes the map.
func (s Sites) MarshalPlan() (*syntax.Node, error) {
	var fields []syntax.Field
	for _, site := range s {
		fields = append(fields, syntax.Entry(site.Of, syntax.NewText(site.Name)))
	}
	return syntax.NewMap(fields...), nil
}

// PlanSchema is a map of texts.
func (s *Sites) PlanSchema() *settings.Schema { return settings.SchemaOf(&map[string]string{}) }

// sites checks what is said of sites, as far as it needs no names of sites.
func (c *check) sites(p *Plan) {
	network, n := c.root.At("network"), &p.Network
	switch {
	case n.Preset != "" && n.Matrix != "":
		c.errorf(network.At("matrix"), "a matrix beside a preset; delays between sites come from one of them")
	case n.Preset != "" && len(n.Sites) == 0:
		c.errorf(network.At("preset"), "a preset needs sites: where each node is, such as sites: {server: fra, "+
			"phones: lhr}")
	case len(n.Sites) > 0 && n.Preset == "" && n.Matrix == "":
		c.errorf(network.At("sites"), "sites need a preset or a matrix, which says how far they are from each other")
	}
	for _, site := range n.Sites {
		if _, known := c.first[site.Of]; !known && site.Of != Everyone {
			c.errorf(site.Source, "there is no node named %s%s", syntax.Quote(site.Of),
				syntax.Suggest(site.Of, "known", c.known))
		}
	}
}
