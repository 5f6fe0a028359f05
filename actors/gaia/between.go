package gaia

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// between is what a server does with those of other sites: the mirrors of its copy.
type between struct {
	*server
	mirrors []mirror // in the order of their nodes
	filter  *filter
	seen    uint64               // the version of the model that the filter has looked at
	told    uint64               // the clock that the others know
	skipped uint64               // rounds of the other sites while this one had no workers
	trains  bool                 // it has some
	lists   uint64               // lists of indices that have gone ahead
	free    time.Duration        // when the lines are, by their rate
	armed   bool                 // a timer of that is, for updates that are listed
	over    bool                 // the last updates have been sent
	asked   *protos.TakeSnapshot // for the last model, while updates for it are to come; nil otherwise
	indices []int32              // of a message that has come
	updates *protos.Messages[*protos.Mirror]
}

// mirror is what a server knows of one of another site.
type mirror struct {
	node   int
	clock  uint64 // of its site
	trains bool   // its site has workers
	listed uint64 // lists of its own that have come
	taken  uint64 // those of them whose updates have come
	over   bool   // its last updates have come
}

// lineFree is the timer of updates that wait for the lines.
type lineFree struct{}

func newBetween(s *server, params int) *between {
	b := &between{server: s, filter: newFilter(s.arch.Significance, params),
		updates: protos.NewMessages(func() *protos.Mirror { return &protos.Mirror{} })}
	for node, m := range s.env.View().Members {
		if m.Role == RoleServer && node != s.env.Node() {
			b.mirrors = append(b.mirrors, mirror{node: node})
		}
	}
	return b
}

// clock is how many rounds all workers of the site have finished.
func (b *between) clock() uint64 { return b.clocks.Slowest() + b.skipped }

// ahead reports whether this site is too far ahead of another one.
func (b *between) ahead(m *mirror) bool {
	return m.trains && b.clock() > m.clock+uint64(b.arch.Clock)
}

// blocks is the site that holds the workers of this one back, or its last model; nil for none.
func (b *between) blocks() *mirror {
	for i := range b.mirrors {
		if m := &b.mirrors[i]; !m.over && (b.over || m.listed > m.taken || b.ahead(m)) {
			return m
		}
	}
	return nil
}

// waits says for what the site that blocks is waited for.
func (b *between) waits() string {
	m := b.blocks()
	if m == nil {
		return ""
	}
	name := b.env.View().Members[m.node].Name
	switch {
	case b.over:
		return "the last updates of " + name
	case m.listed > m.taken:
		return "updates that " + name + " has listed"
	}
	return fmt.Sprintf("round %d of the site of %s", b.clock()-uint64(b.arch.Clock), name)
}

// follow takes in a view: which sites have workers. A clock that nobody has moved goes on with the
// slowest.
func (b *between) follow(ctx actor.Context) {
	view := b.env.View()
	trains := map[int32]bool{}
	for _, node := range view.Role(RoleWorker) {
		trains[view.Members[node].Site] = true
	}
	slowest := uint64(consistency.Unbounded)
	for i := range b.mirrors {
		m := &b.mirrors[i]
		at := &view.Members[m.node]
		if !at.Present {
			gone(b.env, at)
			return
		}
		if m.trains = trains[at.Site]; m.trains {
			slowest = min(slowest, m.clock)
		}
	}
	before := b.trains
	b.trains = trains[view.Members[b.env.Node()].Site]
	if b.trains && !before && slowest != consistency.Unbounded {
		b.skipped += max(slowest, b.clock()) - b.clock()
	}
	b.tell(ctx)
}

// add accumulates what an update has made of the model.
func (b *between) add(after, before []float32) {
	if len(b.mirrors) > 0 {
		b.filter.add(after, before)
		b.env.Charge(float64(2 * len(after)))
	}
}

// tell tells the other sites what has become significant, and how far this one is.
func (b *between) tell(ctx actor.Context) {
	if b.over || len(b.mirrors) == 0 {
		return
	}
	clock := b.clock()
	var indices []int32
	if b.seen < b.version {
		indices = b.filter.significant(b.params.Data, clock)
		b.env.Charge(float64(3 * len(b.params.Data)))
	}
	b.seen = b.version
	switch wait := b.free - b.env.Now(); {
	case len(indices) > 0 && (wait > 0 || b.armed):
		if !b.armed {
			b.env.After(wait, lineFree{})
		}
		b.armed = true
		b.list(ctx, indices)
	case len(indices) > 0:
		b.send(ctx, indices)
	case clock > b.told:
		b.send(ctx, nil)
	}
}

// proceed sends the updates that have waited for the lines.
func (b *between) proceed(ctx actor.Context) {
	if b.armed = false; !b.over {
		b.send(ctx, b.filter.changed(false))
	}
}

// list sends indices ahead of their updates.
func (b *between) list(ctx actor.Context, indices []int32) {
	b.filter.list(indices)
	b.lists++
	b.spread(ctx, uint64(len(indices)), b.pack(indices))
}

// send sends the updates of parameters, of which there may be none.
func (b *between) send(ctx actor.Context, indices []int32) {
	if len(indices) == 0 {
		b.spread(ctx, 0)
		return
	}
	values := b.room(len(indices))
	b.filter.take(values.Data, indices)
	b.spread(ctx, 0, values, b.pack(indices))
}

// room is memory for a part of a message. The pool has it again whatever the next one's length is.
func (b *between) room(n int) *protos.Tensor {
	whole := b.env.Tensors().Get(len(b.params.Data))
	defer whole.Release()
	return whole.View(0, n)
}

func (b *between) pack(indices []int32) *protos.Tensor {
	d := len(b.params.Data)
	words := b.room(compress.IndexWords(len(indices), d))
	compress.PackIndices(words.Data, indices, d)
	return words
}

// spread sends all mirrors a message with tensors, which it takes over.
func (b *between) spread(ctx actor.Context, listed uint64, tensors ...*protos.Tensor) {
	if b.arch.Rate > 0 {
		bytes := 0
		for _, t := range tensors {
			bytes += 4 * len(t.Data)
		}
		b.free = max(b.free, b.env.Now()) + time.Duration(float64(bytes)/b.arch.Rate*float64(time.Second))
	}
	b.told = b.clock()
	m, head := b.updates.Get(tensors...)
	head.Node, head.Clock, head.Lists = int32(b.env.Node()), b.told, b.lists
	head.Listed, head.Last = listed, b.over
	m.Retain(len(b.mirrors) - 1)
	for i := range b.mirrors {
		ctx.Send(b.env.View().Members[b.mirrors[i].node].PID, m)
	}
}

// take takes in what a server of another site has sent.
func (b *between) take(ctx actor.Context, head *protos.Mirror, m *protos.Message) {
	if !actors.Known(b.env, head.Node) {
		return
	}
	from := b.mirror(int(head.Node))
	if from == nil || !b.reads(head, m.Tensors) {
		actors.Fail(b.env, "updates of %s that do not fit another site's server and %d parameters",
			b.env.View().Members[head.Node].Name, len(b.params.Data))
		return
	}
	from.clock = max(from.clock, head.Clock)
	if head.Listed > 0 {
		from.listed = max(from.listed, head.Lists)
	} else if len(b.indices) > 0 {
		b.params = b.env.Tensors().Writable(b.params)
		for n, i := range b.indices {
			b.params.Data[i] += m.Tensors[0].Data[n]
		}
		from.taken = max(from.taken, head.Lists)
	}
	if head.Last {
		from.over, from.taken = true, from.listed
		b.flush(ctx)
		b.answer(ctx)
	}
	b.env.Charge(float64(len(b.indices)))
	b.admit(ctx)
}

func (b *between) mirror(node int) *mirror {
	for i := range b.mirrors {
		if b.mirrors[i].node == node {
			return &b.mirrors[i]
		}
	}
	return nil
}

// reads reads the indices of a message. It reports false if nobody has written such a one.
func (b *between) reads(head *protos.Mirror, tensors []*protos.Tensor) bool {
	n := head.Listed
	if head.Listed == 0 && len(tensors) == 2 {
		n, tensors = uint64(len(tensors[0].Data)), tensors[1:]
	}
	b.indices = b.indices[:0]
	if n == 0 || n > uint64(len(b.params.Data)) || len(tensors) != 1 {
		return head.Listed == 0 && len(tensors) == 0
	}
	b.indices = slices.Grow(b.indices, int(n))[:n]
	return compress.UnpackIndices(b.indices, tensors[0].Data, len(b.params.Data)) == nil
}

// snapshot answers who looks at the model; the last time when it has all updates.
func (b *between) snapshot(ctx actor.Context, request *protos.TakeSnapshot) {
	if !request.Last {
		train.AnswerSnapshot(ctx, b.env, request, b.params, b.version)
		return
	}
	b.asked = request
	b.flush(ctx)
	b.answer(ctx)
}

// flush sends the others all that has accumulated. The site takes in no more gradients, and tells
// its workers not to wait.
func (b *between) flush(ctx actor.Context) {
	if b.over {
		return
	}
	b.over = true
	if len(b.mirrors) == 0 {
		return
	}
	b.send(ctx, b.filter.changed(true))
	for i := range b.workers {
		if w := &b.workers[i]; w.pid != nil {
			ctx.Send(w.pid, protos.NewMessage(&protos.Mirror{Node: int32(b.env.Node()), Last: true}))
		}
	}
}

// answer answers who looks at the last model, when it has the updates of all sites, or some may be
// lost.
func (b *between) answer(ctx actor.Context) {
	if b.asked == nil || b.blocks() != nil && !b.env.Lossy() {
		return
	}
	train.AnswerSnapshot(ctx, b.env, b.asked, b.params, b.version)
	b.asked = nil
}
