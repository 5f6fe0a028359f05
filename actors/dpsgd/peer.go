package dpsgd

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// phase is what a peer is doing.
type phase uint8

const (
	entering phase = iota // has no model yet
	meeting               // has a model, and agrees with its neighbours where to begin
	resting               // between two steps
	working               // in a step
)

// peer makes its steps and averages with its neighbours.
type peer struct {
	env     actors.Env
	arch    Architecture
	local   *train.Local
	replica *peers.Replica
	lead    *peers.Lead
	drift   peers.Drift
	idle    peers.Idle
	pairs   []pair // in the order of the plan
	joining peers.Joining
	models  *protos.Messages[*protos.Model]
	choco   *choco
	tracker tracker

	phase    phase
	sent     *protos.Tensor // x̂, the model that neighbours know
	gradient *protos.Tensor // of the step under way, once it is there
	news     bool           // the clock has something that neighbours have not been told
	complete int            // the first pairs, this many, need no further model of this step
}

func newPeer(env actors.Env, task *train.Task, a Architecture) (*peer, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	view := env.View()
	if a.Matrix != nil {
		if err := peers.CheckMixingRow(view.Ever(), a.Matrix, env.Node()); err != nil {
			return nil, err
		}
	}
	p := &peer{
		env: env, arch: a, local: local, replica: peers.NewReplica(env, task),
		lead: peers.NewLead(env, a.Lead), drift: peers.NewDrift(a.Moved), idle: peers.NewIdle(env),
		pairs:  newPairs(view, env.Node(), a.Matrix),
		models: protos.NewMessages(func() *protos.Model { return &protos.Model{} }),
	}
	p.choco, p.tracker = newChoco(env, task, a.Choco.Compress), tracker{env: env}
	p.joining = peers.NewJoining(env, p.local, p.replica, p.lead)
	p.look()
	return p, nil
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		p.receive(ctx, m)
	case peers.AskAgain:
		if p.joining.AskAgain(ctx) {
			p.greet(ctx)
		}
	case *train.Gradient:
		p.gradient = m.Values
		p.local.Done(m)
		p.advance(ctx)
	default:
		return
	}
	p.announce(ctx)
	p.lead.Relay(ctx)
}

func (p *peer) receive(ctx actor.Context, m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		p.start(ctx, head)
	case *protos.View:
		p.change(ctx, head)
	case *protos.Join, *protos.Unready, *protos.Welcome:
		if p.joining.Receive(ctx, m) {
			p.greet(ctx)
		}
	case *protos.Meet:
		p.agree(ctx, head)
	case *protos.Model:
		p.model(ctx, head, m)
	case *protos.Clock:
		p.merge(head.Node, head.Floor, head.Others)
		p.advance(ctx)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, p.env, head, p.replica.Params, p.replica.Version)
	default:
		actors.Unexpected(p.env, m)
	}
}

// pair returns that with a node, or nil if the node is no neighbour.
func (p *peer) pair(node int32) *pair {
	i, ok := slices.BinarySearchFunc(p.pairs, int(node), func(x pair, node int) int { return x.node - node })
	if !ok {
		return nil
	}
	return &p.pairs[i]
}

// pid addresses a neighbour.
func (p *peer) pid(x *pair) *actor.PID { return p.env.View().Members[x.node].PID }

// token distinguishes the present lives of a pair from former ones: it is the view since which both
// are there, which both know.
func (p *peer) token(x *pair) uint64 { return max(p.joining.Life(), x.since) }

// start begins the first step, or joins those who are in theirs.
func (p *peer) start(ctx actor.Context, head *protos.Start) {
	for i := range p.pairs {
		if x := &p.pairs[i]; x.since < head.View { // what has come was for a former life of this node
			x.empty()
		}
	}
	switch ready := p.joining.Start(ctx, head); {
	case !ready:
		return
	case head.Joins:
		p.greet(ctx)
		return
	}
	view := p.env.View()
	for i := range p.pairs {
		if p.pairs[i].stage == apart {
			p.pairs[i].stage = joined
		}
	}
	if view.Members[p.env.Node()].Rank == 0 {
		m, err := p.arch.mixing(view)
		if err != nil {
			p.env.Fail(err)
			return
		}
		p.env.Record(actors.Event{Kind: actors.Measured, Name: "spectral gap", Value: m.SpectralGap()})
	}
	p.phase = resting
	p.advance(ctx)
}

// advance goes on as far as possible: to the end of the step under way and into the next.
func (p *peer) advance(ctx actor.Context) {
	if p.phase == working && p.gradient != nil {
		for ; p.complete < len(p.pairs); p.complete++ {
			if x := &p.pairs[p.complete]; x.missing(p.replica.Steps) {
				p.idle.Wait(x.name)
				return
			}
		}
		p.idle.Resume()
		if !p.mix() {
			return
		}
		p.phase = resting
	}
	if p.phase == resting {
		if x := p.open(); x != nil {
			p.idle.Wait(x.name)
			return
		}
		if node, wait := p.lead.Slowest(); wait {
			p.idle.Wait(p.env.View().Members[node].Name)
			return
		}
		p.idle.Resume()
		p.begin(ctx)
	}
}

var _ actors.Waiter = (*peer)(nil)

// Waiting implements [actors.Waiter].
func (p *peer) Waiting() string {
	switch {
	case p.phase == entering:
		return p.joining.Waiting()
	case p.phase != working && p.open() != nil:
		return "an answer from " + p.open().name
	case p.phase == resting:
		return p.lead.Waiting()
	case p.idle.Cause() != "":
		return fmt.Sprintf("the model of step %d from %s", p.replica.Steps+1, p.idle.Cause())
	}
	return ""
}

// open returns the first pair whose neighbour has been asked and has not answered, or nil.
func (p *peer) open() *pair {
	for i := range p.pairs {
		if p.pairs[i].stage == asked {
			return &p.pairs[i]
		}
	}
	return nil
}

// begin sends the model to all neighbours and computes the step's gradient at it.
func (p *peer) begin(ctx actor.Context) {
	p.phase, p.complete = working, 0
	far, work := p.drift.Far(p.replica.Params.Data)
	p.env.Charge(work)
	if far {
		p.know(p.replica.Params)
	}
	told := 0
	for i := range p.pairs {
		if x := &p.pairs[i]; x.counts(p.replica.Steps) {
			p.send(ctx, x, far)
			told++
		}
	}
	if p.news && p.lead.Bounded() && told == p.env.View().Degree(p.env.Node()) {
		p.news = false
	}
	p.local.Begin(p.replica.Params.Retain())
}

// know notes what neighbours will know from now on.
func (p *peer) know(params *protos.Tensor) {
	if p.choco != nil {
		p.sent = p.choco.know(p.sent, params)
		p.drift.Mark(p.sent)
		return
	}
	if p.sent != nil {
		p.sent.Release()
	}
	p.sent = params.Retain()
	p.drift.Mark(params)
}

// send tells a neighbour this step's model, or that it has not moved.
func (p *peer) send(ctx actor.Context, x *pair, far bool) {
	var m *protos.Message
	var head *protos.Model
	switch compressed := p.choco != nil; {
	case compressed && !x.told: // x̂ goes on changing
		m, head = p.models.Get(p.env.Tensors().Copy(p.sent.Data))
	case compressed && far && p.choco.code != nil:
		m, head = p.models.Get(p.choco.code.Retain())
	case !compressed && (far || !x.told):
		m, head = p.models.Get(p.sent.Retain())
	default:
		m, head = p.models.Get()
	}
	head.Code = p.choco != nil && x.told && len(m.Tensors) > 0
	x.told = true
	p.tracker.attach(m, head)
	head.Node, head.Step, head.Age = int32(p.env.Node()), p.replica.Steps, p.replica.Version
	head.Exchange = p.token(x)
	head.Floor, head.Others = p.lead.Append(head.Others[:0])
	ctx.Send(p.pid(x), m)
}

// mix averages with the neighbours, makes the optimiser's step, and ends the step. It
// reports whether the neighbours' messages made sense.
func (p *peer) mix() bool {
	self, others := float32(1), 0
	for i := range p.pairs {
		if x := &p.pairs[i]; x.counts(p.replica.Steps) {
			if err := x.take(p.replica.Steps, p.choco); err != nil {
				actors.Fail(p.env, "model of %s in step %d: %w", x.name, p.replica.Steps, err)
				return false
			}
			p.env.Record(actors.Event{Kind: actors.Merged, Origin: x.node, Step: p.replica.Steps})
			self -= x.weight
			others++
		}
	}
	if others > 0 {
		p.replica.Replace(p.average(self))
		p.env.Charge(2 * float64(others+1) * float64(len(p.replica.Params.Data)))
	}
	if p.arch.Track {
		p.replica.Update(p.tracker.mix(p.pairs, p.replica.Steps, p.gradient).Data)
	} else {
		p.replica.Update(p.gradient.Data)
		p.gradient.Release()
	}
	p.gradient = nil
	for i := range p.pairs {
		if x := &p.pairs[i]; x.counts(p.replica.Steps) {
			x.slots[p.replica.Steps&1].clear()
		}
	}
	p.replica.Steps++
	p.lead.Finish(p.replica.Steps)
	p.news = true
	return true
}

// average is the row of this peer in W·X, summed in the order of the plan; self is the
// weight of the peer's model.
func (p *peer) average(self float32) *protos.Tensor {
	out := p.env.Tensors().Get(len(p.replica.Params.Data))
	clear(out.Data)
	own := false
	for i := range p.pairs {
		x := &p.pairs[i]
		if !own && x.node > p.env.Node() {
			p.addOwn(out.Data, self)
			own = true
		}
		if x.counts(p.replica.Steps) {
			nn.AddScaled(out.Data, p.rate()*x.weight, x.known.Data)
			if p.arch.Moved == 0 && p.choco == nil {
				x.releaseKnown()
			}
		}
	}
	if !own {
		p.addOwn(out.Data, self)
	}
	return out
}

// addOwn adds this peer's own part, x + γ (W_ii − 1) x̂, where γ is the consensus step size.
func (p *peer) addOwn(out []float32, self float32) {
	if p.sent == p.replica.Params {
		nn.AddScaled(out, 1+p.rate()*(self-1), p.sent.Data)
		return
	}
	nn.AddScaled(out, 1, p.replica.Params.Data)
	nn.AddScaled(out, p.rate()*(self-1), p.sent.Data)
}

// rate is the consensus step size.
func (p *peer) rate() float32 {
	if p.arch.Choco.Rate == 0 {
		return 1
	}
	return float32(p.arch.Choco.Rate)
}

// merge takes in what another peer knows of how far all are.
func (p *peer) merge(node int32, floor uint64, others []byte) {
	if p.lead.Merge(node, floor, others) {
		p.news = true
	}
}

// announce passes news on, unless the next model will.
func (p *peer) announce(ctx actor.Context) {
	if !p.news || !p.lead.Bounded() || p.phase < meeting || p.phase == working && p.gradient == nil {
		return
	}
	p.news = false
	p.lead.Announce(ctx)
}
