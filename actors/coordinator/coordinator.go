// Package coordinator leads one run: it starts the members, counts what they
// have trained, has their models evaluated, and ends the run.
//
// An evaluation takes immutable snapshots of all models at an instant t. It computes on no emulated
// node, and its verdict is known at t + lag. The coordinator settles evaluations in order, in
// whatever order their verdicts become ready.
//
// A node that is present when the run starts is evaluated from the initial model on. A node that
// joins later, or rejoins, is evaluated from the first trained model that it holds: another node's,
// or one that it has trained itself.
package coordinator

import (
	"fmt"
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// Interval says how often something happens; exactly one field is positive.
type Interval struct {
	// Epochs counts samples processed by all workers ÷ those that make an epoch.
	Epochs float64
	// Steps counts the steps of all workers. Where the nodes that hold a model train, it is divided
	// by how many of them are present.
	Steps int
	// Rounds counts those of which a member has told the end, see [train.Rounds].
	Rounds int
	// Time is on the run's clock.
	Time time.Duration
}

// Policy says when a run is evaluated and when it ends. Of the bounds, those that are zero are
// none.
type Policy struct {
	// Every is the interval between evaluations.
	Every Interval
	// Lag is the time between a snapshot and its verdict; 0 stands for the time since
	// the snapshot before.
	Lag time.Duration
	// Of is what is judged; the zero value stands for [actors.Mean].
	Of actors.Of
	// Target is the accuracy to arrive at, as a fraction. The run ends there unless GoOn.
	Target float64
	GoOn   bool
	// Sample is the number of models to look at. They belong to the first present nodes in an order
	// that is drawn once. 0 stands for all.
	Sample int
	// Epochs, Steps, Rounds and Time bound the run. Steps are a holder's own where holders train,
	// and all workers' elsewhere.
	Epochs float64
	Steps  int
	Rounds int
	Time   time.Duration
}

// Run is what the coordinator must know of a run.
type Run struct {
	Policy Policy
	// Samples is how many make an epoch: the training samples, or a share of them.
	Samples int
	// Holders are the positions in the view of the nodes whose models are evaluated.
	Holders []int
	// Joint says that the holders have one model among them: the first one that is there is asked
	// for it.
	Joint bool
	// Flush says that the holders are told which look at their models is the last.
	Flush bool
	// Survives says that others have what a node hands over that crashes while it leaves.
	Survives bool
	// Topologies are the changes of the topology, in the order of time.
	Topologies []TopologyChange
	// Evaluate judges a model; it is called by jobs, of which several may be under way.
	Evaluate func(params []float32) train.Verdict
	// Vote, unless nil, judges models of one node that vote.
	Vote func(models [][]float32) train.Verdict
	// EvaluateBelow, if not nil, judges a model only as far as it takes to be sure that its
	// accuracy is below a target; see train.Evaluator. Evaluate later completes the verdicts that
	// show when the run reached the target, and how it ended.
	EvaluateBelow func(params []float32, target float64) train.Verdict
	// Result is filled in before the run ends.
	Result *Result
}

// TopologyChange gives the run another one of its deployment's topologies.
type TopologyChange struct {
	At       time.Duration
	Topology int
}

var _ world.Rousing = TopologyChange{}

// Rouses marks the change: members may have waited for neighbours.
func (TopologyChange) Rouses() {}

// Result is what a run has led to.
type Result struct {
	// Reached says whether what is judged arrived at the target.
	Reached bool
	// TimeToTarget and EpochsToTarget are interpolated linearly between the last two evaluations.
	TimeToTarget   time.Duration
	EpochsToTarget float64
	// Crossings are the instants at which each of the four figures arrived; one that did not is not
	// in it.
	Crossings map[actors.Of]time.Duration
	// Last is the number of the evaluation at which the record ends, and End its instant.
	Last uint64
	End  time.Duration
	// Changed is the instant of the last evaluation that found a model which none before had found;
	// 0 if all found the initial one.
	Changed time.Duration
	// ChangedIn is the number of that evaluation; evaluation 1 is of the initial models.
	ChangedIn uint64
	// Moved is the instant of the last evaluation that found a node's model different from that node's
	// model at the previous evaluation.
	Moved time.Duration
	// Models are the models of the last evaluation, in the order of the plan's nodes.
	Models []Model
	// Average is the model of the averaged parameters; nil where the evaluation was of one model.
	Average []float32
	// Evaluations is how many verdicts on nodes' models were settled, and Computed how many
	// verdicts were computed, those on average models included: equal models are judged once.
	Evaluations, Computed int
	// Incidents are what makes the figures worth less, in the order of time.
	Incidents []Incident
}

// Model is the last one of a node that was looked at.
type Model struct {
	// Node is the position of the node.
	Node   int
	Params []float32
	Score  actors.Score
}

// Incident is something that makes the figures of a run worth less.
type Incident struct {
	At time.Duration
	// Node is the position of the node that it happened to; the coordinator's is the number
	// of nodes.
	Node int
	// What says what happened.
	What string
	// Late says that something came late, and that nothing was lost.
	Late bool
}

// firstLag is the lag of an evaluation with no snapshot before it.
const firstLag = time.Millisecond

type coordinator struct {
	env     actors.Env
	run     Run
	control world.Control

	views                          // who takes part
	samples  int                   // processed by all workers
	total    uint64                // steps of all workers
	since    int                   // steps of all workers since the last evaluation
	steps    []uint64              // of each node
	train    bool                  // a holder has made a step
	next     float64               // epochs at which the next evaluation is due
	ending   bool                  // the last snapshots are being taken
	halted   bool                  // the members have been stopped
	last     uint64                // number of the last evaluation of the run, once it is ending
	ticks    int                   // evaluations by time so far
	previous time.Duration         // instant of the last evaluation
	asked    uint64                // evaluations so far
	missing  int                   // models that have not arrived
	rounds   []*round              // that are not settled
	before   *round                // the last that was settled with a model
	judged   map[uint64]*judgement // by the hash of the parameters
	latest   []uint64              // by node, the hash of the parameters at its latest evaluation
	job      *completion           // the completion under way; nil if there is none
}

// verdictIn reports that a job of a round has ended: a verdict on a model, or the comparison of all.
type verdictIn struct{ round uint64 }

// completed reports that the completion under way has ended.
type completed struct{}

// tick is the timer of evaluations by time; bound is the timer of the run's time.
type (
	tick  struct{}
	bound struct{}
)

// New makes the coordinator's actor, which leads the run through control.
func New(run Run, env actors.Env, control world.Control) (actor.Actor, error) {
	if len(run.Holders) == 0 {
		return nil, fmt.Errorf("no node holds a model to evaluate")
	}
	if run.Policy.Of == "" {
		run.Policy.Of = actors.Mean
	}
	return &coordinator{
		env: env, run: run, control: control, views: newViews(env, run.Holders),
		steps: make([]uint64, len(env.View().Members)), judged: map[uint64]*judgement{},
		latest: make([]uint64, len(env.View().Members)),
	}, nil
}

func (c *coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *protos.Message:
		c.receive(ctx, m)
	case verdictIn:
		if r := c.round(m.round); r != nil {
			r.open--
		}
		c.settleAll()
	case completed:
		c.completed()
	case tick:
		c.tick(ctx)
	case bound:
		c.late(c.run.Policy.Time, "the run was to end at %v, which was noticed at %v")
		c.end(ctx)
	case world.MemberChange:
		c.member(ctx, m)
	case TopologyChange:
		c.topology = m.Topology
		c.announce(ctx)
	}
}

// start looks at the initial models and sets the members off.
func (c *coordinator) start(ctx actor.Context) {
	c.draw()
	c.evaluate(ctx)
	c.plan()
	for i := range c.env.View().Members {
		if m := &c.env.View().Members[i]; m.Present {
			ctx.Send(m.PID, protos.NewMessage(&protos.Start{View: c.number}))
		}
	}
	for _, t := range c.run.Topologies {
		c.env.After(t.At, t)
	}
	if p := c.run.Policy; p.Time > 0 {
		c.env.After(p.Time, bound{})
	}
	if c.run.Policy.Every.Time > 0 {
		c.rearm()
	}
}

// rearm sets the timer to the next multiple of the interval, so that late timers do
// not add up.
func (c *coordinator) rearm() {
	c.ticks++
	c.env.After(time.Duration(c.ticks)*c.run.Policy.Every.Time-c.env.Now(), tick{})
}

// tick makes an evaluation that is due by time.
func (c *coordinator) tick(ctx actor.Context) {
	if c.ending {
		return
	}
	c.late(time.Duration(c.ticks)*c.run.Policy.Every.Time, "an evaluation was due at %v and was made at %v")
	c.evaluate(ctx)
	c.ticks = max(c.ticks, int(c.env.Now()/c.run.Policy.Every.Time)) // those that were missed are not made up for
	c.rearm()
}

// Patience is the longest delay of the coordinator that is no incident.
const Patience = time.Second

// late takes note if what was due at an instant happens much later, as when the coordinator was
// paused.
func (c *coordinator) late(due time.Duration, what string) {
	if now := c.env.Now(); now-due > Patience {
		c.incident(Incident{Node: c.env.Node(), What: fmt.Sprintf(what, due, now), Late: true})
	}
}

// incident takes note of what makes the figures worth less from now on.
func (c *coordinator) incident(i Incident) {
	i.At = c.env.Now()
	c.run.Result.Incidents = append(c.run.Result.Incidents, i)
}

func (c *coordinator) receive(ctx actor.Context, m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Progress:
		c.progress(ctx, head)
	case *protos.RoundDone:
		c.roundDone(ctx, int(head.Round))
	case *protos.Snapshot:
		c.snapshot(head, m.Tensors)
	default:
		c.env.Fail(fmt.Errorf("coordinator: unexpected message %T", m.Head))
	}
}

// progress counts a step and does what it is the occasion for.
func (c *coordinator) progress(ctx actor.Context, head *protos.Progress) {
	if c.ending {
		return
	}
	node := int(head.Node)
	if node < 0 || node >= len(c.steps) {
		c.env.Fail(fmt.Errorf("coordinator: progress of node %d of %d", node, len(c.steps)))
		return
	}
	c.samples += int(head.Samples)
	c.total++
	c.since++
	c.steps[node]++
	c.train = c.train || c.holds(node)
	p := c.run.Policy
	switch {
	case p.Epochs > 0 && c.epoch() >= p.Epochs, p.Steps > 0 && c.ownSteps(node) >= uint64(p.Steps):
		c.end(ctx)
	case p.Every.Epochs > 0 && c.epoch() >= c.next:
		c.plan()
		c.evaluate(ctx)
	case p.Every.Steps > 0 && c.since >= p.Every.Steps*c.trainers():
		c.evaluate(ctx)
	}
}

// roundDone does what the end of a round of training is the occasion for. These are not the
// coordinator's own rounds, which are evaluations.
func (c *coordinator) roundDone(ctx actor.Context, number int) {
	p := c.run.Policy
	switch {
	case c.ending:
	case p.Rounds > 0 && number >= p.Rounds:
		c.end(ctx)
	case p.Every.Rounds > 0 && number%p.Every.Rounds == 0:
		c.evaluate(ctx)
	}
}

func (c *coordinator) epoch() float64 { return float64(c.samples) / float64(c.run.Samples) }

// ownSteps is what "steps" means for a bound when a node makes one.
func (c *coordinator) ownSteps(node int) uint64 {
	if c.holds(node) {
		return c.steps[node]
	}
	return c.total
}

// stepsOf is how many steps the model of a holder is made of.
func (c *coordinator) stepsOf(holder int) uint64 {
	if c.train {
		return c.steps[holder]
	}
	return c.total
}

// progressed is how many steps the run has made: of all workers, divided by the number of nodes
// that hold a model where these train. Unlike in Interval.Steps, those that have gone count among
// these.
func (c *coordinator) progressed() uint64 {
	if c.train {
		return c.total / uint64(len(c.run.Holders))
	}
	return c.total
}

func (c *coordinator) holds(node int) bool { return c.hold[node] }

// trainers is by how many nodes steps are divided.
func (c *coordinator) trainers() int {
	if !c.train {
		return 1
	}
	return max(c.there, 1)
}

// plan sets the number of epochs at which the next evaluation is due: the first
// multiple of the interval that is not reached yet.
func (c *coordinator) plan() {
	if every := c.run.Policy.Every.Epochs; every > 0 {
		c.next = every * (math.Floor(c.epoch()/every+1e-9) + 1)
	}
}

// end takes the last snapshots; the run is over when their verdicts are in.
func (c *coordinator) end(ctx actor.Context) {
	if c.ending {
		return
	}
	c.ending = true
	c.control.Ending()
	c.evaluate(ctx)
	c.last = c.asked
	if c.missing == 0 { // nobody is left to be asked
		c.halt()
		c.settleAll()
	}
}

// halt stops the members, of whom nothing is wanted any longer.
func (c *coordinator) halt() {
	if !c.halted {
		c.halted = true
		c.control.Halt()
	}
}

// snapshot takes a model in.
func (c *coordinator) snapshot(head *protos.Snapshot, tensors []*protos.Tensor) {
	node := int(head.Node)
	if node >= 0 && node < len(c.gone) && (c.gone[node] || head.Evaluation < c.first[node]) {
		return // it has answered before it was gone, which was heard of first
	}
	l := c.find(head.Evaluation, node)
	if l == nil || l.params != nil || len(tensors) == 0 {
		c.env.Fail(fmt.Errorf("coordinator: a snapshot of %d tensors for evaluation %d of node %d, which nobody "+
			"waits for",
			len(tensors), head.Evaluation, node))
		return
	}
	if c.fresh[node] {
		c.fresh[node] = head.Version == 0
		if c.fresh[node] || c.run.Policy.Sample > 0 { // of a sample it is a part from the next round on
			c.void(l)
			c.settleAll()
			return
		}
	}
	c.take(l, tensors)
}
