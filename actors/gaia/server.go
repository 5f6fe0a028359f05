package gaia

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// server holds a site's copy of the model, and is the parameter server of its workers.
type server struct {
	env        actors.Env
	arch       Architecture
	params     *protos.Tensor
	version    uint64 // updates by gradients of this site
	optimizer  optim.Optimizer
	clocks     *consistency.Clocks
	workers    []known          // by node; those of other nodes stay zero
	round      []*protos.Tensor // by node: gradients of a round that is not over; nil where rounds have no end
	rounds     uint64           // that are over
	ready      []int            // workers that may go on as soon as the other sites let them
	between    *between
	parameters *protos.Messages[*protos.Parameters]
}

// known is what the server knows of a worker of its site.
type known struct {
	pid *actor.PID // nil while it is absent
	// life is the number of the view in which it was greeted. Pushes of another life are those of a
	// worker that is gone.
	life   uint64
	pushes uint64 // of this life
}

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	nodes, params := len(env.View().Members), task.Model.Params()
	s := &server{env: env, arch: a, params: env.Tensors().Copy(task.Initial()), optimizer: task.Method.New(params),
		clocks: consistency.New(a.model(), nodes), workers: make([]known, nodes),
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} })}
	if a.model().Bound() == 0 {
		s.round = make([]*protos.Tensor, nodes)
	}
	s.between = newBetween(s, params)
	return s
}

var _ actors.Waiter = (*server)(nil)

// Waiting implements [actors.Waiter].
func (s *server) Waiting() string {
	if s.between.asked != nil || len(s.ready) > 0 {
		return s.between.waits()
	}
	return ""
}

func (s *server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		s.receive(ctx, m)
		m.Release()
	case lineFree:
		s.between.proceed(ctx)
	}
}

func (s *server) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		s.follow(ctx)
	case *protos.View:
		s.follow(ctx)
	case *protos.Push:
		s.push(ctx, head, m)
	case *protos.Mirror:
		s.between.take(ctx, head, m)
	case *protos.TakeSnapshot:
		s.between.snapshot(ctx, head)
	default:
		actors.Unexpected(s.env, m)
	}
}

// follow takes in a view: who has gone holds nobody back, and who has come begins at the slowest
// clock.
func (s *server) follow(ctx actor.Context) {
	view := s.env.View()
	for node := range s.workers {
		if w := &s.workers[node]; w.pid != nil && !view.Members[node].Present {
			w.pid = nil
			s.clocks.Leave(node)
			s.ready = slices.DeleteFunc(s.ready, func(i int) bool { return i == node })
		}
	}
	s.advance(ctx)
	for _, node := range view.Role(RoleWorker) {
		m := &view.Members[node]
		if w := &s.workers[node]; w.pid == nil && m.Site == view.Members[s.env.Node()].Site {
			*w = known{pid: m.PID, life: view.Number}
			s.clocks.Join(node)
			s.ready = append(s.ready, node)
		}
	}
	s.between.follow(ctx)
	s.admit(ctx)
}

// push takes a gradient in.
func (s *server) push(ctx actor.Context, head *protos.Push, m *protos.Message) {
	if !actors.Known(s.env, head.Node) {
		return
	}
	node := int(head.Node)
	w, sender := &s.workers[node], &s.env.View().Members[node]
	if sender.Role != RoleWorker || !actors.IsVector(m.Tensors, len(s.params.Data)) ||
		head.Life == w.life && head.Version > s.version {
		actors.Fail(s.env, "a push of %s at version %d does not fit a worker, %d values and version %d", sender.Name,
			head.Version, len(s.params.Data), s.version)
		return
	}
	if w.pid == nil || head.Life != w.life {
		return
	}
	w.pushes++
	if s.between.over { // the last models are being looked at
		return
	}
	gradient := m.Take(0)
	if s.round != nil {
		if before := s.round[node]; before != nil { // of a former life
			before.Release()
		}
		s.round[node] = gradient
	} else {
		s.update(gradient)
		s.taken(node, s.version-1-head.Version)
	}
	if err := s.clocks.Push(node, s.env.Now()); s.violated(err) {
		return
	}
	s.advance(ctx)
}

// advance ends the rounds that are complete, tells other sites, and lets workers go on that may.
// What a round that ends after the last updates would change, nobody else would hear.
func (s *server) advance(ctx actor.Context) {
	if s.between.over {
		return
	}
	for s.round != nil && s.rounds < s.clocks.Slowest() {
		s.combine()
	}
	ready, err := s.clocks.Ready()
	if s.violated(err) {
		return
	}
	s.ready = append(s.ready, ready...)
	s.between.tell(ctx)
	s.admit(ctx)
}

// admit lets the workers go on that may by the clocks of the site, unless another site holds them
// back.
func (s *server) admit(ctx actor.Context) {
	if len(s.ready) == 0 || s.between.over || s.between.blocks() != nil {
		return
	}
	for _, node := range s.ready {
		m, head := s.parameters.Get(s.params.Retain())
		w := &s.workers[node]
		head.Version, head.Life, head.Clock = s.version, w.life, s.clocks.Finished(node)
		ctx.Send(w.pid, m)
	}
	s.ready = s.ready[:0]
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

// combine makes one step with the gradients of a round, added in the order of their nodes.
func (s *server) combine() {
	s.rounds++
	var sum *protos.Tensor
	for _, gradient := range s.round {
		switch {
		case gradient == nil:
		case sum == nil:
			sum = gradient.Retain()
		default:
			sum = s.env.Tensors().Writable(sum)
			nn.AddScaled(sum.Data, 1, gradient.Data)
			s.env.Charge(float64(len(sum.Data)))
		}
	}
	if sum == nil { // all who had begun it have gone
		return
	}
	s.update(sum)
	for node, gradient := range s.round {
		if gradient != nil {
			s.taken(node, 0)
			gradient.Release()
			s.round[node] = nil
		}
	}
}

// update makes a step with a gradient, which it takes over.
func (s *server) update(gradient *protos.Tensor) {
	n := len(gradient.Data)
	if factor := s.arch.Scale.Factor(len(s.env.View().Role(RoleWorker))); factor != 1 {
		gradient = s.env.Tensors().Writable(gradient)
		nn.Scale(gradient.Data, factor)
		s.env.Charge(float64(n))
	}
	before := s.params.Retain()
	s.params = train.Update(s.env.Tensors(), s.optimizer, s.params, gradient.Data)
	gradient.Release()
	s.env.Charge(s.optimizer.Work(n))
	s.between.add(s.params.Data, before.Data)
	before.Release()
	s.version++
}

// taken records that the model has taken in the last push of a worker.
func (s *server) taken(node int, staleness uint64) {
	w := &s.workers[node]
	s.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: s.version, Staleness: staleness, Origin: node,
		Life: w.life, Push: w.pushes})
}
