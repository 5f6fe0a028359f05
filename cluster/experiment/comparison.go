package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn/optim"
)

// Notes tell what a plan means without seeming to: times that never come or are of another clock,
// units that differ between the points of its sweep, and a learning rate that favours some of them. A
// nil catalog stands for catalog.Default().
func (p *Plan) Notes(c *catalog.Catalog) ([]string, error) {
	points, err := p.Points(c)
	if err != nil {
		return nil, err
	}
	return notes(points), nil
}

func notes(points []Point) []string {
	all := comparison(points)
	var texts []string
	at := map[string][]string{} // labels of the points by note
	for i := range points {
		own := points[i].Spec.Notes
		for _, instants := range points[i].instants(0) {
			if note := points[i].Spec.Plan.Stop.Late(instants); note != "" {
				own = append(slices.Clip(own), note)
			}
		}
		texts = addNew(texts, own)
		for _, text := range addNew(nil, own) {
			at[text] = append(at[text], describe(points[i].Labels))
		}
	}
	for _, text := range texts {
		if len(at[text]) < len(points) {
			text = atPoints(text, at[text])
		}
		all = append(all, text)
	}
	return all
}

// addNew appends each text that all lacks.
func addNew(all, texts []string) []string {
	for _, text := range texts {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// comparison says what makes the points of a sweep unlike.
func comparison(points []Point) (all []string) {
	if len(points) < 2 {
		return nil
	}
	for _, s := range slices.Concat(countedSettings, countedByArchitectures) {
		if text := s.differs(points); text != "" {
			all = append(all, text)
		}
	}
	if text := oneRate(points); text != "" {
		all = append(all, text)
	}
	return all
}

// countedSetting is a setting whose unit depends on the architecture, the nodes or the batch.
type countedSetting struct {
	key  string
	what string
	unit func(p *Point) (of string, batches float64) // none where the point does not use it
	// instead names a unit that is equal at all points; empty if there is none.
	instead string
}

// countedByArchitectures lists the purposes of counting settings of architectures; see [field.Count].
var countedByArchitectures = []countedSetting{
	countsFor("interval", "the interval between exchanges", "epochs and samples, such as 0.1 epochs, are"),
	countsFor("lead", "the bound on how far nodes may be ahead", ""),
	countsFor("overlap", "what goes on during an exchange", ""),
	countsFor("moved", "the clock by which moved is looked at", ""),
	countsFor("significance", "the clock by which the threshold falls", ""),
	countsFor("staleness", "the staleness that is allowed for", ""),
	countsFor("schedule", "the schedule of the outer optimizer", ""),
}

// countsFor compares the units of the architectures' settings for one purpose.
func countsFor(purpose, what, instead string) countedSetting {
	return countedSetting{key: "architecture", what: what, instead: instead, unit: func(p *Point) (string, float64) {
		return architectureUnit(p, purpose)
	}}
}

// architectureUnit returns the unit of the settings of a point's architecture for a purpose. It skips
// defaults, steps of 1 and bounds of 0, which mean the same everywhere.
func architectureUnit(p *Point, purpose string) (of string, batches float64) {
	for _, c := range p.Spec.Counted {
		least := 0.0
		if purpose == "interval" && c.Unit == "steps" {
			least = 1
		}
		if c.For != purpose || !c.Given || c.Spans || c.Value <= least {
			continue
		}
		unit, size := p.unitOf(c)
		if of == "" {
			of, batches = unit, size
		} else if of != unit {
			of += " and " + unit
		}
	}
	return of, batches
}

// unitOf returns the unit of a setting of a point's architecture, and the number of batches processed
// in one unit: by all workers for an interval or a shared count, else by one worker. The number is 0
// if it depends on the samples; the unit is empty if it is unknown.
func (p *Point) unitOf(c catalog.Counted) (of string, batches float64) {
	crew := p.crew(0)
	all, round := train.Computing(p.Spec.Architecture, crew), 1.0
	for _, o := range p.Spec.Counted {
		if o.For == "interval" && o.Unit == "steps" && o.Value > 0 {
			round = o.Value
		}
	}
	rounds := "rounds"
	if round > 1 {
		rounds = fmt.Sprintf("rounds of %v steps", round)
	}
	switch {
	case c.For == "schedule": // of the outer optimizer
		return rounds, all * round
	case c.For == "interval" && c.Unit == "steps":
		return "steps of each worker", all
	case c.Unit == "steps":
		return "steps of a worker", 1
	case c.Unit == "rounds":
		return rounds + " of a worker", round
	case c.Unit == "rounds of all workers":
		return rounds + " of all workers", all * round
	case c.Unit == "rounds of a site":
		return c.Unit, all / float64(max(crew.Servers, 1))
	case c.Unit == "passes":
		return "passes through a client's own samples", 0
	case c.Unit == "updates":
		return "updates by the server", all * round
	}
	return "", 0
}

// resolve returns the point with the intervals of its architecture in steps, where an epoch has so
// many samples; 0 for a number that is not known yet.
func (p *Point) resolve(epoch float64) (*Point, error) {
	step := train.Computing(p.Spec.Architecture, p.crew(epoch)) * float64(p.Spec.Batch)
	s, err := p.Spec.Resolve(epoch, step)
	if err != nil || s == p.Spec {
		return p, err
	}
	one := *p
	one.Spec = s
	return &one, nil
}

var countedSettings = []countedSetting{
	{
		"train.optimizer.rate",
		"the schedule of the learning rate",
		scheduleUnit,
		"epochs and samples, such as every: 2 epochs, are",
	},
	{
		"stop.steps",
		"this bound",
		func(p *Point) (string, float64) { return stepUnit(p, p.Spec.Plan.Stop.Steps) },
		"stop: {epochs: …} is",
	},
	{
		"stop.rounds",
		"this bound",
		func(p *Point) (string, float64) { return roundUnit(p, p.Spec.Plan.Stop.Rounds) },
		"stop: {epochs: …} is",
	},
	{"evaluate.every", "this interval", func(p *Point) (string, float64) {
		every := p.Spec.Plan.Evaluate.Every
		if every.Rounds > 0 {
			return roundUnit(p, every.Rounds)
		}
		return stepUnit(p, every.Steps)
	}, "evaluate: {every: 0.1 epochs} is"},
}

// scheduleUnit is what the schedule of the optimizer's rate counts, if it counts steps.
func scheduleUnit(p *Point) (string, float64) {
	r, rated := p.Spec.Method.(optim.Rated)
	if !rated {
		return "", 0
	}
	switch r.Schedule().(type) {
	case optim.Constant, optim.Clocked:
		return "", 0
	}
	return p.paceUnit()
}

// paceUnit returns the unit that one optimizer step of a point counts, and its length in batches.
// If clients pass over partitions of unknown sizes, the unit gives the length in such passes, and
// batches is 0.
func (p *Point) paceUnit() (of string, batches float64) {
	pace, crew := p.pace(0), p.crew(0)
	crew.Pass = 1
	if passes := train.PaceOf(p.Spec.Architecture, crew).Batches; passes > pace.Batches {
		return fmt.Sprintf("%s (%.4g times a client's samples each)", pace.Of, passes), 0
	}
	return pace.Of, pace.Batches
}

// stepUnit is what a number of steps of the run counts: those of each peer, or with a server those of
// all workers.
func stepUnit(p *Point, steps int) (string, float64) {
	if steps == 0 {
		return "", 0
	}
	if slices.ContainsFunc(p.Spec.Roles, func(r train.Role) bool { return r.Trains && r.Holds }) {
		return "steps of each worker", float64(p.crew(0).Workers)
	}
	return "steps of all workers together", 1
}

// roundUnit returns the unit of a number of rounds, and its length in batches, as paceUnit does.
func roundUnit(p *Point, rounds int) (of string, batches float64) {
	if rounds == 0 {
		return "", 0
	}
	of, batches = p.paceUnit()
	return strings.Replace(of, p.pace(0).Of, "rounds", 1), batches
}

// differs says what the setting counts at which point, if that is not the same at all.
func (s *countedSetting) differs(points []Point) string {
	type use struct {
		text, first string
		points      int
	}
	var uses []use
	for i := range points {
		of, batches := s.unit(&points[i])
		if of == "" {
			continue
		}
		text := of
		if batches > 0 {
			text += fmt.Sprintf(" (%.4g samples each)", batches*float64(points[i].Spec.Batch))
		}
		at := slices.IndexFunc(uses, func(u use) bool { return u.text == text })
		if at < 0 {
			at, uses = len(uses), append(uses, use{text: text, first: named(points[i].Labels)})
		}
		uses[at].points++
	}
	if len(uses) < 2 {
		return ""
	}
	const most = 6
	var texts []string
	for _, u := range uses[:min(len(uses), most)] {
		at := u.first
		if u.points > 1 {
			at += fmt.Sprintf(" and %d others", u.points-1)
		}
		texts = append(texts, u.text+" with "+at)
	}
	if len(uses) > most {
		texts = append(texts, fmt.Sprintf("%d other counts", len(uses)-most))
	}
	instead := "no unit is the same for all"
	if s.instead != "" {
		instead = s.instead + " the same for all"
	}
	return s.at(&points[0], fmt.Sprintf("%s counts %s; %s", s.what, strings.Join(texts, ", "), instead))
}

// at places a note about the setting where the plan gives it.
func (s *countedSetting) at(p *Point, text string) string {
	n := p.Root
	for _, key := range strings.Split(s.key, ".") {
		n = n.At(key)
	}
	return syntax.Errorf(n, "%s", text).Error()
}

// named names a point by the labels of its values.
func named(labels []plan.Label) string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = l.Value
	}
	return strings.Join(texts, ", ")
}

// oneRate warns of architectures that are compared under one learning rate.
func oneRate(points []Point) string {
	if !severalArchitectures(points) {
		return ""
	}
	for _, a := range points[0].Spec.Plan.Tune.Axes {
		if chooses(a.Path) {
			return ""
		}
	}
	for _, l := range points[0].Labels {
		if chooses(l.Key) {
			return ""
		}
	}
	text := "one learning rate for all architectures favours some of them"
	for i := range points {
		a, is := points[i].Spec.Architecture.(train.Summing)
		if n := points[i].crew(0).Workers; is && a.Sums() && n > 1 {
			text += fmt.Sprintf(" (with scale: sum, %s adds what others average: steps up to %d times as long)",
				named(points[i].Labels), n)
			break
		}
	}
	return text + "; let each have its own with tune: {train.optimizer.rate: [0.05, 0.1, 0.2]} and " +
		"data: {validation: 10%}"
}

// severalArchitectures reports whether a sweep compares architectures.
func severalArchitectures(points []Point) bool {
	kind := func(p *Point) string {
		a := p.Spec.ArchitectureSection
		return a.At("kind").Text + " " + a.At("scale").Text
	}
	return slices.ContainsFunc(points, func(p Point) bool { return kind(&p) != kind(&points[0]) }) ||
		slices.ContainsFunc(points[0].Labels, func(l plan.Label) bool { return l.Key == "architecture" })
}

// chooses reports whether values of a key give the optimizer another rate.
func chooses(path string) bool {
	return path == "train" || path == "train.optimizer" || strings.HasPrefix(path, "train.optimizer.rate")
}

// pace is what the optimizer of a point counts, where an epoch has so many samples; 0 for a number
// that is not known yet.
func (p *Point) pace(epoch float64) train.Pace {
	return train.PaceOf(p.Spec.Architecture, p.crew(epoch))
}

// crew is what a pace depends on.
func (p *Point) crew(epoch float64) train.Crew {
	c := train.Crew{}
	for _, r := range p.Spec.Roles {
		switch {
		case r.Trains:
			c.Workers++
		case r.Holds:
			c.Servers++
		}
	}
	c.Clients = cmp.Or(p.registered(), c.Workers)
	c.Pass = epoch / float64(max(c.Clients, 1)*p.Spec.Batch)
	return c
}
