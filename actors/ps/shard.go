package ps

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Dropped is what the record calls the number of gradients so far that came after their round had
// ended without them. Of several shards the first one counts.
const Dropped = "gradients dropped"

// shard is a range of the parameters with everything that belongs to it: a parameter server of its
// own, with its own clocks, which moves from server to server as a whole. Receivers share one
// snapshot of the parameters; the next gradient makes another only while somebody still reads it.
type shard struct {
	*server
	index      int
	params     *protos.Tensor
	version    uint64 // updates applied to params
	optimizer  optim.Optimizer
	clocks     *consistency.Clocks
	workers    []worked // by node
	present    int      // workers
	round      *round   // of a consistency with bound 0; nil for others
	epoch      *epoch   // of the first shard, where the plan bounds them; nil otherwise
	dropped    int      // gradients, counted by the first shard
	compressor compressor
	pushed     int               // values of a push
	gradients  *compress.Decoder // of all workers; nil where they travel as they are, or each has its own
	log        *shards.Log       // nil without replicas
	told       []known           // of workers, by node, with the last change; nil without replicas
}

// worked is a worker as a shard knows it.
type worked struct {
	pid *actor.PID // nil while it is absent
	// life is the number of the view in which this shard has greeted it: pushes of another life are
	// of a worker that is gone.
	life  uint64
	rests bool   // it has seen its samples of the epoch
	epoch uint64 // with which it has gone on after its last rest
	awake bool   // it goes on since advance looked last
	came  uint64 // pushes of this life
	goes  uint64 // with how many of them it goes on, while some are still on their way; 0 otherwise
	// up and down are this end of what is compressed of its own; nil for nothing.
	up   *compress.Decoder
	down *compress.Encoder
}

// latest names the last push that has come.
func (w *worked) latest() pushID { return pushID{w.life, w.came} }

// newShard makes a shard of which nothing is known but its place.
func (s *server) newShard(index int) *shard {
	low, high := s.layout.bounds(index)
	nodes := len(s.env.View().Members)
	h := &shard{
		server:     s,
		index:      index,
		optimizer:  s.task.Method.New(high - low),
		clocks:     consistency.New(s.arch.model(), nodes),
		workers:    make([]worked, nodes),
		compressor: newCompressor(s.env, high-low, s.layout.tensorsOf(index), s.arch.Compress),
	}
	if s.arch.Compress.Feedback != compress.EF21 {
		h.gradients = h.compressor.receiver()
	}
	h.pushed = s.arch.Compress.Up.Size(high-low, h.compressor.tensors)
	if s.arch.model().Bound() == 0 {
		h.round = newRound(nodes)
	}
	if s.replicas != nil {
		h.log, h.told = shards.NewLog(index), make([]known, nodes)
	}
	if s.arch.EpochShare > 0 && index == 0 {
		h.epoch = newEpoch(s.task, s.arch.EpochShare)
	}
	return h
}

// follow takes in the members of the view: those who have gone hold nobody back any more, and those
// who have come are greeted, in the order of their ranks, with what the others had waited for.
func (h *shard) follow(ctx actor.Context) {
	view := h.env.View()
	workers := view.Role(RoleWorker)
	h.log.Touch()
	for node := range h.workers {
		w, m := &h.workers[node], &view.Members[node]
		if w.pid == nil {
			continue
		}
		// A shard that was on its way may find that a worker has gone and come meanwhile.
		if stays := m.Present && m.Role == RoleWorker && w.life >= h.shards.Fleet.Since[node]; !stays {
			w.pid = nil
			h.clocks.Leave(node)
			if h.round != nil {
				h.round.missing[node] = false
			}
		}
	}
	h.present = h.met()
	h.advance(ctx)
	if h.round != nil && h.round.short() { // who has come begins after this round
		h.replicas.Commit(ctx, h)
		return
	}
	for _, node := range workers {
		if w := &h.workers[node]; w.pid == nil {
			*w = worked{pid: view.Members[node].PID}
			h.clocks.Join(node)
		}
	}
	h.present = len(workers)
	for _, node := range workers {
		h.greet(ctx, node)
	}
	h.replicas.Commit(ctx, h)
}

// met is how many workers are there that have been before.
func (h *shard) met() (n int) {
	for i := range h.workers {
		if h.workers[i].pid != nil {
			n++
		}
	}
	return n
}

// greet sends a worker the parameters to begin with, unless it has them.
func (h *shard) greet(ctx actor.Context, node int) {
	w := &h.workers[node]
	if w.life > 0 {
		return
	}
	w.life = h.env.View().Number
	h.answer(ctx, node)
	w.up = h.decoder()
}

// decoder returns the decoder of a worker's gradients: the one that all workers share, or a new one.
func (h *shard) decoder() *compress.Decoder {
	if h.gradients != nil {
		return h.gradients
	}
	return h.compressor.receiver()
}

// push takes a gradient in.
func (h *shard) push(ctx actor.Context, head *protos.Push, m *protos.Message) {
	node := int(head.Node)
	members := h.env.View().Members
	if !h.env.View().Has(head.Node) || members[node].Role != RoleWorker ||
		!actors.IsVector(m.Tensors, h.size(head)) ||
		head.Version > h.version && head.Life == h.workers[node].life {
		const format = "a push of node %d at version %d does not fit a run of %d nodes, %d values and version %d"
		actors.Fail(h.env, format, head.Node, head.Version, len(members), h.size(head), h.version)
		return
	}
	if head.Life != h.workers[node].life || h.log != nil && !h.fresh(ctx, node, head, m) {
		return
	}
	h.log.Touch()
	gradient, ok := h.gradient(head, m)
	if !ok {
		return
	}
	h.workers[node].came++
	late := h.round != nil && head.Version < h.version
	h.rest(node, head)
	if h.epoch != nil && !late {
		h.epoch.seen += int(head.Samples)
	}
	switch {
	case late:
		gradient.Release()
		h.drop(ctx, node)
		return
	case h.round != nil:
		h.round.take(node, gradient, h.workers[node].latest())
	default:
		h.apply(gradient, head.Version, node)
	}
	if h.workers[node].pid != nil {
		if err := h.clocks.Push(node, h.env.Now()); h.violated(err) {
			return
		}
		h.goOn(node)
	}
	h.advance(ctx)
}

// size is how many values a push has.
func (h *shard) size(head *protos.Push) int {
	if head.Whole {
		return h.compressor.params
	}
	return h.pushed
}

// gradient takes the gradient that a worker has pushed out of its message. It reports false if the
// code does not fit, which ends the run.
func (h *shard) gradient(head *protos.Push, m *protos.Message) (*protos.Tensor, bool) {
	up := h.workers[head.Node].up
	if up != nil && head.Whole {
		copy(up.Memory(), m.Tensors[0].Data)
	} else if up != nil {
		return h.compressor.decode(up, m.Take(0))
	}
	return m.Take(0), true
}

// rest notes whether a worker rests after a push, unless it has gone on already. The first shard
// knows when epochs are over; the others are told by the worker when it goes on.
func (h *shard) rest(node int, head *protos.Push) {
	now := h.workers[node].epoch
	if h.epoch != nil {
		now = h.epoch.number
	}
	if head.Rests && head.Epoch >= now { // pushes before it may still come
		h.workers[node].rests = true
	}
}

// pull lets a worker go on after a rest, when all that it has pushed is here.
func (h *shard) pull(ctx actor.Context, head *protos.Pull) {
	if !h.env.View().Has(head.Node) || h.workers[head.Node].pid == nil || h.workers[head.Node].life != head.Life {
		return
	}
	w := &h.workers[head.Node]
	if h.log != nil && w.goes == 0 && !w.rests && w.epoch >= head.Epoch {
		h.repeat(ctx, int(head.Node))
		return
	}
	h.log.Touch()
	w.epoch, w.goes = head.Epoch, head.Pushes
	h.goOn(int(head.Node))
	h.advance(ctx)
}

// goOn has a worker wait for the answer to its last push, if it has asked for that and its pushes
// are here.
func (h *shard) goOn(node int) {
	w := &h.workers[node]
	if w.goes == 0 || w.came < w.goes {
		return
	}
	if w.goes = 0; w.rests {
		h.wake(node)
	}
}

// wake ends the rest of a worker.
func (h *shard) wake(node int) {
	h.workers[node].rests, h.workers[node].awake = false, true
	h.clocks.Return(node)
}

// drop counts a gradient whose round has ended without it, and lets its worker begin the present
// one.
func (h *shard) drop(ctx actor.Context, node int) {
	if h.index == 0 {
		h.dropped++
		h.env.Record(actors.Event{Kind: actors.Measured, Name: Dropped, Value: float64(h.dropped)})
	}
	if w := &h.workers[node]; w.pid != nil && !w.rests {
		h.answer(ctx, node)
	}
	h.goOn(node)
	h.advance(ctx)
}

// advance ends the round that is complete, if rounds end, and tells workers what they wait for.
func (h *shard) advance(ctx actor.Context) {
	h.turn()
	if h.round != nil {
		if h.round.short() {
			return
		}
		h.clocks.Skip(h.arch.Backup)
		for h.version < h.clocks.Slowest() {
			h.combine()
		}
	}
	ready, err := h.clocks.Ready()
	if h.violated(err) {
		return
	}
	for _, node := range ready {
		h.answer(ctx, node)
	}
	// A worker that need not hear of all its pushes has to hear that its rest is over.
	for node := range h.workers {
		w := &h.workers[node]
		if w.awake && w.pid != nil && h.arch.model().Ahead() > 0 && h.clocks.Waits(node) {
			h.answer(ctx, node)
		}
		w.awake = false
	}
}

// violated ends the run if clocks are too far apart.
func (h *shard) violated(err error) bool {
	if err == nil {
		return false
	}
	var v *consistency.Violation
	if errors.As(err, &v) {
		actors.Fail(h.env, "%s", v.Text(func(node int) string { return h.env.View().Members[node].Name }))
	}
	return true
}

// apply takes over a gradient on the parameters of a version.
func (h *shard) apply(gradient *protos.Tensor, version uint64, node int) {
	staleness := h.version - version
	factor := h.arch.Scale.Factor(h.present)
	if h.arch.StalenessRate == Inverse {
		factor /= float32(max(staleness, 1))
	}
	h.update(gradient, factor)
	h.recordPush(node, h.workers[node].latest(), staleness)
}

// recordPush records that the model has taken in a push of a worker. If this server crashes before
// the replicas have that, the next owner takes it in, and records it, once more.
func (h *shard) recordPush(node int, is pushID, staleness uint64) {
	h.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: h.version, Staleness: staleness, Origin: node,
		Shard: uint32(h.index), Life: is.life, Push: is.number})
}

// combine applies the gradients of a round at once.
func (h *shard) combine() {
	sum, n := h.round.sum(h.env)
	if n == 0 { // all who had begun it have gone
		h.version++
		return
	}
	h.update(sum, h.arch.Scale.Factor(n))
	for _, node := range h.round.nodes {
		h.recordPush(node, h.round.pushes[node], 0)
	}
}

// update makes a step with a gradient, which it takes over, times a factor.
func (h *shard) update(gradient *protos.Tensor, factor float32) {
	n := len(gradient.Data)
	work := h.optimizer.Work(n)
	if factor != 1 {
		gradient = h.env.Tensors().Writable(gradient)
		nn.Scale(gradient.Data, factor)
		work += float64(n)
	}
	h.log.Update(gradient)
	h.params = train.Update(h.env.Tensors(), h.optimizer, h.params, gradient.Data)
	gradient.Release()
	h.version++
	h.env.Charge(work)
}

func (h *shard) answer(ctx actor.Context, node int) {
	w := &h.workers[node]
	params := h.params.Retain()
	if w.down == nil { // nothing of this server has come there
		w.down = h.compressor.sender(params.Data)
	} else {
		params = h.compressor.encode(w.down, params)
	}
	m, head := h.parameters.Get(params)
	head.Version, head.Life, head.Clock, head.Epoch = h.version, w.life, h.clocks.Finished(node), w.epoch
	head.Shard = uint32(h.index)
	if h.log != nil {
		head.Pushes, head.View = w.came, h.replicas.View()
	}
	if h.epoch != nil {
		head.Epoch = h.epoch.number
	}
	h.log.Send(ctx, w.pid, m)
}
