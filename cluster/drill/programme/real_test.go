package programme_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/drill"
	"github.com/gradwire/gradwire/cluster/drill/programme"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// errCut ends a run that is to go on.
var errCut = errors.New("interrupted")

// errEndless is why a run is ended that should have been over long ago.
var errEndless = errors.New(drill.Progress.Name + ": the run does not end")

// interrupted is real time in which a run ends a while after it has been saved so often.
type interrupted struct {
	experiment.Real
	saves uint64
	after time.Duration
	end   context.CancelCauseFunc
	trial *experiment.Trial // the latest
}

func (v *interrupted) Play(ctx context.Context, s *experiment.Stage) (experiment.Outcome, error) {
	var saved atomic.Uint64
	s.OnSaved(func() {
		if saved.Add(1) == v.saves {
			time.AfterFunc(v.after, func() { v.end(errCut) })
		}
	})
	out, err := v.Real.Play(ctx, s)
	v.trial = &experiment.Trial{Stage: s, Outcome: out}
	return out, err
}

// pausing is a case in real time that is interrupted, perhaps more than once.
type pausing struct {
	programme.Case
	random *rand.Rand
	cuts   int     // that are meant
	times  int     // it was interrupted
	at     float64 // where it went on last, in seconds
	data   record.Data
	err    error
}

func newPausing(seed uint64) *pausing {
	p := &pausing{Case: programme.New(seed), random: rand.New(rand.NewPCG(seed, 5))}
	p.Milliseconds, p.cuts = 450+p.random.IntN(150), 1+p.random.IntN(2)
	if p.random.IntN(2) == 0 {
		p.Schedule, p.Faults = nil, nil
	}
	return p
}

// timed are words in what makes models depend on who comes first, or evaluations on the instant.
var timed = []string{"asp", "ssp", "bounded", "gossip", "ad-psgd", "gaia", "backup", "staleness", "servers:",
	"deadline", "grace", "spare", "buffer", "fedasync", "time:"}

// timeless reports whether the models depend on no timing.
func (p *pausing) timeless() bool {
	what := strings.Join(append(p.Settings, p.Architecture), " ")
	return len(p.Schedule)+len(p.Faults)+len(p.Available) == 0 &&
		!slices.ContainsFunc(timed, func(word string) bool { return strings.Contains(what, word) })
}

// calm reports whether nothing disturbs nodes or links, and the machine was not busy: the run ended
// on time.
func (p *pausing) calm(late float64) bool {
	return len(p.Schedule)+len(p.Faults)+len(p.Available)+len(p.Links) == 0 && late < 0.02
}

func (p *pausing) plan(set ...string) (*experiment.Plan, error) {
	return experiment.Parse("case.yaml", []byte(p.YAML()), set...)
}

// known are records of the run in virtual time, which judges all models and is ahead of the others.
// A peer of noloco has the model of its own steps until it has those of its group, and then no time
// at all if it is the last. So each node is far ahead of the others, which are all as fast, in one
// of the runs.
func (p *pausing) known(ctx context.Context) (*record.Data, error) {
	all, err := p.virtual(ctx, p.YAML())
	for i := 0; err == nil && i < p.Nodes && strings.Contains(p.Architecture, "noloco"); i++ {
		alike := p.Case
		alike.Delay, alike.Links, alike.Sites = "0ms", nil, ""
		text := regexp.MustCompile(`step: \d+ms`).ReplaceAllString(alike.YAML(), "step: 8ms")
		own := fmt.Sprintf("name: n%d, compute: {step: ", i+1)
		var first *record.Data
		if first, err = p.virtual(ctx, strings.Replace(text, own+"8ms", own+"1ms", 1)); err == nil {
			all.Models = append(all.Models, first.Models...)
		}
	}
	return all, err
}

// virtual is the record of a plan in virtual time.
func (p *pausing) virtual(ctx context.Context, text string) (*record.Data, error) {
	plan, err := experiment.Parse("case.yaml", []byte(text), "evaluate={every: 1ms}",
		fmt.Sprintf("stop={time: %dms}", 2*p.Milliseconds))
	if err != nil {
		return nil, err
	}
	points, err := plan.Points(nil)
	if err != nil {
		return nil, err
	}
	t, err := points[0].Try(ctx, shelf.New("", 1, nil), p.Seed, sim.Audit{}, nil)
	if err != nil {
		return nil, err
	}
	return &t.Data, nil
}

// run makes the run until it is not interrupted.
func (p *pausing) run(dir string) error {
	plan, err := p.plan("checkpoint={every: 15ms, keep: 2}", "evaluate={every: 1 steps}")
	if err != nil {
		return err
	}
	for {
		v := &interrupted{Real: experiment.Real{KeepRuntime: true, Audit: true}}
		if p.times < p.cuts {
			v.saves, v.after = 1+p.random.Uint64N(4), time.Duration(p.random.IntN(20))*time.Millisecond
		}
		failure := v.part(plan, dir, p.times > 0)
		if v.trial == nil {
			return failure
		}
		if err := v.check(); err != nil {
			return err
		}
		if past := v.trial.Stage.Interrupted(); len(past) > 0 {
			p.at = past[len(past)-1].At
		}
		switch out := &v.trial.Outcome; {
		case errors.Is(failure, errCut):
			p.times++
			continue
		case errors.Is(failure, errEndless):
			return fmt.Errorf("%w, at %v; it went on at %v s; nodes wait for %v", failure, out.End, p.at, out.Waits)
		}
		f, err := record.Open(dir)
		if err = errors.Join(failure, err); err != nil {
			return err
		}
		p.data, err = f.Data(0)
		return errors.Join(err, f.Close())
	}
}

// part makes a part of the run of a plan.
func (v *interrupted) part(plan *experiment.Plan, dir string, goesOn bool) (err error) {
	limited, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errEndless)
	defer cancel()
	ctx, end := context.WithCancelCause(limited)
	defer end(nil)
	v.end = end
	r, err := experiment.Prepare(ctx, plan, experiment.Options{Out: dir, Continue: goesOn, Strict: true},
		experiment.Site{Venue: v})
	if err != nil {
		return err
	}
	return errors.Join(r.RunAll(ctx), r.Close())
}

// check returns an error if an invariant broke in a part of the run.
func (v *interrupted) check() error {
	out := &v.trial.Outcome
	for _, verdict := range drill.Check(&drill.Watch{Run: v.trial}, drill.MessagesConserved) {
		if verdict.Broken != "" {
			return fmt.Errorf("%s: %s", verdict.Name, verdict.Broken)
		}
	}
	gone := slices.ContainsFunc(v.trial.Stage.Deployment.Schedule, func(c world.NodeChange) bool { return c.Ends() })
	switch {
	case len(out.Forgotten) > 0 && !gone:
		return fmt.Errorf("%s: nobody holds, and nobody has given back, tensors of %v values", drill.NothingLeft.Name,
			out.Forgotten)
	case out.DeadLetters > 0 && !gone:
		return fmt.Errorf("%s: %d", drill.DeadLetters.Name, out.DeadLetters)
	}
	return nil
}

// check returns an error if what must hold for a run that has come to its end does not.
func (p *pausing) check(ctx context.Context) error {
	if p.err != nil {
		return nil
	}
	curve := p.data.Curve
	before, last := uint64(0), &curve[len(curve)-1]
	for i := range curve {
		if curve[i].Time <= p.at {
			before = curve[i].Step
		}
	}
	const enough = 0.25
	switch end := float64(p.Milliseconds) / 1000; {
	case last.Time < end:
		return fmt.Errorf("the run ended at %v s, and %v s are asked for", last.Time, end)
	case p.calm(last.Time-end) && end-p.at > enough && last.Step <= before:
		return fmt.Errorf("%s: no step from %v s, where it went on, to %v s", drill.Progress.Name, p.at, last.Time)
	case !p.timeless():
		return nil
	}
	known, err := p.known(ctx)
	if err != nil {
		return err
	}
	return recordtest.Among(known, &p.data)
}

// Random plans run in real time, are interrupted while they are saved again and again, and go on.
// Models that depend on no timing are those of virtual time, bit for bit: of what was on its way
// when the nodes were saved, nothing is missing, and nothing came twice.
func TestInterruptedCasesInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes real time")
	}
	const together = 20
	first, last := simtest.Seeds(t, together)
	exact, times, number := 0, 0, last-first+1
	for ; first <= last; first += together {
		var cases []*pausing
		left := drill.Left(t.Context(), func(context.Context) {
			var runs sync.WaitGroup
			for seed := first; seed <= min(first+together-1, last); seed++ {
				p := newPausing(seed)
				cases = append(cases, p)
				runs.Go(func() { p.err = p.run(filepath.Join(t.TempDir(), "record")) })
			}
			runs.Wait()
		})
		if left != "" {
			t.Errorf("%s: of seeds from %d on, %s", drill.NothingLeft.Name, first, left)
		}
		for _, p := range cases {
			if times += p.times; p.timeless() {
				exact++
			}
			if err := errors.Join(p.err, p.check(t.Context())); err != nil {
				t.Errorf("seed %d: %v\n%s", p.Seed, err, p.YAML())
			}
		}
	}
	t.Logf("%d plans, interrupted %d times, %d without timing", number, times, exact)
	if number >= together && exact == 0 {
		t.Error("too few to mean something")
	}
}
