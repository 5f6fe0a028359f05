package noloco

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// peer makes the steps of a round, exchanges models with its group, and makes the outer step.
type peer struct {
	env     actors.Env
	arch    Architecture
	local   *train.Local
	own     *peers.Replica // θ, and the inner optimizer
	shared  *peers.Replica // φ as of the beginning of the round, and the outer optimizer
	joining peers.Joining
	idle    peers.Idle
	draw    draw
	models  *protos.Messages[*protos.Model]

	stepping bool
	meeting  bool      // the steps of the round are made, and the group's models are awaited
	group    []int32   // the others of the round that count, ascending
	arrived  []arrival // models of this round and of others
}

// arrival is a model that another peer has sent. Steps are those that its sender had finished: they
// tell rounds apart. Life is the sender's, see [peers.Joining.Life].
type arrival struct {
	node             int32
	steps, age, life uint64
	params           *protos.Tensor
}

func newPeer(env actors.Env, task *train.Task, a Architecture) (*peer, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	p := &peer{
		env: env, arch: a, local: local, own: peers.NewReplica(env, task), shared: peers.NewReplica(env, task),
		idle: peers.NewIdle(env), draw: newDraw(task.Seed, len(env.View().Members)),
		models: protos.NewMessages(func() *protos.Model { return &protos.Model{} }),
	}
	p.shared.Optimizer = optim.Momentum{Rate: optim.Constant(a.Outer.Rate), Momentum: a.Outer.Momentum}.
		New(task.Model.Params())
	p.joining = peers.NewJoining(env, p.local, p.shared, peers.NewLead(env, -1))
	return p, nil
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		p.receive(ctx, m)
		m.Release()
	case *train.Gradient:
		p.step(ctx, m)
	case peers.AskAgain:
		if p.joining.AskAgain(ctx) {
			p.enter()
		}
	default:
		return
	}
	p.advance(ctx)
}

func (p *peer) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		if p.joining.Start(ctx, head) {
			p.enter()
		}
	case *protos.View:
		p.group = slices.DeleteFunc(p.group, func(node int32) bool {
			return p.find(node) < 0 && slices.Contains(head.Absent, node)
		})
		if p.joining.Change(ctx, head) {
			p.enter()
		}
	case *protos.Join, *protos.Unready, *protos.Welcome:
		if p.joining.Receive(ctx, m) {
			p.enter()
		}
	case *protos.Model:
		p.model(head, m)
	case *protos.Busy:
		p.refused(head)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, p.env, head, p.own.Params, p.own.Version)
	default:
		actors.Unexpected(p.env, m)
	}
}

// enter begins with the shared model, at the beginning of a round.
func (p *peer) enter() {
	if p.shared.Steps%uint64(p.arch.Every) != 0 {
		actors.Fail(p.env, "it is to begin after step %d, and rounds have %d", p.shared.Steps, p.arch.Every)
		return
	}
	p.own.Replace(p.shared.Params.Retain())
	p.own.Version = p.shared.Version
	if err := p.own.Resume(p.shared.Steps); err != nil {
		actors.Fail(p.env, "%w", err)
	}
}

// ends is how many steps are finished at the end of the round under way.
func (p *peer) ends() uint64 { return p.shared.Steps + uint64(p.arch.Every) }

// step takes in a gradient, and sends the group the model with the last one of a round.
func (p *peer) step(ctx actor.Context, g *train.Gradient) {
	p.stepping, p.own.Steps = false, g.Step
	p.local.Done(g)
	p.own.Update(g.Values.Data)
	g.Values.Release()
	if p.own.Steps < p.ends() {
		return
	}
	p.meeting = true
	members := p.env.View().Members
	for _, node := range p.draw.group(p.ends()/uint64(p.arch.Every), p.env.Node(), p.arch.Group) {
		if int(node) != p.env.Node() && members[node].Present {
			p.group = append(p.group, node)
			p.send(ctx, node)
		}
	}
}

func (p *peer) send(ctx actor.Context, node int32) {
	m, head := p.models.Get(p.own.Params.Retain())
	head.Node, head.Step, head.Age = int32(p.env.Node()), p.own.Steps, p.own.Version
	head.Exchange = p.joining.Life()
	p.env.Record(actors.Event{Kind: actors.Selected, Origin: int(node)})
	ctx.Send(p.env.View().Members[node].PID, m)
}

// advance goes on as far as possible: to the end of the round under way and into the next.
func (p *peer) advance(ctx actor.Context) {
	if !p.joining.Ready() {
		return
	}
	if p.meeting {
		if node := p.awaited(); node >= 0 {
			p.idle.Wait(p.env.View().Members[node].Name)
		} else {
			p.idle.Resume()
			p.end()
		}
	}
	p.decline(ctx)
	if !p.meeting && !p.stepping {
		p.stepping = true
		p.local.Begin(p.own.Params.Retain())
	}
}

// awaited is the first of the group whose model of the round is not here, or −1.
func (p *peer) awaited() int {
	for _, node := range p.group {
		if p.find(node) < 0 {
			return int(node)
		}
	}
	return -1
}

// find returns where a node's model of this round is among those that have arrived, or −1. One that
// outruns the view which says that its sender is back is not here before that.
func (p *peer) find(node int32) int {
	return slices.IndexFunc(p.arrived, func(a arrival) bool {
		return a.node == node && a.steps == p.ends() && a.life <= p.env.View().Number
	})
}

var _ actors.Waiter = (*peer)(nil)

// Waiting implements [actors.Waiter].
func (p *peer) Waiting() string {
	switch {
	case !p.joining.Ready():
		return p.joining.Waiting()
	case p.meeting:
		return "the model of the round from " + p.idle.Cause()
	}
	return ""
}

// end makes the outer step with the group's mean, which is summed in the order of the plan and so
// the same for all of the group.
func (p *peer) end() {
	n := len(p.own.Params.Data)
	mean := p.env.Tensors().Get(n)
	clear(mean.Data)
	place, _ := slices.BinarySearch(p.group, int32(p.env.Node()))
	for i := range len(p.group) + 1 {
		if i == place {
			nn.AddScaled(mean.Data, 1, p.own.Params.Data)
		}
		if i < len(p.group) {
			p.add(mean.Data, p.group[i])
		}
	}
	nn.Scale(mean.Data, 1/float32(len(p.group)+1))
	periodic.PseudoGradient(mean.Data, p.shared.Params.Data, mean.Data)
	p.shared.Params = train.Update(p.env.Tensors(), p.shared.Optimizer, p.shared.Params, mean.Data)
	mean.Release()
	p.env.Charge(float64(n*(len(p.group)+3)) + p.shared.Optimizer.Work(n))
	p.shared.Steps, p.shared.Version = p.own.Steps, p.own.Version
	p.own.Replace(p.shared.Params.Retain())
	p.group, p.meeting = p.group[:0], false
}

// add adds a node's model of this round to a sum, and forgets it.
func (p *peer) add(sum []float32, node int32) {
	i := p.find(node)
	a := p.arrived[i]
	nn.AddScaled(sum, 1, a.params.Data)
	p.own.Version = max(p.own.Version, a.age)
	p.env.Record(actors.Event{Kind: actors.Merged, Origin: int(node), Step: a.steps})
	a.params.Release()
	p.arrived = slices.Delete(p.arrived, i, i+1)
}

// decline tells those who have sent models of rounds that are over here that this peer will not
// send one, so that they need not wait; one that is not in the view yet is told when it is.
func (p *peer) decline(ctx actor.Context) {
	members := p.env.View().Members
	p.arrived = slices.DeleteFunc(p.arrived, func(a arrival) bool {
		over := a.steps < p.ends() && a.life <= p.env.View().Number
		if over {
			a.params.Release()
		}
		if over && members[a.node].Present {
			busy := &protos.Busy{Node: int32(p.env.Node()), Exchange: a.steps}
			ctx.Send(members[a.node].PID, protos.NewMessage(busy))
		}
		return over
	})
}

// refused goes on without a peer that is past this round.
func (p *peer) refused(head *protos.Busy) {
	if !actors.Known(p.env, head.Node) || head.Exchange != p.ends() || p.find(head.Node) >= 0 {
		return
	}
	p.group = slices.DeleteFunc(p.group, func(node int32) bool { return node == head.Node })
}

// mostAhead bounds the models of one peer that wait for their rounds. A peer waits for its group in
// each round, so that few of them do, and several only if it has taken this one for gone meanwhile.
const mostAhead = 64

// waiting is how many models of a node wait for their rounds.
func (p *peer) waiting(node int32) (n int) {
	for i := range p.arrived {
		if p.arrived[i].node == node {
			n++
		}
	}
	return n
}

// model takes in the model of another peer.
func (p *peer) model(head *protos.Model, m *protos.Message) {
	switch n := len(p.own.Params.Data); {
	case !actors.Known(p.env, head.Node):
	case !actors.IsVector(m.Tensors, n):
		actors.Fail(p.env, "a model of node %d that is not one vector of %d values", head.Node, n)
	case head.Step == 0 || head.Step%uint64(p.arch.Every) != 0:
		actors.Fail(p.env, "a model of node %d after step %d, and rounds have %d", head.Node, head.Step, p.arch.Every)
	case p.waiting(head.Node) == mostAhead:
		actors.Fail(p.env, "more than %d models of node %d are ahead of this one's round", mostAhead, head.Node)
	default:
		p.arrived = append(p.arrived, arrival{node: head.Node, steps: head.Step, age: head.Age, life: head.Exchange,
			params: m.Tensors[0].Retain()})
	}
}
