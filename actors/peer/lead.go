package peer

import (
	"fmt"

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
// Peers with a bound announce their clock after every step, and what they learn while
// they wait: so everybody who waits hears in the end that it need not. Without a bound
// nothing is sent and nothing waits.
type Lead struct {
	env    actors.Env
	bound  uint64
	clock  []uint64 // nil without a bound
	clocks *protos.Messages[*protos.Clock]
}

// NewLead returns the clock of a peer. A negative bound is none.
func NewLead(env actors.Env, bound int) *Lead {
	l := &Lead{env: env}
	if bound >= 0 {
		l.bound = uint64(bound)
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

// Announce tells all present neighbours the clock.
func (l *Lead) Announce(ctx actor.Context) {
	if l.clock == nil {
		return
	}
	view, self := l.env.View(), l.env.Node()
	neighbours := view.Degree(self)
	if neighbours == 0 {
		return
	}
	m, head := l.clocks.Get()
	head.Node, head.Clock = int32(self), l.Append(head.Clock[:0])
	m.Retain(neighbours - 1)
	for _, node := range view.Neighbours(self) {
		ctx.Send(view.Members[node].PID, m)
	}
}
