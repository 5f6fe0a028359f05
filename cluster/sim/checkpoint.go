package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
)

// Checkpoints configure how often a world saves its state. They do not change the run: its digest and
// models equal those of a run without checkpoints.
type Checkpoints struct {
	// Every is the time between two, on the world's clock.
	Every time.Duration
	// With are the recorders of the run. Their state is saved with the world's.
	With []state.Declared
	// Save receives a state and its instant, and owns the state. An error ends the run.
	Save func(at time.Duration, saved *state.Saved) error
}

// Restore returns a world that resumes a run of the same configuration from a saved state. If the actors
// declare all their state, all later events equal those of the uninterrupted run.
func Restore(config Config, saved *state.Saved) (_ *World, err error) {
	w := empty(config)
	defer world.Recovered(&err)
	if err := saved.Restore(w, state.Into{Pool: &w.tensors, Clock: w}); err != nil {
		return nil, err
	}
	return w, w.failure
}

// Save returns a copy of the world's state between two events. It waits for running jobs, and returns
// an error if an actor has state that it cannot declare.
func (w *World) Save() (saved *state.Saved, err error) {
	defer func() {
		if err != nil {
			saved, err = nil, fmt.Errorf("this run cannot be saved: %w", err)
		}
	}()
	defer world.Recovered(&err)
	if !w.endJobs() {
		return nil, errors.New("a computation has failed or was interrupted")
	}
	if err := w.hidden(); err != nil {
		return nil, err
	}
	saved, err = state.Save(w)
	if err != nil {
		return nil, err
	}
	return saved.Own(""), nil
}

// endJobs waits for the running jobs. It returns false if a job failed or the run was interrupted.
func (w *World) endJobs() bool {
	for s := range w.calendar.All() {
		if s.what == result {
			if !s.job.end(w.pool.quit) || s.job.failure != nil {
				return false
			}
		}
	}
	return true
}

// checkpoint saves the state if that is due before the next event.
func (w *World) checkpoint() {
	c := w.config.Checkpoints
	w.saves = max(w.saves, c.Every)
	if w.halted || w.due() < w.saves || !w.endJobs() { // a failed job ends the run at its due time
		return
	}
	at := w.due() / c.Every * c.Every
	w.saves = at + c.Every
	saved, err := w.Save()
	if err == nil {
		err = c.Save(at, saved)
	}
	if err != nil {
		w.fail(err)
	}
}

// due returns when the next event is due.
func (w *World) due() time.Duration {
	switch {
	case w.sharing == 0:
		return w.calendar.First()
	case w.calendar.Len() == 0:
		return w.config.Network.Due()
	}
	return min(w.calendar.First(), w.config.Network.Due())
}

// hidden returns an error if protoactor holds data of an actor that the actor cannot declare: its
// children, its watchers, its pending futures.
func (w *World) hidden() error {
	living := 0
	for address, p := range w.processes {
		if p.mailbox == nil {
			continue
		}
		living++
		if door.HasExtras(p.mailbox.invoker) {
			return fmt.Errorf("node %s: actor %s has spawned others, is watched, stashes messages or has a timeout "+
				"of protoactor's", w.names[address.node], p.id)
		}
	}
	for i := range w.nodes {
		if p := w.processes[address{int32(i), w.nodes[i].ID}]; w.cycle.There(i) && p.mailbox == nil {
			return fmt.Errorf("node %s: its actor has ended itself", w.names[i])
		}
	}
	if living != door.Locals(w.system)-w.own {
		return errors.New("an actor awaits an answer in a future of protoactor's")
	}
	return nil
}
