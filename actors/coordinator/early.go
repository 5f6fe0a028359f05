package coordinator

import (
	"fmt"
	"math"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
)

// Where Run.EvaluateBelow is given, a verdict may be of a part of the test set: of a model that is
// surely below the target. Before a round is settled, what says more than that is completed from
// the snapshots, which are kept as long as the round before:
//
//   - the models of a round of which some have arrived at the target, until it is sure whether
//     their mean has;
//   - the figure before its arrival, in the round before, because the arrival is interpolated
//     between the two;
//   - everything in the round that the run ends with.

// completion is a job that judges models again.
type completion struct {
	round *round // that waits for it
	parts []part
}

// part is a model that is judged again.
type part struct {
	of      *round
	params  []float32
	below   float64        // 0: by the whole test set
	verdict *train.Verdict // where it goes
	found   train.Verdict
}

// judge judges a model as far as it is wanted.
func (c *coordinator) judge(params []float32) train.Verdict {
	if target := c.run.Policy.Target; c.run.EvaluateBelow != nil && target > 0 {
		return c.run.EvaluateBelow(params, target)
	}
	return c.run.Evaluate(params)
}

// judgeLook judges a node's model, or in full those that vote.
func (c *coordinator) judgeLook(l *look) train.Verdict {
	if len(l.voters) == 0 || c.run.Vote == nil {
		return c.judge(l.params.Data)
	}
	models := [][]float32{l.params.Data}
	for _, voter := range l.voters {
		models = append(models, voter.Data)
	}
	return c.run.Vote(models)
}

// estimate says which figures of several models are estimates, because they depend on a model that
// was judged by a part of the test set.
func (r *round) estimate(models []*look, target float64) {
	f, fewest := &r.found, 0
	for _, l := range models {
		if n := l.score().Samples; n > 0 && (fewest == 0 || n < fewest) {
			fewest = n
		}
	}
	if fewest == 0 {
		return
	}
	f.Mean.Samples = fewest // its loss is NaN, as theirs are
	f.All = actors.Score{Accuracy: f.All.Accuracy, Loss: math.NaN(), Samples: fewest}
	if f.Any.Samples > 0 || f.Any.Accuracy < target { // else a model reached it that is above all others
		f.Any = actors.Score{Accuracy: f.Any.Accuracy, Loss: math.NaN(), Samples: fewest}
	}
}

// arrives reports whether a figure of a round is the first to have reached the target.
func (c *coordinator) arrives(of actors.Of, r *round) bool {
	target, score := c.run.Policy.Target, r.found.Score(of)
	_, before := c.run.Result.Crossings[of]
	return !before && target > 0 && score.Samples == 0 && score.Accuracy >= target
}

// complete has judged again what a round needs in full before it is settled, and reports whether
// there is something.
func (c *coordinator) complete(r *round) bool {
	if c.run.EvaluateBelow == nil {
		return false
	}
	job := &completion{round: r}
	models, ends := r.models(), c.ending && r.number == c.last
	if len(models) > 0 {
		r.figures(models, c.run.Policy.Target)
		c.decideMean(job, models)
		ends = ends || !c.run.Policy.GoOn && c.arrives(c.run.Policy.Of, r)
	}
	switch {
	case len(job.parts) > 0:
	case len(models) > 0:
		c.completeArrivals(job, r)
		if ends {
			job.models(r)
			job.average(r)
		}
	case ends && c.before != nil: // nobody is left: the run ends with the models before
		job.models(c.before)
		job.average(c.before)
	}
	if len(job.parts) == 0 {
		return false
	}
	if ends {
		c.halt()
	}
	r.open++
	c.job = job
	c.env.Compute(actors.Job{Lag: 1, Do: func() any {
		for i := range job.parts {
			p := &job.parts[i]
			if p.below > 0 {
				p.found = c.run.EvaluateBelow(p.params, p.below)
			} else {
				p.found = c.run.Evaluate(p.params)
			}
		}
		return completed{}
	}})
	return true
}

// decideMean judges models further, of which some have arrived at the target and others surely have
// not, if the mean of all may have. It surely has not if each of the others is surely below what
// the whole verdicts leave them in the mean.
func (c *coordinator) decideMean(job *completion, models []*look) {
	if _, has := c.run.Result.Crossings[actors.Mean]; has {
		return
	}
	left, partial := 0.0, 0
	for _, l := range models {
		left += c.run.Policy.Target
		if v := l.judgement.verdict; v.Samples > 0 {
			partial++
		} else {
			left -= v.Accuracy
		}
	}
	if partial == 0 || partial == len(models) {
		return
	}
	const rounding = 1e-9 // by which the mean, summed up otherwise, may be larger
	below := left/float64(partial) - rounding
	for _, l := range models {
		if v := l.judgement.verdict; v.Samples > 0 && v.Below > below {
			job.add(l.round, l.params.Data, max(below, 0), &l.judgement.verdict)
		}
	}
}

// completeArrivals completes, in the round before, the figures that arrive with a round.
func (c *coordinator) completeArrivals(job *completion, r *round) {
	for _, of := range figures {
		if c.before == nil || !c.arrives(of, r) || c.before.found.Score(of).Samples == 0 {
			continue
		}
		if of == actors.AverageModel && c.before.found.Models > 1 && !c.before.same {
			job.average(c.before)
		} else {
			job.models(c.before)
		}
	}
}

// add has a model judged again, unless it is already.
func (j *completion) add(of *round, params []float32, below float64, verdict *train.Verdict) {
	known := func(p part) bool { return p.verdict == verdict }
	if verdict.Samples > 0 && !slices.ContainsFunc(j.parts, known) {
		j.parts = append(j.parts, part{of: of, params: params, below: below, verdict: verdict})
	}
}

// has reports whether a verdict that was completed is one of the round's. A model that is the same
// in several rounds has one verdict.
func (r *round) has(p part) bool {
	return p.verdict == &r.verdict ||
		slices.ContainsFunc(r.models(), func(l *look) bool { return p.verdict == &l.judgement.verdict })
}

// models completes the verdicts on all models of a round.
func (j *completion) models(r *round) {
	for _, l := range r.models() {
		j.add(r, l.params.Data, 0, &l.judgement.verdict)
	}
}

// average completes the verdict on the average model of a round.
func (j *completion) average(r *round) { j.add(r, r.average, 0, &r.verdict) }

// completed stores the verdicts of the completion under way, and settles the rounds that awaited it.
func (c *coordinator) completed() {
	j := c.job
	c.job = nil
	for _, p := range j.parts {
		if was := p.verdict.Below; p.found.Samples == 0 && p.found.Accuracy >= was {
			c.incident(Incident{Node: c.env.Node(), What: fmt.Sprintf("evaluation %d: an accuracy taken to be surely "+
				"below %v is %v: the target may have been reached earlier than it says here", p.of.number, was,
				p.found.Accuracy)})
		}
		*p.verdict = p.found
	}
	if b := c.before; b != nil && slices.ContainsFunc(j.parts, b.has) {
		c.recordModels(b, b.models())
		c.recordFigures(b, b.models())
	}
	j.round.open--
	c.settleAll()
}
