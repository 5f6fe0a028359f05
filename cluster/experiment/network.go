package experiment

import (
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/refusal"
)

// Network is what a plan emulates between its nodes at one of its points.
type Network struct {
	Plan   string
	Seed   uint64
	Labels []plan.Label // of the point
	Point  int          // its number, from 1
	Points int          // of the plan
	// Edges is how many directed edges the topologies have: those between neighbours, but not
	// between two nodes that train where others do not, since these are the servers.
	Edges int
	// Lines are these edges by source and destination; if there are more than was asked for, as
	// many of them, evenly chosen.
	Lines []link.Line
	// Delays and Rates are those of Lines at the beginning of the run, as the plan writes them.
	Delays, Rates []*syntax.Node
}

// Network resolves the network of a point, the first being 1, without data. It returns at most most
// lines. A nil catalog stands for catalog.Default().
func (p *Plan) Network(c *catalog.Catalog, number, most int) (*Network, error) {
	points, err := p.Points(c)
	if err != nil {
		return nil, err
	}
	if number < 1 || number > len(points) {
		return nil, refusal.Input(fmt.Errorf("point %d of %s; accepted is 1 to %d", number, p.file, len(points)))
	}
	at := points[number-1]
	spec := at.Spec
	if spec.Plan.Network.None {
		return nil, refusal.Input(fmt.Errorf("%s says network: none; nothing is emulated, so that there is nothing "+
			"to probe", p.file))
	}
	names := at.names()
	graphs, err := at.graphs(spec.Plan.Seed, names)
	if err != nil {
		return nil, refusal.Input(err)
	}
	n := &Network{Plan: spec.Plan.Name, Seed: spec.Plan.Seed, Labels: at.Labels, Point: number, Points: len(points)}
	l, settings := newLines(spec), spec.Plan.Links()
	l.each(graphs, func(_, _ int) { n.Edges++ })
	taken, k := min(n.Edges, most), 0
	l.each(graphs, func(from, to int) {
		if len(n.Lines) < taken && k == len(n.Lines)*n.Edges/taken {
			n.Lines = append(n.Lines, l.line(from, to))
			edge := settings.Edge(names[from], names[to])
			n.Delays, n.Rates = append(n.Delays, edge.Delay), append(n.Rates, edge.Rate.Node)
		}
		k++
	})
	return n, nil
}

// lines finds what the edges of a point are like.
type lines struct {
	spec   *catalog.Spec
	served bool // there are nodes that do not train
}

func newLines(spec *catalog.Spec) *lines {
	l := &lines{spec: spec}
	for _, r := range spec.Roles {
		l.served = l.served || !r.Trains
	}
	return l
}

// each visits the directed edges of graphs by source and destination.
func (l *lines) each(graphs []actors.Graph, visit func(from, to int)) {
	complete := slices.ContainsFunc(graphs, func(g actors.Graph) bool { return g == nil })
	count := len(l.spec.Roles)
	var neighbours []int32
	for from := range count {
		if complete {
			for to := range count {
				l.consider(from, to, visit)
			}
			continue
		}
		neighbours = neighbours[:0]
		for _, g := range graphs {
			neighbours = append(neighbours, g[from]...)
		}
		slices.Sort(neighbours)
		for _, to := range slices.Compact(neighbours) {
			l.consider(from, int(to), visit)
		}
	}
}

func (l *lines) consider(from, to int, visit func(from, to int)) {
	between := l.served && l.spec.Roles[from].Trains && l.spec.Roles[to].Trains
	if from != to && !between {
		visit(from, to)
	}
}

func (l *lines) line(from, to int) link.Line {
	a, b := &l.spec.Plan.Nodes[from], &l.spec.Plan.Nodes[to]
	course := l.spec.Links.Between(int32(from), int32(to))
	near, far := &l.spec.Access[from], &l.spec.Access[to]
	return link.Line{
		From: a.Name, To: b.Name, Config: course.Config, Changes: course.Changes,
		Uplink: near.Uplink, Downlink: far.Downlink, Leaving: near.Delay, Reaching: far.Delay,
		Fair: l.spec.Plan.Network.Fair,
	}
}
