package collective

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// A rank that has finished round r has had a part of it from every other rank, so all of
// them have finished round r−1: when a view ends, its ranks differ by one round at
// most. Each keeps the input of the round under way and the outcome of the one before.
//
// On a new view the reduction under way is dropped, and all ranks report their last
// finished round. Let R be the greatest. The lowest rank that has finished it gives its outcome to
// those that have not, and a joint model to those that join. Then round R+1 is made, or
// made again, by the new ranks alone. An outcome that only ranks have which are gone is
// lost, and its round made again; no remaining worker has taken it in.
//
// What belongs to an older view is ignored. What belongs to a newer one than this rank
// has heard of, or to a round before it is agreed on, is kept until it has its turn.

// stage is how far a rank is with the view.
type stage uint8

const (
	outside   stage = iota // the coordinator has not said that this node starts
	reporting              // reports are missing
	behind                 // the outcome that was agreed on is missing
	going                  // all is known: rounds are made
)

// aheadViews is how many views' messages a rank keeps before it has heard of the first.
const aheadViews = 8

// membership is a rank's part in the view.
type membership struct {
	view    uint64          // 0 before the first
	members []actors.Member // of the view
	nodes   []int           // by rank
	batches batches         // of the ranks
	stage   stage
	joins   bool
	rank    int
	causes  map[int]string           // of waiting, by rank, as far as there was one
	reports *actors.Gather[standing] // of the ranks; its rounds are views
	agreed  uint64                   // finished rounds, once all reports are in
	kept    []*protos.Message        // for later
}

// standing is how far a rank is according to its report.
type standing struct {
	joins    bool
	finished uint64
}

// agreement is what a rank waits for that is ready before a new view is.
const agreement = "agreement on the round"

// start sets a member off. In the run's first view nobody needs to ask how far the
// others are.
func (w *worker) start(ctx actor.Context, joins bool) {
	if w.stage != outside {
		actors.Fail(w.env, "a second start")
		return
	}
	w.joins, w.stage = joins, reporting
	if joins || w.env.View().Number > 1 {
		w.follow(ctx)
		return
	}
	if w.enter() {
		w.stage = going
		w.begin()
	}
	w.replay(ctx)
}

// follow goes over to the present view and reports to its ranks.
func (w *worker) follow(ctx actor.Context) {
	if w.stage == outside || w.env.View().Number <= w.view {
		return
	}
	w.abort()
	if w.stage = reporting; !w.enter() {
		return
	}
	if w.joins || w.ready() {
		w.wait()
	}
	w.reports = actors.NewGather[standing](w.view, w.nodes)
	_ = w.reports.Put(w.env.Node(), w.view, standing{w.joins, w.finished}) // the first
	if w.reports.Complete() {
		w.agree(ctx)
	} else {
		var others []*actor.PID
		for rank := range w.nodes {
			if rank != w.rank {
				others = append(others, w.peer(rank))
			}
		}
		broadcast(ctx, protos.NewMessage(&protos.Report{View: w.view, Rank: int32(w.rank), Finished: w.finished,
			Joins: w.joins}), others)
	}
	w.replay(ctx)
}

// abort drops the reduction under way, and the mean of a round that has not ended: it is made
// again, unless another rank has ended it, whose outcome this one gets. What this rank puts in can
// be had again.
func (w *worker) abort() {
	if w.models != nil {
		w.models.drop()
	}
	if w.votes != nil {
		w.votes.drop()
	}
	if w.current != nil {
		w.resume(w.cause())
		w.env.Post(nil, nil)
		w.input.Release()
		w.mean.Release()
		w.current, w.input, w.mean = nil, nil, nil
	}
	if w.found != nil {
		w.found.Release()
		w.found = nil
	}
}

// enter takes in the members of the present view, and reports whether this node is one.
func (w *worker) enter() bool {
	view := w.env.View()
	w.view, w.rank = view.Number, view.Members[w.env.Node()].Rank
	w.members, w.nodes = view.Members, view.Role(RoleWorker)
	if w.rank < 0 {
		actors.Fail(w.env, "it takes part, but not according to view %d", w.view)
		return false
	}
	for _, c := range w.compressors {
		c.enter()
	}
	if err := w.arrange(); err != nil {
		w.env.Fail(err)
		return false
	}
	return true
}

// arrange builds the reductions among the ranks of the view.
func (w *worker) arrange() (err error) {
	if w.batches, err = newBatches(w.task, w.env.View(), w.nodes); err != nil {
		return err
	}
	p, sites := part{n: len(w.nodes), rank: w.rank, values: w.values}, w.sites()
	if c := w.compressor(); c != nil {
		p.values = c.encoder.Size()
		w.models = scheduled(p, &gather{p})
	} else {
		w.models = newReduction(&w.architecture, p, sites)
	}
	if w.architecture.Moved > 0 {
		p.values = 1
		w.votes = newReduction(&w.architecture, p, sites)
	}
	w.posts = nil
	return nil
}

// sites are those of the ranks; nil where they are not needed.
func (w *worker) sites() (sites []int32) {
	if w.architecture.Algorithm != Hierarchical {
		return nil
	}
	for _, node := range w.nodes {
		sites = append(sites, w.members[node].Site)
	}
	return sites
}

// peer is the address of a rank.
func (w *worker) peer(rank int) *actor.PID { return w.members[w.nodes[rank]].PID }

// sort handles a message of the ranks among themselves if it has its turn.
func (w *worker) sort(ctx actor.Context, m *protos.Message, view uint64) {
	report, isReport := m.Head.(*protos.Report)
	switch {
	case view < w.view:
	case view > w.view || w.stage == reporting && !isReport:
		w.keep(m)
	case isReport:
		w.report(ctx, report)
	default:
		switch head := m.Head.(type) {
		case *protos.Chunk:
			w.take(ctx, head, m)
		case *protos.Outcome:
			w.outcome(ctx, head, m.Tensors)
		}
	}
}

// keep keeps a message for later. In a view that it knows and this rank does not, each
// other rank sends a report, perhaps an outcome, and of a round no more than the algorithms'
// 2(N−1) chunks in all.
func (w *worker) keep(m *protos.Message) {
	if bound := aheadViews * 4 * len(w.env.View().Members); len(w.kept) == bound {
		actors.Fail(w.env, "more than %d messages wait for view %d to be agreed on or followed: the "+
			"coordinator's announcements do not arrive", bound, w.view)
		return
	}
	w.kept = append(w.kept, m.Retain(1))
}

// replay handles what was kept, as far as it has its turn now.
func (w *worker) replay(ctx actor.Context) {
	kept := w.kept
	w.kept = nil
	for _, m := range kept {
		w.receive(ctx, m)
	}
}

// report takes in how far another rank is.
func (w *worker) report(ctx actor.Context, head *protos.Report) {
	rank := int(head.Rank)
	if rank < 0 || rank >= len(w.nodes) || w.stage != reporting ||
		w.reports.Put(w.nodes[rank], head.View, standing{head.Joins, head.Finished}) != nil {
		actors.Fail(w.env, "nobody waits for the report of rank %d in view %d", head.Rank, head.View)
		return
	}
	if w.reports.Complete() {
		w.agree(ctx)
		w.replay(ctx)
	}
}

// agree finds the round that the ranks go on with, once all reports are in.
func (w *worker) agree(ctx actor.Context) {
	source := -1
	w.agreed = 0
	for rank, r := range w.reports.Values() {
		if !r.joins && (source < 0 || r.finished > w.agreed) {
			source, w.agreed = rank, r.finished
		}
	}
	for rank, r := range w.reports.Values() {
		if !r.joins && r.finished+1 < w.agreed {
			actors.Fail(w.env, "in view %d rank %d has finished %d rounds and rank %d has finished %d, "+
				"which is more than one behind", w.view, rank, r.finished, source, w.agreed)
			return
		}
	}
	w.models.round = w.agreed
	if w.votes != nil {
		w.votes.round = w.agreed
	}
	w.stage = behind
	switch {
	case source < 0: // all of them join: there is no model but the initial one
		w.admit(ctx)
	case !w.joins && w.finished == w.agreed:
		if source == w.rank {
			w.spread(ctx)
		}
		w.goOn(ctx)
	}
	w.reports = nil
}

// spread gives the ranks that are behind what they lack.
func (w *worker) spread(ctx actor.Context) {
	var late, joining []*actor.PID
	for rank, r := range w.reports.Values() {
		switch {
		case r.joins:
			joining = append(joining, w.peer(rank))
		case r.finished < w.agreed:
			late = append(late, w.peer(rank))
		}
	}
	if len(late) > 0 {
		m := protos.NewMessage(&protos.Outcome{View: w.view, Finished: w.agreed})
		if !w.skipped {
			m.Tensors = append(m.Tensors, w.learner.outcome().Retain())
		}
		broadcast(ctx, m, late)
	}
	if len(joining) > 0 {
		broadcast(ctx, w.state(), joining)
	}
}

func broadcast(ctx actor.Context, m *protos.Message, to []*actor.PID) {
	m.Retain(len(to) - 1)
	for _, pid := range to {
		ctx.Send(pid, m)
	}
}

// updates is how many steps of the optimiser a joint model is made of.
func (w *worker) updates(rounds uint64) uint64 {
	if w.architecture.Reduce == Models {
		return rounds * uint64(w.every)
	}
	return rounds
}

// state is all that a rank needs to stand where this one stood after its last round: the
// joint model, the state of the optimiser and of the outer one, and the round's outcome if it has
// one, which is empty where the joint model is that.
func (w *worker) state() *protos.Message {
	optimizer := w.learner.model().Optimizer.State()
	m := protos.NewMessage(&protos.Outcome{
		View: w.view, Finished: w.finished, Version: w.updates(w.finished), Steps: uint64(optimizer.Updates),
	})
	joint, outcome := w.learner.joint(), w.learner.outcome()
	m.Tensors = append(m.Tensors, joint.Retain())
	for _, slot := range optimizer.Slots {
		m.Tensors = append(m.Tensors, protos.NewTensor(slot))
	}
	for _, slot := range w.learner.slots() {
		m.Tensors = append(m.Tensors, protos.NewTensor(slices.Clone(slot)))
	}
	switch {
	case w.skipped || outcome == nil:
	case outcome == joint:
		m.Tensors = append(m.Tensors, protos.NewTensor(nil))
	default:
		m.Tensors = append(m.Tensors, outcome.Retain())
	}
	return m
}

// outcome takes in what this rank lacks.
func (w *worker) outcome(ctx actor.Context, head *protos.Outcome, tensors []*protos.Tensor) {
	err := fmt.Errorf("%d rounds were agreed on", w.agreed)
	switch {
	case w.stage != behind:
		err = fmt.Errorf("this rank lacks nothing")
	case head.Finished != w.agreed:
	case w.joins:
		err = w.adopt(head, tensors)
	default:
		err = w.catchUp(tensors)
	}
	if err != nil {
		actors.Fail(w.env, "the outcome of %d rounds in view %d with %d tensors is of no use: %w", head.Finished,
			head.View, len(tensors), err)
		return
	}
	if w.joins {
		w.admit(ctx)
		return
	}
	w.goOn(ctx)
}

// catchUp ends the round with the mean that another rank has found.
func (w *worker) catchUp(tensors []*protos.Tensor) error {
	switch {
	case !w.due():
		return fmt.Errorf("this rank has not yet put anything into that round")
	case len(tensors) == 0 && w.votes != nil:
		w.resume(agreement)
		w.settle(nil)
	case actors.IsVector(tensors, w.values):
		w.resume(agreement)
		w.learned(tensors[0].Retain())
	default:
		return fmt.Errorf("it is not one vector of %d values", w.values)
	}
	return nil
}

// adopt makes another rank's state this one's.
func (w *worker) adopt(head *protos.Outcome, tensors []*protos.Tensor) error {
	model, outer := w.learner.model(), w.learner.slots()
	slots := len(model.Optimizer.State().Slots)
	all := 1 + slots + len(outer)
	if n := len(tensors) - all; n < 0 || n > 1 || len(tensors[0].Data) != w.params {
		return fmt.Errorf("it is not a model of %d parameters and %d vectors of its optimisers", w.params, all-1)
	}
	for _, t := range tensors[1+slots : all] {
		if len(t.Data) != w.params {
			return fmt.Errorf("a vector of its outer optimiser has %d values instead of %d", len(t.Data), w.params)
		}
	}
	// The optimiser of a rank that averages models has seen the steps of the round under way as
	// well.
	state := optim.State{Step: int(head.Version), Updates: int(head.Steps)}
	for _, t := range tensors[1 : 1+slots] {
		state.Slots = append(state.Slots, t.Data)
	}
	if err := model.Optimizer.Restore(state); err != nil {
		return err
	}
	var mean *protos.Tensor
	if len(tensors) > all {
		mean = tensors[all]
		if len(mean.Data) == 0 {
			mean = tensors[0]
		}
		if len(mean.Data) != w.values {
			return fmt.Errorf("the mean has %d values instead of %d", len(mean.Data), w.values)
		}
	}
	for i, slot := range outer {
		copy(slot, tensors[1+slots+i].Data)
	}
	w.learner.adopt(tensors[0], mean, head.Finished)
	model.Version = head.Version
	w.finished, w.skipped = head.Finished, mean == nil
	w.drift.Mark(tensors[0])
	w.local.Resume(w.finished * uint64(w.every))
	return nil
}

// admit lets this rank begin with the model that it has now.
func (w *worker) admit(ctx actor.Context) {
	w.joins = false
	w.resume(agreement)
	w.begin()
	w.goOn(ctx)
}

// goOn makes rounds in this view.
func (w *worker) goOn(ctx actor.Context) {
	w.stage = going
	w.resume(agreement)
	w.exchange(ctx)
}
