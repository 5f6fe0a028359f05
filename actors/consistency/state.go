package consistency

import (
	"fmt"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors/state"
)

// State is the state of clocks as plain data. The consistency model is not part of it.
type State struct {
	Slowest uint64
	// Workers has an entry for each node; the entry of a node that is no worker is zero.
	Workers []WorkerState
}

// WorkerState is the clock of one worker.
type WorkerState struct {
	There            bool
	Rounds, Finished uint64
	Last, Previous   time.Duration
	Pushes           int
	Granted          uint64
}

// State declares all clocks.
func (c *Clocks) State(s *state.State) {
	now := State{Slowest: c.slowest, Workers: make([]WorkerState, len(c.workers))}
	for i := range c.workers {
		now.Workers[i] = c.Worker(i)
	}
	state.Int(s, "slowest", &now.Slowest)
	state.List(s, "workers", &now.Workers, func(s *state.State, w *WorkerState) { w.State(s) })
	if s.Restoring() {
		s.Fail(c.Restore(now))
	}
	s.Bool("moved", &c.moved)
	state.Int(s, "pushed", &c.pushed)
}

// State declares the clock of one worker.
func (w *WorkerState) State(s *state.State) {
	s.Bool("there", &w.There)
	state.Int(s, "rounds", &w.Rounds)
	state.Int(s, "finished", &w.Finished)
	state.Int(s, "last", &w.Last)
	state.Int(s, "previous", &w.Previous)
	state.Int(s, "pushes", &w.Pushes)
	state.Int(s, "granted", &w.Granted)
}

// Worker returns the state of one worker.
func (c *Clocks) Worker(worker int) WorkerState {
	w := &c.workers[worker]
	return WorkerState{There: w.there, Rounds: w.rounds, Finished: w.finished, Last: w.last, Previous: w.previous,
		Pushes: w.pushes, Granted: w.granted}
}

// Restore sets the clocks to a state that clocks with the same model and number of nodes had. It
// returns an error if the state is inconsistent.
func (c *Clocks) Restore(s State) error {
	if len(s.Workers) != len(c.workers) {
		return fmt.Errorf("clocks of %d nodes for %d", len(s.Workers), len(c.workers))
	}
	restored := Clocks{model: c.model, bound: c.bound, ahead: c.ahead, workers: make([]clock, len(c.workers)),
		slowest: s.Slowest, moved: true, pushed: -1}
	for i, w := range s.Workers {
		if w.There && (w.Finished > w.Rounds || w.Rounds < s.Slowest) || w.Pushes < 0 {
			return fmt.Errorf("a clock at %d that has heard of %d, where the slowest is at %d", w.Rounds, w.Finished,
				s.Slowest)
		}
		restored.workers[i] = clock{there: w.There, rounds: w.Rounds, finished: w.Finished, last: w.Last,
			previous: w.Previous, pushes: w.Pushes, granted: w.Granted}
		if w.There {
			restored.present++
		}
		if w.There && w.Rounds == s.Slowest {
			restored.bottom++
		}
	}
	if restored.present > 0 && restored.bottom == 0 {
		return fmt.Errorf("no clock is at %d, the slowest", slices.MinFunc(s.Workers, func(a, b WorkerState) int {
			return int(a.Rounds) - int(b.Rounds)
		}).Rounds)
	}
	*c = restored
	return nil
}
