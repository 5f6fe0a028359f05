package experiment

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/sim"
)

// Trial is a run in virtual time that is not recorded, but of which all is known.
type Trial struct {
	// Stage is the run before it happened; its network counts what was sent.
	Stage *Stage
	// Outcome is what the world reports, and Digest the hash of messages and final parameters.
	Outcome Outcome
	Digest  string
	// Data is what was counted to the end, and End the instant at which the members were stopped.
	Data record.Data
	End  time.Duration
	// Events are in the order in which they were observed.
	Events []world.Recorded
	// Models are the final ones, of the instant Judged, and Incidents what the coordinator noticed.
	Models    []coordinator.Model
	Judged    time.Duration
	Incidents []coordinator.Incident
	// Counted and Lost are samples; see package faults.
	Counted, Lost uint64
	// Audit is what was seen of it from outside; nil of a run in two parts.
	Audit *sim.Audit
	// Saved is the state in which one in two parts was saved; nil of others.
	Saved *state.Saved
	// Failure is why the run could not go on; nil if it did.
	Failure error
}

// Observe keeps an event.
func (t *Trial) Observe(at time.Duration, node int, event actors.Event) {
	t.Events = append(t.Events, world.Recorded{At: at, Node: node, Event: event})
	t.Stage.Collector.Observe(at, node, event)
}

var _ world.Observer = (*Trial)(nil)

// Try makes a run of a point under an audit. Of evaluations it is told as they come; progress may
// be nil. The error is that of ctx, or says why the run cannot begin.
func (p *Point) Try(ctx context.Context, shelf *shelf.Shelf, seed uint64, a sim.Audit,
	progress func(record.Evaluation)) (*Trial, error) {
	task, err := p.Task(shelf, seed)
	if err != nil {
		return nil, refusal.Input(p.About(err))
	}
	return p.TryTask(ctx, task, a, progress)
}

// TryTask is Try with a task in place of the point's own, of the same workers and shards.
func (p *Point) TryTask(ctx context.Context, task *train.Task, a sim.Audit,
	progress func(record.Evaluation)) (*Trial, error) {
	t, err := p.trial(ctx, task, progress)
	if err != nil {
		return nil, err
	}
	t.Stage.once.To = t
	t.Stage.count()
	t.Audit, t.Stage.audit = &a, &a
	t.Outcome, t.Failure = Virtual{}.Play(ctx, t.Stage)
	return t, t.finish(ctx)
}

// trial makes one that has not happened yet. Its collector alone observes it.
func (p *Point) trial(ctx context.Context, task *train.Task, progress func(record.Evaluation)) (*Trial, error) {
	s, err := p.Stage(task, true, runtime.NumCPU())
	if err == nil {
		err = Virtual{}.Rehearse(ctx, s)
	}
	if err != nil {
		return nil, refusal.Input(p.About(err))
	}
	s.observe(record.Config{OnEvaluation: progress})
	return &Trial{Stage: s}, nil
}

// Unproductive returns the reason why no update changed a judged model in most of the run; empty if
// updates did.
func (t *Trial) Unproductive() string {
	r := record.Run{Clock: string(VirtualTime), Steps: t.Data.Steps}
	if incidents := t.Stage.unproductive(&r, &t.Data, t.Outcome); len(incidents) > 0 {
		return incidents[0].What
	}
	return ""
}

// finish takes in what has become of the run.
func (t *Trial) finish(ctx context.Context) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := t.Stage
	t.End = cmp.Or(t.Outcome.Halted, t.Outcome.End)
	t.Models, t.Judged, t.Incidents = s.result.Models, s.result.End, s.result.Incidents
	if t.Outcome.Digest != nil {
		t.Digest = digest(*t.Outcome.Digest, t.Models)
	}
	t.Counted, t.Lost = s.tally.Close(t.End)
	t.Data, err = s.Collector.Close(0)
	return err
}
