package catalog

import (
	"slices"
	"strings"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// An architecture gives the nodes of a plan their roles, so that one plan serves architectures of
// other roles. In this order:
//
//  1. A role that `roles:` names has the nodes that it names, or one that is added.
//  2. A node with a `role:` that the architecture knows, and that `roles:` does not name, has that
//     role.
//  3. A role with a greatest number of nodes, or one that more nodes have by name alone, takes the
//     first nodes that are left, until it has the least number that it needs.
//  4. The one other role takes the rest.

// added is the word for a node that is there for the sake of its role.
const added = "added"

// casting is what `roles:` says of one role.
type casting struct {
	role  string
	at    *syntax.Node   // the value
	key   syntax.Field   // with the place of the role's name
	nodes []*syntax.Node // names of nodes and groups
	added bool           // there are none; one is added
}

// castings are all that `roles:` says, in the order of the file.
type castings struct {
	section *syntax.Node
	list    []casting
}

// UnmarshalPlan reads a map of roles to the name of a node or group, a list of names, or the word
// added.
func (c *castings) UnmarshalPlan(n *syntax.Node) error {
	const forms = "such as {server: hub}: a role, and the name of a node or a group, a list of names, or the word " +
		added
	if n.Kind != syntax.Map {
		return syntax.Errorf(n, "roles are given as a map, %s", forms)
	}
	c.section = n
	for _, f := range n.Fields {
		one := casting{role: f.Key, at: f.Value, key: f}
		switch {
		case f.Value.Kind == syntax.Scalar && f.Value.Text == added:
			one.added = true
		case f.Value.Kind == syntax.Scalar:
			one.nodes = []*syntax.Node{f.Value}
		case f.Value.Kind == syntax.List && len(f.Value.Items) > 0:
			one.nodes = f.Value.Items
		}
		if !one.added && (one.nodes == nil || slices.ContainsFunc(one.nodes,
			func(m *syntax.Node) bool { return m.Kind != syntax.Scalar })) {
			return syntax.Errorf(f.Value, "this names no nodes; give roles %s", forms)
		}
		c.list = append(c.list, one)
	}
	return nil
}

// MarshalPlan is the inverse of UnmarshalPlan.
func (c castings) MarshalPlan() (*syntax.Node, error) { return c.section.Clone(), nil }

// PlanSchema is a map of roles to names.
func (*castings) PlanSchema() *settings.Schema {
	name := &settings.Schema{Type: settings.Types{"string", "number"}}
	names := &settings.Schema{Type: settings.Types{"array"}, Items: name, MinItems: 1}
	return &settings.Schema{Type: settings.Types{"object"},
		Others: &settings.Schema{AnyOf: []*settings.Schema{{Const: added}, name, names}}}
}

// parts are the settings that all architectures share.
type parts struct {
	Roles    castings `plan:"roles,omitzero" doc:"which nodes have which role: a name, a list of names, or added for a node of the default machine; default: by the nodes' role:, then in the order of the nodes"`
	Delivery string   `plan:"delivery,omitzero" words:"reliable|as-is" doc:"reliable: where links lose, repeat or reorder messages, each is sent again until it has come, and handled once and in order; as-is: they come as links have them; default: reliable, of gossip with wait: false and no lead, of gossip-learning and of in-network as-is"`
}

// The keys of parts.
const rolesKey, deliveryKey = "roles", "delivery"

// cast reads the plan's architecture and finds the role of every node.
func (c *Catalog) cast(s *Spec) (err error) {
	section := s.Plan.Architecture
	s.ArchitectureSection = section
	var p parts
	shared := section.Only(rolesKey, deliveryKey)
	if section.Kind == syntax.Map { // c.Architectures reports a word alone
		if err := settings.Decode(shared, &p); err != nil {
			return err
		}
	}
	s.Delivery = p.Delivery
	counting := *c
	s.spans = &spans{}
	counting.spans = s.spans
	s.Architecture, s.Plan.Architecture, err = c.Architectures.read(&counting, section, "kind", rolesKey, deliveryKey)
	s.Counted = s.spans.counted
	if err != nil {
		return err
	}
	if s.Delivery == "as-is" && slices.ContainsFunc(s.Architecture.Roles(), copied) {
		return syntax.Errorf(section.At(deliveryKey), "as-is, where servers have replicas; accepted is reliable")
	}
	s.Plan.Architecture.Fields = append(s.Plan.Architecture.Fields, shared.Only(deliveryKey).Fields...)
	s.given = p.Roles.list
	return nil
}

// roles gives the nodes their roles.
func (c *Catalog) roles(s *Spec) error { return s.assign(s.ArchitectureSection, s.given) }

// copied reports whether nodes of a role have copies of what others hold.
func copied(r train.Role) bool { return r.Copied }

// cast is what gives the nodes of a plan their roles.
type cast struct {
	spec  *Spec
	roles []train.Role
	names []string // of the roles
	role  []int    // of each node; -1 for none yet
	first []int    // nodes that have a role only because they come first
	named []bool   // the roles that are given their nodes by name
}

// assign gives every node its role and checks that each role is filled.
func (s *Spec) assign(section *syntax.Node, given []casting) error {
	c := &cast{spec: s, roles: s.Architecture.Roles()}
	for _, r := range c.roles {
		c.names = append(c.names, r.Name)
	}
	c.named = make([]bool, len(c.roles))
	for range s.Plan.Nodes {
		c.role = append(c.role, -1)
	}
	for _, one := range given {
		if err := c.byName(one); err != nil {
			return err
		}
	}
	if err := c.byNode(); err != nil {
		return err
	}
	if err := c.rest(); err != nil {
		return err
	}
	count := make([]int, len(c.roles))
	for i, k := range c.role {
		count[k]++
		s.Plan.Nodes[i].Role = c.names[k]
		s.Roles = append(s.Roles, c.roles[k])
	}
	for i, r := range c.roles {
		if count[i] < r.Min || (r.Max > 0 && count[i] > r.Max) {
			return syntax.Errorf(section, "%d nodes have the role %s, which %s; this architecture needs %s", count[i],
				r.Name, r.Doc, wanted(r))
		}
	}
	if s.mixed() {
		s.Plan.Architecture = withRoles(s.Plan.Architecture, s.Casting())
	}
	return nil
}

// byName gives a role the nodes that `roles:` names.
func (c *cast) byName(one casting) error {
	k := slices.Index(c.names, one.role)
	if k < 0 {
		return syntax.KeyErrorf(one.at, one.key, "this architecture has no role %q%s", one.role,
			syntax.Suggestion(one.role, c.names))
	}
	c.named[k] = true
	if one.added {
		return c.add(k, one)
	}
	for _, name := range one.nodes {
		found := false
		for i := range c.spec.Plan.Nodes {
			node := &c.spec.Plan.Nodes[i]
			if node.Name != name.Text && (node.Group == "" || node.Group != name.Text) {
				continue
			}
			if c.role[i] >= 0 {
				return syntax.Errorf(name, "node %s has the role %s already; a node has one role", node.Name,
					c.names[c.role[i]])
			}
			found, c.role[i] = true, k
		}
		if !found {
			return syntax.Errorf(name, "there is no node named %q%s", name.Text,
				syntax.Suggestion(name.Text, c.spec.nodeNames()))
		}
	}
	return nil
}

// add adds a node for a role, unless the plan has it: a node that is called like the role, and has
// it.
func (c *cast) add(k int, one casting) error {
	p, name := c.spec.Plan, c.names[k]
	for i := range p.Nodes {
		if node := &p.Nodes[i]; node.Name == name || node.Group == name {
			if node.Name != name || node.Role != name || c.role[i] >= 0 {
				return syntax.Errorf(one.at,
					"the node that is added would be called %s, and there is one of that name; give it another name, "+
						"or say roles: {%s: %s}", name, name, name)
			}
			c.role[i] = k
			c.spec.Added = append(c.spec.Added, name)
			return nil
		}
	}
	node := plan.NodeSpec{Name: name, Source: one.at}
	node.SetDefaults()
	p.Nodes, c.role = append(p.Nodes, node), append(c.role, k)
	c.spec.Added = append(c.spec.Added, name)
	return nil
}

// byNode gives nodes the roles that the plan gives them by themselves.
func (c *cast) byNode() error {
	for i := range c.spec.Plan.Nodes {
		node := &c.spec.Plan.Nodes[i]
		if c.role[i] >= 0 || node.Role == "" {
			continue
		}
		k := slices.Index(c.names, node.Role)
		switch {
		case k >= 0 && !c.named[k]:
			c.role[i] = k
		case k < 0 && !c.spec.Plan.AnyRole:
			return syntax.Errorf(node.Source.At("role"),
				"node %s has the role %q, which this architecture does not know%s",
				node.Name, node.Role, syntax.Suggestion(node.Role, c.names))
		}
	}
	return nil
}

// rest gives the nodes that are left the roles that are left.
func (c *cast) rest() error {
	open := -1
	for k, r := range c.roles {
		few := r.Max > 0 || r.ByName
		if few && !c.named[k] {
			c.take(k, r.Min)
			c.warnUntrained(k)
		}
		if !few && !c.named[k] {
			if open >= 0 {
				open = len(c.roles) // several
			} else {
				open = k
			}
		}
	}
	if len(c.roles) == 1 && !c.named[0] {
		open = 0
	}
	for i, k := range c.role {
		if k >= 0 {
			continue
		}
		if open < 0 || open == len(c.roles) {
			node := &c.spec.Plan.Nodes[i]
			return syntax.Errorf(node.Source.At("role"),
				"node %s is left without a role; give it one of %s, by role: or by the architecture's roles:",
				node.Name, field.List(c.names))
		}
		c.role[i] = open
	}
	return nil
}

// take gives a role the first nodes that are left, until it has the number wanted.
func (c *cast) take(k, wanted int) {
	for _, have := range c.role {
		if have == k {
			wanted--
		}
	}
	for i := range c.role {
		if wanted > 0 && c.role[i] < 0 {
			c.role[i], c.first = k, append(c.first, i)
			wanted--
		}
	}
}

// warnUntrained adds a note about the nodes with role k that do not train only because of their order.
func (c *cast) warnUntrained(k int) {
	var names []string
	for _, i := range c.first {
		node := &c.spec.Plan.Nodes[i]
		if c.role[i] == k && !c.roles[k].Trains && node.Name != c.names[k] && node.Group != c.names[k] {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	given := names[0]
	if len(names) > 1 {
		given = "[" + strings.Join(names, ", ") + "]"
	}
	c.spec.warn(c.spec.ArchitectureSection, "no node has the role %s, so the first has it and trains nothing: %s; "+
		"roles: {%s: %s} says so, and roles: {%s: added} adds a node for it", c.names[k], strings.Join(names, ", "),
		c.names[k], given, c.names[k])
}

// mixed reports whether the nodes of a group have different roles, so that the group cannot say its
// role.
func (s *Spec) mixed() bool {
	for i := 1; i < len(s.Plan.Nodes); i++ {
		a, b := &s.Plan.Nodes[i-1], &s.Plan.Nodes[i]
		if a.Group != "" && a.Group == b.Group && a.Role != b.Role {
			return true
		}
	}
	return false
}

// withRoles is an architecture's section that says which nodes have which role.
func withRoles(section, roles *syntax.Node) *syntax.Node {
	fields := section.Without(rolesKey).Clone().Fields
	return syntax.NewMap(append(fields, syntax.Entry(rolesKey, roles))...)
}

// Casting is what `roles:` has to say for each role to have the nodes that it has: names, of groups
// where all members have the role, or the word added.
func (s *Spec) Casting() *syntax.Node {
	var fields []syntax.Field
	for _, r := range s.Architecture.Roles() {
		if slices.Contains(s.Added, r.Name) {
			fields = append(fields, syntax.Entry(r.Name, syntax.NewScalar(added)))
			continue
		}
		if names := s.holders(r.Name); len(names.Items) == 1 && names.Items[0].Text != added {
			fields = append(fields, syntax.Entry(r.Name, names.Items[0].Clone()))
		} else if len(names.Items) > 0 {
			fields = append(fields, syntax.Entry(r.Name, names))
		}
	}
	return syntax.NewMap(fields...)
}

// holders lists the nodes of a role, groups by their name.
func (s *Spec) holders(role string) *syntax.Node {
	var names []*syntax.Node
	nodes := s.Plan.Nodes
	for i := 0; i < len(nodes); {
		n, all := 1, nodes[i].Role == role
		for nodes[i].Group != "" && i+n < len(nodes) && nodes[i+n].Group == nodes[i].Group {
			all = all && nodes[i+n].Role == role
			n++
		}
		if all && nodes[i].Group != "" {
			names = append(names, syntax.NewText(nodes[i].Group))
			i += n
			continue
		}
		for _, node := range nodes[i : i+n] {
			if node.Role == role {
				names = append(names, syntax.NewText(node.Name))
			}
		}
		i += n
	}
	return syntax.NewList(names...)
}

// nodeNames returns the names of groups and nodes, for suggestions.
func (s *Spec) nodeNames() []string {
	var names []string
	for i := range s.Plan.Nodes {
		if g := s.Plan.Nodes[i].Group; g != "" && !slices.Contains(names, g) {
			names = append(names, g)
		}
		names = append(names, s.Plan.Nodes[i].Name)
	}
	return names
}
