package catalog

import (
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn/optim"
)

// warnPointless adds notes about settings that are accepted, but make a run pointless.
func (s *Spec) warnPointless() {
	if r, rated := s.Method.(optim.Rated); rated && alwaysNegligible(r.Schedule()) {
		at := s.Plan.Train
		if at != nil {
			at = at.At("optimizer").At("rate")
		}
		s.warn(at, "the rate is %v: no step changes the model", r.Schedule().Rate(0))
	}
	s.warnNegligibleRates(s.ArchitectureSection)
	stop, every := &s.Plan.Stop, &s.Plan.Evaluate.Every
	at := stop.Source
	if evaluate := s.Plan.Evaluate.Source; evaluate != nil {
		if given, is := evaluate.Get("every"); is {
			at = given
		}
	}
	const seldom = "models are evaluated every %s, and the run ends after %s: none is between its beginning and its end"
	switch {
	case stop.Epochs > 0 && every.Epochs > stop.Epochs:
		s.warn(at, seldom, every, strconv.FormatFloat(stop.Epochs, 'g', -1, 64)+" epochs")
	case stop.Steps > 0 && every.Steps > stop.Steps:
		s.warn(at, seldom, every, strconv.Itoa(stop.Steps)+" steps")
	case stop.Rounds > 0 && every.Rounds > stop.Rounds:
		s.warn(at, seldom, every, strconv.Itoa(stop.Rounds)+" rounds")
	case stop.Time > 0 && every.Time > stop.Time:
		s.warn(at, seldom, every, stop.Time)
	}
	const perfect = "a target of 100 %% is met by a model that makes no mistake at all"
	if t := stop.Target; t != nil && *t >= 1 {
		s.warn(stop.Source.At("target"), perfect)
	}
	if e := &s.Plan.Evaluate; e.Target != nil && *e.Target >= 1 {
		s.warn(e.Source.At("target"), perfect)
	}
}

// alwaysNegligible reports whether the rate of a schedule changes no model at any step.
func alwaysNegligible(schedule optim.Schedule) bool {
	const late = 1 << 20 // a step after the warm-up of any schedule
	return !slices.ContainsFunc(
		[]int{0, 1, late},
		func(step int) bool { return schedule.Rate(step) > optim.Negligible },
	)
}

// warnNegligibleRates adds notes about rates in an architecture's section that change no model: the
// learning rates of server and outer optimizers. A rate with a unit belongs to a link.
func (s *Spec) warnNegligibleRates(n *syntax.Node) {
	for _, f := range n.Fields {
		if v, err := strconv.ParseFloat(f.Value.Text, 64); f.Key == "rate" && err == nil && v <= optim.Negligible {
			s.warn(f.Value, "the rate is %v: no update changes the model", v)
		}
		s.warnNegligibleRates(f.Value)
	}
}
