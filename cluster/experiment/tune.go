package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
)

// Before the repeats of a point that has something to tune, each combination of values runs once,
// with the plan's seed, and is judged on the validation samples in the place of the test samples.
// The repeats use the one that reached the target first, or, if none did, that with the best
// accuracy at its end; one that lost nothing before one that did, whether or not something came
// late. A run that has lost a process may say nothing about its values: they are tried again. What
// was found, and what it cost, is in tuning.json.

// candidate is a point with values that could be chosen for it.
type candidate struct {
	chosen []plan.Label
	Point
}

// readCandidates resolves what can be chosen for a point.
func (p *Point) readCandidates(c *catalog.Catalog) error {
	all, err := plan.Candidates(p.Root, p.Values)
	if err != nil {
		return err
	}
	for _, at := range all {
		one := candidate{chosen: at.Labels, Point: *p}
		one.Root, one.candidates = at.Root, nil
		if one.Spec, err = read(c, at.Root, p.Spec.Plan.AnyRole); err != nil {
			at.Labels, at.Values = slices.Concat(p.Labels, at.Labels), slices.Concat(p.Values, at.Values)
			return (&Point{Point: at}).About(err)
		}
		p.candidates = append(p.candidates, one)
	}
	return nil
}

// settle makes the point the plan with what was chosen for it, if the record says that. It is an
// error if the plan offers no such choice.
func (p *Point) settle(tunings []record.Tuning) (settled bool, err error) {
	if len(p.candidates) == 0 {
		return true, nil
	}
	at := slices.IndexFunc(tunings, func(t record.Tuning) bool { return slices.Equal(t.Point, settings(p.Labels)) })
	if at < 0 {
		return false, nil
	}
	chosen := tunings[at].Candidates[tunings[at].Chosen].Values
	for _, c := range p.candidates {
		if slices.Equal(settings(c.chosen), chosen) {
			*p = c.Point
			return true, nil
		}
	}
	return false, fmt.Errorf("the record chose %s, which is not among what the plan has to tune", chosen)
}

// tune chooses for every point of which runs are missing what the plan leaves to be chosen. It is
// called before the first run, and does nothing where the plan has nothing to tune.
func (r *Runner) tune(ctx context.Context) error {
	if !slices.ContainsFunc(r.points, func(p Point) bool { return len(p.candidates) > 0 }) {
		return nil
	}
	tunings, err := record.ReadTunings(r.folder.Dir())
	if err != nil {
		return refusal.Input(err)
	}
	var open []*Point // points whose candidates have yet to be compared
	for i := range r.points {
		p := &r.points[i]
		settled, err := p.settle(tunings)
		if err != nil {
			return refusal.Input(err)
		}
		if !settled && slices.ContainsFunc(r.queue, func(next run) bool { return next.point == p }) {
			open = append(open, p)
			r.toTry += len(p.candidates)
		}
	}
	for _, p := range open {
		tuning, err := r.choose(ctx, p)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil { // the runs of other points go on
			if len(p.Labels) > 0 {
				err = fmt.Errorf("%s: %w", describe(p.Labels), err)
			}
			r.mu.Lock()
			r.failures = append(r.failures, err)
			r.mu.Unlock()
			r.queue = slices.DeleteFunc(r.queue, func(next run) bool { return next.point == p })
			continue
		}
		tunings = append(tunings, tuning)
		if err := r.folder.SaveTunings(tunings); err != nil {
			return folderError(err)
		}
		if _, err := p.settle(tunings); err != nil {
			return err
		}
	}
	return nil
}

// choose tries all candidates of a point, several side by side.
func (r *Runner) choose(ctx context.Context, p *Point) (record.Tuning, error) {
	began := time.Now()
	t := record.Tuning{Point: settings(p.Labels), Seed: p.Spec.Plan.Seed,
		Candidates: make([]record.Candidate, len(p.candidates))}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sideBySide(ctx, r.Jobs, len(p.candidates), func(i int) {
		var err error
		if t.Candidates[i], err = r.try(ctx, &p.candidates[i], t.Seed); err != nil {
			cancel(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tried++
		r.reportProgress(nil, "")
	})
	if err := context.Cause(ctx); err != nil {
		return t, err
	}
	t.Chosen = best(t.Candidates)
	t.AtBound = p.atBound(r.Catalog, &t)
	for _, c := range t.Candidates {
		t.Duration += c.Duration
	}
	t.Wall = time.Since(began).Seconds()
	if failure := t.Candidates[t.Chosen].Failure; failure != "" {
		return t, errors.New("nothing can be chosen, because every run that tries a value fails; the first: " + failure)
	}
	return t, nil
}

// atBound returns the keys whose chosen number is the smallest or largest candidate, if the plan accepts no
// number beyond it.
func (p *Point) atBound(c *catalog.Catalog, t *record.Tuning) (keys []string) {
	chosen := &p.candidates[t.Chosen]
	for _, e := range t.Ends() {
		beyond := []float64{e.Number / 2, e.Number - 1} // the second for whole numbers
		if e.Largest {
			beyond = []float64{2 * e.Number, e.Number + 1}
			if e.Number < 1 {
				beyond = append(beyond, (e.Number+1)/2)
			}
		}
		if !slices.ContainsFunc(beyond, func(v float64) bool { return chosen.accepts(c, e.Key, v) }) {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// accepts reports whether the candidate's plan accepts another number for a key. For a key with structured
// values the answer is unknown, and accepts returns true.
func (c *candidate) accepts(all *catalog.Catalog, key string, number float64) bool {
	root := c.Root.Clone()
	now, ok := root.Lookup(key)
	if !ok || now.Kind != syntax.Scalar {
		return true
	}
	value := now.Clone()
	value.Text = strconv.FormatFloat(number, 'f', -1, 64)
	if root.Set(key, value) != nil {
		return true
	}
	_, err := read(cmp.Or(all, catalog.Default()), root, c.Spec.Plan.AnyRole)
	return err == nil
}

// best is the place of the candidate that reached the target first, or of the one with the best
// accuracy at its end; of equals the first.
func best(all []record.Candidate) int {
	at := 0
	for i := range all {
		if better(&all[i], &all[at]) {
			at = i
		}
	}
	return at
}

func better(a, b *record.Candidate) bool {
	accuracy := func(c *record.Candidate) float64 {
		if math.IsNaN(float64(c.FinalAccuracy)) {
			return -1
		}
		return float64(c.FinalAccuracy)
	}
	switch {
	case (a.Failure == "") != (b.Failure == ""):
		return a.Failure == ""
	case lost(a) != lost(b):
		return lost(b)
	case a.Reached && b.Reached:
		return *a.TimeToTarget < *b.TimeToTarget
	case a.Reached != b.Reached:
		return a.Reached
	}
	return accuracy(a) > accuracy(b)
}

// lost reports whether the run of a candidate is degraded for more than that something came late.
func lost(c *record.Candidate) bool {
	return c.Outcome != record.Done && !record.LostNothing(c.Incidents)
}

// maxTries is how often a candidate runs at most until a run of it has lost no process.
const maxTries = 3

// try runs a candidate. That it fails is what is found about it, unless the last of its runs has
// lost a process: then it cannot be judged.
func (r *Runner) try(ctx context.Context, c *candidate, seed uint64) (found record.Candidate, err error) {
	began := time.Now()
	for tries := 1; ; tries++ {
		found = record.Candidate{Values: settings(c.chosen), FinalAccuracy: record.Float(math.NaN())}
		again, failure := r.judge(ctx, c, seed, &found)
		found.Wall = time.Since(began).Seconds()
		switch {
		case again > 0 && tries < maxTries && (failure != nil || found.Outcome == record.Degraded):
		case again > 0 && failure != nil:
			return found, fmt.Errorf("nothing is chosen, because each of %d runs that try %s has lost a process; the "+
				"last: %w", tries, found.Values, failure)
		case failure != nil:
			found.Failure = failure.Error()
			return found, nil
		default:
			return found, nil
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return found, context.Cause(ctx)
		}
	}
}

// judge runs a candidate on the validation samples. For again see Outcome.
func (r *Runner) judge(ctx context.Context, c *candidate, seed uint64, found *record.Candidate) (again time.Duration,
	err error) {
	task, err := c.Task(r.shelf, seed)
	if err != nil {
		return 0, err
	}
	s, err := c.Stage(task.OnValidation(), r.Strict, r.threads())
	if err != nil {
		return 0, err
	}
	s.observe(record.Config{OnEvaluation: func(e record.Evaluation) {
		found.Duration = max(found.Duration, e.Time)
		found.FinalAccuracy = e.Accuracy
	}})
	out, err := r.Venue.Play(ctx, s)
	if err != nil {
		return out.Again, err
	}
	data, err := s.Collector.Close(s.result.Last)
	if err != nil {
		return 0, err
	}
	told := record.Run{Clock: string(r.Venue.Traits().Clock), Steps: data.Steps}
	judge(&told, s, out, &data, nil)
	found.Outcome, found.Incidents = told.Outcome, told.Incidents
	if s.result.Reached {
		at := s.result.TimeToTarget.Seconds()
		found.Reached, found.TimeToTarget = true, &at
	}
	return out.Again, nil
}
