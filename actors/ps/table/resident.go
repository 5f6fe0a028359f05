package table

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Resident is a server of tables outside of runs: the one of a number of servers that hold their
// shards in turn. It answers who asks. Shards stay where they are, and end with the server.
type Resident struct {
	env     actors.Base
	shards  []*shard // by index; nil for those of others
	servers int
	place   int
}

// NewResident is the server of a place, counted from 0, among a number of them. An error is about
// the layout, see [NewLayout], or about an optimiser that cannot work on a table.
func NewResident(env actors.Base, tables []*Table, place, servers int) (*Resident, error) {
	if place < 0 || place >= servers {
		return nil, fmt.Errorf("server %d of %d; accepted is 0 to %d", place, servers, servers-1)
	}
	l, err := NewLayout(tables, nil, servers)
	if err != nil {
		return nil, err
	}
	r := &Resident{env: env, shards: make([]*shard, l.Shards()), place: place, servers: servers}
	for k := place; k < len(r.shards); k += servers {
		if r.shards[k], err = newShard(l, k); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Receive implements [actor.Actor].
func (r *Resident) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	head, ok := m.Head.(*protos.Access)
	if !ok || ctx.Sender() == nil {
		r.env.Fail(fmt.Errorf("a message %T, which is none that a client of tables asks", m.Head))
		return
	}
	if int(head.Shard) >= len(r.shards) || r.shards[head.Shard] == nil {
		r.env.Fail(fmt.Errorf("shard %d of %d is asked of server %d of %d", head.Shard, len(r.shards), r.place,
			r.servers))
		return
	}
	answer := &protos.Accessed{Life: head.Life, Time: head.Time, Shard: head.Shard}
	pulled, list, _, err := r.shards[head.Shard].access(r.env.Tensors(), head, m.Tensors, answer, false)
	if err != nil {
		r.env.Fail(fmt.Errorf("task %d at shard %d: %w", head.Time, head.Shard, err))
		return
	}
	ctx.Respond(protos.NewMessage(answer, appendTensors(nil, pulled, list)...))
}
