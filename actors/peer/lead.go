package peer

import (
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Lead bounds how many steps a peer may be ahead of the slowest, as far as it knows: by
// a vector clock, the finished steps of every node, which travels with models and by
// itself. As in stale synchronous parallel, a peer that has finished c steps may begin another
// iff every other present node of its role has finished at least c − bound (Q. Ho et al.,
// "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS
// 2013, section 3).
//
// Peers with a bound announce their clock after every step, and what they learn while they wait: so
// everybody who waits hears in the end that it need not. On a complete topology each tells only the
// hub, which is the first node that is present, and the hub tells all others when the least that
// anybody has finished has risen: 2·n messages a step instead of n², for one more delay. It has
// heard from everybody, so that those who wait for more wait for somebody's step. A new view may
// have another hub, and newcomers: everybody tells its hub again, and the hub all others. Without a
// bound nothing is sent and nothing waits.
type Lead struct {
	env    actors.Env
	bound  uint64
	clock  []uint64 // nil without a bound
	clocks *protos.Messages[*protos.Clock]

	// What was announced last on a complete topology: by the hub the least, by the others what they
	// had finished themselves; and the number of the view.
	told, since uint64
}

// NewLead returns the clock of a peer. A negative bound is none.
func NewLead(env actors.Env, bound int) *Lead {
	l := &Lead{env: env}
	if bound >= 0 {
		l.bound, l.since = uint64(bound), env.View().Number
		l.clock = make([]uint64, len(env.View().Members))
		l.clocks = protos.NewMessages(func() *protos.Clock { return &protos.Clock{} })
	}
	return l
}

// Bounded reports whether there is a bound.
func (l *Lead) Bounded() bool { return l.clock != nil }

// Finish notes that this peer has finished a number of steps.
func (l *Lead) Finish(steps uint64) {
	if l.clock != nil {
		l.clock[l.env.Node()] = steps
	}
}

// Merge takes in another peer's clock and reports whether it said anything new. A clock of
// another length says nothing.
func (l *Lead) Merge(clock []uint64) (news bool) {
	if len(clock) != len(l.clock) {
		return false
	}
	for i, steps := range clock {
		if steps > l.clock[i] && i != l.env.Node() {
			l.clock[i] = steps
			news = true
		}
	}
	return news
}

// Slowest returns the position of a present node of this peer's role for which the next
// step must wait, the first of those furthest behind; ok is false if none need be
// waited for.
func (l *Lead) Slowest() (node int, ok bool) {
	if l.clock == nil {
		return 0, false
	}
	members := l.env.View().Members
	self := l.env.Node()
	slowest := self
	for i := range members {
		if members[i].Present && members[i].Role == members[self].Role && l.clock[i] < l.clock[slowest] {
			slowest = i
		}
	}
	return slowest, l.clock[self]-l.clock[slowest] > l.bound
}

// Waiting says whom the bound makes this peer wait for, and how far both are as far as it
// knows; it is empty if nobody.
func (l *Lead) Waiting() string {
	node, wait := l.Slowest()
	if !wait {
		return ""
	}
	return fmt.Sprintf("%s because of lead: %d (it has finished %d steps and knows of %d there)",
		l.env.View().Members[node].Name, l.bound, l.clock[l.env.Node()], l.clock[node])
}

// Append appends the clock to what a head holds.
func (l *Lead) Append(clock []uint64) []uint64 { return append(clock, l.clock...) }

// Announce tells the clock to those who pass it on: to all present neighbours, or to the hub where
// the topology is complete. What the hub knows already is not repeated.
func (l *Lead) Announce(ctx actor.Context) {
	view, self := l.env.View(), l.env.Node()
	switch {
	case l.clock == nil || view.Degree(self) == 0:
	case !view.Complete():
		l.tell(ctx, view.Neighbours(self)...)
	case l.hub() == self:
		l.Relay(ctx)
	case l.told != l.clock[self] || l.since != view.Number:
		l.told, l.since = l.clock[self], view.Number
		l.tell(ctx, l.hub())
	}
}

// Relay lets the hub of a complete topology tell all others the clock if the slowest of them have
// moved on, and everybody tell its part again if the view is new. It does nothing elsewhere. A peer
// calls it after every message.
func (l *Lead) Relay(ctx actor.Context) {
	view, self := l.env.View(), l.env.Node()
	if l.clock == nil || !view.Complete() || view.Degree(self) == 0 {
		return
	}
	if l.hub() != self {
		if l.since != view.Number {
			l.Announce(ctx)
		}
		return
	}
	if least := l.least(); least > l.told || l.since != view.Number {
		l.told, l.since = least, view.Number
		l.tell(ctx, view.Neighbours(self)...)
	}
}

// hub is the first present node of a complete topology.
func (l *Lead) hub() int { return min(l.env.Node(), l.env.View().Neighbour(l.env.Node(), 0)) }

// least is how many steps all present nodes have finished, as far as this peer knows.
func (l *Lead) least() uint64 {
	least := uint64(math.MaxUint64)
	for i, steps := range l.clock {
		if l.env.View().Members[i].Present {
			least = min(least, steps)
		}
	}
	return least
}

// tell tells nodes the clock.
func (l *Lead) tell(ctx actor.Context, nodes ...int) {
	m, head := l.clocks.Get()
	head.Node, head.Clock = int32(l.env.Node()), l.Append(head.Clock[:0])
	m.Retain(len(nodes) - 1)
	for _, node := range nodes {
		ctx.Send(l.env.View().Members[node].PID, m)
	}
}

// LeadMessages is how many messages a step of a peer takes by which peers hear of each other's
// steps: none without a bound, on a complete topology one to the hub and one from it, elsewhere one
// to each neighbour.
func LeadMessages(lead, neighbours, peers int) float64 {
	switch {
	case lead < 0:
		return 0
	case neighbours == peers-1:
		return float64(min(neighbours, 2))
	}
	return float64(neighbours)
}
