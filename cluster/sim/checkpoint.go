package sim

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/checkpoint/image"
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
	n := len(w.nodes)
	if len(state) < n {
		return nil, fmt.Errorf("%w: it has fewer nodes", image.ErrOther)
	}
	for i, there := range state[:n] {
		switch {
		case there == 1 && !w.cycle.There(i):
			err = w.place(int32(i))
		case there == 0 && w.cycle.There(i):
			realm{w}.Remove(i)
		}
		if err != nil {
			return nil, err
		}
	}
	g, err := w.given()
	if err != nil {
		return nil, err
	}
	return w, g.Unmarshal(state[n:], w.roots()...)
}

// State returns the state of the world between two events. Jobs under way are waited for. It
// returns an error if an actor has state that cannot be saved, such as a function.
func (w *World) State() ([]byte, error) {
	w.endJobs()
	if err := w.childless(); err != nil {
		return nil, err
	}
	g, err := w.given()
	if err != nil {
		return nil, err
	}
	b, err := g.Marshal(w.roots()...)
	if err != nil {
		return nil, fmt.Errorf("at %v: this run cannot be saved: %w", w.now, err)
	}
	state := make([]byte, len(w.nodes), len(w.nodes)+len(b))
	for i := range state {
		if w.cycle.There(i) {
			state[i] = 1
		}
	}
	return append(state, b...), nil
}

// endJobs waits for what is computed, and reports whether nothing has failed.
func (w *World) endJobs() bool {
	for s := range w.calendar.All() {
		if s.what == result {
			if s.job.end(); s.job.failure != nil {
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

// childless returns an error if an actor has spawned others: who their parents are is known to
// protoactor alone.
func (w *World) childless() error {
	for address, p := range w.processes {
		if n := &w.nodes[address.node]; p.mailbox != nil && p.id != n.ID {
			return fmt.Errorf("node %s: this run cannot be saved: actor %s was spawned by another",
				w.names[address.node], p.id)
		}
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
