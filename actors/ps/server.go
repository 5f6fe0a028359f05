package ps

import (
	"errors"
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Dropped is what the record calls the number of gradients so far that came after their round had
// ended without them.
const Dropped = "gradients dropped"

// server holds the model. Receivers share one snapshot of it; the next gradient makes another only
// while somebody still reads it.
type server struct {
	env        actors.Env
	arch       Architecture
	params     *protos.Tensor
	version    uint64 // updates applied to params
	optimizer  optim.Optimizer
	clocks     *consistency.Clocks
	workers    []worked // by node
	present    int      // workers
	pushed     int      // values of a push
	round      *round   // of a consistency with bound 0; nil for others
	epoch      *epoch   // nil unless the plan bounds them
	dropped    int
	compressor compressor
	gradients  *compress.Decoder // of all workers; nil where they travel as they are, or each has its own
	parameters *protos.Messages[*protos.Parameters]
}

// worked is a worker as the server knows it.
type worked struct {
	pid *actor.PID // nil while it is absent
	// life is the number of the view in which this server has greeted it: pushes of another life
	// are of a worker, or on a model, that is gone.
	life uint64
	// up and down are this end of what is compressed of its own; nil for nothing.
	up   *compress.Decoder
	down *compress.Encoder
}

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	nodes := len(env.View().Members)
	s := &server{
		env:        env,
		arch:       a,
		params:     env.Tensors().Copy(task.Initial()),
		optimizer:  task.Method.New(task.Model.Params()),
		clocks:     consistency.New(a.model(), nodes),
		workers:    make([]worked, nodes),
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
	}
	s.compressor = newCompressor(env, task, a.Compress)
	if a.Compress.Feedback != compress.EF21 {
		s.gradients = s.compressor.receiver()
	}
	s.pushed = a.Compress.Up.Size(task.Model.Params(), task.Model.Tensors())
	if a.model().Bound() == 0 {
		s.round = newRound(nodes)
	}
	if a.EpochShare > 0 {
		s.epoch = newEpoch(task, env.View().Members, a.EpochShare)
	}
	s.follow()
	return s
}

// follow takes in the members of the view, and returns the workers that have come, in the
// order of their ranks.
func (s *server) follow() (come []int) {
	view := s.env.View()
	for node := range s.workers {
		w, m := &s.workers[node], &view.Members[node]
		switch there := m.Present && m.Role == RoleWorker; {
		case there && w.pid == nil:
			w.pid = m.PID
			s.clocks.Join(node)
			if s.epoch != nil {
				s.epoch.join(node)
			}
			come = append(come, node)
		case !there && w.pid != nil:
			w.pid = nil
			s.clocks.Leave(node)
		}
	}
	s.present = len(view.Role(RoleWorker))
	return come
}

func (s *server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		s.greet(ctx, s.env.View().Role(RoleWorker), head.View)
	case *protos.View:
		s.greet(ctx, s.follow(), s.env.View().Number)
		s.advance(ctx)
	case *protos.Push:
		s.push(ctx, head, m)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, s.env, head, s.params, s.version)
	default:
		actors.Unexpected(s.env, m)
	}
}

// greet sends workers the parameters to begin with, in the view of a number.
func (s *server) greet(ctx actor.Context, workers []int, view uint64) {
	for _, node := range workers {
		w := &s.workers[node]
		if w.life >= view {
			continue // it has been
		}
		w.life = view
		w.down = nil
		s.answer(ctx, node)
		w.down = s.compressor.sender(s.params.Data)
		if w.up = s.gradients; w.up == nil {
			w.up = s.compressor.receiver()
		}
	}
}

// push takes a gradient in.
func (s *server) push(ctx actor.Context, head *protos.Push, m *protos.Message) {
	node := int(head.Node)
	members := s.env.View().Members
	if !s.env.View().Has(head.Node) || members[node].Role != RoleWorker ||
		!actors.IsVector(m.Tensors, s.pushed) ||
		head.Version > s.version && head.Life == s.workers[node].life {
		const format = "a push of node %d at version %d does not fit a run of %d nodes, %d values and version %d"
		actors.Fail(s.env, format, head.Node, head.Version, len(members), s.pushed, s.version)
		return
	}
	if head.Life != s.workers[node].life {
		return
	}
	gradient := m.Take(0)
	if w := &s.workers[node]; w.up != nil {
		var ok bool
		if gradient, ok = s.compressor.decode(w.up, gradient); !ok {
			return
		}
	}
	late := s.round != nil && head.Version < s.version
	if s.epoch != nil {
		s.epoch.take(node, head, late)
	}
	switch {
	case late:
		gradient.Release()
		s.drop(ctx, node)
		return
	case s.round != nil:
		s.round.take(node, gradient)
	default:
		s.apply(gradient, head.Version, node)
	}
	if s.workers[node].pid != nil {
		if err := s.clocks.Push(node, s.env.Now()); s.violated(err) {
			return
		}
	}
	s.advance(ctx)
}

// drop counts a gradient whose round has ended without it, and lets its worker begin the present
// one.
func (s *server) drop(ctx actor.Context, node int) {
	s.dropped++
	s.env.Record(actors.Event{Kind: actors.Measured, Name: Dropped, Value: float64(s.dropped)})
	if w := &s.workers[node]; w.pid != nil && (s.epoch == nil || !s.epoch.rests(node)) {
		s.answer(ctx, node)
	}
	s.advance(ctx)
}

// advance ends the round that is complete, if rounds end, and tells workers what they wait for.
func (s *server) advance(ctx actor.Context) {
	if s.epoch != nil {
		s.turn()
	}
	if s.round != nil {
		s.clocks.Skip(s.arch.Backup)
		for s.version < s.clocks.Slowest() {
			s.combine()
		}
	}
	ready, err := s.clocks.Ready()
	if s.violated(err) {
		return
	}
	for _, node := range ready {
		s.answer(ctx, node)
	}
}

// violated ends the run if clocks are too far apart.
func (s *server) violated(err error) bool {
	if err == nil {
		return false
	}
	var v *consistency.Violation
	if errors.As(err, &v) {
		actors.Fail(s.env, "%s", v.Text(func(node int) string { return s.env.View().Members[node].Name }))
	}
	return true
}

// apply takes over a gradient on the parameters of a version.
func (s *server) apply(gradient *protos.Tensor, version uint64, node int) {
	staleness := s.version - version
	factor := float32(1)
	if s.arch.Scale == Mean {
		factor = 1 / float32(max(s.present, 1))
	}
	if s.arch.StalenessRate == Inverse {
		factor /= float32(max(staleness, 1))
	}
	s.update(gradient, factor)
	s.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: s.version, Staleness: staleness, Origin: node})
}

// combine applies the gradients of a round at once.
func (s *server) combine() {
	sum, n := s.round.sum(s.env)
	if n == 0 { // all who had begun it have gone
		s.version++
		return
	}
	factor := float32(1)
	if s.arch.Scale == Mean {
		factor = 1 / float32(n)
	}
	s.update(sum, factor)
	for _, node := range s.round.nodes {
		s.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: s.version, Origin: node})
	}
}

// update makes a step with a gradient, which it takes over, times a factor.
func (s *server) update(gradient *protos.Tensor, factor float32) {
	n := len(gradient.Data)
	work := s.optimizer.Work(n)
	if factor != 1 {
		gradient = s.env.Tensors().Writable(gradient)
		nn.Scale(gradient.Data, factor)
		work += float64(n)
	}
	s.params = train.Update(s.env.Tensors(), s.optimizer, s.params, gradient.Data)
	gradient.Release()
	s.version++
	s.env.Charge(work)
}

func (s *server) answer(ctx actor.Context, node int) {
	w := &s.workers[node]
	params := s.params.Retain()
	if w.down != nil {
		params = s.compressor.encode(w.down, params)
	}
	m, head := s.parameters.Get(params)
	head.Version, head.Life, head.Clock, head.Epoch = s.version, w.life, s.clocks.Finished(node), 0
	if s.epoch != nil {
		head.Epoch = s.epoch.number
	}
	ctx.Send(w.pid, m)
}
