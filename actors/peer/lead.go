package peer

import (
	"encoding/binary"
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
// A message holds a clock as the number of steps that most nodes have finished, and those nodes
// that are ahead of it or behind it, with the difference: all of them, the absent ones too, so that
// nothing is lost. A node that comes again keeps its number until somebody knows a larger one.
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

	// The node that was furthest behind in the view of this number, and its steps then.
	slowest       int
	looked, least uint64
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

// Merge takes in what another peer knows of all nodes' steps, in the form of Append, and reports
// whether it is new. What that says of this node itself is left out. The run fails if it is in no
// proper form.
func (l *Lead) Merge(from int32, floor uint64, others []byte) (news bool) {
	if l.clock == nil {
		if floor > 0 || len(others) > 0 {
			actors.Fail(l.env, "node %d tells of finished steps, here the lead has no bound", from)
		}
		return false
	}
	self := &l.clock[l.env.Node()]
	own := *self
	*self = math.MaxUint64
	news = l.merge(from, floor, others)
	*self = own
	return news
}

// MergeEarlier is Merge for a peer that has made no step yet. It returns how many steps an earlier
// life of its node had finished, as far as the other peer knows.
func (l *Lead) MergeEarlier(from int32, floor uint64, others []byte) (steps uint64) {
	if l.clock == nil {
		l.Merge(from, floor, others)
		return 0
	}
	l.merge(from, floor, others)
	return l.clock[l.env.Node()]
}

// merge makes every number the larger of the two that are known.
func (l *Lead) merge(from int32, floor uint64, others []byte) (news bool) {
	const heard = 1 << 63 // marks numbers that the floor is not about; no other number has this bit
	sound := floor <= mostSteps
	for next := 0; sound && len(others) > 0; next++ {
		skipped, difference, length := parse(others)
		steps := floor + difference
		if sound = length > 0 && skipped < uint64(len(l.clock)-next) && steps <= mostSteps; sound {
			next += int(skipped)
			news = news || steps > l.clock[next]
			l.clock[next] = max(steps, l.clock[next]) | heard
			others = others[length:]
		}
	}
	if !sound {
		actors.Fail(l.env, "node %d tells of finished steps in no proper form; accepted are up to %d steps, of %d "+
			"nodes", from, uint64(mostSteps), len(l.clock))
	}
	for i, known := range l.clock {
		news = news || known < floor
		l.clock[i] = max(known, floor) &^ heard
	}
	return news
}

// mostSteps bounds what others can say that a node has finished, so that no count wraps around.
const mostSteps = math.MaxInt64

// Append appends what a head holds of the steps that are known of all nodes, and returns the floor
// that it is told against: most nodes have finished as many steps. The form, which loses nothing,
// is that of protos.Model.
func (l *Lead) Append(others []byte) (floor uint64, list []byte) {
	floor = l.common()
	next := 0
	for node, steps := range l.clock {
		if steps != floor {
			others = appendEntry(others, uint64(node-next), steps-floor)
			next = node + 1
		}
	}
	return floor, others
}

// common is how many steps most nodes have finished, or many of them: it is the commonest number
// among a few nodes, where numbers whose last bits are the same count as the largest of them.
func (l *Lead) common() uint64 {
	const few = 64
	var nodes [few]int
	var largest [few]uint64
	most := uint64(0)
	for i := 0; i < len(l.clock); i += 1 + len(l.clock)/few {
		k := l.clock[i] % few
		largest[k] = max(largest[k], l.clock[i])
		if nodes[k]++; nodes[k] > nodes[most] {
			most = k
		}
	}
	return largest[most]
}

// An entry is one varint, or two if the difference, as ZigZag, is larger than wide.
const wide = 7

// appendEntry appends an entry: a number of nodes is skipped, and the next one is off the floor by
// a difference, which is not 0 and may be negative, modulo 2⁶⁴.
func appendEntry(others []byte, skipped, difference uint64) []byte {
	zigzag := difference<<1 ^ uint64(int64(difference)>>63)
	if zigzag <= wide {
		return binary.AppendUvarint(others, skipped<<3|(zigzag-1))
	}
	return binary.AppendUvarint(binary.AppendUvarint(others, skipped<<3|wide), zigzag-wide-1)
}

// parse takes the first entry apart. Its length in bytes is 0 or less if it is cut short or a
// number is too large.
func parse(others []byte) (skipped, difference uint64, length int) {
	entry, length := binary.Uvarint(others)
	zigzag := entry&wide + 1
	if zigzag > wide {
		more, n := binary.Uvarint(others[length:])
		if n <= 0 || more > math.MaxUint64-zigzag {
			return 0, 0, 0
		}
		zigzag += more
		length += n
	}
	return entry >> 3, zigzag>>1 ^ -(zigzag & 1), length
}

// Slowest returns the position of a present node of this peer's role for which the next step must
// wait, the first of those furthest behind; ok is false if none need be waited for.
func (l *Lead) Slowest() (node int, ok bool) {
	if l.clock == nil {
		return 0, false
	}
	slowest := l.furthestBehind()
	return slowest, l.clock[l.env.Node()]-l.clock[slowest] > l.bound
}

// furthestBehind is this peer, or the first present node of its role that has finished the least
// steps. As counts only rise, it is the one found last until its own has risen.
func (l *Lead) furthestBehind() int {
	view := l.env.View()
	if l.looked == view.Number && l.clock[l.slowest] == l.least {
		return l.slowest
	}
	l.looked, l.slowest = view.Number, l.env.Node()
	for _, i := range view.Role(view.Members[l.slowest].Role) {
		if l.clock[i] < l.clock[l.slowest] {
			l.slowest = i
		}
	}
	l.least = l.clock[l.slowest]
	return l.slowest
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
	if least := l.clock[l.furthestBehind()]; least > l.told || l.since != view.Number {
		l.told, l.since = least, view.Number
		l.tell(ctx, view.Neighbours(self)...)
	}
}

// hub is the first present node of a complete topology.
func (l *Lead) hub() int { return min(l.env.Node(), l.env.View().Neighbour(l.env.Node(), 0)) }

// tell tells nodes the clock.
func (l *Lead) tell(ctx actor.Context, nodes ...int) {
	m, head := l.clocks.Get()
	head.Node = int32(l.env.Node())
	head.Floor, head.Others = l.Append(head.Others[:0])
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
