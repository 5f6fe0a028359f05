package experiment

import (
	"cmp"
	"context"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/goodput"
)

// Undisturbed returns the point without what hurts its runs, see [faults.Undisturbed], for one run
// with a seed that ends at an instant and at no target. A nil catalog stands for
// catalog.Default().
func (p *Point) Undisturbed(c *catalog.Catalog, seed uint64, end time.Duration) (*Point, error) {
	if c == nil {
		c = catalog.Default()
	}
	spec := *p.Spec
	spec.Plan = faults.Undisturbed(p.Spec.Plan)
	spec.Plan.Stop = plan.Stop{Time: unit.Duration(end)}
	spec.Plan.Evaluate.Target, spec.Plan.Evaluate.Early = nil, false
	calm := Point{Point: p.Point, Spec: &spec}
	text, err := calm.Text(seed)
	if err != nil {
		return nil, err
	}
	if calm.Root, err = syntax.Parse(spec.Plan.Name, []byte(text)); err != nil {
		return nil, err
	}
	calm.Spec, err = read(c, calm.Root, spec.Plan.AnyRole)
	return &calm, err
}

// count has a tally observe the run of a stage before the collector does.
func (s *Stage) count() {
	s.tally = faults.NewTally(s.once.To, s.Deployment, s.holders)
	s.once.To, s.recorders = s.tally, append(s.recorders, s.tally)
}

// disturbed says in the record of a run what faults it had, and its goodput: it makes the
// undisturbed run, in virtual time and without looking at models. There is no goodput where that
// run is impossible: nodes are as fast as the machine, or training diverges. The error is that of
// ctx.
func (r *Runner) disturbed(ctx context.Context, next run, s *Stage, out Outcome, row *record.Run) error {
	if s.tally == nil {
		return nil
	}
	p := next.point
	row.Faults = faults.List(p.Scheduled(next.seed), len(p.Spec.Plan.Schedule))
	end := cmp.Or(out.Halted, out.End)
	g := &goodput.Goodput{}
	g.Counted, g.Lost = s.tally.Before(end)
	r.mu.Lock() // writing a plan out moves parts of it, which its other runs share
	calm, err := p.Undisturbed(r.Catalog, next.seed, end)
	r.mu.Unlock()
	if err == nil {
		calm.blind, calm.counts = true, p.counts
		var twin *Stage
		if twin, err = calm.stageFor(r.shelf, next.seed, false, r.threads()); err == nil {
			twin.observe(record.Config{})
			twin.count()
			twin.tally.Until(end)
			if out, err = (Virtual{}).Play(ctx, twin); err == nil {
				g.Undisturbed, _ = twin.tally.Before(end)
			}
		}
	}
	if g.Undisturbed > 0 {
		g.Share = float64(g.Counted) / float64(g.Undisturbed)
		row.Goodput = g
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
