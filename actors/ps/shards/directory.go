// Package shards spreads what servers hold over any number of them: it places shards on servers,
// routes messages to them, and moves them when servers come and go in order. What a shard is, model
// or table, is its user's business.
package shards

import (
	"iter"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// RoleServer is the role of the nodes that hold shards.
const RoleServer = "server"

// ValueBytes is the size of a value of a shard.
const ValueBytes = 4

// Where the plan does not say how large shards are, a server has PerServer of them, of at most
// MostBytes each.
const (
	PerServer = 16
	MostBytes = 1 << 20
)

// Shard is one at the server that holds it.
type Shard interface {
	comparable
	// Receive takes in a message about this shard, which remains the caller's.
	Receive(ctx actor.Context, m *protos.Message)
	// Pack gives the shard up for a message that has all of it.
	Pack() *protos.Message
}

// Directory is what a server knows of all shards of a run: it holds some, and knows where the
// others are. When servers come or go in order it hands shards over to those that own them from
// then on. What comes for a shard that it has handed over goes on to the owner; what comes for one
// that is still on its way waits.
type Directory[S Shard] struct {
	// Fleet is who comes and goes.
	Fleet Fleet

	env     actors.Env
	servers *Servers
	shards  []S                 // by index; zero for those that are elsewhere
	waiting [][]*protos.Message // by index: what came before the shard
	owners  []int               // of each shard in the view; nil without any server
}

// NewDirectory is that of a server, of a number of shards, none of which is here yet.
func NewDirectory[S Shard](env actors.Env, s *Servers, number int) *Directory[S] {
	d := &Directory[S]{Fleet: NewFleet(env), env: env, servers: s, shards: make([]S, number),
		waiting: make([][]*protos.Message, number), owners: s.Owners(env.View(), number)}
	d.Fleet.Replicated = s.Replicas > 0
	return d
}

// Len is the number of all shards.
func (d *Directory[S]) Len() int { return len(d.shards) }

// At is the shard of an index, zero if it is elsewhere.
func (d *Directory[S]) At(k int) S { return d.shards[k] }

// Has reports whether a shard is here.
func (d *Directory[S]) Has(k int) bool {
	var none S
	return d.shards[k] != none
}

// Owns reports whether a shard belongs here in the view, wherever it is.
func (d *Directory[S]) Owns(k int) bool { return d.owners != nil && d.owners[k] == d.env.Node() }

// Put has a shard be here from now on. What has waited for it goes on waiting until Deliver.
func (d *Directory[S]) Put(k int, s S) { d.shards[k] = s }

// Here are the shards that are here, by their indices.
func (d *Directory[S]) Here() iter.Seq2[int, S] {
	return func(yield func(int, S) bool) {
		for k, s := range d.shards {
			if d.Has(k) && !yield(k, s) {
				return
			}
		}
	}
}

// Empty reports whether no shard is here.
func (d *Directory[S]) Empty() bool {
	for range d.Here() {
		return false
	}
	return true
}

// Route hands a message about a shard to it, or sends it where the shard is.
func (d *Directory[S]) Route(ctx actor.Context, index uint32, m *protos.Message) {
	switch k := int(index); {
	case k >= len(d.shards):
		actors.Fail(d.env, "a message about shard %d of %d", index, len(d.shards))
	case d.Has(k):
		d.shards[k].Receive(ctx, m)
	case d.owners != nil && !d.Owns(k):
		ctx.Send(d.env.View().Members[d.owners[k]].PID, m.Retain(1))
	default:
		d.waiting[k] = append(d.waiting[k], m.Retain(1))
	}
}

// Awaits reports whether a shard can come: there is one of the index, and it is not here. If not,
// it ends the run.
func (d *Directory[S]) Awaits(index uint32) bool {
	if int(index) < len(d.shards) && !d.Has(int(index)) {
		return true
	}
	actors.Fail(d.env, "shard %d of %d, which is here or is none", index, len(d.shards))
	return false
}

// Deliver hands a shard that has come what has waited for it.
func (d *Directory[S]) Deliver(ctx actor.Context, k int) {
	waiting := d.waiting[k]
	d.waiting[k] = nil
	for _, m := range waiting {
		d.shards[k].Receive(ctx, m)
		m.Release()
	}
}

// Reset gives up the shards that are here, and what has waited for others. They belong to the
// owners of the view from now on, and come by Put.
func (d *Directory[S]) Reset() {
	d.owners = d.servers.Owners(d.env.View(), len(d.shards))
	clear(d.shards)
	for k, waiting := range d.waiting {
		for _, m := range waiting {
			m.Release()
		}
		d.waiting[k] = nil
	}
}

// Follow takes in the view: shards that belong elsewhere now go there. Before that the shards that
// are here take it in, which is what changed is for. The caller calls Depart when it has sent all
// that it has to. It reports false if a server has crashed, which ends the run.
func (d *Directory[S]) Follow(ctx actor.Context, changed func(S)) bool {
	moved, leaving, ok := d.Fleet.Follow()
	if !ok {
		return false
	}
	for _, s := range d.Here() {
		changed(s)
	}
	if moved {
		d.move(ctx)
	}
	d.Fleet.Farewell(ctx, leaving)
	return true
}

// move hands over the shards that belong to other servers now.
func (d *Directory[S]) move(ctx actor.Context) {
	view := d.env.View()
	if d.owners = d.servers.Owners(view, len(d.shards)); d.owners == nil {
		if !d.Empty() {
			actors.Fail(d.env, "%s leaves, and no other server is there to take over the parameters",
				view.Members[d.env.Node()].Name)
		}
		return
	}
	for k := range d.shards {
		d.HandOver(ctx, k, view.Number)
		if d.Has(k) || d.Owns(k) {
			continue
		}
		for _, m := range d.waiting[k] { // it will not come here, but to the owner
			ctx.Send(view.Members[d.owners[k]].PID, m)
		}
		d.waiting[k] = nil
	}
}

// HandOver sends a shard that is here to its owner, unless that is this server. The number is that
// of the view in which it was sent here: if that is a later one than this server's, a view with
// other owners is on its way.
func (d *Directory[S]) HandOver(ctx actor.Context, k int, sent uint64) {
	if !d.Has(k) || d.owners == nil || d.Owns(k) || sent > d.env.View().Number {
		return
	}
	var none S
	s := d.shards[k]
	d.shards[k] = none
	ctx.Send(d.env.View().Members[d.owners[k]].PID, s.Pack())
}

// Depart ends this server if it leaves, and nothing is to come any more: neither shards that are on
// their way, nor what was sent here by those who did not know yet.
func (d *Directory[S]) Depart(ctx actor.Context) {
	if d.Empty() {
		d.Fleet.Depart(ctx)
	}
}
