package table

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/protos"
)

// Client is an actor's way to the tables of its run. It belongs to the actor, never blocks its
// mailbox, and sends only from the handlers that call it. Its tasks are those of [Tasks]. Where
// shards have replicas it sends again what was not answered when servers come or go; each push
// counts once.
type Client struct {
	*Tasks
	env   actors.Env
	fleet shards.Fleet
	way   *way
}

// way leads to the servers of the view.
type way struct {
	env    actors.Env
	layout *Layout
	owners []int // of each shard
}

// Send implements [Road].
func (w *way) Send(ctx actor.Context, shard int, m *protos.Message) {
	ctx.Send(w.env.View().Members[w.owners[shard]].PID, m)
}

// Server implements [Road].
func (w *way) Server(shard int) int { return w.owners[shard] }

// NewClient is that of the actor that lives in env. The tables and settings are those of the
// servers. Errors are about them, or about the options.
func NewClient(env actors.Env, tables []*Table, s *shards.Servers, o Options) (*Client, error) {
	l, err := NewLayout(tables, s, shards.Count(env.View().Members))
	if err != nil {
		return nil, err
	}
	w := &way{env: env, layout: l, owners: l.servers.Owners(env.View(), l.Shards())}
	t, err := NewTasks(l, o, env.Tensors(), w, env.Node())
	if err != nil {
		return nil, err
	}
	t.held = true // until the actor knows which life of its node it is
	c := &Client{Tasks: t, env: env, fleet: shards.NewFleet(env), way: w}
	c.fleet.Replicated = l.servers.Replicas > 0
	return c, nil
}

// Receive takes in the messages that are the client's: the actor hands it every message of the wire
// that it gets. It returns the tasks that have finished with this one, until the next call, and
// reports whether the message was the client's alone: views are the actor's as well, and so is the
// Start, before which no task starts. The message remains the caller's.
func (c *Client) Receive(ctx actor.Context, m *protos.Message) (done []Done, own bool) {
	switch head := m.Head.(type) {
	case *protos.Start:
		c.life, c.held = head.View, false
		c.see()
		c.start(ctx)
	case *protos.View:
		c.follow(ctx)
	case *protos.Accessed:
		done, err := c.Answer(ctx, head, m.Tensors)
		if err != nil {
			actors.Fail(c.env, "task %d at shard %d: %w", head.Time, head.Shard, err)
		}
		return done, true
	}
	return nil, false
}

// see notes which view messages belong to from now on, where that matters.
func (c *Client) see() {
	if c.fleet.Replicated {
		c.view = c.env.View().Number
	}
}

// follow takes in a view: which servers own the shards from now on. Where these have replicas, what
// was not answered is sent again.
func (c *Client) follow(ctx actor.Context) {
	moved, leaving, ok := c.fleet.Follow()
	if !ok {
		return
	}
	if owners := c.way.layout.servers.Owners(c.env.View(), c.way.layout.Shards()); moved && owners != nil {
		c.way.owners = owners
	}
	if c.see(); !c.fleet.Replicated {
		c.fleet.Farewell(ctx, leaving)
	} else if moved {
		c.again(ctx)
	}
}
