package federated

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/protos"
)

// Edge aggregators stand between the server and clients, in a tree of any depth (L. Liu et al.,
// "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020, here with one aggregation below
// for each one above). An aggregator is the server of what is directly below it in each round that
// it is drawn for: it sends the model on to those that it draws, takes the mean of their updates,
// and sends that up with their number of samples, so that what the server makes of it is the mean
// of all.
//
// Each draws for itself, and each has a robust mean of its own, of those directly below it. Who is
// below a node that is not there takes no part. An aggregator that gets no update says so.

// edge is what makes an aggregator of a server.
type edge struct {
	above   int    // its position in the view
	served  bool   // it is there
	since   uint64 // the view with which this life began; 0 before that is known
	next    *order // that waits for this life to begin; nil for none
	updates *protos.Messages[*protos.ClientUpdate]
}

// order is work for an aggregator.
type order struct {
	view, round uint64
	params      *protos.Tensor
}

// parents says for each member of a view which one is above it: the server where nothing else is
// said, and -1 for the server.
func (a *Architecture) parents(members []actors.Member) []int {
	server := slices.IndexFunc(members, func(m actors.Member) bool { return m.Role == RoleServer })
	parents := slices.Repeat([]int{server}, len(members))
	if parents[server] = -1; a.Under == nil {
		return parents
	}
	places := make(map[string]int, len(members))
	for i := range members {
		places[members[i].Name] = i
	}
	for _, above := range slices.Sorted(maps.Keys(a.Under)) {
		for _, name := range a.Under[above] {
			if i, exact := places[name]; exact {
				parents[i] = places[above]
				continue
			}
			for i := range members {
				if ofGroup(name, members[i].Name) {
					parents[i] = places[above]
				}
			}
		}
	}
	return parents
}

// lost is the end of a run without its server.
const lost = "%s has gone, and with it the model"

// ofGroup reports whether a node is one of a group: its name and a number.
func ofGroup(group, node string) bool {
	number, of := strings.CutPrefix(node, group)
	return of && number != "" && strings.Trim(number, "0123456789") == ""
}

// below are the nodes directly below this one that are there, ascending, if they are clients or
// have clients below them that they reach.
func (s *server) below() []int {
	view := s.env.View()
	clients := view.Role(RoleClient)
	if s.arch.Under == nil {
		return clients
	}
	var nodes []int
	for _, node := range clients {
		for node >= 0 && view.Members[node].Present && s.parents[node] != s.env.Node() {
			node = s.parents[node]
		}
		if node >= 0 && view.Members[node].Present {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// follow ends the run if the server has gone from above.
func (e *edge) follow(env actors.Env) {
	before, above := e.served, &env.View().Members[e.above]
	if e.served = above.Present; before && !e.served && above.Role == RoleServer {
		actors.Fail(env, lost, above.Name)
	}
}

// order takes in work from above.
func (s *server) order(ctx actor.Context, head *protos.ClientWork, m *protos.Message) {
	if s.edge == nil {
		actors.Unexpected(s.env, m)
		return
	}
	if len(m.Tensors) != 1 || len(m.Tensors[0].Data) != s.task.Model.Params() {
		actors.Fail(s.env, "work of round %d has not one tensor of %d values", head.Round, s.task.Model.Params())
		return
	}
	if s.edge.next != nil {
		s.edge.next.params.Release()
	}
	s.edge.next = &order{view: head.View, round: head.Round, params: m.Take(0)}
	s.forward(ctx)
}

// start begins this life. Work may have come before.
func (s *server) start(ctx actor.Context, head *protos.Start) {
	if s.edge == nil {
		s.begin(ctx)
		return
	}
	s.edge.since, s.edge.served = max(head.View, 1), s.env.View().Members[s.edge.above].Present
	s.forward(ctx)
}

// forward begins the round that work from above is of, if this life has begun and it is not meant
// for a former one. What is left of an earlier round is given up.
func (s *server) forward(ctx actor.Context) {
	next := s.edge.next
	if s.edge.since == 0 || next == nil {
		return
	}
	if s.edge.next = nil; next.view < s.edge.since || next.round <= s.round {
		next.params.Release()
		return
	}
	for i := range s.members {
		c := &s.members[i]
		if s.give(c); c.update != nil {
			c.update.delta.Release()
			c.update = nil
		}
	}
	s.params.Release()
	s.params, s.drawn, s.round = next.params, 0, next.round-1
	if below := s.below(); len(below) > 0 {
		s.lead(ctx, len(below))
		return
	}
	s.round++
	s.report(ctx, nil)
}

// report sends up the mean of the updates of a round, which it takes over, or that there is none.
func (s *server) report(ctx actor.Context, updates []*update) {
	var tensors []*protos.Tensor
	samples, steps := 0, 0.0
	if len(updates) > 0 {
		for _, u := range updates {
			samples += u.done.Samples
			steps = max(steps, u.done.Steps)
		}
		tensors = append(tensors, s.mean(updates))
	}
	m, head := s.edge.updates.Get(tensors...)
	head.Node, head.Round = int32(s.env.Node()), s.round
	head.Samples, head.Steps = uint64(samples), uint64(max(steps, 1))
	ctx.Send(s.env.View().Members[s.edge.above].PID, m)
}

// checkEdges returns an error about the first field that makes no sense with aggregators, a
// [*field.Error].
func (a *Architecture) checkEdges() error {
	switch {
	case a.Under == nil:
		return nil
	case a.Weights != periodic.Samples:
		return field.Errorf(*a, "Weights", "samples where under is given: aggregators tell how many they speak for")
	case a.Controls:
		return field.Errorf(*a, "Controls", "false where under is given: aggregators know of no controls")
	case a.Deadline > 0:
		return field.Errorf(*a, "Deadline", "left out where under is given: aggregators wait for those below")
	case a.Grace != nil:
		return field.Errorf(*a, "Grace", "left out where under is given: aggregators wait for those below")
	case a.Population > 0:
		return field.Errorf(*a, "Population", "left out where under is given: aggregators know of nodes alone")
	case a.Buffer > 0:
		return field.Errorf(*a, "Buffer", "left out where under is given: aggregators work in rounds")
	case a.Exchange != PseudoGradient:
		return field.Errorf(*a, "Exchange", "pseudo-gradient where under is given")
	}
	return nil
}

// fitEdges returns an error about what stands below what among the nodes of a run.
func (a *Architecture) fitEdges(members []actors.Member) error {
	known, above := map[string]int{}, map[int]string{}
	for i, m := range members {
		known[m.Name] = i
	}
	for _, name := range slices.Sorted(maps.Keys(a.Under)) {
		if i, there := known[name]; !there || members[i].Role != RoleAggregator {
			return field.Errorf(*a, "Under", "a map of aggregators; %q is none", name)
		}
		for _, below := range a.Under[name] {
			found := false
			for i, m := range members {
				_, exact := known[below]
				if m.Name != below && (exact || !ofGroup(below, m.Name)) {
					continue
				}
				if m.Role == RoleServer || above[i] != "" {
					return field.Errorf(*a, "Under", "a map that has each client and aggregator once; %s is not",
						m.Name)
				}
				found, above[i] = true, name
			}
			if !found {
				return field.Errorf(*a, "Under", "a map to names of nodes or groups; %q is none", below)
			}
		}
	}
	return a.fitTree(members)
}

// fitTree returns an error about aggregators that are below themselves, and means that no round of
// one of them can have.
func (a *Architecture) fitTree(members []actors.Member) error {
	parents, below := a.parents(members), make([]int, len(members))
	for i := range members {
		steps := 0
		for node := i; node >= 0; node = parents[node] {
			if steps++; steps > len(members) {
				return field.Errorf(*a, "Under", "a tree; %s is below itself", members[i].Name)
			}
		}
		if parents[i] >= 0 {
			below[parents[i]]++
		}
	}
	for i, m := range members {
		if m.Role == RoleClient || m.Role == RoleAggregator && below[i] == 0 {
			continue
		}
		updates, _ := a.wanted(cmp.Or(a.Population, below[i]))
		if a.asynchronous() {
			updates = min(a.Buffer, below[i])
		}
		if err := a.Mean.Check(updates); err != nil {
			return field.Within(*a, "Mean", field.Errorf(a.Mean, "Attackers",
				"fewer, for as many updates as a round of %s wants: %v", m.Name, err))
		}
	}
	return nil
}
