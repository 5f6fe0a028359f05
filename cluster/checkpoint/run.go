package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/sim"
)

// ErrUnusable says that a run cannot go on from a checkpoint.
var ErrUnusable = errors.New("cannot be used")

// Run is a run that is saved from time to time.
type Run struct {
	// Folder is where its states are.
	Folder *Folder
	// Origin identifies the run in virtual time. In real time, live.Checkpoints has the origin.
	Origin live.Origin
	// From is where it goes on; nil for its beginning. It is nil again when it has begun to.
	From *State
	// Events counts what is written of its events; nil where they are not kept. Held calls a
	// function while nobody records anything, and all that was recorded is written, when a cut
	// begins; in virtual time there are none.
	Events *Counted
	Held   func(cut uint64, do func()) error
	// Told is called when the run goes on from an instant.
	Told func(at time.Duration)

	written int64 // of the events, when the state was taken
	failure error // of Held
}

// Counted counts what is written.
type Counted struct {
	io.WriteCloser
	// Bytes were written, those of an earlier attempt among them.
	Bytes int64
}

func (c *Counted) Write(b []byte) (int, error) {
	n, err := c.WriteCloser.Write(b)
	c.Bytes += int64(n)
	return n, err
}

// World makes the virtual world of the run, whose checkpoints are saved in its folder. The error
// wraps ErrUnusable if it cannot go on where it should.
func (r *Run) World(c sim.Config) (*sim.World, error) {
	c.Checkpoints.Save = func(at time.Duration, saved *state.Saved) error {
		if r.held(0, func() {}); r.failure != nil {
			return r.failure
		}
		return r.Folder.Save(State{Origin: r.Origin, At: at, Events: r.written, Declared: saved, Virtual: true})
	}
	if r.From == nil {
		return sim.New(c)
	}
	err := r.Origin.Check(&r.From.Origin)
	var w *sim.World
	if err == nil {
		w, err = sim.Restore(c, r.From.Declared)
	}
	if err != nil {
		return nil, r.unusable(err)
	}
	r.began()
	return w, nil
}

// Live makes a world in real time that goes on where it should, and places its nodes then. What is
// set of c.Checkpoints says what becomes of the state of its nodes, if not all of the run's live
// there; if nothing does, it is saved in the folder. The world is nil after an error.
func (r *Run) Live(c live.Config, create func(live.Config) (*live.World, error)) (*live.World, error) {
	save := c.Checkpoints.Save
	if save == nil {
		save = r.Save
	}
	c.Checkpoints.Held = r.held
	c.Checkpoints.Save = func(s *live.State) error {
		if r.failure != nil {
			return r.failure
		}
		s.Events = r.written
		return save(s)
	}
	if r.From == nil {
		return create(c)
	}
	var err error
	if c.Checkpoints.From, err = r.From.live(); err != nil {
		return nil, r.unusable(err)
	}
	w, err := create(c)
	if err != nil {
		return nil, err
	}
	if err := w.Place(); err != nil {
		w.Abandon()
		return nil, r.unusable(err)
	}
	r.began()
	return w, nil
}

// Save begins to write the state of a run in real time, unless the cut has come to nothing.
func (r *Run) Save(s *live.State) error {
	if s.Void {
		return nil
	}
	saved, err := declared(s)
	if err != nil {
		return err
	}
	return r.Folder.Save(*saved)
}

func (r *Run) unusable(err error) error {
	return fmt.Errorf("its checkpoint at %v %w: %w", r.From.At, ErrUnusable, err)
}

// began tells that the run goes on.
func (r *Run) began() {
	at := r.From.At
	r.From = nil // which takes much memory
	r.Told(at)
}

// held has a state taken, and takes note of what is written of events.
func (r *Run) held(cut uint64, do func()) {
	r.failure = r.Held(cut, func() {
		if r.Events != nil {
			r.written = r.Events.Bytes
		}
		do()
	})
}
