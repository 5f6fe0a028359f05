package plan

import "iter"

// Links answers what each link of a plan is like.
type Links struct {
	base  LinkSettings
	links []LinkSpec
	last  map[[2]string]int // pair of names as written, directed → place in links, plus 1
	group map[string]string // of a node
}

// Links prepares the plan's network for questions about single pairs.
func (p *Plan) Links() *Links {
	l := &Links{base: p.Network.Default, links: p.Network.Links, last: map[[2]string]int{}, group: p.groups()}
	for i, spec := range p.Network.Links {
		for _, pair := range spec.directions() {
			l.last[pair] = i + 1
		}
	}
	return l
}

// directions lists the pairs of names that the ends stand for.
func (e Ends) directions() [][2]string {
	if len(e.Between) == 2 {
		return [][2]string{{e.Between[0], e.Between[1]}, {e.Between[1], e.Between[0]}}
	}
	return [][2]string{{e.From, e.To}}
}

// Edge returns the settings of the directed edge between two nodes: of the last link in the plan
// that names it, by the nodes, their groups or [Everyone], completed from the network's default.
func (l *Links) Edge(from, to string) LinkSettings {
	last := 0
	for _, a := range [3]string{from, l.group[from], Everyone} {
		for _, b := range [3]string{to, l.group[to], Everyone} {
			last = max(last, l.last[[2]string{a, b}])
		}
	}
	if last == 0 {
		return l.base
	}
	return l.links[last-1].over(l.base)
}

// groups maps each node that is in a group to it.
func (p *Plan) groups() map[string]string {
	groups := map[string]string{}
	for _, n := range p.Nodes {
		if n.Group != "" {
			groups[n.Name] = n.Group
		}
	}
	return groups
}

// Pairs yields the directed pairs of different nodes that e stands for, in the order of the plan's
// nodes, each once.
func (p *Plan) Pairs(e Ends) iter.Seq2[string, string] {
	directions := e.directions()
	return func(yield func(from, to string) bool) {
		for _, a := range p.Nodes {
			for _, b := range p.Nodes {
				named := false
				for _, d := range directions {
					named = named || a.answers(d[0]) && b.answers(d[1])
				}
				if named && a.Name != b.Name && !yield(a.Name, b.Name) {
					return
				}
			}
		}
	}
}

// answers reports whether a link's end with this name means the node, among others.
func (s NodeSpec) answers(name string) bool {
	return name == Everyone || name == s.Name || name == s.Group && name != ""
}
