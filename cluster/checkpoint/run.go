package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gradwire/gradwire/cluster/sim"
)

// ErrUnusable says that a run cannot go on from a checkpoint.
var ErrUnusable = errors.New("cannot be used")

// Run is a run in virtual time that is saved from time to time.
type Run struct {
	// Folder is where its states are.
	Folder *Folder
	// From is where it goes on; nil for its beginning. It is nil again when it has begun to.
	From *State
	// Events counts what is written of its events; nil where they are not kept. Flush writes out
	// what is held back of them.
	Events *Counted
	Flush  func() error
	// Told is called when the run goes on from an instant.
	Told func(at time.Duration)
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

// World makes the world of the run, whose checkpoints are saved in its folder. The error wraps
// ErrUnusable if it cannot go on where it should.
func (r *Run) World(c sim.Config) (*sim.World, error) {
	c.Checkpoints.Save = r.save
	if r.From == nil {
		return sim.New(c)
	}
	at := r.From.At
	w, err := sim.Restore(c, r.From.World)
	if err != nil {
		return nil, fmt.Errorf("its checkpoint at %v %w: %w", at, ErrUnusable, err)
	}
	r.From = nil // which takes much memory
	r.Told(at)
	return w, nil
}

// save begins to write a state.
func (r *Run) save(at time.Duration, world []byte) error {
	s := State{At: at, World: world}
	if err := r.Flush(); err != nil {
		return err
	}
	if r.Events != nil {
		s.Events = r.Events.Bytes
	}
	return r.Folder.Save(s)
}
