package experiment

import (
	"math"
	"strconv"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// rounded returns a note on each interval in epochs or samples that rounding to whole steps changes
// by more than catalog.Rounded, with its rounded value. epoch is the number of samples of an epoch;
// 0 if unknown, which leaves out intervals in epochs. [Point.resolve] has already rounded the
// architecture's intervals to steps.
func (p *Point) rounded(epoch float64) (all []string) {
	add := func(n *syntax.Node, format string, a ...any) {
		all = addNew(all, []string{syntax.Errorf(n, format, a...).Error()})
	}
	batch := float64(p.Spec.Batch)
	round := train.Computing(p.Spec.Architecture, p.crew(epoch)) * batch
	for _, c := range p.Spec.Counted {
		if c.Wanted > 0 && math.Abs(c.Value-c.Wanted) > catalog.Rounded*c.Wanted {
			add(c.At, "%s is %.3g steps of %.4g samples; it becomes %s (%.4g samples)", c.At.Text, c.Wanted, round,
				steps(c.Value), c.Value*round)
		}
	}
	if epoch == 0 {
		return all
	}
	bound := p.Spec.Plan.Stop.Epochs * epoch
	if at, given := p.Root.Lookup("stop.epochs"); given && bound > 0 {
		if end := math.Ceil(bound/batch-1e-9) * batch; end-bound > catalog.Rounded*bound {
			add(at, "%s epochs are %.4g samples; a run ends with a whole step, after %.4g samples (%.3g epochs)",
				at.Text, bound, end, end/epoch)
		}
	}
	every := p.Spec.Plan.Evaluate.Every.Epochs * epoch
	if at, given := p.Root.Lookup("evaluate.every"); given && every > 0 && batch-every > catalog.Rounded*every {
		add(at, "%s are %.4g samples; models are evaluated after whole steps, every %.4g samples (%.3g epochs)",
			at.Text, every, batch, batch/epoch)
	}
	return all
}

// steps formats a number of steps.
func steps(n float64) string {
	if n == 1 {
		return "1 step"
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " steps"
}
