package shards

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Copied is a shard that has replicas, at its owner.
type Copied interface {
	Shard
	// Log is what it sends to them.
	Log() *Log
	// Tell fills in what its last change is, beside the updates of the log.
	Tell(head *protos.Replicate)
	// Freeze ends this server's ownership, and returns what the shard was. Answers that replicas
	// had not confirmed are given up, and so is what is under way: who has asked asks again.
	Freeze() Copy
}

// Copy is what a replica knows of a shard.
type Copy interface {
	// Apply takes in a change.
	Apply(head *protos.Replicate, tensors []*protos.Tensor) error
	// Whole fills in a message that has all of it, of shard k, and returns the tensors with a
	// reference each.
	Whole(k int, head *protos.Replicate) []*protos.Tensor
	// Drop gives it up.
	Drop()
}

// Keeper is a server of shards with replicas.
type Keeper[S Copied] interface {
	// Unpack is the copy that a message has all of.
	Unpack(head *protos.Replicate, tensors []*protos.Tensor) (Copy, error)
	// Thaw makes a shard of a copy, which it takes over, with a log in which nothing is.
	Thaw(k int, c Copy) (S, error)
	// Resume goes on with a shard that this server has just taken over, and what has waited for it.
	Resume(ctx actor.Context, k int)
	// Take takes in a message that was put off, and remains the caller's.
	Take(ctx actor.Context, m *protos.Message)
}

// ErrUnfit is about a message of another server.
var ErrUnfit = errors.New("what another server has sent does not fit")

// Replicas are a server's part in keeping shards when servers crash: chain replication (R. van
// Renesse and F. B. Schneider, "Chain Replication for Supporting High Throughput and Availability",
// OSDI 2004), with the coordinator for its master.
//
// The owner of a shard sends each change down the chain of its replicas. The last one tells the
// owner, which answers those who have asked then. In a view in which servers have come or gone all
// servers stop, and tell each other which copies they hold. From then on they refuse what belongs
// to the views before, so that an owner that has not heard of the view can answer nobody: no two
// servers ever own a shard in one view. A server that has heard of all others knows who has the
// latest copy of each shard: it has everything that was ever answered, since all of the chain had
// that. The copy goes to the new owner and down the new chain. Who has asked for something asks
// again if it was not answered, and a shard knows by the numbers of pushes what it has.
type Replicas[S Copied] struct {
	env     actors.Env
	keeper  Keeper[S]
	servers *Servers
	shards  *Directory[S]
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
	version
	of Copy
}

// version orders the copies of a shard.
type version struct {
	view     uint64 // in which its owner took it over
	sequence uint64 // changes that are in it
}

func (v version) before(w version) bool {
	return v.view < w.view || v.view == w.view && v.sequence < w.sequence
}

// NewReplicas are those of the shards of a server, which is their keeper.
func NewReplicas[S Copied](env actors.Env, k Keeper[S], s *Servers, d *Directory[S]) *Replicas[S] {
	n := d.Len()
	return &Replicas[S]{env: env, keeper: k, servers: s, shards: d, copies: make([]*replica, n),
		linked: make([]bool, n), settled: make([]bool, n),
		changes: protos.NewMessages(func() *protos.Replicate { return &protos.Replicate{} }),
		acks:    protos.NewMessages(func() *protos.Replicated { return &protos.Replicated{} })}
}

// Begin makes the copies with which a run begins.
func (r *Replicas[S]) Begin(first func(k int) Copy) {
	view := r.env.View()
	r.view, r.chains = view.Number, r.servers.Chains(view, r.shards.Len())
	r.reports = make([]*protos.Holdings, len(view.Members))
	for k, chain := range r.chains {
		r.linked[k], r.settled[k] = true, true
		if slices.Contains(chain[1:], r.env.Node()) {
			r.copies[k] = &replica{version{view: r.view}, first(k)}
		}
	}
}

// View is the number of the view in which servers have come or gone last.
func (r *Replicas[S]) View() uint64 { return r.view }

// viewOf is the number of the view that a message of the protocol belongs to; 0 for others.
func viewOf(m *protos.Message) uint64 {
	switch m.Head.(type) {
	case *protos.Push, *protos.Pull, *protos.Access, *protos.Holdings, *protos.Replicate, *protos.Replicated,
		*protos.Settled:
		return m.Head.(interface{ GetView() uint64 }).GetView()
	}
	return 0
}

// Receive takes in a message between servers: a Holdings, Replicate, Replicated or Settled.
func (r *Replicas[S]) Receive(ctx actor.Context, m *protos.Message) {
	if viewOf(m) == 0 { // no server sends that
		actors.Unexpected(r.env, m)
		return
	}
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

// Admits reports whether a message can be taken in now. One of a view that this server has not
// heard of waits for that. One of a view before servers came or went is of no use: who sent it
// sends it again.
func (r *Replicas[S]) Admits(m *protos.Message) bool {
	view := viewOf(m)
	if view > r.env.View().Number || view > 0 && r.view == 0 {
		r.early = append(r.early, m.Retain(1))
		return false
	}
	return view == 0 || view >= r.view
}

// Replay takes in what was put off, some of it perhaps once more.
func (r *Replicas[S]) Replay(ctx actor.Context) {
	early := r.early
	r.early = nil
	for _, m := range early {
		if r.Admits(m) {
			r.keeper.Take(ctx, m)
		}
		m.Release()
	}
}

// Enter takes in a view. In one in which servers have come or gone everything stops until they have
// told each other what they hold; it reports false for another.
func (r *Replicas[S]) Enter(ctx actor.Context, moved bool) bool {
	if !moved && r.view > 0 {
		return false
	}
	view, n := r.env.View(), r.shards.Len()
	for k, s := range r.shards.Here() {
		l := s.Log()
		r.copies[k] = &replica{version{r.view, l.sequence}, s.Freeze()}
		l.drop()
	}
	r.shards.Reset()
	r.view, r.chains = view.Number, r.servers.Chains(view, n)
	r.reports, r.missing = make([]*protos.Holdings, len(view.Members)), 0
	clear(r.linked)
	clear(r.settled)
	own := &protos.Holdings{Node: int32(r.env.Node()), View: r.view, Since: slices.Clone(r.shards.Fleet.Since)}
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
	return true
}

// heard takes in what a server holds. When all have said so, this one knows what it has to do.
func (r *Replicas[S]) heard(ctx actor.Context, head *protos.Holdings) {
	if !r.env.View().Has(head.Node) || r.reports[head.Node] != nil {
		return
	}
	r.reports[head.Node] = head
	since := r.shards.Fleet.Since
	for node := range min(len(head.Since), len(since)) { // this server may have come after others
		since[node] = max(since[node], head.Since[node])
	}
	if r.missing--; r.missing > 0 {
		return
	}
	for k, chain := range r.chains {
		from := r.latest(k)
		switch {
		case from < 0:
			actors.Fail(r.env, "shard %d is lost: no server that is left has a copy, and with "+
				"replicas: %d only as many may crash at a time", k, r.servers.Replicas)
			return
		case from != r.env.Node():
		case chain[0] == from:
			r.serve(ctx, k)
		default:
			ctx.Send(r.member(chain[0]), r.whole(k, r.copies[k], r.copies[k].version))
		}
	}
}

// latest is who has the latest copy of a shard, the first of its chain if several have; −1 if
// nobody has any.
func (r *Replicas[S]) latest(k int) int {
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
func (r *Replicas[S]) reported(node, k int) (v version, ok bool) {
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

func (r *Replicas[S]) member(node int) *actor.PID { return r.env.View().Members[node].PID }

// next is the server after this one in the chain of a shard; nil for none.
func (r *Replicas[S]) next(k int) (node int, pid *actor.PID) {
	i := slices.Index(r.chains[k], r.env.Node()) + 1
	if i == 0 || i == len(r.chains[k]) {
		return 0, nil
	}
	return r.chains[k][i], r.member(r.chains[k][i])
}

// serve has this server own a shard of which it has the latest copy.
func (r *Replicas[S]) serve(ctx actor.Context, k int) {
	c := r.copies[k]
	r.copies[k] = nil
	was := c.version
	c.view = r.view
	s, err := r.keeper.Thaw(k, c.of)
	if err != nil {
		actors.Fail(r.env, "shard %d: %w", k, err)
		return
	}
	s.Log().sequence = c.sequence
	r.shards.Put(k, s)
	r.link(ctx, k, c, was)
	r.keeper.Resume(ctx, k)
}

// link begins the part of a chain after this server, with a copy that had another version before
// this view. Its end tells the owner.
func (r *Replicas[S]) link(ctx actor.Context, k int, c *replica, was version) {
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
	ctx.Send(next, r.whole(k, c, was))
}

// last tells the owner of a shard that this server, the last of the chain, has a change.
func (r *Replicas[S]) last(ctx actor.Context, k int, sequence uint64) {
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
func (r *Replicas[S]) replicated(ctx actor.Context, k int, sequence uint64) {
	if k >= r.shards.Len() || !r.shards.Has(k) {
		return
	}
	r.shards.At(k).Log().ack(ctx, sequence)
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

// whole is a message with all of a copy, which had another version before a view.
func (r *Replicas[S]) whole(k int, c *replica, was version) *protos.Message {
	head := &protos.Replicate{View: r.view, Sequence: c.sequence, Whole: true, Base: was.view}
	return protos.NewMessage(head, c.of.Whole(k, head)...)
}

// Commit sends the changes of a shard of this server since the last one to its replicas, if that is
// due, and the answers that need not wait for any.
func (r *Replicas[S]) Commit(ctx actor.Context, s S) {
	if r == nil {
		return
	}
	l := s.Log()
	if l.next() {
		r.append(ctx, s, l)
	}
	l.release(ctx)
}

// append sends a change down the chain.
func (r *Replicas[S]) append(ctx actor.Context, s S, l *Log) {
	updates := l.updates
	l.updates = l.updates[:0]
	_, next := r.next(l.index)
	if next == nil {
		for _, t := range updates {
			t.Release()
		}
		r.last(ctx, l.index, l.sequence)
		return
	}
	m, head := r.changes.Get(updates...)
	head.View, head.Sequence = r.view, l.sequence
	s.Tell(head)
	ctx.Send(next, m)
}

// replicate takes in a change of a shard, or all of it, and passes it on.
func (r *Replicas[S]) replicate(ctx actor.Context, head *protos.Replicate, m *protos.Message) {
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
func (r *Replicas[S]) update(k int, head *protos.Replicate, m *protos.Message) (was version, err error) {
	c := r.copies[k]
	switch {
	case head.Whole:
		r.forget(k)
		of, err := r.keeper.Unpack(head, m.Tensors)
		if err != nil {
			return version{}, err
		}
		r.copies[k] = &replica{version{head.View, head.Sequence}, of}
		return version{head.Base, head.Sequence}, nil
	case c == nil:
		return version{}, ErrUnfit
	case head.Base > 0:
		if was = c.version; was != (version{head.Base, head.Sequence}) {
			return version{}, ErrUnfit
		}
		c.view = r.view
		return was, nil
	case c.version != (version{r.view, head.Sequence - 1}):
		return version{}, ErrUnfit
	}
	c.sequence = head.Sequence
	return c.version, c.of.Apply(head, m.Tensors)
}

// forget gives up the copy of a shard.
func (r *Replicas[S]) forget(k int) {
	if c := r.copies[k]; c != nil {
		c.of.Drop()
		r.copies[k] = nil
	}
}

// depart ends this server if it leaves, and the others have all that it had.
func (r *Replicas[S]) depart() {
	leaves := r.env.View().Members[r.env.Node()].Leaving
	if leaves && !r.over && !slices.ContainsFunc(r.copies, func(c *replica) bool { return c != nil }) {
		r.over = true
		r.env.Depart()
	}
}
