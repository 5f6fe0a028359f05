package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/checkpoint/image"
	"github.com/gradwire/gradwire/cluster/door"
)

// Checkpoints say when a world saves its state. A checkpoint changes nothing: a run with some has
// the digest and the models of the run without.
type Checkpoints struct {
	// Every is the time between two, on the world's clock.
	Every time.Duration
	// Given are pointers to what the run reads and nobody changes, such as its samples.
	Given []any
	// With are pointers to what changes with the run, and is to be restored with it.
	With []any
	// Save takes the state at an instant. An error ends the run.
	Save func(at time.Duration, state []byte) error
}

// Restore returns a world that goes on where a state of a run of the same configuration was saved.
func Restore(config Config, state []byte) (*World, error) {
	w, err := New(config)
	if err != nil {
		return nil, err
	}
	end := len(state) - len(w.nodes)
	if end < 0 {
		return nil, fmt.Errorf("%w: it has fewer nodes", image.ErrOther)
	}
	for i, there := range state[end:] {
		switch {
		case there == 1 && !w.cycle.There(i):
			err = w.place(int32(i))
		case there == 0 && w.cycle.There(i):
			realm{w}.Remove(i, false)
		}
		if err != nil {
			return nil, err
		}
	}
	g, err := w.given()
	if err != nil {
		return nil, err
	}
	return w, g.Unmarshal(state[:end], w.roots()...)
}

// State returns the state of the world between two events. Jobs under way are waited for. It
// returns an error if an actor has state that cannot be saved, such as a function.
func (w *World) State() ([]byte, error) {
	w.endJobs()
	g, err := w.given()
	if err == nil {
		err = w.hidden()
	}
	var state []byte
	if err == nil {
		state, err = g.Marshal(w.roots()...)
	}
	if err != nil {
		return nil, fmt.Errorf("this run cannot be saved: %w", err)
	}
	for i := range w.nodes {
		there := byte(0)
		if w.cycle.There(i) {
			there = 1
		}
		state = append(state, there)
	}
	return state, nil
}

// endJobs waits for the jobs under way, and reports whether all are computed and none has failed.
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
	if w.halted || w.due() < w.saves || !w.endJobs() {
		return
	}
	at := w.due() / c.Every * c.Every
	w.saves = at + c.Every
	state, err := w.State()
	if err == nil {
		err = c.Save(at, state)
	}
	if err != nil {
		w.fail(err)
	}
}

// due is when something happens next.
func (w *World) due() time.Duration {
	switch {
	case w.sharing == 0:
		return w.calendar.First()
	case w.calendar.Len() == 0:
		return w.config.Network.Due()
	}
	return min(w.calendar.First(), w.config.Network.Due())
}

// hidden returns an error if protoactor knows of an actor what no image can hold: who its children
// are, who watches it, what answer it awaits.
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

// given is what no image of the world has in it.
func (w *World) given() (*image.Given, error) {
	if w.common != nil {
		return w.common, nil
	}
	roots := []any{w.config.Deployment}
	if c := w.config.Checkpoints; c != nil {
		roots = append(roots, c.Given...)
	}
	var err error
	w.common, err = image.NewGiven(roots...)
	return w.common, err
}

// roots are what an image of the world is of.
func (w *World) roots() []any {
	roots := []any{w, w.config.Network}
	if c := w.config.Checkpoints; c != nil {
		roots = append(roots, c.With...)
	}
	return roots
}
