package peer

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// Joining gets a peer its first model: the initial one where the run begins, and a neighbour's for
// a peer that joins a run under way.
//
// A peer that joins asks its present neighbours with a Join, one at a time and in random order. A
// neighbour with a model answers with a Welcome. A neighbour that has none, because it joins as
// well, answers at once with an Unready and sends its Welcome later; meanwhile the peer asks the
// next. Once all neighbours are unready, the peer begins with the initial model if it comes before
// them in the order of the plan. So peers that join together never all wait for each other: of
// those that wait, the first in the plan need not.
//
// Over links that lose messages for good a peer that has no model yet asks again, each time after
// twice as long: the neighbours that have not said that they are unready, or all of them if they
// all have. Elsewhere it asks each of them once.
//
// A peer goes on after as many steps as its source has finished, or as the others know of an
// earlier life of its node, whichever is more, because clocks do not go back. With the initial
// model it goes on after none.
type Joining struct {
	env     actors.Env
	local   *train.Local
	replica *Replica
	lead    *Lead

	life    uint64 // number of the view in which the peer has started, 0 before
	ready   bool   // the replica holds a model to train and to send
	source  int    // the neighbour that it asked; nobody if that is unready or has gone
	unready map[int]bool
	waiting []join // that came before there was a model, or before the view that explains them

	patience time.Duration // before the peer asks again
	again    actors.Timer
}

// AskAgain is the timer at which a peer asks again; its actor hands it to [Joining.AskAgain].
type AskAgain struct{}

// The first and the longest wait for an answer are TCP's (RFC 6298, section 2).
const firstPatience, mostPatience = time.Second, time.Minute

// join is a Join to be answered.
type join struct {
	node int32
	life uint64
}

const nobody = -1

// NewJoining returns the joining of the peer that lives in env. Local, replica and lead are the
// peer's; they are set to the step that the peer goes on with.
func NewJoining(env actors.Env, local *train.Local, replica *Replica, lead *Lead) Joining {
	return Joining{env: env, local: local, replica: replica, lead: lead, source: nobody, unready: map[int]bool{},
		patience: firstPatience}
}

// Life is the number of the view in which this life of the node has started, and 0 before that.
func (j *Joining) Life() uint64 { return j.life }

// Ready reports whether the peer has a model.
func (j *Joining) Ready() bool { return j.ready }

// joins reports whether the peer has started and has no model yet.
func (j *Joining) joins() bool { return j.life != 0 && !j.ready }

// awaits reports whether this life of the peer waits for an answer to its Join.
func (j *Joining) awaits(life uint64) bool { return j.joins() && life == j.life }

// Start takes in that the run begins for this peer. It reports whether the peer has a model with
// that; if not, a later Receive or Change will report it.
func (j *Joining) Start(ctx actor.Context, head *protos.Start) (ready bool) {
	if j.life != 0 {
		actors.Fail(j.env, "started a second time")
		return false
	}
	j.life = head.View
	if !head.Joins {
		return j.welcomeAll(ctx)
	}
	j.wait()
	return j.ask(ctx)
}

// wait lets the peer ask again in time, if messages can be lost.
func (j *Joining) wait() {
	if j.env.Lossy() {
		j.again = j.env.After(j.patience, AskAgain{})
		j.patience = min(2*j.patience, mostPatience)
	}
}

// AskAgain asks again, because what was asked or answered may be lost. It reports whether the peer
// has a model with that.
func (j *Joining) AskAgain(ctx actor.Context) (ready bool) {
	if !j.joins() {
		return false
	}
	if j.source == nobody {
		clear(j.unready)
	}
	j.wait()
	return j.ask(ctx)
}

// Receive takes in a Join, an Unready or a Welcome. It reports whether the peer has got its first
// model with it.
func (j *Joining) Receive(ctx actor.Context, m *protos.Message) (ready bool) {
	switch head := m.Head.(type) {
	case *protos.Join:
		if actors.Known(j.env, head.Node) {
			j.answer(ctx, join{head.Node, head.Life})
		}
	case *protos.Unready:
		if actors.Known(j.env, head.Node) && j.awaits(head.Life) && j.source == int(head.Node) {
			j.unready[j.source] = true
			j.source = nobody
			return j.ask(ctx)
		}
	case *protos.Welcome:
		if actors.Known(j.env, head.Node) && j.awaits(head.Life) {
			return j.adopt(ctx, head, m)
		}
	}
	return false
}

// Change takes in a new view. It reports whether the peer has a model with that.
func (j *Joining) Change(ctx actor.Context, head *protos.View) (ready bool) {
	if !j.joins() {
		j.answerWaiting(ctx)
		return false
	}
	for _, node := range head.Absent {
		delete(j.unready, int(node))
		if j.source == int(node) {
			j.source = nobody
		}
	}
	return j.source == nobody && j.ask(ctx)
}

// Waiting says whose model the peer waits for, as in [actors.Waiter]; it is empty if nobody's.
func (j *Joining) Waiting() string {
	switch {
	case !j.joins():
		return ""
	case j.source == nobody:
		return "a model to begin with from its neighbours, which join as well"
	}
	return "a model to begin with from " + j.env.View().Members[j.source].Name
}

// ask asks one of the neighbours that have not said that they are unready.
func (j *Joining) ask(ctx actor.Context) (ready bool) {
	view := j.env.View()
	neighbours := view.Neighbours(j.env.Node())
	var left []int
	for _, node := range neighbours {
		if !j.unready[node] {
			left = append(left, node)
		}
	}
	switch {
	case len(left) > 0:
		j.source = left[j.env.Rand("join").IntN(len(left))]
		j.send(ctx, j.source, &protos.Join{Node: int32(j.env.Node()), Life: j.life})
	case len(neighbours) == 0 || j.env.Node() < neighbours[0]:
		return j.welcomeAll(ctx)
	}
	return false
}

func (j *Joining) answer(ctx actor.Context, to join) {
	self := int32(j.env.Node())
	if !j.ready {
		if !slices.Contains(j.waiting, to) {
			j.waiting = append(j.waiting, to)
		}
		j.send(ctx, int(to.node), &protos.Unready{Node: self, Life: to.life})
		return
	}
	head := &protos.Welcome{Node: self, Life: to.life, Step: j.replica.Steps, Age: j.replica.Version}
	head.Floor, head.Others = j.lead.Append(nil)
	j.send(ctx, int(to.node), head, j.replica.Params.Retain())
}

func (j *Joining) send(ctx actor.Context, node int, head proto.Message, tensors ...*protos.Tensor) {
	ctx.Send(j.env.View().Members[node].PID, protos.NewMessage(head, tensors...))
}

// adopt begins with the model of a Welcome.
func (j *Joining) adopt(ctx actor.Context, head *protos.Welcome, m *protos.Message) (ready bool) {
	if want := len(j.replica.Params.Data); !actors.IsVector(m.Tensors, want) {
		actors.Fail(j.env, "a model of node %d to begin with that is not one vector of %d parameters", head.Node, want)
		return false
	}
	j.replica.Replace(m.Tensors[0].Retain())
	j.replica.Version = head.Age
	if !j.Resume(max(head.Step, j.lead.MergeEarlier(head.Node, head.Floor, head.Others))) {
		return false
	}
	return j.welcomeAll(ctx)
}

// Resume lets the peer go on after a number of finished steps: with its walk through the shard, the
// optimiser's schedule and its clock. What the optimiser remembers of gradients begins empty. It
// reports whether the optimiser can; if not, the run fails.
func (j *Joining) Resume(steps uint64) bool {
	j.local.Resume(steps)
	j.lead.Finish(steps)
	if err := j.replica.Resume(steps); err != nil {
		actors.Fail(j.env, "%w", err)
		return false
	}
	return true
}

// welcomeAll notes that there is a model, and sends it to the peers that wait for it.
func (j *Joining) welcomeAll(ctx actor.Context) (ready bool) {
	j.ready, j.source, j.unready = true, nobody, nil
	j.again.Cancel()
	j.answerWaiting(ctx)
	return true
}

// answerWaiting welcomes the peers that wait for this one's model. A Join may outrun the view in
// which its sender is there; it waits for that.
func (j *Joining) answerWaiting(ctx actor.Context) {
	if !j.ready {
		return
	}
	j.waiting = slices.DeleteFunc(j.waiting, func(to join) bool {
		there := j.env.View().Members[to.node].Present
		if there {
			j.answer(ctx, to)
		}
		return there
	})
}
