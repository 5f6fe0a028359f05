// Package tables lets driver programs use the tables of package actors/ps/table outside of runs:
// servers are actors that a driver has made on processes of a cluster, and a [Client] pushes to
// them and pulls from them.
//
// A program adds the kind of its servers to its catalog, on the processes and in the driver:
//
//	weights := &table.Table{Name: "weights", Keys: 1e7, Width: 1, Sparse: true,
//		Update: table.Add()}
//	c.Actors.Add(tables.Kind("weights-server", weights))
//
// and a driver opens them:
//
//	t, err := tables.Open(ctx, client, tables.Config{Kind: "weights-server", Name: "w",
//		Servers: 2, Tables: []*table.Table{weights}})
//	keys, err := t.List("weights", []uint64{3, 14, 159})
//	pushed := t.Push(keys, []float32{1, 2, 3})
//	pulled := t.Pull(keys, pushed)
//	done, err := t.Wait(ctx, pulled)
package tables

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/client"
	"github.com/gradwire/gradwire/protos"
)

// place are the settings of a server: which one of how many it is.
type place struct {
	Server  int `plan:"server,required" range:"0..65535" doc:"which of the servers, from 0"`
	Servers int `plan:"servers,required" range:"1..65536" doc:"how many servers there are"`
}

// Kind is a kind of actors for Catalog.Actors: servers of tables. Processes and drivers are given
// the same tables.
func Kind(name string, tables ...*table.Table) catalog.Kind[actors.ResidentKind] {
	return catalog.Define(name, "a server of tables", func() place { return place{} },
		func(_ *catalog.Catalog, p *place) (actors.ResidentKind, error) {
			return func(env actors.Base) (actor.Actor, error) {
				return table.NewResident(env, tables, p.Server, p.Servers)
			}, nil
		})
}

// Config says which servers a driver wants.
type Config struct {
	// Kind is what the servers are called in the catalogs of the processes, see [Kind].
	Kind string
	// Name is that of the servers: their actors are called Name-0, Name-1 and so on.
	Name string
	// Servers is how many there are, at least 1.
	Servers int
	// Nodes are the processes that they live on, in turn; without any, where cores are free.
	Nodes []string
	// Tables are those of the kind.
	Tables []*table.Table
	// Options say when tasks start.
	Options table.Options
}

// Client pushes to tables and pulls from them. It is safe for use by many goroutines. A shard that
// one task pushes to or pulls from has at most 4 MiB of values and keys, see [client.Ref.Send].
type Client struct {
	refs   []*client.Ref
	ctx    context.Context
	cancel context.CancelFunc
	asks   sync.WaitGroup
	pool   *protos.TensorPool

	mu      sync.Mutex
	tasks   *table.Tasks
	done    map[table.Timestamp]table.Done // that nobody has waited for: pulls and failures
	waiting map[table.Timestamp][]chan struct{}
}

// Open has the servers made. Those that were made before an error are stopped again.
func Open(ctx context.Context, c *client.Client, o Config) (*Client, error) {
	if o.Servers < 1 {
		return nil, fmt.Errorf("%d servers; accepted is 1 and more", o.Servers)
	}
	l, err := table.NewLayout(o.Tables, nil, o.Servers)
	if err != nil {
		return nil, err
	}
	t := &Client{pool: &protos.TensorPool{}, done: map[table.Timestamp]table.Done{},
		waiting: map[table.Timestamp][]chan struct{}{}}
	if t.tasks, err = table.NewTasks(l, o.Options, t.pool, (*road)(t), 0); err != nil {
		return nil, err
	}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for i := range o.Servers {
		s := client.ActorSpec{Name: fmt.Sprintf("%s-%d", o.Name, i), Kind: o.Kind,
			Settings: fmt.Sprintf("{server: %d, servers: %d}", i, o.Servers)}
		if len(o.Nodes) > 0 {
			s.Node = o.Nodes[i%len(o.Nodes)]
		}
		r, err := c.Spawn(ctx, s)
		if err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
		t.refs = append(t.refs, r)
	}
	return t, nil
}

// Close stops the servers. Tasks under way fail, and none may be begun any more.
func (t *Client) Close(ctx context.Context) (err error) {
	t.cancel()
	t.asks.Wait()
	for _, r := range t.refs {
		err = errors.Join(err, r.Stop(ctx))
	}
	return err
}

// Range is the keys first to last of a table, both included.
func (t *Client) Range(name string, first, last uint64) (*table.Keys, error) {
	return t.tasks.Range(name, first, last)
}

// List is a list of keys of a table, each above the one before.
func (t *Client) List(name string, keys []uint64) (*table.Keys, error) {
	return t.tasks.List(name, keys)
}

// Push pushes values to keys, a vector for each, which it copies. It returns at once: the task
// starts when the bounded delay allows it and the tasks that are named have finished.
func (t *Client) Push(k *table.Keys, values []float32, after ...table.Timestamp) table.Timestamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks.Push(nil, k, t.pool.Copy(values), after...)
}

// Pull pulls the values of keys. They are kept until somebody waits for the task.
func (t *Client) Pull(k *table.Keys, after ...table.Timestamp) table.Timestamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks.Pull(nil, k, after...)
}

// PushPull is both in one task: what is pulled has taken in what is pushed.
func (t *Client) PushPull(k *table.Keys, values []float32, after ...table.Timestamp) table.Timestamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks.PushPull(nil, k, t.pool.Copy(values), after...)
}

// Wait waits until a task has finished, and returns what was pulled, to the first who waits for it.
// Values need not be released. An error says why the task has failed, or is the context's.
func (t *Client) Wait(ctx context.Context, time table.Timestamp) (table.Done, error) {
	t.mu.Lock()
	over := make(chan struct{})
	if t.tasks.Finished(time) {
		close(over)
	} else {
		t.waiting[time] = append(t.waiting[time], over)
	}
	t.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
		return table.Done{Time: time}, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	done := t.done[time]
	delete(t.done, time)
	done.Time = time
	return done, done.Err
}

// Traffic is what lists of keys have taken so far.
func (t *Client) Traffic() table.Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks.Traffic()
}

// finish keeps what tasks have led to, and tells those who wait.
func (t *Client) finish(all []table.Done) {
	for _, d := range all {
		if d.Values != nil || d.Err != nil {
			t.done[d.Time] = d
		}
		for _, over := range t.waiting[d.Time] {
			close(over)
		}
		delete(t.waiting, d.Time)
	}
}

// road is the way of a client's tasks to the servers.
type road Client

var _ table.Road = (*road)(nil)

// Server implements [table.Road].
func (r *road) Server(shard int) int { return shard % len(r.refs) }

// Send asks the server of a shard, and has the answer taken in when it comes.
func (r *road) Send(_ actor.Context, shard int, m *protos.Message) {
	t := (*Client)(r)
	time := table.Timestamp(m.Head.(*protos.Access).Time)
	ref := t.refs[r.Server(shard)]
	t.asks.Go(func() {
		answer, err := ref.Ask(t.ctx, m)
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil {
			defer answer.Release()
			err = t.answered(answer)
		}
		if err != nil {
			t.finish(t.tasks.Failed(nil, time, shard, fmt.Errorf("task %d: %w", time, err)))
		}
	})
}

// answered takes an answer in.
func (t *Client) answered(answer *protos.Message) error {
	head, ok := answer.Head.(*protos.Accessed)
	if !ok {
		return fmt.Errorf("an answer %T, which is none of a server of tables", answer.Head)
	}
	done, err := t.tasks.Answer(nil, head, answer.Tensors)
	t.finish(done)
	return err
}
