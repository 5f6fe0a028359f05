package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/sim"
)

// errSaved ends a world that was to be saved.
var errSaved = errors.New("saved")

// Resume makes a run of a point in two parts: one world is saved at an instant and ends, and
// another one goes on from there. The trial has no events, and is nil if the run cannot be saved or
// ends before. The error is that of ctx, or says why it cannot begin, be saved or go on.
func (p *Point) Resume(ctx context.Context, shelf *shelf.Shelf, seed uint64, at time.Duration,
	progress func(record.Evaluation)) (*Trial, error) {
	var from *state.Saved
	c, _, err := p.saved(ctx, shelf, seed, progress, at, func(_ time.Duration, saved *state.Saved) error {
		from = saved
		return errSaved
	})
	if err != nil {
		return nil, err
	}
	w, err := sim.New(c)
	if err != nil {
		return nil, err
	}
	if _, err = w.Run(ctx); from == nil {
		return nil, err
	}
	c, t, err := p.saved(ctx, shelf, seed, progress, at, func(time.Duration, *state.Saved) error { return nil })
	if err != nil {
		return nil, err
	}
	if w, err = sim.Restore(c, from); err != nil {
		return nil, err
	}
	r, failure := w.Run(ctx)
	t.Outcome, t.Failure, t.Saved = outcome(&r), failure, from
	return t, t.finish(ctx)
}

// saved is a run in virtual time that is saved at every so many instants.
func (p *Point) saved(ctx context.Context, shelf *shelf.Shelf, seed uint64, progress func(record.Evaluation),
	every time.Duration, save func(at time.Duration, saved *state.Saved) error) (sim.Config, *Trial, error) {
	task, err := p.Task(shelf, seed)
	if err != nil {
		return sim.Config{}, nil, err
	}
	t, err := p.trial(ctx, task, progress)
	if err != nil {
		return sim.Config{}, nil, err
	}
	t.Stage.count()
	c := t.Stage.simulation()
	t.Stage.saved(&c, every, save)
	return c, t, nil
}
