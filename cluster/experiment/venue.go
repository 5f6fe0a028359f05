package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/sim"
)

// Clock is the name of a venue's time in records.
type Clock string

// The clocks of Virtual and Real.
const (
	VirtualTime Clock = "virtual"
	RealTime    Clock = "real"
)

// Venue is where the runs of a plan take place.
type Venue interface {
	// Traits describe the venue.
	Traits() Traits
	// Rehearse returns an error if a run cannot take place that is on the stage. It does not let it
	// happen.
	Rehearse(ctx context.Context, s *Stage) error
	// Play lets a run happen. The error wraps ErrStopping if the run is to be forgotten, because
	// the venue closes.
	Play(ctx context.Context, s *Stage) (Outcome, error)
}

// Traits describe a venue.
type Traits struct {
	// Clock is the name of its time in records.
	Clock Clock
	// Here says that all nodes live in this process, whose memory bounds their models.
	Here bool
	// Alone says that runs would disturb each other if several went on side by side.
	Alone bool
	// Insecure says that what leaves a process is not protected on its way.
	Insecure bool
	// NodeTimeout is the silence after which the process that leads runs counts another process as
	// absent; 0 without other processes.
	NodeTimeout time.Duration
}

// ErrStopping is why a process's runs end that is being stopped.
var ErrStopping = errors.New("the process is stopping")

// venueOf returns the venue of a plan's runs in this process.
func venueOf(o Options) (Venue, error) {
	switch o.Clock {
	case VirtualTime, "":
		return Virtual{}, nil
	case RealTime:
		return Real{KeepRuntime: o.KeepRuntime}, nil
	}
	return nil, fmt.Errorf("clock %q is not known; accepted are %s and %s", o.Clock, VirtualTime, RealTime)
}

// Outcome is what a venue reports about a run beside its record. Instants are on the run's clock.
type Outcome struct {
	// End is when the run ended, and Halted when its members were stopped.
	End, Halted time.Duration
	// Waits says, by node, what those waited for then that did. Whether one stalled is judged by
	// it, unless the venue Watched; pauses shorter than LeastPause are none.
	Waits      map[int]string
	LeastPause time.Duration
	// Watched says that Incidents name the nodes that stalled.
	Watched bool
	// Digest is the hash of all messages; nil where they differ from time to time.
	Digest *uint64
	// DeadLetters counts messages to actors that were not there.
	DeadLetters uint64
	// InFlight counts messages, control aside, that were on their way at the end; a cluster does
	// not know it.
	InFlight int64
	// Forgotten are the lengths of tensors that nobody held when the members were stopped; see
	// Real.
	Forgotten []int
	// Stalled is the instant of the last event in a run that stood still before its time was over;
	// 0 if the run did not stand still.
	Stalled time.Duration
	// Unfinished says that the run ended before the work of an update did.
	Unfinished bool
	// Lateness is how late messages and steps were in real time; nil in virtual time.
	Lateness *record.Lateness
	// Incidents are what the venue has noticed, in the order of time. Degraded says that state was
	// lost, or that nodes stood still.
	Incidents []record.Incident
	Degraded  bool
	// Resumed is the instant of the checkpoint from which the run resumed; 0 if it did not resume, or if the
	// resumed run equals an uninterrupted one.
	Resumed time.Duration
	// Again is not 0 if a process was lost or could not be reached. The figures of the run, or its
	// error, may then say nothing about the plan, and another run can after this time.
	Again time.Duration
	// Unbegun is true if the run has not begun, so that a retry needs no checkpoint.
	Unbegun bool
}

// Virtual is a venue in virtual time: deterministic, as fast as the machine computes.
type Virtual struct{}

var _ Venue = Virtual{}

// Traits of virtual time: runs do not take time from each other.
func (Virtual) Traits() Traits { return Traits{Clock: VirtualTime, Here: true} }

// Rehearse refuses nodes that are as fast as the machine, and checkpoints of what cannot be saved.
func (v Virtual) Rehearse(_ context.Context, s *Stage) error {
	if err := v.check(s); err != nil {
		return err
	}
	return s.Savable()
}

func (Virtual) check(s *Stage) error {
	nodes := s.Point.Spec.Plan.Nodes
	for i := range nodes {
		if nodes[i].Compute.Native {
			return syntax.Errorf(nodes[i].Source.At("compute"), "compute: native has no meaning in virtual time, "+
				"which does not depend on the machine; give step or speed")
		}
	}
	return nil
}

// Play lets the run happen in this process.
func (v Virtual) Play(ctx context.Context, s *Stage) (Outcome, error) {
	if err := v.check(s); err != nil {
		return Outcome{}, refusal.Input(err)
	}
	w, err := s.simulate()
	if err != nil {
		return Outcome{}, err
	}
	r, err := w.Run(ctx)
	return outcome(&r), err
}

// outcome is what a virtual world reports.
func outcome(r *sim.Result) Outcome {
	return Outcome{End: r.Now, Halted: r.Halted, Waits: r.Waits, Digest: &r.Digest, DeadLetters: r.DeadLetters,
		InFlight: r.InFlight, Stalled: r.Stalled, Unfinished: r.Unfinished}
}

// Real is a venue in real time: the same actors and delays, in one process.
type Real struct {
	// KeepRuntime is as in Options, and Audit as in live.Config.
	KeepRuntime, Audit bool
}

var _ Venue = Real{}

// Traits of real time: runs would take the cores from each other.
func (Real) Traits() Traits { return Traits{Clock: RealTime, Here: true, Alone: true} }

// Rehearse refuses checkpoints of what cannot be saved.
func (Real) Rehearse(_ context.Context, s *Stage) error { return s.Savable() }

// leastRealPause is a pause of a node in real time that is none: the machine may have been busy.
const leastRealPause = time.Second

// Play lets the run happen in this process.
func (v Real) Play(ctx context.Context, s *Stage) (Outcome, error) {
	w, err := s.Live(live.Config{KeepRuntime: v.KeepRuntime, Audit: v.Audit})
	if err != nil {
		return Outcome{}, err
	}
	s.Placed()
	r, err := w.Run(ctx)
	return Outcome{
		Incidents: s.past, Degraded: s.past != nil,
		End: r.Now, Halted: r.Halted, Waits: r.Waits, LeastPause: leastRealPause, DeadLetters: r.DeadLetters,
		Stalled: r.Stalled, Unfinished: r.Unfinished, InFlight: r.InFlight, Forgotten: r.Forgotten,
		Lateness: &record.Lateness{Late: r.Late, P99: record.Float(max(r.Messages.P99, r.Steps.P99).Seconds())},
	}, err
}
