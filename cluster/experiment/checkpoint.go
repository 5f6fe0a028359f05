package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/sim"
)

// checkClock refuses checkpoints where time is not virtual.
func (r *Runner) checkClock() error {
	clock := r.Venue.Traits().Clock
	for i := range r.points {
		if c := r.points[i].Spec.Plan.Checkpoint; c != nil && clock != VirtualTime {
			return syntax.Errorf(c.Source, "the state of a run is saved in virtual time only, and this "+
				"clock is %s; leave checkpoint out", clock)
		}
	}
	return nil
}

// play lets a run happen from the newest of its checkpoints that can be used, or else from its
// beginning. The stage is to be closed.
func (r *Runner) play(ctx context.Context, next run) (_ *Stage, _ Outcome, failure, err error) {
	var names []string
	folder := r.checkpoints(next)
	if folder != nil {
		if names, err = folder.Names(); err != nil {
			return nil, Outcome{}, nil, err
		}
	}
	for {
		s, err := next.point.stageFor(r.shelf, next.seed, r.Strict, r.threads())
		if err != nil {
			return nil, Outcome{}, nil, err
		}
		if folder != nil {
			s.saves = &checkpoint.Run{Folder: folder, Told: func(at time.Duration) {
				r.note(fmt.Sprintf("run %d goes on from its checkpoint at %v", next.number, at))
			}}
		}
		if len(names) == 0 {
			if err := r.observe(s, next, 0); err != nil {
				return nil, Outcome{}, nil, err
			}
			out, failure := r.Venue.Play(ctx, s)
			return s, out, failure, nil
		}
		out, failure := r.goOn(ctx, next, s, names[0])
		if !errors.Is(failure, checkpoint.ErrUnusable) {
			return s, out, failure, nil
		}
		if err := s.close(); err != nil {
			return nil, Outcome{}, nil, err
		}
		r.note(fmt.Sprintf("run %d: %v", next.number, failure))
		if names = names[1:]; len(names) == 0 {
			r.note(fmt.Sprintf("run %d begins anew", next.number))
		}
	}
}

// goOn lets a run happen from a checkpoint on. The error wraps [checkpoint.ErrUnusable] if that
// cannot be used.
func (r *Runner) goOn(ctx context.Context, next run, s *Stage, name string) (Outcome, error) {
	from, err := checkpoint.Read(name)
	if err != nil {
		return Outcome{}, fmt.Errorf("its checkpoint %w: %w", checkpoint.ErrUnusable, err)
	}
	s.saves.From = &from
	if err := r.observe(s, next, from.Events); err != nil {
		return Outcome{}, fmt.Errorf("its checkpoint at %v %w: %w", from.At, checkpoint.ErrUnusable, err)
	}
	return r.Venue.Play(ctx, s)
}

// note reports something.
func (r *Runner) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reportProgress(nil, text)
}

// checkpoints is the folder of a run's checkpoints; nil where the plan has none.
func (r *Runner) checkpoints(next run) *checkpoint.Folder {
	c := next.point.Spec.Plan.Checkpoint
	if c == nil {
		return nil
	}
	return checkpoint.NewFolder(r.folder.RunDir(next.number), c.Keep)
}

// close waits for what is being written, and ends the file of events.
func (s *Stage) close() (err error) {
	if s.saves != nil {
		err = s.saves.Folder.Wait()
	}
	if s.events != nil {
		err = errors.Join(err, s.events.Close())
	}
	return err
}

// simulate makes the virtual world of the stage, which goes on where it was saved if it was.
func (s *Stage) simulate() (*sim.World, error) {
	c := s.simulation()
	if s.saves == nil {
		return sim.New(c)
	}
	s.saved(&c, time.Duration(s.Point.Spec.Plan.Checkpoint.Every), nil)
	s.saves.Events, s.saves.Flush = s.events, s.Collector.Flush
	return s.saves.World(c)
}

// simulation is the stage as a virtual world takes it.
func (s *Stage) simulation() sim.Config {
	c := sim.Config{Deployment: s.Deployment, Network: s.Network, Changes: s.Changes, Audit: s.audit}
	if s.Threads > 1 {
		c.Threads = s.Threads
	}
	return c
}

// saved has a virtual world save its state from time to time.
func (s *Stage) saved(c *sim.Config, every time.Duration, save func(at time.Duration, world []byte) error) {
	c.Checkpoints = &sim.Checkpoints{Every: every, Save: save, Given: []any{s.Task, s.Point}, With: s.state}
}

// savable returns an error if the plan has checkpoints, and actors that cannot be saved.
func (s *Stage) savable() error {
	p := s.Point.Spec.Plan.Checkpoint
	if p == nil {
		return nil
	}
	c := s.simulation()
	s.saved(&c, time.Duration(p.Every), nil)
	w, err := sim.New(c)
	if err == nil {
		_, err = w.State()
	}
	if err != nil {
		return syntax.Errorf(p.Source, "%w", err)
	}
	return nil
}
