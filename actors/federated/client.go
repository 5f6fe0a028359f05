package federated

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// client works for the rounds that it is drawn for. Work for a later round takes the place of what
// is under way, whose update would come too late.
//
// With controls its own one, c_i, stays here. What a round makes of it is the mean of the round's
// gradients, as option II of SCAFFOLD finds it by (φ − θ) ÷ (Kη) with plain descent; here it holds
// with any optimizer. It is the client's own from when the server has taken in its change, so that
// the server's control is the mean of what clients have. Where a client goes that has a part in it,
// all begin with zero again.
type client struct {
	env   actors.Env
	arch  Architecture
	task  *train.Task
	local *train.Local
	inner *periodic.Inner
	idle  peer.Idle

	server int  // its position in the view
	served bool // it is there

	since uint64 // the view with which this life began; 0 before that is known
	last  uint64 // round of the latest work
	next  *work  // that waits for the step under way, or for this life to begin; nil for none
	busy  bool   // a step is under way

	now     *work          // nil while idle
	turn    int            // of the clients of now
	model   *protos.Tensor // what the steps of this round have made of the server's
	steps   int            // of this round
	ends    int            // with how many of them it is over
	updates *protos.Messages[*protos.ClientUpdate]
	control *control  // nil without controls
	attack  *attacker // nil for an honest client
}

// work is what the server wants in a round.
type work struct {
	round, held     uint64
	clients         []uint32       // whose turn it is one after the other; nil without a population
	params, control *protos.Tensor // control is nil without controls
}

func (w *work) release() {
	w.params.Release()
	if w.control != nil {
		w.control.Release()
	}
}

// timeUp ends the work of a round early, or that of a turn of it.
type timeUp struct {
	round uint64
	turn  int
}

func newClient(env actors.Env, task *train.Task, a Architecture) (*client, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	inner, err := periodic.NewInner(task.Method, task.Model.Params(), a.State)
	if err != nil {
		return nil, err
	}
	c := &client{env: env, arch: a, task: task, local: local, inner: inner, idle: peer.NewIdle(env),
		server:  a.parents(env.View().Members)[env.Node()],
		updates: protos.NewMessages(func() *protos.ClientUpdate { return &protos.ClientUpdate{} })}
	if a.Controls {
		c.control = &control{env: env}
	}
	c.attack = a.Attack.attacker(env, task, local)
	return c, nil
}

func (c *client) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		c.receive(m)
		m.Release()
	case *train.Gradient:
		c.step(ctx, m)
	case timeUp:
		if c.now != nil && m.round == c.now.round && m.turn == c.turn {
			c.ends = min(c.ends, c.steps+1)
		}
	}
}

func (c *client) receive(m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		c.start(head)
	case *protos.View:
		c.follow()
	case *protos.ClientWork:
		c.take(head, m)
	default:
		actors.Unexpected(c.env, m)
	}
}

// start begins this life. Work may have come before; what was meant for a former life is forgotten.
func (c *client) start(head *protos.Start) {
	c.since = max(head.View, 1)
	c.served = c.serving().Present
	c.idle.Wait("a round")
	c.begin()
}

// serving is the server in the view.
func (c *client) serving() *actors.Member { return &c.env.View().Members[c.server] }

// follow ends the run if the server has gone. An aggregator may come back.
func (c *client) follow() {
	before := c.served
	if c.served = c.serving().Present; before && !c.served && c.serving().Role == RoleServer {
		actors.Fail(c.env, lost, c.serving().Name)
	}
}

// take takes in the work of a round.
func (c *client) take(head *protos.ClientWork, m *protos.Message) {
	tensors, n := c.arch.tensors(), c.task.Model.Params()
	strange := func(t *protos.Tensor) bool { return len(t.Data) != n }
	if len(m.Tensors) != tensors || slices.ContainsFunc(m.Tensors, strange) {
		actors.Fail(c.env, "work of round %d has not %d tensors of %d values", head.Round, tensors, n)
		return
	}
	if !c.hosted(head.Clients) {
		actors.Fail(c.env, "work of round %d is for the clients %v, of a population of %d", head.Round, head.Clients,
			c.arch.Population)
		return
	}
	if head.View < c.since || head.Round <= c.last {
		return
	}
	if c.next != nil {
		c.next.release()
	}
	c.last, c.next = head.Round, &work{round: head.Round, held: head.Held, clients: slices.Clone(head.Clients)}
	if c.control != nil {
		c.next.control = m.Take(1)
	}
	c.next.params = m.Take(0)
	c.begin()
}

// begin begins the work that has come, if nothing is under way.
func (c *client) begin() {
	if c.since == 0 || c.next == nil || c.busy {
		return
	}
	c.idle.Resume()
	c.now, c.next, c.turn = c.next, nil, 0
	c.train()
}

// train begins the steps of a client: of this node, or of the one whose turn it is.
func (c *client) train() {
	if c.now.clients != nil {
		err := c.local.Become(c.task, int(c.now.clients[c.turn]), c.now.round-1, c.arch.Local.Of)
		if err != nil {
			c.env.Fail(err)
			return
		}
	}
	c.model = c.now.params.Retain()
	c.steps, c.ends = 0, c.arch.Local.Of(c.local.Steps())
	c.inner.Begin(int(c.now.round - 1))
	if c.control != nil {
		c.control.begin(c.now)
	}
	if c.arch.Local.Time > 0 {
		c.env.After(c.arch.Local.Time, timeUp{c.now.round, c.turn})
	}
	c.compute()
}

func (c *client) compute() {
	c.busy = true
	c.local.Begin(c.model.Retain())
}

// step takes in a gradient, and sends the update with the last one of a round.
func (c *client) step(ctx actor.Context, g *train.Gradient) {
	c.busy = false
	c.local.Done(g)
	if c.next != nil {
		g.Values.Release()
		c.end()
		c.begin()
		return
	}
	c.descend(g.Values.Data)
	g.Values.Release()
	if c.steps++; c.steps < c.ends {
		c.compute()
		return
	}
	c.send(ctx)
	if c.turn++; c.turn < len(c.now.clients) {
		c.model.Release()
		c.train()
		return
	}
	c.end()
	c.idle.Wait("a round")
}

// descend makes a step of the inner optimizer with a gradient, which it changes.
func (c *client) descend(gradient []float32) {
	n := float64(len(gradient))
	if c.control != nil {
		c.control.correct(gradient)
		c.env.Charge(2 * n)
	}
	if c.arch.Proximal > 0 {
		periodic.Pull(gradient, float32(c.arch.Proximal), c.model.Data, c.now.params.Data)
		c.env.Charge(3 * n)
	}
	before := c.attack.hold(c.model)
	c.model = train.Update(c.env.Tensors(), c.inner, c.model, gradient)
	c.attack.watch(before, c.model, c.steps)
	c.env.Charge(c.inner.Work(len(gradient)))
}

// send sends the server what the round has led to.
func (c *client) send(ctx actor.Context) {
	tensors := []*protos.Tensor{c.learned()}
	if c.control != nil {
		tensors = append(tensors, c.control.change(c.steps))
	}
	m, head := c.updates.Get(tensors...)
	head.Node, head.Round = int32(c.env.Node()), c.now.round
	head.Samples, head.Steps, head.Client = uint64(c.local.Samples()), uint64(c.steps), 0
	if c.now.clients != nil {
		head.Client = c.now.clients[c.turn]
	}
	ctx.Send(c.serving().PID, m)
}

// learned is the update of the round that is over.
func (c *client) learned() *protos.Tensor {
	if c.arch.Exchange == Parameters && c.attack == nil {
		return c.model.Retain()
	}
	n := len(c.model.Data)
	learned := c.env.Tensors().Get(n)
	periodic.PseudoGradient(learned.Data, c.now.params.Data, c.model.Data)
	c.attack.falsify(learned.Data, c.steps)
	if c.arch.Exchange == Parameters {
		periodic.PseudoGradient(learned.Data, c.now.params.Data, learned.Data)
	}
	c.env.Charge(float64(n))
	return learned
}

// end ends the work of a round, whether it was sent or not.
func (c *client) end() {
	c.now.release()
	c.model.Release()
	c.now, c.model = nil, nil
	if c.control != nil {
		c.control.end()
	}
}
