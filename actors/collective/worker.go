package collective

import (
	"fmt"
	"iter"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// worker makes its local steps, takes part in the round, and begins again.
type worker struct {
	env          actors.Env
	architecture Architecture
	local        *train.Local
	team         *train.Team // nil for one thread
	learner      learner
	drift        peer.Drift
	task         *train.Task
	params       int // of the model
	values       int // of what a round exchanges
	every        int // steps of a round
	sends        int // steps of a round after which its exchange begins
	chunks       *protos.Messages[*protos.Chunk]
	compressors  []*compressor // of the parts that are exchanged in turn; none where vectors travel as they are
	membership

	finished uint64          // rounds; the steps of round r are r·every to (r+1)·every−1
	steps    int             // local steps of the round that are done
	last     *train.Gradient // of the round, once all steps are done; it is recorded with the round
	skipped  bool            // the last finished round did without an exchange

	votes   *reduction // nil without votes
	models  *reduction
	posts   iter.Seq[actors.Place] // places for the models of this view; nil before the first view
	current *reduction             // the reduction that waits for a chunk; nil between rounds
	input   *protos.Tensor         // the input of the current reduction
	mean    *protos.Tensor         // the result of the current reduction
	found   *protos.Tensor         // the mean of a round whose steps are not done yet
	waiting bool                   // idle since that instant
	since   time.Duration
}

func newWorker(env actors.Env, task *train.Task, a Architecture) (*worker, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	team, err := task.NewTeam(env, local, false)
	if err != nil {
		return nil, err
	}
	if team != nil && a.CheckThreads() != nil {
		return nil, a.CheckThreads()
	}
	learner, err := newLearner(env, task, &a)
	if err != nil {
		return nil, err
	}
	w := &worker{
		env: env, architecture: a, local: local, team: team, learner: learner,
		drift: peer.NewDrift(a.Moved), task: task, params: task.Model.Params(),
		values: a.values(task.Model.Params()), every: a.round(), sends: a.sends(),
		membership: membership{causes: map[int]string{}}, compressors: newCompressors(env, task, &a),
		chunks: protos.NewMessages(func() *protos.Chunk { return &protos.Chunk{} }),
	}
	w.drift.Mark(w.learner.joint())
	return w, nil
}

var _ actors.Waiter = (*worker)(nil)

// Waiting implements [actors.Waiter].
func (w *worker) Waiting() string {
	switch {
	case w.stage == outside || w.stage == going && !w.ready():
		return ""
	case w.stage != going:
		return agreement
	case w.current != nil && w.current.blocked():
		return fmt.Sprintf("a chunk of round %d from %s", w.finished,
			w.members[w.nodes[w.current.awaited()]].Name)
	}
	return ""
}

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(ctx, m)
	case *train.Gradient:
		w.step(ctx, m)
	case *train.Round:
		w.round(ctx, m)
	}
}

func (w *worker) receive(ctx actor.Context, m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		w.start(ctx, head.Joins)
	case *protos.View:
		w.follow(ctx)
	case *protos.Chunk:
		w.sort(ctx, m, head.View)
	case *protos.Report:
		w.sort(ctx, m, head.View)
	case *protos.Outcome:
		w.sort(ctx, m, head.View)
	case *protos.TakeSnapshot:
		model := w.learner.model()
		train.AnswerSnapshot(ctx, w.env, head, model.Params, model.Version)
	default:
		actors.Unexpected(w.env, m)
	}
}

// begin starts a local step, or all those of a round by several threads.
func (w *worker) begin() {
	params := w.learner.model().Params.Retain()
	if w.team != nil {
		w.team.Begin(params, w.every)
		return
	}
	w.local.Begin(params)
}

// step takes in the gradient of a local step; after some of a round this rank takes part in the
// exchange, which may go on during the others.
func (w *worker) step(ctx actor.Context, g *train.Gradient) {
	w.local.End()
	w.learner.step(g.Values, g.Samples)
	if w.steps++; w.steps < w.every {
		w.local.Record(g)
		w.begin()
	} else {
		w.last = g
	}
	w.exchange(ctx)
}

// round takes in the steps of all threads, after which this rank is ready for the exchange.
func (w *worker) round(ctx actor.Context, r *train.Round) {
	w.team.End()
	if err := w.learner.(teamed).round(w.team, r); err != nil { // others have no team
		actors.Fail(w.env, "a round of %d threads: %w", w.team.Threads(), err)
		return
	}
	last := len(r.Steps) - 1
	for i := range last {
		w.local.Record(&r.Steps[i].Gradient)
	}
	w.steps, w.last = len(r.Steps), &r.Steps[last].Gradient
	w.exchange(ctx)
}

// teamed is a learner that can take in steps of a team.
type teamed interface {
	round(team *train.Team, round *train.Round) error
}

// ready reports whether the steps of the round are done.
func (w *worker) ready() bool { return w.last != nil }

// due reports whether this rank has what it contributes to the round.
func (w *worker) due() bool { return w.steps >= w.sends }

// exchange begins the round's exchange as soon as it is due and all ranks are known to be in the
// same round, and ends a round whose steps and exchange are done.
func (w *worker) exchange(ctx actor.Context) {
	switch {
	case !w.due():
	case w.found != nil:
		if w.ready() {
			w.settle(w.found)
		}
	case w.current != nil || w.stage != going:
		if w.ready() {
			w.wait()
		}
	case w.votes != nil:
		far, work := w.drift.Far(w.learner.model().Params.Data)
		w.env.Charge(work)
		vote := w.env.Tensors().Get(1)
		vote.Data[0] = 0
		if far {
			vote.Data[0] = 1
		}
		w.reduce(ctx, w.votes, vote, w.env.Tensors().Get(1), 1)
	default:
		w.average(ctx)
	}
}

// average begins the reduction of what the ranks have learned.
func (w *worker) average(ctx actor.Context) {
	vector := w.learner.contribution()
	if c := w.compressor(); c != nil {
		codes := c.gather(vector, w.rank, len(w.nodes))
		w.reduce(ctx, w.models, codes, codes.Retain(), 1)
		return
	}
	w.reduce(ctx, w.models, vector, w.env.Tensors().Get(len(vector.Data)), w.weight())
}

// weight is what the sum of what the ranks have learned is divided by.
func (w *worker) weight() float32 {
	samples := w.batches.joint(w.finished*uint64(w.every), w.sends)
	return float32(w.learner.weight(float64(samples) / float64(w.batches.batch)))
}

// compressor is that of what the round under way exchanges; nil where vectors travel as they are.
func (w *worker) compressor() *compressor {
	if len(w.compressors) == 0 {
		return nil
	}
	return w.compressors[w.finished%uint64(len(w.compressors))]
}

// reduce begins a reduction of this rank's vector to the sum divided by a weight, in another
// vector. It takes over both.
func (w *worker) reduce(ctx actor.Context, r *reduction, vector, sum *protos.Tensor, weight float32) {
	w.current, w.input, w.mean = r, vector, sum
	r.begin(w.input, w.mean, weight)
	if r == w.models {
		if w.posts == nil {
			w.posts = w.models.posts(w.view, w.before())
		}
		w.env.Post(w.mean, w.posts)
	}
	w.advance(ctx)
}

// take takes in a chunk, and goes on with the round if it is the one that was missing.
func (w *worker) take(ctx actor.Context, head *protos.Chunk, m *protos.Message) {
	if err := w.accept(head, m); err != nil {
		actors.Fail(w.env, "nobody waits for the chunk of rank %d in view %d, round %d, step %d, index "+
			"%d: %w", head.Rank, head.View, head.Round, head.Step, head.Index, err)
		return
	}
	if w.current == nil || w.current.blocked() {
		return
	}
	w.resume(w.cause())
	w.advance(ctx)
}

// accept hands a chunk to its reduction. Where there are votes, their steps are the first
// of a round.
func (w *worker) accept(head *protos.Chunk, m *protos.Message) error {
	switch {
	case len(m.Tensors) != 1:
		return fmt.Errorf("it has %d tensors instead of 1", len(m.Tensors))
	case int(head.Rank) == w.rank:
		return fmt.Errorf("that is this rank itself")
	}
	r, step := w.models, int(head.Step)-w.before()
	if step < 0 {
		r, step = w.votes, int(head.Step)
	}
	chunk, t := m.Take(0), tag{int(head.Rank), step, int(head.Index)}
	if err := r.take(head.Round, t, chunk); err != nil {
		chunk.Release()
		return err
	}
	w.env.Unpost(head.Place())
	return nil
}

// before returns how many steps of a round precede the exchange of models: none without votes,
// otherwise a number that no algorithm exceeds.
func (w *worker) before() int {
	if w.votes == nil {
		return 0
	}
	return 2 * len(w.nodes)
}

// advance goes on with the reduction until a chunk is missing or it is over.
func (w *worker) advance(ctx actor.Context) {
	r := w.current
	for m, sends := r.next(); sends; m, sends = r.next() {
		w.env.Charge(r.spent())
		w.send(ctx, &m)
	}
	w.env.Charge(r.spent())
	if r.blocked() {
		if w.ready() {
			w.wait()
		}
		return
	}
	mean := w.mean
	w.env.Post(nil, nil)
	w.input.Release()
	w.current, w.input, w.mean = nil, nil, nil
	r.finish()
	if r == w.votes {
		w.decide(ctx, mean)
		return
	}
	w.conclude(mean)
}

// conclude ends the exchange with what its reduction has found, a mean or the codes of all ranks,
// and the round if its steps are done.
func (w *worker) conclude(found *protos.Tensor) {
	if c := w.compressor(); c != nil {
		var err error
		if found, err = c.mean(found, w.weight()); err != nil {
			actors.Fail(w.env, "round %d: %w", w.finished, err)
			return
		}
	}
	w.learned(found)
}

// learned takes over the mean of the round, which ends if its steps are done.
func (w *worker) learned(mean *protos.Tensor) {
	if w.found = mean; w.ready() {
		w.settle(mean)
	}
}

// send sends a piece of the vector; to itself it takes no message.
func (w *worker) send(ctx actor.Context, m *move) {
	piece := w.current.piece(m)
	if m.peer == w.rank {
		w.current.keep(m, piece)
		return
	}
	step := m.step
	if w.current == w.models {
		step += w.before()
	}
	message, head := w.chunks.Get(piece)
	head.View, head.Round, head.Rank = w.view, w.current.round, int32(w.rank)
	head.Step, head.Index = uint32(step), uint32(m.index)
	ctx.Send(w.peer(m.peer), message)
}

// decide goes on to the exchange of models if anybody has voted for it.
func (w *worker) decide(ctx actor.Context, votes *protos.Tensor) {
	moved := votes.Data[0] > 0
	votes.Release()
	if moved {
		w.average(ctx)
		return
	}
	w.models.finish()
	w.settle(nil)
}

// settle ends the round with its mean, which it owns, and begins the next. The mean is nil
// if nobody has moved.
func (w *worker) settle(mean *protos.Tensor) {
	if c := w.compressor(); c != nil {
		c.end()
	}
	w.found = nil
	w.learner.settle(mean)
	if mean != nil {
		w.drift.Mark(w.learner.joint())
	}
	w.skipped = mean == nil
	w.finished++
	w.local.Record(w.last)
	w.steps, w.last = 0, nil
	w.begin()
}

// wait notes that this worker is idle from here on.
func (w *worker) wait() {
	if !w.waiting {
		w.waiting, w.since = true, w.env.Now()
	}
}

// cause names the rank whose chunk the reduction waits for.
func (w *worker) cause() string {
	rank := w.current.awaited()
	cause, known := w.causes[rank]
	if !known {
		cause = fmt.Sprintf("rank %d", rank)
		w.causes[rank] = cause
	}
	return cause
}

// resume ends the waiting, if any, and records what it was for.
func (w *worker) resume(cause string) {
	if !w.waiting {
		return
	}
	w.waiting = false
	if d := w.env.Now() - w.since; d > 0 {
		w.env.Record(actors.Event{Kind: actors.Waited, Duration: d, Cause: cause})
	}
}
