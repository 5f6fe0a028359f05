package innetwork

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// A worker that has finished step r has a result that needs a packet of every other worker of the
// view in step r, so all of them have finished step r−1. When a view ends its workers differ by one
// step at most. In the next, packet 0 finds the greatest number of finished steps and one worker
// that has as many; that one gives its model and the state of its optimizer to those that lack the
// step, and to those that join. It makes no step until they have it, because none is made without
// them. A step that only workers have finished who are gone is made again by the rest.

// stage is how far a worker is with the view.
type stage uint8

const (
	outside  stage = iota // the coordinator has not said that this node starts
	broken                // a switch is not there
	agreeing              // the result of packet 0 is missing
	behind                // the model of another worker is missing
	going                 // steps are made
)

// membership is a worker's part in the view.
type membership struct {
	view    uint64 // 0 before the first
	stage   stage
	joins   bool // it has no model yet that counts
	workers int
	parent  int // the worker's switch; of a broken tree the one that is missing
	source  int // whose model is missing
}

// start sets the worker off.
func (w *worker) start(ctx actor.Context, joins bool) {
	if w.stage != outside {
		actors.Fail(w.env, "a second start")
		return
	}
	if w.joins = joins; !joins {
		w.begin()
	}
	w.enter(ctx)
}

// follow goes over to the present view.
func (w *worker) follow(ctx actor.Context) {
	if w.stage != outside && w.env.View().Number > w.view {
		w.enter(ctx)
	}
}

// enter begins with packet 0 of the present view. The sum under way is dropped; the gradient stays.
func (w *worker) enter(ctx actor.Context) {
	view := w.env.View()
	w.quit()
	w.window.reset(w.rules.Slots)
	w.view, w.opening = view.Number, 0
	t, err := newTree(view)
	switch {
	case err != nil:
		actors.Fail(w.env, "view %d: %w", view.Number, err)
		return
	case t.missing != nobody:
		w.stage, w.parent = broken, t.missing
		w.idle.Wait("a switch")
		return
	}
	w.stage, w.parent, w.workers = agreeing, t.parent[w.env.Node()], len(view.Role(RoleWorker))
	if w.joins || w.last != nil {
		w.idle.Wait("agreement on the step")
	}
	w.grant(ctx, 1, false)
}

// standing is this worker's peak in packet 0.
func (w *worker) standing() uint64 {
	if w.joins {
		return 0
	}
	return (w.finished+1)<<32 | uint64(w.env.Node())
}

// agree goes on after the greatest number of finished steps, with this worker's own model or with
// that of one that has as many. If all join there is none but the initial one.
func (w *worker) agree(ctx actor.Context, greatest uint64) {
	finished, source := greatest>>32, int(uint32(greatest))
	switch {
	case greatest == 0 && w.joins:
		w.admit(ctx)
	case !w.joins && finished == w.finished+1:
		w.goOn(ctx)
	case !actors.Known(w.env, int32(source)) || finished == 0:
		actors.Fail(w.env, "view %d: nobody is at %d steps, of which this worker has finished %d", w.view,
			finished, w.finished)
	case !w.joins && (finished != w.finished+2 || w.last == nil):
		actors.Fail(w.env, "view %d: %s has finished %d steps and this worker %d, which is more than one apart",
			w.view, w.env.View().Members[source].Name, finished-1, w.finished)
	default:
		w.stage, w.source, w.flights[0] = behind, source, flight{}
		w.ask(ctx)
	}
}

// ask asks for the model that this worker lacks.
func (w *worker) ask(ctx actor.Context) {
	m := &protos.Report{View: w.view, Rank: int32(w.env.View().Members[w.env.Node()].Rank), Finished: w.finished,
		Joins: w.joins}
	ctx.Send(w.env.View().Members[w.source].PID, protos.NewMessage(m))
	if w.repeating() {
		w.look(w.depart(0))
	}
}

// answer gives another worker this one's model and the state of its optimizer.
func (w *worker) answer(ctx actor.Context, head *protos.Report) {
	if head.View != w.view || w.stage <= broken {
		return
	}
	workers := w.env.View().Role(RoleWorker)
	if head.Rank < 0 || int(head.Rank) >= len(workers) || workers[head.Rank] == w.env.Node() || w.joins {
		actors.Fail(w.env, "worker %d of %d asks in view %d for the model of this one", head.Rank, len(workers), w.view)
		return
	}
	s := w.replica.Optimizer.State()
	m := protos.NewMessage(&protos.Outcome{View: w.view, Finished: w.finished, Version: w.replica.Version,
		Steps: uint64(s.Updates)}, w.replica.Params.Retain())
	for _, slot := range s.Slots {
		m.Tensors = append(m.Tensors, protos.NewTensor(slot))
	}
	ctx.Send(w.env.View().Members[workers[head.Rank]].PID, m)
}

// adopt goes on with the model of another worker. What has come before is of no use.
func (w *worker) adopt(ctx actor.Context, head *protos.Outcome, tensors []*protos.Tensor) {
	if head.View != w.view || w.stage != behind {
		return
	}
	if err := w.replace(head, tensors); err != nil {
		actors.Fail(w.env, "the model of %s after %d steps: %w", w.env.View().Members[w.source].Name, head.Finished,
			err)
		return
	}
	if !w.joins {
		w.replica.Record()
		w.count()
	}
	w.local.Resume(w.finished)
	w.admit(ctx)
}

// replace takes over a model and the state of its optimizer.
func (w *worker) replace(head *protos.Outcome, tensors []*protos.Tensor) error {
	n, slots := len(w.mean.Data), len(w.replica.Optimizer.State().Slots)
	if len(tensors) != 1+slots || len(tensors[0].Data) != n {
		return fmt.Errorf("it is not one of %d parameters and %d vectors of the optimizer", n, slots)
	}
	state := optim.State{Step: int(head.Finished), Updates: int(head.Steps)}
	for _, t := range tensors[1:] {
		state.Slots = append(state.Slots, t.Data)
	}
	if err := w.replica.Optimizer.Restore(state); err != nil {
		return err
	}
	w.replica.Replace(tensors[0].Retain())
	w.finished, w.replica.Version = head.Finished, head.Version
	return nil
}

// admit begins the first step on the model that this worker has now.
func (w *worker) admit(ctx actor.Context) {
	w.joins = false
	w.begin()
	w.goOn(ctx)
}

// goOn makes steps in this view.
func (w *worker) goOn(ctx actor.Context) {
	w.stage = going
	w.idle.Resume()
	w.open(ctx)
}
