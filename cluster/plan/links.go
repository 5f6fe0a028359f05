package plan

import (
	"iter"
	"slices"
)

// Links answers what each link of a plan is like.
type Links struct {
	base  LinkSettings
	links []LinkSpec
	last  map[[2]string]int // pair of names as written, directed → place in links, plus 1
	group map[string]string // of a node
}

// Links prepares the plan's network for questions about single pairs.
func (p *Plan) Links() *Links {
	l := &Links{base: p.Network.Default, links: p.Network.All(), last: map[[2]string]int{}, group: p.groups()}
	for i, spec := range l.links {
		for _, pair := range spec.Directions() {
			l.last[pair] = i + 1
		}
	}
	return l
}

// All are the links of the network: those that follow from sites, then those of the plan.
func (s *NetworkSpec) All() []LinkSpec { return slices.Concat(s.Implied, s.Links) }

// Directions lists the pairs of names that the ends stand for.
func (e Ends) Directions() [][2]string {
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

// Names says which nodes each name of a plan stands for.
type Names map[string][]int32

// Names lists the positions of the nodes, ascending, that each name stands for: a node's own, its
// group's, and [Everyone].
func (p *Plan) Names() Names {
	names := make(Names, len(p.Nodes)+1)
	everyone := make([]int32, len(p.Nodes))
	for i, n := range p.Nodes {
		everyone[i] = int32(i)
		names[n.Name] = everyone[i : i+1 : i+1]
		if n.Group != "" {
			names[n.Group] = append(names[n.Group], int32(i))
		}
	}
	names[Everyone] = everyone
	return names
}

// Pairs yields the directed pairs of different nodes that e stands for, by their positions, in the
// order of the plan's nodes, each once. Nodes that e does not name are not visited.
func (n Names) Pairs(e Ends) iter.Seq2[int32, int32] {
	ends := e.Directions()
	from, to := n[ends[0][0]], n[ends[0][1]]
	either := from
	if len(ends) == 2 {
		either = union(from, to)
	}
	return func(yield func(from, to int32) bool) {
		for _, a := range either {
			_, forth := slices.BinarySearch(from, a)
			others := to
			if len(ends) == 2 {
				if _, back := slices.BinarySearch(to, a); back && forth {
					others = either
				} else if back {
					others = from
				}
			}
			for _, b := range others {
				if a != b && !yield(a, b) {
					return
				}
			}
		}
	}
}

// Count is how many pairs there are that Pairs yields.
func (n Names) Count(e Ends) int {
	ends := e.Directions()
	from, to := n[ends[0][0]], n[ends[0][1]]
	common, few, many := 0, from, to
	if len(few) > len(many) {
		few, many = many, few
	}
	for _, a := range few {
		if _, both := slices.BinarySearch(many, a); both {
			common++
		}
	}
	if len(ends) == 2 {
		return 2*len(from)*len(to) - common*common - common
	}
	return len(from)*len(to) - common
}

// union merges two ascending lists.
func union(a, b []int32) []int32 {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}
