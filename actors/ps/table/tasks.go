package table

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/protos"
)

// Timestamp names a task of one client. They count from 1; 0 names none.
type Timestamp uint64

// Options say how a client works.
type Options struct {
	// Delay is the bounded delay τ: a task starts only when all tasks that are more than τ older
	// have finished. 0 is sequential: one after another. Eventual never waits.
	Delay int
	// WholeLists sends every list of keys whole. Otherwise one that a server was sent before goes
	// by its hash (key caching; Li et al., section 3.4).
	WholeLists bool
}

// Eventual as a delay has no task wait for others but those that it names.
const Eventual = -1

// Done is a task that has finished: all servers have answered.
type Done struct {
	Time Timestamp
	// Values are what was pulled, in the order of the keys, nil for a push. The receiver has one
	// reference.
	Values *protos.Tensor
	// Keys are those that have values, of a pulled range of a sparse table.
	Keys []uint64
	// Err says why the task has failed, outside of runs: there what was to be done may be done in
	// part.
	Err error
}

// Traffic counts what lists of keys take on the wire.
type Traffic struct {
	// Sent is the bytes of lists that were sent, Saved of those that their hash stood for.
	Sent, Saved int64
}

// Tasks is the part of a client that does not depend on the way to the servers: when tasks start,
// how they are cut by shards, and what comes of them.
type Tasks struct {
	layout  *Layout
	options Options
	pool    *protos.TensorPool
	road    Road
	node    int32
	life    uint64 // see Access; 0 outside of runs
	view    uint64 // of what is sent, where shards have replicas; 0 elsewhere
	held    bool   // no task starts yet

	last    Timestamp // that was given
	open    []*task   // those after the latest one before which all have finished, in order
	waiting int       // tasks that have not started
	free    []*task
	known   map[listed]bool
	traffic Traffic
	access  *protos.Messages[*protos.Access]
	done    []Done
}

// Road leads to the servers of shards. It is called with the context that the task was begun in, or
// the answer came in, on account of which another starts.
type Road interface {
	// Send sends a message to the server of a shard, and takes it over.
	Send(ctx actor.Context, shard int, m *protos.Message)
	// Server names the server of a shard; what it has been sent is remembered under this name.
	Server(shard int) int
}

// listed is a list that a server was sent.
type listed struct {
	server, shard int
	hash          uint64
}

// mostKnown bounds the lists that a client remembers to have sent.
const mostKnown = 1 << 16

// task is a push, a pull or both.
type task struct {
	time              Timestamp
	keys              *Keys
	push, pull        bool
	started, finished bool
	after             []Timestamp
	values            *protos.Tensor // pushed
	pulled            *protos.Tensor
	parts             []part // by piece
	missing           int    // answers
	err               error
}

// part is what has come of one piece.
type part struct {
	answered bool
	values   *protos.Tensor // of a range of a sparse table
	keys     []uint64
}

// NewTasks are those of a client that lives on a node of a run, 0 outside of runs. An error is
// about the options.
func NewTasks(l *Layout, o Options, pool *protos.TensorPool, road Road, node int) (*Tasks, error) {
	if o.Delay < Eventual {
		return nil, fmt.Errorf("a bounded delay of %d; accepted is 0 and more, and %d for none", o.Delay, Eventual)
	}
	return &Tasks{layout: l, options: o, pool: pool, road: road, node: int32(node),
		known: map[listed]bool{}, access: protos.NewMessages(func() *protos.Access { return &protos.Access{} })}, nil
}

// Range is the keys first to last of a table, both included.
func (c *Tasks) Range(table string, first, last uint64) (*Keys, error) {
	return c.layout.Range(table, first, last)
}

// List is a list of keys of a table, each above the one before.
func (c *Tasks) List(table string, keys []uint64) (*Keys, error) { return c.layout.List(table, keys) }

// Traffic is what lists of keys have taken so far.
func (c *Tasks) Traffic() Traffic { return c.traffic }

// Push pushes values to keys, a vector for each: it takes the tensor over. The task starts when the
// bounded delay allows it and the tasks that are named have finished.
func (c *Tasks) Push(ctx actor.Context, k *Keys, values *protos.Tensor, after ...Timestamp) Timestamp {
	return c.begin(ctx, k, values, false, after)
}

// Pull pulls the values of keys. Keys of a sparse table that were never pushed to have the initial
// values, but those of a range are left out.
func (c *Tasks) Pull(ctx actor.Context, k *Keys, after ...Timestamp) Timestamp {
	return c.begin(ctx, k, nil, true, after)
}

// PushPull is both in one task: what is pulled has taken in what is pushed.
func (c *Tasks) PushPull(ctx actor.Context, k *Keys, values *protos.Tensor, after ...Timestamp) Timestamp {
	return c.begin(ctx, k, values, true, after)
}

const badValues = "table: values that are not a vector for each key"

// begin makes a task and starts those that can.
func (c *Tasks) begin(ctx actor.Context, k *Keys, values *protos.Tensor, pull bool, after []Timestamp) Timestamp {
	if values != nil && !k.fits(len(values.Data)) {
		panic(badValues)
	}
	c.last++
	if len(c.free) == 0 {
		c.free = append(c.free, &task{})
	}
	t := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	*t = task{time: c.last, keys: k, push: values != nil, pull: pull, values: values,
		after: append(t.after[:0], after...), parts: t.parts[:0], missing: len(k.pieces)}
	for range k.pieces {
		t.parts = append(t.parts, part{})
	}
	if pull && k.count >= 0 && len(k.pieces) > 1 {
		t.pulled = c.pool.Get(k.count * k.table.Width)
	}
	c.open = append(c.open, t)
	c.waiting++
	c.start(ctx)
	return t.time
}

// fits reports whether a number of values is a vector for each key.
func (k *Keys) fits(values int) bool {
	w := k.table.Width
	if k.count >= 0 {
		return values == k.count*w
	}
	last := k.pieces[len(k.pieces)-1].last - k.pieces[0].first
	return values%w == 0 && values > 0 && uint64(values/w-1) == last
}

// start starts the tasks that can, the oldest first.
func (c *Tasks) start(ctx actor.Context) {
	for _, t := range c.open {
		if c.waiting == 0 || !c.within(t) {
			return
		}
		if !t.started && c.ready(t) {
			t.started = true
			c.waiting--
			for i := range t.keys.pieces {
				c.send(ctx, t, i, true)
			}
		}
	}
}

// within reports whether the bounded delay lets a task start: the oldest that is open is not more
// than τ older.
func (c *Tasks) within(t *task) bool {
	if c.held {
		return false
	}
	return c.options.Delay == Eventual || t.time-c.open[0].time <= Timestamp(c.options.Delay)
}

// ready reports whether all tasks that a task names have finished.
func (c *Tasks) ready(t *task) bool {
	for _, named := range t.after {
		if named >= t.time || !c.Finished(named) {
			return false
		}
	}
	return true
}

// Finished reports whether a task has finished.
func (c *Tasks) Finished(time Timestamp) bool {
	if time > c.last {
		return false
	}
	if len(c.open) == 0 || time < c.open[0].time {
		return true
	}
	return c.open[time-c.open[0].time].finished
}

// Open is how many tasks have not finished, and the oldest of them.
func (c *Tasks) Open() (n int, oldest Timestamp) {
	for _, t := range c.open {
		if !t.finished {
			if n++; n == 1 {
				oldest = t.time
			}
		}
	}
	return n, oldest
}

// send sends one piece of a task to its server.
func (c *Tasks) send(ctx actor.Context, t *task, i int, byHash bool) {
	p := &t.keys.pieces[i]
	m, head := c.access.Get()
	head.Node, head.Life, head.Time, head.Shard = c.node, c.life, uint64(t.time), uint32(p.shard)
	head.Push, head.Pull, head.First, head.Last = t.push, t.pull, p.first, p.last
	head.List, head.Keys = p.hash, 0
	if head.View, head.Oldest = c.view, 0; c.view > 0 {
		head.Oldest = uint64(c.open[0].time)
	}
	if t.push {
		m.Tensors = append(m.Tensors, t.piece(p))
	}
	if p.hash != 0 {
		size := int64(len(p.list.Data) * shards.ValueBytes)
		if byHash && c.knows(p) {
			c.traffic.Saved += size
		} else {
			head.Keys = uint64(p.high - p.low)
			m.Tensors = append(m.Tensors, p.list.Retain())
			c.traffic.Sent += size
		}
	}
	c.road.Send(ctx, p.shard, m)
}

// again sends what was not answered once more, in the same order.
func (c *Tasks) again(ctx actor.Context) {
	for _, t := range c.open {
		for i := range t.parts {
			if t.started && !t.finished && !t.parts[i].answered {
				c.send(ctx, t, i, true)
			}
		}
	}
}

// knows reports whether the server of a piece was sent its list before, and notes that it is now.
func (c *Tasks) knows(p *piece) bool {
	if c.options.WholeLists {
		return false
	}
	at := listed{c.road.Server(p.shard), p.shard, p.hash}
	if c.known[at] {
		return true
	}
	if len(c.known) == mostKnown {
		clear(c.known) // servers ask for what they have forgotten, and take what they know
	}
	c.known[at] = true
	return false
}

// piece is what a task pushes to one shard, with a reference.
func (t *task) piece(p *piece) *protos.Tensor {
	if len(t.keys.pieces) == 1 {
		return t.values.Retain()
	}
	w, low, high := t.keys.table.Width, p.low, p.high
	if t.keys.count < 0 {
		first := t.keys.pieces[0].first
		low, high = int(p.first-first), int(p.last-first)+1
	}
	return t.values.View(low*w, high*w)
}

var errAnswer = errors.New("an answer that fits no task")

// Answer takes a server's answer in, and returns the tasks that have finished, until the next call.
// An error is about an answer that no server gives.
func (c *Tasks) Answer(ctx actor.Context, head *protos.Accessed, tensors []*protos.Tensor) ([]Done, error) {
	c.done = c.done[:0]
	if head.Life != c.life {
		return nil, nil
	}
	t, i := c.find(Timestamp(head.Time), int(head.Shard))
	if t == nil && c.view > 0 { // of what was sent again
		return nil, nil
	}
	if t == nil {
		return nil, errAnswer
	}
	if head.Unknown {
		if t.keys.ranged {
			return nil, errAnswer
		}
		c.traffic.Saved -= int64(len(t.keys.pieces[i].list.Data) * shards.ValueBytes)
		c.send(ctx, t, i, false)
		return nil, nil
	}
	if err := c.take(t, i, head, tensors); err != nil {
		return nil, err
	}
	c.finish(ctx, t)
	return c.done, nil
}

// Failed takes in that a piece of a task cannot be done, and returns as Answer does.
func (c *Tasks) Failed(ctx actor.Context, time Timestamp, shard int, err error) []Done {
	c.done = c.done[:0]
	if t, i := c.find(time, shard); t != nil {
		t.parts[i].answered, t.err = true, err
		t.missing--
		c.finish(ctx, t)
	}
	return c.done
}

// find is the task of a time that waits for a shard's answer, and which of its pieces that is; nil
// if there is none.
func (c *Tasks) find(time Timestamp, shard int) (*task, int) {
	if len(c.open) == 0 || time < c.open[0].time || time > c.last {
		return nil, 0
	}
	t := c.open[time-c.open[0].time]
	if !t.started || t.finished {
		return nil, 0
	}
	i := shard - t.keys.pieces[0].shard
	if i < 0 || i >= len(t.parts) || t.keys.pieces[i].shard != shard { // pieces of lists leave shards out
		i = slices.IndexFunc(t.keys.pieces, func(p piece) bool { return p.shard == shard })
	}
	if i < 0 || t.parts[i].answered {
		return nil, 0
	}
	return t, i
}

// take takes in the values of a piece.
func (c *Tasks) take(t *task, i int, head *protos.Accessed, tensors []*protos.Tensor) error {
	p, w := &t.keys.pieces[i], t.keys.table.Width
	switch {
	case !t.pull:
		if len(tensors) != 0 {
			return errAnswer
		}
	case t.keys.count >= 0:
		if len(tensors) != 1 || len(tensors[0].Data) != (p.high-p.low)*w {
			return errAnswer
		}
		if len(t.parts) == 1 { // what has come as it is
			t.pulled = tensors[0].Retain()
		} else {
			copy(t.pulled.Data[p.low*w:], tensors[0].Data)
		}
	default:
		if err := t.parts[i].take(head, tensors, p, w); err != nil {
			return err
		}
	}
	t.parts[i].answered = true
	t.missing--
	return nil
}

// take takes in what a shard has of a range of a sparse table.
func (a *part) take(head *protos.Accessed, tensors []*protos.Tensor, p *piece, width int) (err error) {
	if head.Keys == 0 {
		if len(tensors) != 1 || len(tensors[0].Data) != 0 {
			return errAnswer
		}
		return nil
	}
	if len(tensors) != 2 {
		return errAnswer
	}
	if a.keys, _, err = keysOf(nil, tensors[1].Data, head.Keys, p.first, p.last); err != nil {
		return err
	}
	if len(tensors[0].Data) != len(a.keys)*width {
		return errAnswer
	}
	a.values = tensors[0].Retain()
	return nil
}

// finish ends a task if all have answered, and starts those that waited for it.
func (c *Tasks) finish(ctx actor.Context, t *task) {
	if t.missing > 0 {
		return
	}
	t.finished = true
	d := Done{Time: t.time, Values: t.pulled, Err: t.err}
	if t.pull && t.keys.count < 0 {
		d.Keys, d.Values = c.join(t)
	}
	if t.values != nil {
		t.values.Release()
	}
	t.values, t.pulled, t.keys = nil, nil, nil
	c.done = append(c.done, d)
	finished := 0
	for finished < len(c.open) && c.open[finished].finished {
		c.free = append(c.free, c.open[finished])
		finished++
	}
	c.open = slices.Delete(c.open, 0, finished)
	c.start(ctx)
}

// join puts together what shards have of a range of a sparse table.
func (c *Tasks) join(t *task) (keys []uint64, values *protos.Tensor) {
	n := 0
	for i := range t.parts {
		n += len(t.parts[i].keys)
	}
	values = c.pool.Get(n * t.keys.table.Width)
	at := 0
	for i := range t.parts {
		if a := &t.parts[i]; a.values != nil {
			keys = append(keys, a.keys...)
			at += copy(values.Data[at:], a.values.Data)
			a.values.Release()
			*a = part{}
		}
	}
	return keys, values
}
