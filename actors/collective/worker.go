package collective

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// worker makes its local steps, takes part in the round, and begins again.
type worker struct {
	env       actors.Env
	local     *train.Local
	learner   learner
	reduction *reduction
	batches   batches
	every     int
	view      uint64
	rank      int
	peers     []*actor.PID // by rank
	causes    []string     // of waiting, by rank
	chunks    *protos.Messages[*protos.Chunk]

	steps   uint64         // local steps that are done
	vector  *protos.Tensor // what the round sums, nil between rounds
	piece   *protos.Tensor // what was sent last
	waiting bool           // for a chunk, since that instant
	since   time.Duration
}

func newWorker(env actors.Env, task *train.Task, a Architecture) (*worker, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	view := env.View()
	nodes := view.Role(RoleWorker)
	if len(nodes) != len(task.Shards) {
		return nil, fmt.Errorf("%d workers for %d shards", len(nodes), len(task.Shards))
	}
	w := &worker{
		env: env, local: local, learner: newLearner(env, task, a), batches: newBatches(task), every: a.Every,
		view: view.Number, rank: view.Members[env.Node()].Rank,
		chunks: protos.NewMessages(func() *protos.Chunk { return &protos.Chunk{} }),
	}
	for rank, node := range nodes {
		w.peers = append(w.peers, view.Members[node].PID)
		w.causes = append(w.causes, fmt.Sprintf("rank %d", rank))
	}
	w.reduction = newReduction(a.Algorithm, len(nodes), w.rank, task.Model.Params())
	return w, nil
}

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(ctx, m)
	case *train.Gradient:
		w.step(ctx, m)
	}
}

func (w *worker) receive(ctx actor.Context, m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		w.begin()
	case *protos.Chunk:
		w.take(ctx, head, m)
	case *protos.TakeSnapshot:
		model := w.learner.state()
		train.AnswerSnapshot(ctx, w.env, head, model.params, model.version)
	default:
		w.env.Fail(fmt.Errorf("node %s: unexpected message %T", w.name(), m.Head))
	}
}

func (w *worker) name() string { return w.env.View().Members[w.env.Node()].Name }

// begin starts a local step.
func (w *worker) begin() { w.local.Begin(w.learner.state().params.Retain()) }

// step takes in the gradient of a local step; the last one of a round begins the reduction.
func (w *worker) step(ctx actor.Context, g *train.Gradient) {
	gradient, samples := g.Values, g.Samples
	w.local.Done(g)
	w.learner.step(gradient, samples)
	w.steps++
	if w.steps%uint64(w.every) != 0 {
		w.begin()
		return
	}
	w.vector = w.learner.contribution()
	w.reduction.begin(w.vector.Data)
	w.advance(ctx)
}

// take takes in a chunk, and goes on with the round if it is the one that was missing.
func (w *worker) take(ctx actor.Context, head *protos.Chunk, m *protos.Message) {
	if err := w.accept(head, m.Tensors); err != nil {
		w.env.Fail(fmt.Errorf("node %s: nobody waits for the chunk of rank %d in view %d, round %d, step %d, index %d: %w",
			w.name(), head.Rank, head.View, head.Round, head.Step, head.Index, err))
		return
	}
	if !w.waiting || w.reduction.blocked() {
		return
	}
	w.waiting = false
	if d := w.env.Now() - w.since; d > 0 {
		w.env.Record(actors.Event{Kind: actors.Waited, Duration: d, Cause: w.causes[w.reduction.awaited()]})
	}
	w.advance(ctx)
}

// accept hands a chunk to the reduction.
func (w *worker) accept(head *protos.Chunk, tensors []*protos.Tensor) error {
	switch {
	case head.View != w.view:
		return fmt.Errorf("the view is %d", w.view)
	case len(tensors) != 1:
		return fmt.Errorf("it has %d tensors instead of 1", len(tensors))
	case int(head.Rank) == w.rank:
		return fmt.Errorf("that is this rank itself")
	}
	err := w.reduction.take(head.Round, tag{int(head.Rank), int(head.Step), int(head.Index)}, tensors[0])
	if err == nil {
		tensors[0].Retain()
	}
	return err
}

// advance goes on with the round until a chunk is missing or the round is over.
func (w *worker) advance(ctx actor.Context) {
	for m := w.reduction.next(); m != nil; m = w.reduction.next() {
		w.env.Charge(w.reduction.spent())
		w.send(ctx, m)
	}
	w.env.Charge(w.reduction.spent())
	if w.piece != nil {
		w.piece.Release()
		w.piece = nil
	}
	if w.reduction.blocked() {
		w.waiting, w.since = true, w.env.Now()
		return
	}
	w.settle()
}

// send sends a piece of the vector; to itself it takes no message. Receivers of
// the same piece share one copy.
func (w *worker) send(ctx actor.Context, m *Move) {
	if !m.Again {
		if w.piece != nil {
			w.piece.Release()
		}
		w.piece = w.env.Tensors().Copy(w.vector.Data[m.Low:m.High])
	}
	if m.Peer == w.rank {
		w.reduction.keep(m, w.piece.Retain())
		return
	}
	message, head := w.chunks.Get(w.piece.Retain())
	head.View, head.Round, head.Rank = w.view, w.reduction.round, int32(w.rank)
	head.Step, head.Index = uint32(m.Step), uint32(m.Index)
	ctx.Send(w.peers[m.Peer], message)
}

// settle ends the round and begins the next.
func (w *worker) settle() {
	first := w.steps - uint64(w.every)
	weight := float64(w.batches.joint(first, w.every)) / float64(w.batches.batch)
	w.learner.settle(w.vector, weight)
	w.vector = nil
	w.reduction.finish()
	w.begin()
}
