package federated

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/protos"
)

// With a population the nodes are hosts of clients, who are far more: virtual clients, as
// simulators of federated learning have them (D. J. Beutel et al., "Flower: A Friendly Federated
// Learning Research Framework", arXiv 2007.14390; M. Hipolito Garcia et al., "FLUTE: A Scalable,
// Extensible Framework for High-Performance Federated Learning Simulations", arXiv 2203.13789). A
// client is made from its number when it has been drawn and its turn comes, and is forgotten
// with its update. Those who are not drawn take neither memory nor time.

var _ train.Populated = Architecture{}

// Registered implements [train.Populated].
func (a Architecture) Registered() int { return a.Population }

// checkPopulation returns an error about what cannot go with clients that are made anew.
func (a *Architecture) checkPopulation() error {
	const because = "with a population, whose clients keep nothing between rounds"
	switch {
	case a.Population == 0:
		return nil
	case a.Controls:
		return field.Errorf(a, "Controls", "false "+because)
	case a.State == periodic.Kept:
		return field.Errorf(a, "State", "fresh "+because)
	case a.asynchronous():
		return field.Errorf(a, "Buffer", "left out with a population, which is drawn for rounds")
	case a.Attack != nil:
		return field.Errorf(a, "Population", "left out with attack: attackers are nodes, on which all take turns")
	}
	return nil
}

// deal draws a number of clients of the population for a round, deals them out to the hosts, and
// sends each of these the round's model once.
func (s *server) deal(ctx actor.Context, drawn int) {
	hosts := s.env.View().Role(RoleClient)
	s.missing, s.drawn, s.members = drawn, drawn, s.members[:0]
	for i, client := range sample(s.env.Rand("clients of a round"), s.arch.Population, drawn) {
		s.members = append(s.members, member{node: hosts[i%len(hosts)], client: client, awaited: s.round})
	}
	for i, node := range hosts[:min(len(hosts), drawn)] {
		m, head := s.work(0)
		head.Clients = head.Clients[:0]
		for k := i; k < drawn; k += len(hosts) {
			head.Clients = append(head.Clients, s.members[k].client)
		}
		ctx.Send(s.env.View().Members[node].PID, m)
	}
}

// sample draws k of n numbers, each set of them as likely as any other, in ascending order. It is
// Floyd's algorithm, which takes as long as k is large (J. Bentley and B. Floyd, "Programming
// Pearls: A Sample of Brilliance", CACM 1987).
func sample(random *rand.Rand, n, k int) []uint32 {
	sample, taken := make([]uint32, 0, k), make(map[uint32]bool, k)
	for last := n - k; last < n; last++ {
		drawn := uint32(random.IntN(last + 1))
		if taken[drawn] {
			drawn = uint32(last)
		}
		taken[drawn] = true
		sample = append(sample, drawn)
	}
	slices.Sort(sample)
	return sample
}

// member is whom an update is of. One who was not drawn for this round is not awaited.
func (s *server) member(head *protos.ClientUpdate) *member {
	if s.arch.Population == 0 {
		return &s.members[head.Node]
	}
	i, drawn := slices.BinarySearchFunc(s.members, head.Client,
		func(c member, client uint32) int { return cmp.Compare(c.client, client) })
	if !drawn {
		return &member{}
	}
	return &s.members[i]
}

// hosted reports whether work is for clients that there can be on this node.
func (c *client) hosted(clients []uint32) bool {
	if c.arch.Population == 0 {
		return len(clients) == 0
	}
	strange := func(client uint32) bool { return int(client) >= c.arch.Population }
	return len(clients) > 0 && !slices.ContainsFunc(clients, strange)
}
