package adpsgd

import (
	"math/rand/v2"
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
	resting               // between two steps
	working               // in a step
)

// none stands for no node.
const none = -1

// peer makes its steps, and averages with one neighbour at a time.
type peer struct {
	env     actors.Env
	arch    Architecture
	local   *train.Local
	replica *peers.Replica
	lead    *peers.Lead
	drift   peers.Drift
	idle    peers.Idle
	random  *rand.Rand
	joining peers.Joining
	codec   *train.Codec
	models  *protos.Messages[*protos.Model]
	active  bool
	others  []int32 // that it can average with in any topology of the run, present or not, ascending
	view    *actors.View

	phase    phase
	gradient *protos.Tensor // of the step under way, once it is there
	partner  int            // in the exchange under way
	sent     *protos.Tensor // what it got of this peer's model: the code; nil between exchanges
	exchange uint64         // its number
	news     bool           // the clock has something that neighbours have not been told
	due      bool           // neighbours are to be told the clock
}

func newPeer(env actors.Env, task *train.Task, a Architecture) (*peer, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	view, node := env.View(), env.Node()
	choices, err := a.partners(view)
	if err != nil {
		return nil, err
	}
	p := &peer{
		env: env, arch: a, local: local, replica: peers.NewReplica(env, task),
		lead: peers.NewLead(env, a.Lead), drift: peers.NewDrift(a.Moved), idle: peers.NewIdle(env),
		random: env.Rand("partner"), codec: train.NewCodec(env, task, a.Compress),
		models: protos.NewMessages(func() *protos.Model { return &protos.Model{} }),
		others: choices[node], view: view,
		partner: none,
	}
	p.joining = peers.NewJoining(env, p.local, p.replica, p.lead)
	if p.active = len(p.others) > 0; !p.active {
		p.others = choosers(choices, node)
	}
	return p, nil
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		p.receive(ctx, m)
	case peers.AskAgain:
		if p.joining.AskAgain(ctx) {
			p.enter(ctx)
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
			p.enter(ctx)
		}
	case *protos.Model:
		p.model(ctx, head, m)
	case *protos.Busy:
		p.refused(ctx, head)
	case *protos.Clock:
		p.merge(head.Node, head.Floor, head.Others)
		p.advance(ctx)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, p.env, head, p.replica.Params, p.replica.Version)
	default:
		actors.Unexpected(p.env, m)
	}
}

func (p *peer) member(node int) *actors.Member { return &p.env.View().Members[node] }

// near reports whether a node is there and a neighbour at present.
func (p *peer) near(node int) bool {
	return p.member(node).Present && p.env.View().Linked(p.env.Node(), node)
}

// start begins the first step, or joins those who are in theirs.
func (p *peer) start(ctx actor.Context, head *protos.Start) {
	// Exchanges of different lives of a node have different numbers.
	p.exchange = head.View << 32
	switch ready := p.joining.Start(ctx, head); {
	case !ready:
		return
	case head.Joins:
		p.enter(ctx)
		return
	}
	if view := p.env.View(); p.member(p.env.Node()).Rank == 0 {
		choices, err := p.arch.partners(view)
		if err != nil {
			p.env.Fail(err)
			return
		}
		p.env.Record(actors.Event{Kind: actors.Measured, Name: "spectral gap",
			Value: peers.ExpectedMixing(present(view, choices)).SpectralGap()})
	}
	p.phase = resting
	p.advance(ctx)
}

// advance goes on as far as possible: to the end of the step under way and into the next.
func (p *peer) advance(ctx actor.Context) {
	if p.phase == working && p.gradient != nil {
		if p.partner != none {
			p.idle.Wait(p.member(p.partner).Name)
			return
		}
		p.idle.Resume()
		p.finish()
	}
	if p.phase == resting {
		if node, wait := p.lead.Slowest(); wait {
			p.idle.Wait(p.member(node).Name)
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
	case p.phase == resting:
		return p.lead.Waiting()
	case p.idle.Cause() != "":
		return "the mean from " + p.idle.Cause()
	}
	return ""
}

// begin starts the gradient at the present model, and an exchange beside it.
func (p *peer) begin(ctx actor.Context) {
	p.phase = working
	p.local.Begin(p.replica.Params.Retain())
	if !p.active {
		return
	}
	far, work := p.drift.Far(p.replica.Params.Data)
	p.env.Charge(work)
	if far {
		p.propose(ctx)
	}
}

// propose sends the model to one of the passive neighbours that are near, each as likely as any
// other.
func (p *peer) propose(ctx actor.Context) {
	near := 0
	for _, node := range p.others {
		if p.near(int(node)) {
			near++
		}
	}
	if near == 0 {
		return
	}
	choice := p.random.IntN(near)
	for _, node := range p.others {
		if !p.near(int(node)) {
			continue
		}
		if choice == 0 {
			p.partner = int(node)
			break
		}
		choice--
	}
	p.exchange++
	p.env.Record(actors.Event{Kind: actors.Selected, Origin: p.partner})
	p.sent = p.codec.Encode(p.replica.Params)
	p.send(ctx, p.partner, p.exchange, true, p.sent.Retain())
}

// part ends the exchange under way.
func (p *peer) part() {
	p.partner = none
	p.sent.Release()
	p.sent = nil
}

// send sends a model as it travels, which it takes over, as a wish for another's or as an answer.
func (p *peer) send(ctx actor.Context, node int, exchange uint64, wanted bool, model *protos.Tensor) {
	m, head := p.models.Get(model)
	head.Node, head.Step, head.Age, head.Exchange = int32(p.env.Node()), p.replica.Steps, p.replica.Version, exchange
	head.Wanted, head.Answer = wanted, !wanted
	head.Floor, head.Others = p.lead.Append(head.Others[:0])
	ctx.Send(p.member(node).PID, m)
}

// finish applies the gradient to what the model has become, and ends the step.
func (p *peer) finish() {
	p.replica.Update(p.gradient.Data)
	p.gradient.Release()
	p.gradient = nil
	p.phase = resting
	p.replica.Steps++
	p.lead.Finish(p.replica.Steps)
	p.due = true
}

// model takes in a neighbour's model, which is a wish to average or an answer.
func (p *peer) model(ctx actor.Context, head *protos.Model, m *protos.Message) {
	_, known := slices.BinarySearch(p.others, head.Node)
	size := p.codec.Size(len(p.replica.Params.Data))
	switch {
	case !known || head.Wanted == head.Answer || head.Wanted && p.active:
		actors.Fail(p.env, "model of node %d, which does not average with this one so", head.Node)
		return
	case !actors.IsVector(m.Tensors, size):
		actors.Fail(p.env, "model of node %d that is not one vector of %d", head.Node, size)
		return
	}
	p.merge(head.Node, head.Floor, head.Others)
	switch {
	case head.Wanted && p.phase == entering:
		busy := &protos.Busy{Node: int32(p.env.Node()), Exchange: head.Exchange}
		ctx.Send(p.member(int(head.Node)).PID, protos.NewMessage(busy))
	case head.Wanted:
		answer := p.average(m.Tensors[0])
		p.env.Record(actors.Event{Kind: actors.Merged, Origin: int(head.Node), Step: head.Step})
		p.send(ctx, int(head.Node), head.Exchange, false, answer)
	case p.partner == int(head.Node) && head.Exchange == p.exchange:
		p.env.Record(actors.Event{Kind: actors.Merged, Origin: int(head.Node), Step: head.Step})
		p.settle(m.Tensors[0])
		p.drift.Mark(p.replica.Params)
		p.part()
	}
	p.advance(ctx)
}

// average makes the model the mean of itself and another, and returns what the other peer is to
// have: that mean, or where models are compressed the code of this peer's as it was.
func (p *peer) average(other *protos.Tensor) (answer *protos.Tensor) {
	if p.codec != nil {
		answer = p.codec.Encode(p.replica.Params)
		p.approach(answer, other)
		return answer
	}
	own := p.replica.Writable()
	nn.ScaledSum(own, 0.5, own, other.Data)
	p.env.Charge(2 * float64(len(own)))
	return p.replica.Params.Retain()
}

// settle takes in the answer to what this peer has sent.
func (p *peer) settle(answer *protos.Tensor) {
	if p.codec != nil {
		p.approach(p.sent, answer)
		return
	}
	p.replica.Replace(answer.Retain())
}

// approach moves the model by half the difference of what two codes stand for. The other peer moves
// by as much the other way.
func (p *peer) approach(own, other *protos.Tensor) {
	from, err := p.codec.Decode(own)
	if err != nil {
		actors.Fail(p.env, "its own model: %w", err)
		return
	}
	defer from.Release()
	to, err := p.codec.Decode(other)
	if err != nil {
		actors.Fail(p.env, "the model of another peer: %w", err)
		return
	}
	defer to.Release()
	params := p.replica.Writable()
	for i, v := range params {
		params[i] = v + (to.Data[i]-from.Data[i])/2
	}
	p.env.Charge(3 * float64(len(params)))
}

// merge takes in what another peer knows of how far all are.
func (p *peer) merge(node int32, floor uint64, others []byte) {
	if p.lead.Merge(node, floor, others) {
		p.news = true
	}
}

// announce passes on how far all are after a step, and news of it while the peer waits.
func (p *peer) announce(ctx actor.Context) {
	if p.lead.Bounded() && (p.due || p.news && p.idle.Cause() != "") {
		p.news, p.due = false, false
		p.lead.Announce(ctx)
	}
}
