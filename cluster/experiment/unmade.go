package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/datasets/partition"
)

// What the seed draws (the hold-out, the split, topologies) can make a run impossible, while
// those with other seeds are possible. Such a run is recorded as failed, with the cause, and
// the others go on. A point none of whose seeds is possible is refused before anything runs.

// setupError says why a run cannot be set up with its seed.
type setupError struct{ error }

func (e setupError) Unwrap() error { return e.error }

// setup makes the stage of a run. An error that may depend on the seed is a setupError; one of a
// file is not.
func (r *Runner) setup(next run) (*Stage, error) {
	s, err := next.point.stageFor(r.shelf, next.seed, r.Strict, r.threads())
	if file := (*fs.PathError)(nil); err != nil && !errors.As(err, &file) {
		return nil, setupError{err}
	}
	return s, err
}

// rehearse places the first repeat of every point that can be set up, so that what cannot run is
// told at once.
func (r *Runner) rehearse(ctx context.Context) error {
	if r.Tried {
		return nil
	}
	for i := range r.points {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pt := &r.points[i]
		s, err := firstOf(ctx, pt, func(seed uint64) (*Stage, error) { return pt.stageFor(r.shelf, seed, r.Strict, 1) })
		if err == nil {
			err = r.Venue.Rehearse(ctx, s)
		}
		if err != nil {
			return refusal.Input(pt.About(err))
		}
		r.rounded = addNew(r.rounded, s.Point.rounded(float64(s.Point.epochSamples(s.Task.Train.Len()))))
	}
	return nil
}

// maxFirst is how many seeds of a point are tried before it is refused.
const maxFirst = 64

// firstOf sets up the first repeat of a point that can be set up. If none can, it returns the first
// repeat's error.
func firstOf[T any](ctx context.Context, p *Point, setup func(seed uint64) (T, error)) (made T, err error) {
	for repeat := range min(p.Spec.Plan.Repeats, maxFirst) {
		made, e := setup(p.Spec.Plan.Seed + uint64(repeat))
		if e == nil {
			return made, nil
		}
		if err = cmp.Or(err, e); ctx.Err() != nil {
			return made, context.Cause(ctx)
		}
	}
	return made, err
}

// saveUnmade records a run that cannot be set up as failed.
func (r *Runner) saveUnmade(next run, cause error) error {
	traits := r.Venue.Traits()
	row := record.Run{
		Number: next.number, Point: settings(next.point.Labels), Seed: next.seed, Outcome: record.Failed,
		PlanDigest: r.digests[settings(next.point.Labels).Key()],
		Of:         record.Of(next.point.Spec.Plan.Evaluate.Of), Clock: string(traits.Clock), Insecure: traits.Insecure,
		NodeTimeout:   traits.NodeTimeout.Seconds(),
		FinalAccuracy: record.Float(math.NaN()), BestAccuracy: record.Float(math.NaN()),
		Incidents: []record.Incident{{Node: actors.Coordinator, What: firstLine(cause.Error()), Harm: record.ToAll}},
	}
	row.Counted = r.Count
	if accuracy, _ := Target(next.point.Spec.Plan); accuracy > 0 {
		row.Target = &accuracy
	}
	nothing := record.Data{Curve: []record.Evaluation{}, Links: []record.Link{}, Updates: []record.Update{}}
	if err := r.folder.SaveRun(next.number, row, nothing, record.Models{}); err != nil {
		return err
	}
	r.finished(next, &row, next.failure(cause))
	return nil
}

// failure is the error of a run, which it names.
func (n run) failure(err error) error {
	at := describe(n.point.Labels)
	if at != "" {
		at += ", "
	}
	return fmt.Errorf("run %d (%sseed %d): %w", n.number, at, n.seed, err)
}

// blameHoldout adds to the error of a split that a seed's hold-out is its cause, if the split
// of all samples is possible.
func (p *Point) blameHoldout(err error, sets *shelf.Shelf, workers []string, seed uint64) error {
	d := &p.Spec.Data
	var by []string
	if d.Test > 0 {
		by = append(by, "data.test: "+percent(d.Test))
	}
	if d.Validation > 0 {
		by = append(by, "data.validation: "+percent(d.Validation))
	}
	source, failure := sets.Source(d)
	if len(by) == 0 || failure != nil {
		return err
	}
	rows, failure := shelf.TrainingRows(d, source.Pool.Len(), seed)
	if failure != nil {
		return err
	}
	var whole [][]int32
	if clients := p.registered(); clients > 0 {
		_, failure = partition.Over(d.Split, source.Pool, clients, seed)
	} else {
		whole, failure = d.Split.Assign(source.Pool, workers, seed)
	}
	if failure != nil {
		return err
	}
	holdout := fmt.Sprintf("seed %d's hold-out (%s)", seed, strings.Join(by, ", "))
	var lost []string
	all := "it"
	switch d.Split.(type) {
	case partition.File, partition.Column: // others draw the workers' samples from those that are left
		kept := func(row int32) bool { _, ok := slices.BinarySearch(rows, row); return ok }
		for w, own := range whole {
			if !slices.ContainsFunc(own, kept) {
				lost = append(lost, fmt.Sprintf("%s has %s", workers[w], samples(len(own))))
				if len(own) != 1 || len(lost) > 1 {
					all = "all of them"
				}
			}
		}
	}
	if len(lost) == 0 {
		return fmt.Errorf("%w; %s leaves %d of %s", err, holdout, len(rows), samples(source.Pool.Len()))
	}
	return fmt.Errorf("%s, and %s took %s: %w", strings.Join(lost, ", "), holdout, all, err)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + "%" }

func samples(n int) string {
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}
