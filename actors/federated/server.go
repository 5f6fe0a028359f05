package federated

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// What the record calls the numbers, so far, of clients that were drawn for a round that ended
// without their update, of rounds that ended without any, and of those that ended with fewer than
// their mean needs.
const (
	Missed     = "updates missed"
	Unanswered = "rounds without an update"
	TooFew     = "rounds with too few updates"
)

// server holds the model and leads the rounds.
type server struct {
	env     actors.Env
	arch    Architecture
	task    *train.Task
	params  *protos.Tensor
	version uint64
	outer   optim.Optimizer
	control *protos.Tensor // c of SCAFFOLD; nil without controls
	members []member       // by node; with a population, those drawn for this round, by client
	works   *protos.Messages[*protos.ClientWork]
	parents []int // of all nodes, see Architecture.parents
	edge    *edge // of an aggregator; nil for the server

	missed, unanswered, few int // see Missed, Unanswered and TooFew

	round   uint64 // under way, or the last one
	open    bool   // it is under way
	drawn   int    // clients whose updates it may have
	wants   int    // updates of it
	missing int    // updates that may still come
	here    int    // updates that have come
	window  window // of their arrivals, with a Grace
}

// member is what the server knows of a client.
type member struct {
	node    int    // where it is
	client  uint32 // of the population; 0 without one
	awaited uint64 // the round of its work whose update may still come; 0 for none
	update  *update
	held    uint64 // the last round whose change of its control is in the server's; 0 for none
	void    bool   // the change that may still come is of a control that is forgotten
}

// update is what has come of a client in this round.
type update struct {
	done    periodic.Done
	stale   uint64 // rounds that have ended since its client was drawn
	delta   *protos.Tensor
	control *protos.Tensor // the change of its control; nil without controls
}

// release gives up the change of a control.
func (u *update) release() {
	if u.control != nil {
		u.control.Release()
		u.control = nil
	}
}

// deadline is the timer of a round.
type deadline struct{ round uint64 }

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	s := &server{env: env, arch: a, task: task, outer: a.Outer.New(task.Model.Params()),
		params: env.Tensors().Copy(task.Initial()), members: make([]member, len(env.View().Members)),
		works: protos.NewMessages(func() *protos.ClientWork { return &protos.ClientWork{} })}
	for node := range s.members {
		s.members[node].node = node
	}
	if a.Controls {
		s.control = env.Tensors().Get(task.Model.Params())
		clear(s.control.Data)
	}
	s.parents = a.parents(env.View().Members)
	return s
}

// newAggregator makes a server of rounds that one above it begins.
func newAggregator(env actors.Env, task *train.Task, a Architecture) *server {
	s := newServer(env, task, a)
	s.edge = &edge{above: s.parents[env.Node()],
		updates: protos.NewMessages(func() *protos.ClientUpdate { return &protos.ClientUpdate{} })}
	return s
}

var _ actors.Waiter = (*server)(nil)

// Waiting implements [actors.Waiter].
func (s *server) Waiting() string {
	var names []string
	for i := range s.members {
		if c := &s.members[i]; c.awaited > 0 {
			names = append(names, s.env.View().Members[c.node].Name)
		}
	}
	switch more := len(names) - mostNamed; {
	case len(names) == 0:
		return "a client"
	case more > 0:
		names = append(names[:mostNamed], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("updates of %s (round %d)", strings.Join(names, ", "), s.round)
}

// mostNamed bounds how many nodes are named that a server waits for.
const mostNamed = 8

func (s *server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		s.receive(ctx, m)
		m.Release()
	case deadline:
		if s.open && m.round == s.round {
			s.end(ctx)
		}
	}
}

func (s *server) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		s.start(ctx, head)
	case *protos.ClientWork:
		s.order(ctx, head, m)
	case *protos.View:
		s.follow(ctx)
	case *protos.ClientUpdate:
		s.take(ctx, head, m)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, s.env, head, s.params, s.version)
	default:
		actors.Unexpected(s.env, m)
	}
}

// follow takes in a view: who has gone is not waited for.
func (s *server) follow(ctx actor.Context) {
	if s.edge != nil {
		s.edge.follow(s.env)
	}
	view := s.env.View()
	for i := range s.members {
		if c := &s.members[i]; !view.Members[c.node].Present {
			s.give(c)
			if c.update != nil {
				c.update.release() // should it come back within the round, it does so without its control
			}
			if c.held > 0 {
				s.forget()
			}
		}
	}
	if !s.open {
		s.begin(ctx)
		return
	}
	s.refill(ctx)
	if s.complete() {
		s.end(ctx)
	}
}

// forget begins with controls of zero again: that of a client that goes is a part of the server's
// which nobody can take out, and would pull all others for good.
func (s *server) forget() {
	s.control = s.env.Tensors().Writable(s.control)
	clear(s.control.Data)
	for i := range s.members {
		c := &s.members[i]
		c.held, c.void = 0, c.awaited > 0
		if c.update != nil {
			c.update.release()
		}
	}
}

// give gives up what may still come of a client.
func (s *server) give(c *member) {
	if c.awaited > 0 {
		c.awaited = 0
		s.missing--
	}
}

// complete reports whether the round has all that it wants, or can get.
func (s *server) complete() bool {
	return s.here >= s.wants || s.missing == 0 && (s.here > 0 || !s.arch.asynchronous())
}

// begin begins the next round if any client is there. Those of an aggregator begin with work.
func (s *server) begin(ctx actor.Context) {
	if there := len(s.below()); !s.open && there > 0 && s.edge == nil {
		s.lead(ctx, there)
	}
}

// lead begins a round with a number of nodes below that are there.
func (s *server) lead(ctx actor.Context, there int) {
	s.round++
	s.open, s.here = true, 0
	updates, atWork := s.arch.wanted(cmp.Or(s.arch.Population, there))
	s.wants = cmp.Or(s.arch.Buffer, updates)
	if s.arch.Population > 0 {
		s.deal(ctx, atWork)
	} else {
		s.draw(ctx, atWork)
	}
	s.window.open(s.env.Now())
	if s.arch.Deadline > 0 {
		s.env.After(s.arch.Deadline, deadline{s.round})
	}
}

// draw draws clients that are idle and have no update in this round, until a number are at work.
func (s *server) draw(ctx actor.Context, atWork int) {
	idle := slices.DeleteFunc(slices.Clone(s.below()), func(node int) bool {
		return s.members[node].awaited > 0 || s.members[node].update != nil
	})
	more := max(min(atWork-s.missing, len(idle)), 0)
	s.missing, s.drawn = s.missing+more, s.drawn+more
	random := s.env.Rand("clients of a round")
	for i := range more {
		k := i + random.IntN(len(idle)-i)
		idle[i], idle[k] = idle[k], idle[i]
	}
	for _, node := range idle[:more] {
		s.members[node].awaited, s.members[node].void = s.round, false
		m, _ := s.work(s.members[node].held)
		ctx.Send(s.env.View().Members[node].PID, m)
	}
}

// work is a message with the round's model.
func (s *server) work(held uint64) (*protos.Message, *protos.ClientWork) {
	tensors := []*protos.Tensor{s.params.Retain()}
	if s.control != nil {
		tensors = append(tensors, s.control.Retain())
	}
	m, head := s.works.Get(tensors...)
	head.Round, head.View, head.Held = s.round, s.env.View().Number, held
	return m, head
}

// take takes in the update of a client.
func (s *server) take(ctx actor.Context, head *protos.ClientUpdate, m *protos.Message) {
	if !actors.Known(s.env, head.Node) {
		return
	}
	if err := s.check(head, m); err != nil {
		actors.Fail(s.env, "an update of round %d by %s: %w", head.Round, s.env.View().Members[head.Node].Name, err)
		return
	}
	c := s.member(head)
	if head.Round != c.awaited {
		return
	}
	s.give(c)
	if head.Samples == 0 {
		if s.complete() {
			s.end(ctx)
		}
		return
	}
	s.arrived()
	c.update = &update{stale: s.round - head.Round,
		done: periodic.Done{Samples: int(head.Samples), Steps: periodic.EffectiveSteps(
			s.task.Method, int(head.Round-1), int(head.Steps), s.arch.Proximal)}}
	if s.control != nil && !c.void {
		c.update.control = m.Take(1)
	}
	c.update.delta = s.difference(m.Take(0))
	if s.here++; s.here < s.wants {
		s.refill(ctx)
	}
	if s.complete() {
		s.end(ctx)
	}
}

// difference is what an update moves the model by, less than nothing, at the model that is there.
func (s *server) difference(sent *protos.Tensor) *protos.Tensor {
	if s.arch.Exchange == Parameters {
		sent = s.env.Tensors().Writable(sent)
		periodic.PseudoGradient(sent.Data, s.params.Data, sent.Data)
		s.env.Charge(float64(len(sent.Data)))
	}
	return sent
}

// mostDone bounds the samples and the steps of an update: more are a mistake.
const mostDone = 1 << 31

// check returns an error about an update that no client has made.
func (s *server) check(head *protos.ClientUpdate, m *protos.Message) error {
	tensors := s.arch.tensors()
	if head.Samples == 0 && s.env.View().Members[head.Node].Role == RoleAggregator {
		tensors = 0 // it has got no update
	}
	fits := len(m.Tensors) == tensors && (head.Samples > 0 || tensors == 0) && head.Steps > 0 && head.Round > 0 &&
		(head.Round <= s.round || s.edge != nil) && // of an aggregator's former life it may be of a later one
		head.Samples <= mostDone && head.Steps <= mostDone
	for _, t := range m.Tensors {
		fits = fits && len(t.Data) == len(s.params.Data)
	}
	if !fits {
		return fmt.Errorf("it does not fit %d tensors of %d values and round %d", tensors, len(s.params.Data), s.round)
	}
	return nil
}

// end ends the round with the updates that are in, and begins the next.
func (s *server) end(ctx actor.Context) {
	s.open = false
	var updates []*update
	var nodes []int
	for i := range s.members {
		c := &s.members[i]
		if !s.arch.asynchronous() {
			s.give(c)
		}
		if c.update != nil {
			if updates, nodes = append(updates, c.update), append(nodes, c.node); c.update.control != nil {
				c.held = s.round
			}
			c.update = nil
		}
	}
	s.count(s.drawn-len(updates)-s.missing, &s.missed, Missed)
	s.drawn = s.missing
	var learned []*update // that an aggregator sends up
	switch {
	case len(updates) == 0:
		s.count(1, &s.unanswered, Unanswered)
	case s.arch.Mean.Check(len(updates)) != nil:
		s.count(1, &s.few, TooFew)
		for _, u := range updates {
			u.delta.Release() // there are no controls with a mean that may have too few
		}
	case s.edge != nil:
		learned = updates
		s.taken(s.round, updates, nodes)
	default:
		s.learn(updates)
		s.taken(s.version, updates, nodes)
	}
	if s.edge != nil {
		s.report(ctx, learned)
		return
	}
	ctx.Send(actors.CoordinatorPID(), protos.NewMessage(&protos.RoundDone{Round: s.round}))
	s.begin(ctx)
}

// taken records updates by nodes, of which a version of the model or an aggregator's
// round is made.
func (s *server) taken(version uint64, updates []*update, nodes []int) {
	for i, node := range nodes {
		s.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: version, Staleness: updates[i].stale,
			Origin: node})
	}
}

// count adds to a number of the record.
func (s *server) count(more int, number *int, name string) {
	if more > 0 {
		*number += more
		s.env.Record(actors.Event{Kind: actors.Measured, Name: name, Value: float64(*number)})
	}
}

// mean is that of updates, whose own vectors it gives up.
func (s *server) mean(updates []*update) *protos.Tensor {
	done, deltas, n := make([]periodic.Done, len(updates)), make([][]float32, len(updates)), len(s.params.Data)
	for i, u := range updates {
		done[i], deltas[i] = u.done, u.delta.Data
	}
	mean := s.env.Tensors().Get(n)
	coefficients := periodic.Coefficients(s.arch.Weights, done)
	for i, u := range updates {
		coefficients[i] *= s.arch.Staleness.Factor(u.stale)
	}
	s.arch.Mean.Of(mean.Data, deltas, coefficients)
	for _, u := range updates {
		u.delta.Release()
	}
	s.env.Charge(s.arch.Mean.Work(len(updates), n))
	return mean
}

// learn makes a step with updates, which it takes over, and moves the server's control by their
// share of all clients.
func (s *server) learn(updates []*update) {
	mean, n := s.mean(updates), len(s.params.Data)
	s.params = train.Update(s.env.Tensors(), s.outer, s.params, mean.Data)
	mean.Release()
	s.version++
	s.env.Charge(s.outer.Work(n))
	if s.control == nil {
		return
	}
	s.control = s.env.Tensors().Writable(s.control)
	for _, u := range updates {
		if u.control != nil {
			nn.AddScaled(s.control.Data, 1/float32(len(s.task.Workers)), u.control.Data)
			u.release()
		}
	}
	s.env.Charge(float64(2 * n * len(updates)))
}
