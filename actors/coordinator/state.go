package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
)

var (
	_ = state.Register[tick]("coordinator.tick")
	_ = state.Register[bound]("coordinator.bound")
	_ = state.Register[verdictIn]("coordinator.verdictIn")
	_ = state.Register[completed]("coordinator.completed")
	_ = state.Register[TopologyChange]("coordinator.TopologyChange")
)

// State declares nothing: a tick has no fields.
func (*tick) State(*state.State) {}

// State declares nothing: a bound has no fields.
func (*bound) State(*state.State) {}

// State declares nothing: the coordinator holds the completion itself.
func (*completed) State(*state.State) {}

// State declares the round of the verdict.
func (v *verdictIn) State(s *state.State) { state.Int(s, "round", &v.round) }

// State declares the time of the change, and the new topology.
func (c *TopologyChange) State(s *state.State) {
	state.Int(s, "at", &c.At)
	state.Int(s, "topology", &c.Topology)
}

// State declares the members, the counts of steps, the unsettled evaluations, and the result so far.
func (c *coordinator) State(s *state.State) {
	s.Part("views", &c.views)
	state.Int(s, "samples", &c.samples)
	state.Int(s, "total", &c.total)
	state.Int(s, "since", &c.since)
	state.Ints(s, "steps", &c.steps)
	s.Bool("train", &c.train)
	state.Float(s, "next", &c.next)
	s.Bool("ending", &c.ending)
	s.Bool("halted", &c.halted)
	state.Int(s, "last", &c.last)
	state.Int(s, "ticks", &c.ticks)
	state.Int(s, "previous", &c.previous)
	state.Int(s, "asked", &c.asked)
	state.Int(s, "missing", &c.missing)
	state.Ints(s, "latest", &c.latest)
	judgements := c.declareJudgements(s)
	list := func(s *state.State, r **round) {
		if *r == nil {
			*r = &round{}
		}
		(*r).declare(s, judgements)
	}
	state.List(s, "rounds", &c.rounds, list)
	state.Optional(s, "before", &c.before, func(s *state.State, r *round) { r.declare(s, judgements) })
	state.Optional(s, "completion", &c.job, c.declareCompletion)
	s.Part("result", c.run.Result)
}

// State declares the members.
func (v *views) State(s *state.State) {
	state.Int(s, "number", &v.number)
	state.Bools(s, "gone", &v.gone)
	state.Bools(s, "leaving", &v.leaving)
	state.Ints(s, "first", &v.first)
	state.Bools(s, "fresh", &v.fresh)
	state.Int(s, "topology", &v.topology)
	state.Int(s, "there", &v.there)
	state.Ints(s, "order", &v.order)
}

// declareJudgements declares all judgements and returns them, in the same order for saving and
// restoring. Looks share judgements, so a look is saved with the position of its judgement.
func (c *coordinator) declareJudgements(s *state.State) []*judgement {
	type entry struct {
		judgement *judgement
		hash      uint64
		newest    bool // c.judged holds this judgement
	}
	var all []entry
	if !s.Restoring() {
		for _, hash := range slices.Sorted(maps.Keys(c.judged)) {
			all = append(all, entry{c.judged[hash], hash, true})
		}
		for _, r := range c.unsettled() {
			for _, l := range r.looks {
				known := func(e entry) bool { return e.judgement == l.judgement }
				if l.judgement != nil && !slices.ContainsFunc(all, known) {
					all = append(all, entry{judgement: l.judgement})
				}
			}
		}
	}
	state.List(s, "judgements", &all, func(s *state.State, e *entry) {
		if e.judgement == nil {
			e.judgement = &judgement{}
		}
		state.Int(s, "hash", &e.hash)
		s.Bool("newest", &e.newest)
		state.Int(s, "round", &e.judgement.round)
		s.Group("verdict", func(s *state.State) { declareVerdict(s, &e.judgement.verdict) })
	})
	list := make([]*judgement, len(all))
	for i, e := range all {
		if list[i] = e.judgement; s.Restoring() && e.newest {
			c.judged[e.hash] = e.judgement
		}
	}
	return list
}

// unsettled returns the last settled round, if there is one, and all unsettled rounds.
func (c *coordinator) unsettled() []*round {
	if c.before == nil {
		return c.rounds
	}
	return append([]*round{c.before}, c.rounds...)
}

func declareVerdict(s *state.State, v *train.Verdict) {
	state.Float(s, "accuracy", &v.Accuracy)
	state.Float(s, "loss", &v.Loss)
	state.Int(s, "samples", &v.Samples)
	state.Float(s, "below", &v.Below)
}

func declareScore(s *state.State, name string, v *actors.Score) {
	s.Group(name, func(s *state.State) {
		state.Float(s, "accuracy", &v.Accuracy)
		state.Float(s, "loss", &v.Loss)
		state.Int(s, "samples", &v.Samples)
	})
}

func (r *round) declare(s *state.State, judgements []*judgement) {
	state.Int(s, "number", &r.number)
	state.Int(s, "at", &r.at)
	state.Int(s, "lag", &r.lag)
	state.Float(s, "epoch", &r.epoch)
	state.Int(s, "step", &r.step)
	state.Int(s, "asked", &r.asked)
	state.Int(s, "open", &r.open)
	s.Vector("average", &r.average)
	s.Group("verdict", func(s *state.State) { declareVerdict(s, &r.verdict) })
	state.Float(s, "distance", &r.distance)
	s.Bool("same", &r.same)
	s.Group("found", func(s *state.State) {
		state.Int(s, "models", &r.found.Models)
		declareScore(s, "average-model", &r.found.AverageModel)
		declareScore(s, "mean", &r.found.Mean)
		declareScore(s, "all", &r.found.All)
		declareScore(s, "any", &r.found.Any)
	})
	state.List(s, "looks", &r.looks, func(s *state.State, l **look) {
		if *l == nil {
			*l = &look{round: r}
		}
		(*l).declare(s, judgements)
	})
}

func (l *look) declare(s *state.State, judgements []*judgement) {
	state.Int(s, "node", &l.node)
	state.Int(s, "step", &l.step)
	s.Tensor("params", &l.params)
	s.Tensors("voters", &l.voters)
	s.Bool("void", &l.void)
	place := slices.Index(judgements, l.judgement)
	if state.Int(s, "judgement", &place); s.Restoring() && place >= 0 && place < len(judgements) {
		l.judgement = judgements[place]
	}
}

// declareCompletion declares the completion under way. It names each verdict by its position among
// the verdicts of the unsettled rounds.
func (c *coordinator) declareCompletion(s *state.State, j *completion) {
	var verdicts []*train.Verdict
	var rounds []*round
	for _, r := range c.unsettled() {
		verdicts, rounds = append(verdicts, &r.verdict), append(rounds, r)
		for _, l := range r.looks {
			if l.judgement != nil {
				verdicts, rounds = append(verdicts, &l.judgement.verdict), append(rounds, r)
			}
		}
	}
	number := uint64(0)
	if j.round != nil {
		number = j.round.number
	}
	if state.Int(s, "round", &number); s.Restoring() {
		j.round = c.round(number)
	}
	state.List(s, "parts", &j.parts, func(s *state.State, p *part) {
		place := slices.Index(verdicts, p.verdict)
		if state.Int(s, "verdict", &place); s.Restoring() && place >= 0 && place < len(verdicts) {
			p.verdict, p.of = verdicts[place], rounds[place]
		}
		state.Float(s, "below", &p.below)
		s.Group("found", func(s *state.State) { declareVerdict(s, &p.found) })
	})
}

// State declares the result so far.
func (r *Result) State(s *state.State) {
	s.Bool("reached", &r.Reached)
	state.Int(s, "time-to-target", &r.TimeToTarget)
	state.Float(s, "epochs-to-target", &r.EpochsToTarget)
	state.Table(s, "crossings", &r.Crossings, state.TextKey, func(s *state.State, at *time.Duration) {
		state.Int(s, "at", at)
	})
	state.Int(s, "last", &r.Last)
	state.Int(s, "end", &r.End)
	state.Int(s, "changed", &r.Changed)
	state.Int(s, "changed-in", &r.ChangedIn)
	state.Int(s, "moved", &r.Moved)
	state.Int(s, "evaluations", &r.Evaluations)
	state.Int(s, "computed", &r.Computed)
	state.List(s, "incidents", &r.Incidents, func(s *state.State, i *Incident) {
		state.Int(s, "at", &i.At)
		state.Int(s, "node", &i.Node)
		state.Text(s, "text", &i.What)
		s.Bool("late", &i.Late)
	})
}
