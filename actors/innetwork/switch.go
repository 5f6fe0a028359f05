package innetwork

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// aggregator is the actor of a switch.
type aggregator struct {
	env     actors.Env
	rules   Architecture
	packets *protos.Messages[*protos.Aggregate]

	started  bool
	view     uint64 // that the slots are of; 0 before the first
	parent   int
	children []int // positions in the view
	child    []int // of each node, its place among the children, or nobody
	slots    *slots
}

func newAggregator(env actors.Env, a Architecture) *aggregator {
	return &aggregator{env: env, rules: a, packets: newPackets()}
}

func newPackets() *protos.Messages[*protos.Aggregate] {
	return protos.NewMessages(func() *protos.Aggregate { return &protos.Aggregate{} })
}

var _ actors.Waiter = (*aggregator)(nil)

// Waiting implements [actors.Waiter].
func (a *aggregator) Waiting() string {
	if a.slots == nil {
		return ""
	}
	child, ok := a.slots.missing()
	if !ok {
		return ""
	}
	return "a packet of " + a.env.View().Members[a.children[child]].Name
}

func (a *aggregator) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		a.started = true
		a.follow()
	case *protos.View:
		a.follow()
	case *protos.Aggregate:
		a.take(ctx, head, m.Tensors)
	default:
		actors.Unexpected(a.env, m)
	}
	m.Release()
}

// follow begins with the packets of a view. What was sent in one before is of no use any more.
func (a *aggregator) follow() {
	view := a.env.View()
	if !a.started || view.Number <= a.view {
		return
	}
	t, err := newTree(view)
	if err != nil {
		actors.Fail(a.env, "view %d: %w", view.Number, err)
		return
	}
	a.view, a.parent, a.children = view.Number, t.parent[a.env.Node()], t.children(a.env.Node())
	a.arrange()
}

// arrange gives the children vacant slots.
func (a *aggregator) arrange() {
	a.child = make([]int, len(a.env.View().Members))
	for node := range a.child {
		a.child[node] = nobody
	}
	for i, node := range a.children {
		a.child[node] = i
	}
	a.slots = newSlots(a.rules.Slots, a.rules.Values, len(a.children), a.parent == nobody)
}

// take takes in a packet. Those of another view are dropped: one that is too early comes again,
// because workers repeat the first packet of a view until they have its result.
func (a *aggregator) take(ctx actor.Context, head *protos.Aggregate, tensors []*protos.Tensor) {
	if !actors.Known(a.env, head.Node) || a.slots == nil || head.View != a.view {
		return
	}
	p, err := read(head, tensors)
	var next reaction
	switch from := int(head.Node); {
	case err != nil:
	case from == a.parent:
		var news bool
		if news, err = a.slots.result(p); news {
			next = publish
		}
	case a.child[from] == nobody:
		actors.Fail(a.env, "a packet of %s, which is not below this switch", a.env.View().Members[from].Name)
		return
	default:
		a.env.Charge(float64(len(p.words)))
		next, err = a.slots.add(a.child[from], p)
	}
	if err != nil {
		actors.Fail(a.env, "packet %d of %s in view %d: %w", head.Number, a.env.View().Members[head.Node].Name,
			head.View, err)
		return
	}
	switch next {
	case reply:
		a.slots.pool(p.number).late = true
		a.send(ctx, p.number, int(head.Node))
	case forward:
		a.send(ctx, p.number, a.parent)
	case publish:
		a.send(ctx, p.number, a.children...)
	}
}

// send sends what the slots hold of a packet.
func (a *aggregator) send(ctx actor.Context, number uint64, to ...int) {
	q := a.slots.pool(number)
	var m *protos.Message
	var head *protos.Aggregate
	if len(q.sum) == 0 {
		m, head = a.packets.Get()
	} else {
		sum := a.env.Tensors().Get(len(q.sum))
		for i, v := range q.sum {
			sum.Data[i] = word(v)
		}
		m, head = a.packets.Get(sum)
	}
	head.View, head.Node, head.Number = a.view, int32(a.env.Node()), number
	head.Peak, head.Samples, head.Again = q.peak, q.samples, q.late
	m.Retain(len(to) - 1)
	for _, node := range to {
		ctx.Send(a.env.View().Members[node].PID, m)
	}
}
