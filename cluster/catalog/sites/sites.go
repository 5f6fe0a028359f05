// Package sites says which links the nodes of a plan have by a matrix of delays between sites, and
// where each node is.
package sites

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// maxSited bounds the names of nodes and groups that have a site: each pair of them is a link.
const maxSited = 512

// sited is a name of a plan and where those are that it stands for.
type sited struct {
	name   string
	site   int
	degree int // how special the name is: everyone's, a group's, a node's
}

// Implied returns the links between the nodes of a plan whose network names the sites of a matrix,
// and the number of each node's site. Errors say where in the plan they come from.
func Implied(p *plan.Plan, m *link.Matrix) (links []plan.LinkSpec, sites []int32, err error) {
	names, err := sitedNames(p, m)
	if err != nil {
		return nil, nil, err
	}
	all := p.Names()
	sites = make([]int32, len(p.Nodes))
	for i, a := range names {
		for _, node := range all[a.name] {
			sites[node] = int32(a.site) // the most special name counts
		}
		for _, b := range names[:i+1] {
			links = append(links, implied(all, m, a, b)...)
		}
	}
	return links, sites, nil
}

// sitedNames are the names of a plan that have a site, from the most general to the most special
// ones: of links that name a pair the last one counts.
func sitedNames(p *plan.Plan, m *link.Matrix) ([]sited, error) {
	n := &p.Network
	sites := n.Sites
	if len(sites) == 0 {
		for i := range p.Nodes {
			sites = append(sites, plan.Site{Of: p.Nodes[i].Name, Name: p.Nodes[i].Name, Source: n.Source.At("matrix")})
		}
	}
	groups := map[string]bool{}
	for i := range p.Nodes {
		groups[p.Nodes[i].Group] = true
	}
	var names []sited
	has := map[string]bool{}
	for _, s := range sites {
		at := slices.Index(m.Sites, s.Name)
		if at < 0 {
			return nil, syntax.Errorf(s.Source, "there is no site named %s%s", syntax.Quote(s.Name),
				syntax.Suggest(s.Name, "known", m.Sites))
		}
		degree := 2
		switch {
		case s.Of == plan.Everyone:
			degree = 0
		case groups[s.Of]:
			degree = 1
		}
		names = append(names, sited{s.Of, at, degree})
		has[s.Of] = true
	}
	if len(names) > maxSited {
		return nil, syntax.Errorf(n.Source.At("sites"), "%d names have a site, at most %d may; name groups of nodes",
			len(names), maxSited)
	}
	for i := range p.Nodes {
		if spec := &p.Nodes[i]; !has[spec.Name] && !has[spec.Group] && !has[plan.Everyone] {
			return nil, syntax.Errorf(n.Source.At("sites"), "%s has no site; name one for it, for its group, or for "+
				"\"*\", which is everyone else", spec.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b sited) int { return cmp.Compare(a.degree, b.degree) })
	return names, nil
}

// implied are the links between those whom two names stand for.
func implied(all plan.Names, m *link.Matrix, a, b sited) (links []plan.LinkSpec) {
	there, back := m.Delay(a.site, b.site), m.Delay(b.site, a.site)
	ends := []plan.Ends{{Between: []string{a.name, b.name}}}
	if there != back {
		ends = []plan.Ends{{From: a.name, To: b.name}, {From: b.name, To: a.name}}
	}
	for i, e := range ends {
		if all.Count(e) == 0 {
			continue
		}
		delay := syntax.NewText(fmt.Sprint(unit.Duration([]time.Duration{there, back}[i])))
		links = append(links, plan.LinkSpec{Ends: e, LinkSettings: plan.LinkSettings{
			Delay: delay, Source: syntax.NewMap(syntax.Entry("delay", delay))}})
	}
	return links
}
