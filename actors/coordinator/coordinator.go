// Package coordinator leads one run: it starts the members, counts what they
// have trained, has their models evaluated, and ends the run.
//
// An evaluation takes an immutable snapshot at an instant t, computes on no
// emulated node, and its verdict is in at t + lag. Verdicts are settled in the
// order of their snapshots, whatever the order in which they become ready.
package coordinator

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// Interval says how often something happens; exactly one field is positive.
type Interval struct {
	// Epochs counts samples processed by all workers ÷ training samples.
	Epochs float64
	// Steps counts a holder's own steps where it trains, those of all workers elsewhere.
	Steps int
	// Time is on the run's clock.
	Time time.Duration
}

// Policy says when a run is evaluated and when it ends. Of the bounds, those that are zero are none.
type Policy struct {
	// Every is the interval between evaluations.
	Every Interval
	// Lag is the time between a snapshot and its verdict; 0 stands for the time since
	// the snapshot before.
	Lag time.Duration
	// Target is the accuracy to arrive at, as a fraction. The run ends there unless GoOn.
	Target float64
	GoOn   bool
	// Sample is the number of models that are looked at, chosen at random once; 0 stands for all.
	Sample int
	// Epochs, Steps and Time bound the run.
	Epochs float64
	Steps  int
	Time   time.Duration
}

// Run is what the coordinator must know of a run.
type Run struct {
	Policy Policy
	// Samples is the number of training samples, those of an epoch.
	Samples int
	// Holders are the positions in the view of the nodes whose models are evaluated.
	Holders []int
	// Topologies are the changes of the topology, in the order of time.
	Topologies []TopologyChange
	// Evaluate judges a model; it is called by a job.
	Evaluate func(params []float32) train.Verdict
	// Result is filled in before the run ends.
	Result *Result
}

// TopologyChange gives the run another one of its deployment's topologies.
type TopologyChange struct {
	At       time.Duration
	Topology int
}

// Result is what a run has led to.
type Result struct {
	// Reached says whether a model arrived at the target.
	Reached bool
	// TimeToTarget and EpochsToTarget are interpolated linearly between the last two
	// evaluations of the model that arrived first.
	TimeToTarget   time.Duration
	EpochsToTarget float64
	// Last is the number of the evaluation at which the record ends.
	Last uint64
	// Params are those of the model that arrived, or of the first holder at the end.
	Params []float32
	// Evaluations is how many verdicts were settled, and Computed how many of them were
	// computed: equal models are judged once.
	Evaluations, Computed int
}

// firstLag is the lag of an evaluation with no snapshot before it.
const firstLag = time.Millisecond

type coordinator struct {
	env     actors.Env
	run     Run
	control actors.Control

	views                          // who takes part
	samples  int                   // processed by all workers
	total    uint64                // steps of all workers
	steps    []uint64              // of each node
	train    bool                  // a holder has made a step
	next     float64               // epochs, or steps of all, at which the next evaluation is due
	ending   bool                  // the last snapshots are being taken
	last     uint64                // number of the last evaluation of the run, once it is ending
	asked    uint64                // evaluations asked for
	sight    *sight                // that is in the making
	missing  int                   // snapshots that have not arrived
	ticks    int                   // evaluations by time so far
	previous map[int]time.Duration // of each holder, the instant of its evaluation before
	settled  uint64
	pending  map[uint64]*evaluation
	before   map[int]*evaluation   // a holder's evaluation before
	judged   map[uint64]*judgement // by the hash of the parameters
}

// judgement is a verdict that is computed at most once.
type judgement struct {
	once    sync.Once
	verdict train.Verdict
}

// evaluation is one look at one model.
type evaluation struct {
	number  uint64
	node    int
	at      time.Duration
	lag     time.Duration
	epoch   float64
	step    uint64
	params  *protos.Tensor
	verdict train.Verdict
	ready   bool
	void    bool // the node has gone without an answer
}

// tick is the timer of evaluations by time; bound that of the run's time.
type (
	tick  struct{}
	bound struct{}
)

// New makes the coordinator's actor, which leads the run through control.
func New(run Run, env actors.Env, control actors.Control) (actor.Actor, error) {
	if len(run.Holders) == 0 {
		return nil, fmt.Errorf("no node holds a model to evaluate")
	}
	return &coordinator{
		env: env, run: run, control: control, views: newViews(env, run.Holders),
		previous: map[int]time.Duration{},
		steps:    make([]uint64, len(env.View().Members)),
		pending:  map[uint64]*evaluation{},
		before:   map[int]*evaluation{},
		judged:   map[uint64]*judgement{},
	}, nil
}

func (c *coordinator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *protos.Message:
		c.receive(ctx, m)
	case *evaluation:
		c.judge(m)
	case tick:
		if !c.ending {
			c.snapshots(ctx, c.holders())
			c.rearm()
		}
	case bound:
		c.end(ctx)
	case actors.MemberChange:
		c.member(ctx, m)
	case TopologyChange:
		c.topology = m.Topology
		c.announce(ctx)
	case *sight:
		c.measure(m)
	}
}

// start looks at the initial models and sets the members off.
func (c *coordinator) start(ctx actor.Context) {
	c.sample()
	c.snapshots(ctx, c.holders())
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

func (c *coordinator) receive(ctx actor.Context, m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Progress:
		c.progress(ctx, head)
	case *protos.Snapshot:
		c.evaluate(head, m.Tensors)
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
	c.steps[node]++
	c.train = c.train || c.holds(node)
	p := c.run.Policy
	switch {
	case p.Epochs > 0 && c.epoch() >= p.Epochs, p.Steps > 0 && c.ownSteps(node) >= uint64(p.Steps):
		c.end(ctx)
	case p.Every.Epochs > 0 && c.epoch() >= c.next:
		c.plan()
		c.snapshots(ctx, c.holders())
	case p.Every.Steps > 0:
		c.stepped(ctx, node)
	}
}

func (c *coordinator) epoch() float64 { return float64(c.samples) / float64(c.run.Samples) }

// ownSteps is what "steps" means for a bound or an interval when a node makes one.
func (c *coordinator) ownSteps(node int) uint64 {
	if c.holds(node) {
		return c.steps[node]
	}
	return c.total
}

// stepsOf is how many steps the model of a holder is made of, as Interval.Steps counts.
func (c *coordinator) stepsOf(holder int) uint64 {
	if c.train {
		return c.steps[holder]
	}
	return c.total
}

func (c *coordinator) holds(node int) bool { return c.hold[node] }

func (c *coordinator) stepped(ctx actor.Context, node int) {
	if c.ownSteps(node)%uint64(c.run.Policy.Every.Steps) != 0 {
		return
	}
	switch {
	case !c.holds(node):
		c.snapshots(ctx, c.holders())
	case c.looked(node):
		c.snapshots(ctx, []int{node})
	}
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
	c.snapshots(ctx, c.holders())
	c.last = c.asked
}

// snapshots asks holders for their models.
func (c *coordinator) snapshots(ctx actor.Context, holders []int) {
	now := c.env.Now()
	for _, node := range holders {
		lag := c.run.Policy.Lag
		if lag == 0 {
			lag = max(now-c.previous[node], firstLag)
		}
		c.previous[node] = now
		c.asked++
		c.missing++
		c.pending[c.asked] = &evaluation{number: c.asked, node: node, at: now, lag: lag, epoch: c.epoch(), step: c.stepsOf(node)}
		ctx.Send(c.env.View().Members[node].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: c.asked}))
	}
	c.env.Record(actors.Event{Kind: actors.SnapshotTaken, Evaluation: c.asked, Epoch: c.epoch(), Step: c.total})
}

// evaluate has a snapshot judged, unless an equal one has been.
func (c *coordinator) evaluate(head *protos.Snapshot, tensors []*protos.Tensor) {
	e := c.pending[head.Evaluation]
	if n := int(head.Node); n >= 0 && n < len(c.gone) && c.gone[n] {
		return // it has answered before it was gone, which was heard of first
	}
	if e == nil || e.params != nil || len(tensors) != 1 {
		c.env.Fail(fmt.Errorf("coordinator: a snapshot of %d tensors for evaluation %d, which nobody waits for", len(tensors), head.Evaluation))
		return
	}
	params := tensors[0]
	e.params = params.Retain()
	c.answered()
	c.see(e)
	key := hash(params.Data)
	j := c.judged[key]
	if j == nil {
		j = &judgement{}
		c.judged[key] = j
		c.run.Result.Computed++
	}
	// A holder that is busy answers late; the verdict comes when it would have come.
	lag := max(e.at+e.lag-c.env.Now(), 1)
	c.env.Compute(actors.Job{Lag: lag, Do: func() any {
		j.once.Do(func() { j.verdict = c.run.Evaluate(e.params.Data) })
		e.verdict = j.verdict
		return e
	}})
}

// hash tells models apart by their bits.
func hash(params []float32) uint64 {
	d := xxhash.New()
	var b [256]byte
	for len(params) > 0 {
		n := min(len(params), len(b)/4)
		for i, v := range params[:n] {
			bits := math.Float32bits(v)
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
		}
		_, _ = d.Write(b[:4*n])
		params = params[n:]
	}
	return d.Sum64()
}

// judge takes a verdict in.
func (c *coordinator) judge(e *evaluation) {
	e.ready = true
	c.advance()
}

// answered counts a snapshot that nobody needs to wait for any more.
func (c *coordinator) answered() {
	if c.missing--; c.missing == 0 && c.ending {
		c.control.Halt()
	}
}

// advance settles the verdicts that are next in order.
func (c *coordinator) advance() {
	for {
		next := c.pending[c.settled+1]
		if next == nil || !next.ready {
			return
		}
		c.settled++
		delete(c.pending, c.settled)
		if c.settle(next) {
			return
		}
	}
}

// settle records a verdict, and reports whether it ends the run.
func (c *coordinator) settle(e *evaluation) bool {
	if e.void {
		return c.settleVoid(e)
	}
	c.run.Result.Evaluations++
	c.env.Record(actors.Event{
		Kind: actors.Evaluated, Evaluation: e.number, Origin: e.node, At: e.at, Epoch: e.epoch, Step: e.step,
		Accuracy: e.verdict.Accuracy, Loss: e.verdict.Loss,
	})
	before := c.before[e.node]
	c.before[e.node] = e
	if before != nil {
		before.params.Release()
	}
	p := c.run.Policy
	arrived := p.Target > 0 && !c.run.Result.Reached && e.verdict.Accuracy >= p.Target
	if arrived {
		c.arrive(before, e)
	}
	switch {
	case arrived && !p.GoOn:
		c.conclude(e)
		return true
	case c.ending && e.number == c.last:
		c.concludeLast()
		return true
	}
	return false
}

// settleVoid passes over an evaluation without a model.
func (c *coordinator) settleVoid(e *evaluation) bool {
	if !c.ending || e.number != c.last {
		return false
	}
	c.concludeLast()
	return true
}

// concludeLast ends the run with the model of the first holder that has shown one, of
// those that are there if possible.
func (c *coordinator) concludeLast() {
	var e *evaluation
	for _, node := range c.run.Holders {
		if c.before[node] != nil && (e == nil || c.gone[e.node] && !c.gone[node]) {
			e = c.before[node]
		}
	}
	c.conclude(e)
}

// arrive interpolates the instant at which the target was reached.
func (c *coordinator) arrive(before, e *evaluation) {
	r := c.run.Result
	r.Reached, r.TimeToTarget, r.EpochsToTarget = true, e.at, e.epoch
	if before == nil {
		return
	}
	share := (c.run.Policy.Target - before.verdict.Accuracy) / (e.verdict.Accuracy - before.verdict.Accuracy)
	r.TimeToTarget = before.at + time.Duration(share*float64(e.at-before.at))
	r.EpochsToTarget = before.epoch + share*(e.epoch-before.epoch)
}

// conclude ends the run with the model of an evaluation.
func (c *coordinator) conclude(e *evaluation) {
	c.run.Result.Last = c.settled
	if e != nil {
		c.run.Result.Params = append([]float32(nil), e.params.Data...)
	}
	c.control.Finish()
}
