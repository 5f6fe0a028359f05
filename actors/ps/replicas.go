package ps

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// replicas are a server's part in keeping shards when servers crash: chain replication (R. van
// Renesse and F. B. Schneider, "Chain Replication for Supporting High Throughput and Availability",
// OSDI 2004), with the coordinator for its master.
//
// The owner of a shard sends each change down the chain of its replicas. The last one tells the
// owner, which answers workers then. In a view in which servers have come or gone all servers stop,
// and tell each other which copies they hold. From then on they refuse what belongs to the views
// before, so that an owner that has not heard of the view can answer nobody: no two servers ever
// own a shard in one view. A server that has heard of all others knows who has the latest copy of
// each shard: it has everything that was ever answered, since all of the chain had that. The copy
// goes to the new owner and down the new chain. Workers push again what was not answered, and a
// shard knows by the numbers of pushes what it has. What codes build on has no copies: the first
// answer of a new owner, and the first push to it, is whole.
type replicas struct {
	*server
	view    uint64             // in which servers have come or gone last; 0 before this one takes part
	chains  [][]int            // by shard
	copies  []*replica         // by shard: of those that this server does not own; nil for none
	reports []*protos.Holdings // by node; nil for one that is not in
	missing int                // reports
	linked  []bool             // by shard: the next one of the chain has something of this view
	settled []bool             // by shard that this server owns: all of the chain have
	early   []*protos.Message  // of views that this server has not heard of
	over    bool               // this server has left
	changes *protos.Messages[*protos.Replicate]
	acks    *protos.Messages[*protos.Replicated]
}

// replica is a copy of a shard.
type replica struct {
	version                          // of the copy
	head      *protos.Shard          // of the last change; nil for a shard as the run begins
	workers   []*protos.Shard_Worker // by node, of this change or of one before
	params    *protos.Tensor
	optimizer optim.Optimizer
}

// version orders the copies of a shard.
type version struct {
	view     uint64 // in which its owner took it over
	sequence uint64 // changes that are in it
}

func (v version) before(w version) bool {
	return v.view < w.view || v.view == w.view && v.sequence < w.sequence
}

func newReplicas(s *server) *replicas {
	n := s.shards.Len()
	return &replicas{server: s, copies: make([]*replica, n), linked: make([]bool, n), settled: make([]bool, n),
		changes: protos.NewMessages(func() *protos.Replicate { return &protos.Replicate{} }),
		acks:    protos.NewMessages(func() *protos.Replicated { return &protos.Replicated{} })}
}

// begin makes the copies with which a run begins.
func (r *replicas) begin(initial []float32) {
	view := r.env.View()
	r.view, r.chains = view.Number, r.layout.servers.Chains(view, r.shards.Len())
	r.reports = make([]*protos.Holdings, len(view.Members))
	for k, chain := range r.chains {
		r.linked[k], r.settled[k] = true, true
		if !slices.Contains(chain[1:], r.env.Node()) {
			continue
		}
		low, high := r.layout.bounds(k)
		r.copies[k] = &replica{version: version{view: r.view}, params: r.env.Tensors().Copy(initial[low:high]),
			workers: make([]*protos.Shard_Worker, len(view.Members)), optimizer: r.task.Method.New(high - low)}
	}
}

// viewOf is the number of the view that a message of the protocol belongs to; 0 for others.
func viewOf(m *protos.Message) uint64 {
	switch m.Head.(type) {
	case *protos.Push, *protos.Pull, *protos.Holdings, *protos.Replicate, *protos.Replicated, *protos.Settled:
		return m.Head.(interface{ GetView() uint64 }).GetView()
	}
	return 0
}

// receive takes in a message between servers.
func (r *replicas) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Holdings:
		r.heard(ctx, head)
	case *protos.Replicate:
		r.replicate(ctx, head, m)
	case *protos.Replicated:
		r.replicated(ctx, int(head.Shard), head.Sequence)
	case *protos.Settled:
		if k := int(head.Shard); k < len(r.copies) && !slices.Contains(r.chains[k], r.env.Node()) {
			r.forget(k)
			r.depart()
		}
	}
}

// follow takes in a view. In one in which servers have come or gone everything stops until they
// have told each other what they hold.
func (r *replicas) follow(ctx actor.Context, moved bool) {
	if moved || r.view == 0 {
		r.enter(ctx)
	} else {
		for _, h := range r.shards.Here() {
			h.follow(ctx)
		}
	}
	r.again(ctx)
	r.replay(ctx)
}

// admits reports whether a message can be taken in now. One of a view that this server has not
// heard of waits for that. One of a view before servers came or went is of no use: a worker sends
// its own again.
func (r *replicas) admits(m *protos.Message) bool {
	view := viewOf(m)
	if view > r.env.View().Number || view > 0 && r.view == 0 {
		r.early = append(r.early, m.Retain(1))
		return false
	}
	return view == 0 || view >= r.view
}

// replay takes in what was put off, some of it perhaps once more.
func (r *replicas) replay(ctx actor.Context) {
	early := r.early
	r.early = nil
	for _, m := range early {
		if r.admits(m) {
			r.take(ctx, m)
		}
		m.Release()
	}
}

func (r *replicas) enter(ctx actor.Context) {
	view, n := r.env.View(), r.shards.Len()
	for k, h := range r.shards.Here() {
		r.copies[k] = h.freeze()
	}
	r.shards.Reset()
	r.view, r.chains = view.Number, r.layout.servers.Chains(view, n)
	r.reports, r.missing = make([]*protos.Holdings, len(view.Members)), 0
	clear(r.linked)
	clear(r.settled)
	own := &protos.Holdings{Node: int32(r.env.Node()), View: r.view, Since: slices.Clone(r.since)}
	for k, c := range r.copies {
		if c != nil {
			own.Copies = append(own.Copies, &protos.Holdings_Copy{Shard: uint32(k), View: c.view, Sequence: c.sequence})
		}
	}
	for node := range view.Members {
		m := &view.Members[node]
		if m.Role != RoleServer || !m.Present && !m.Leaving {
			continue
		}
		if r.missing++; node != r.env.Node() {
			ctx.Send(m.PID, protos.NewMessage(own))
		}
	}
	r.heard(ctx, own)
	r.depart()
}

// heard takes in what a server holds. When all have said so, this one knows what it has to do.
func (r *replicas) heard(ctx actor.Context, head *protos.Holdings) {
	if !r.env.View().Has(head.Node) || r.reports[head.Node] != nil {
		return
	}
	r.reports[head.Node] = head
	for node := range min(len(head.Since), len(r.since)) { // this server may have come after others
		r.since[node] = max(r.since[node], head.Since[node])
	}
	if r.missing--; r.missing > 0 {
		return
	}
	for k, chain := range r.chains {
		from := r.latest(k)
		switch {
		case from < 0:
			actors.Fail(r.env, "shard %d of the parameters is lost: no server that is left has a copy, and with "+
				"replicas: %d only as many may crash at a time", k, r.layout.servers.Replicas)
			return
		case from != r.env.Node():
		case chain[0] == from:
			r.serve(ctx, k)
		default:
			c := r.copies[k]
			ctx.Send(r.member(chain[0]), c.message(r.env, r.view, k, c.version))
		}
	}
}

// latest is who has the latest copy of a shard, the first of its chain if several have; −1 if
// nobody has any.
func (r *replicas) latest(k int) int {
	from, best := -1, version{}
	consider := func(node int) {
		if v, ok := r.reported(node, k); ok && (from < 0 || best.before(v)) {
			from, best = node, v
		}
	}
	for _, node := range r.chains[k] {
		consider(node)
	}
	for node := range r.reports {
		consider(node)
	}
	return from
}

// reported is the copy of a shard that a server has said to hold.
func (r *replicas) reported(node, k int) (v version, ok bool) {
	if r.reports[node] == nil {
		return version{}, false
	}
	i := slices.IndexFunc(r.reports[node].Copies, func(c *protos.Holdings_Copy) bool { return int(c.Shard) == k })
	if i < 0 {
		return version{}, false
	}
	c := r.reports[node].Copies[i]
	return version{c.View, c.Sequence}, true
}

func (r *replicas) member(node int) *actor.PID { return r.env.View().Members[node].PID }

// next is the server after this one in the chain of a shard; nil for none.
func (r *replicas) next(k int) (node int, pid *actor.PID) {
	i := slices.Index(r.chains[k], r.env.Node()) + 1
	if i == 0 || i == len(r.chains[k]) {
		return 0, nil
	}
	return r.chains[k][i], r.member(r.chains[k][i])
}

// serve has this server own a shard of which it has the latest copy.
func (r *replicas) serve(ctx actor.Context, k int) {
	c := r.copies[k]
	r.copies[k] = nil
	was := c.version
	c.view = r.view
	h, err := r.thaw(k, c)
	if err != nil {
		actors.Fail(r.env, "shard %d: %w", k, err)
		return
	}
	r.shards.Put(k, h)
	r.link(ctx, k, c, was)
	h.resume(ctx)
	r.shards.Deliver(ctx, k)
	r.found(ctx, k)
}

// link begins the part of a chain after this server, with a copy that had another version before
// this view. Its end tells the owner.
func (r *replicas) link(ctx actor.Context, k int, c *replica, was version) {
	r.linked[k] = true
	node, next := r.next(k)
	if next == nil {
		r.last(ctx, k, c.sequence)
		return
	}
	if v, ok := r.reported(node, k); ok && v == was {
		ctx.Send(next, protos.NewMessage(&protos.Replicate{View: r.view, Sequence: c.sequence, Base: was.view,
			Shard: &protos.Shard{Shard: uint32(k)}}))
		return
	}
	ctx.Send(next, c.message(r.env, r.view, k, was))
}

// last tells the owner of a shard that this server, the last of the chain, has a change.
func (r *replicas) last(ctx actor.Context, k int, sequence uint64) {
	owner := r.chains[k][0]
	if owner == r.env.Node() {
		r.replicated(ctx, k, sequence)
		return
	}
	m, head := r.acks.Get()
	head.Shard, head.View, head.Sequence = uint32(k), r.view, sequence
	ctx.Send(r.member(owner), m)
}

// replicated lets the owner answer those who have waited for a change. After the first one the
// other servers' copies are of no use.
func (r *replicas) replicated(ctx actor.Context, k int, sequence uint64) {
	if k >= r.shards.Len() || !r.shards.Has(k) {
		return
	}
	r.shards.At(k).log.ack(ctx, sequence)
	if r.settled[k] {
		return
	}
	r.settled[k] = true
	for node := range r.reports {
		if _, ok := r.reported(node, k); ok && !slices.Contains(r.chains[k], node) {
			ctx.Send(r.member(node), protos.NewMessage(&protos.Settled{Shard: uint32(k), View: r.view}))
		}
	}
}

// append sends a change of a shard of this server down the chain. It takes the gradients over.
func (r *replicas) append(ctx actor.Context, h *shard, gradients []*protos.Tensor) {
	_, next := r.next(h.index)
	if next == nil {
		for _, t := range gradients {
			t.Release()
		}
		r.last(ctx, h.index, h.log.sequence)
		return
	}
	m, head := r.changes.Get(gradients...)
	head.View, head.Sequence = r.view, h.log.sequence
	head.Shard, head.Nodes = h.head(h.log.told)
	ctx.Send(next, m)
}

// replicate takes in a change of a shard, or all of it, and passes it on.
func (r *replicas) replicate(ctx actor.Context, head *protos.Replicate, m *protos.Message) {
	k := int(head.Shard.GetShard())
	if head.Shard == nil || k >= r.shards.Len() {
		actors.Fail(r.env, "a copy of shard %d of %d", k, r.shards.Len())
		return
	}
	if !slices.Contains(r.chains[k], r.env.Node()) || r.shards.Has(k) {
		actors.Fail(r.env, "a copy of shard %d for another server", k)
		return
	}
	was, err := r.update(k, head, m)
	if err != nil {
		actors.Fail(r.env, "a copy of shard %d: %w", k, err)
		return
	}
	c := r.copies[k]
	if r.chains[k][0] == r.env.Node() {
		r.serve(ctx, k)
		return
	}
	if !r.linked[k] {
		r.link(ctx, k, c, was)
		return
	}
	if _, next := r.next(k); next != nil {
		ctx.Send(next, m.Retain(1))
		return
	}
	r.last(ctx, k, c.sequence)
}

// update brings the copy of a shard up to date with a message. It returns what it was before this
// view, if this is the first message of the view.
func (r *replicas) update(k int, head *protos.Replicate, m *protos.Message) (was version, err error) {
	low, high := r.layout.bounds(k)
	for _, t := range m.Tensors {
		if len(t.Data) != high-low {
			return version{}, errUnfit
		}
	}
	c := r.copies[k]
	switch {
	case head.Whole:
		r.forget(k)
		if c, err = r.copyOf(head, m); err != nil {
			return version{}, err
		}
		r.copies[k] = c
		return version{head.Base, head.Sequence}, nil
	case c == nil:
		return version{}, errUnfit
	case head.Base > 0:
		if was = c.version; was != (version{head.Base, head.Sequence}) {
			return version{}, errUnfit
		}
		c.view = r.view
		return was, nil
	case c.version != (version{r.view, head.Sequence - 1}):
		return version{}, errUnfit
	}
	for _, t := range m.Tensors {
		r.env.Charge(c.optimizer.Work(len(t.Data)))
		c.params = train.Update(r.env.Tensors(), c.optimizer, c.params, t.Data)
	}
	c.sequence = head.Sequence
	return c.version, c.learn(head.Shard, head.Nodes)
}

// learn takes in what a shard knows now, of some nodes.
func (c *replica) learn(shard *protos.Shard, nodes []uint32) error {
	if len(shard.Workers) != len(nodes) {
		return errUnfit
	}
	for i, node := range nodes {
		if int(node) >= len(c.workers) {
			return errUnfit
		}
		c.workers[node] = shard.Workers[i]
	}
	c.head = shard
	return nil
}

// forget gives up the copy of a shard.
func (r *replicas) forget(k int) {
	if c := r.copies[k]; c != nil {
		c.params.Release()
		r.copies[k] = nil
	}
}

// depart ends this server if it leaves, and the others have all that it had.
func (r *replicas) depart() {
	leaves := r.env.View().Members[r.env.Node()].Leaving
	if leaves && !r.over && !slices.ContainsFunc(r.copies, func(c *replica) bool { return c != nil }) {
		r.over = true
		r.env.Depart()
	}
}

// freeze ends this server's ownership of a shard, and returns what it was. Answers that replicas
// had not confirmed are given up, and so are the gradients of a round under way: workers send
// those pushes again.
func (h *shard) freeze() *replica {
	head, _ := h.head(nil)
	c := &replica{version: version{h.replicas.view, h.log.sequence}, head: head, workers: head.Workers,
		params: h.params, optimizer: h.optimizer}
	h.log.drop()
	if h.round != nil {
		h.round.drop()
	}
	return c
}

// thaw makes a shard of a copy.
func (r *replicas) thaw(k int, c *replica) (*shard, error) {
	h := r.newShard(k)
	h.log.sequence = c.sequence
	h.params, h.optimizer = c.params, c.optimizer
	if c.head == nil {
		return h, nil
	}
	if len(c.workers) != len(h.workers) || slices.Contains(c.workers, nil) {
		return nil, errUnfit
	}
	return h, h.unpackHead(c.head, c.workers, nil)
}

// message has all of a copy, which had another version before a view.
func (c *replica) message(env actors.Env, view uint64, k int, was version) *protos.Message {
	of := c.optimizer.State()
	shard := &protos.Shard{}
	if c.head != nil {
		shard = proto.CloneOf(c.head)
		shard.Workers = slices.Clone(c.workers)
	}
	shard.Shard, shard.Steps, shard.Updates, shard.Slots = uint32(k), uint64(of.Step), uint64(of.Updates),
		uint32(len(of.Slots))
	tensors := []*protos.Tensor{c.params.Retain()}
	for _, slot := range of.Slots {
		tensors = append(tensors, env.Tensors().Copy(slot))
	}
	head := &protos.Replicate{View: view, Sequence: c.sequence, Shard: shard, Whole: true, Base: was.view}
	return protos.NewMessage(head, tensors...)
}

// copyOf is the copy that a message has all of.
func (r *replicas) copyOf(head *protos.Replicate, m *protos.Message) (*replica, error) {
	of := head.Shard
	if len(m.Tensors) != 1+int(of.Slots) {
		return nil, errUnfit
	}
	low, high := r.layout.bounds(int(of.Shard))
	c := &replica{version: version{head.View, head.Sequence}, optimizer: r.task.Method.New(high - low)}
	state := optim.State{Step: int(of.Steps), Updates: int(of.Updates)}
	for _, t := range m.Tensors[1:] {
		state.Slots = append(state.Slots, t.Data)
	}
	if c.workers = make([]*protos.Shard_Worker, len(r.env.View().Members)); len(of.Workers) > 0 {
		c.head, c.workers = of, slices.Clone(of.Workers)
	}
	c.params = m.Tensors[0].Retain()
	return c, c.optimizer.Restore(state)
}
