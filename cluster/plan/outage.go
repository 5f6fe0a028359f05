package plan

import (
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Outage is a time during which a link delivers nothing: {from: 30s, for: 5s}, or, with a kind,
// many of them at random: {kind: gilbert-elliott, up: 30s, down: 5s}.
type Outage struct {
	From unit.Duration `plan:"from,required" doc:"when it begins, from the start of the run"`
	For  unit.Duration `plan:"for,required" range:">0s" doc:"how long it lasts, more than 0s"`
	// Random, unless nil, are many outages, in the place of the one that From and For say.
	Random *link.Intermittent
}

// fixedOutage is the form of one outage, randomOutages the form of many.
type (
	fixedOutage   Outage
	randomOutages struct {
		Kind string `plan:"kind,required" words:"gilbert-elliott" doc:"many outages at random"`
		link.Intermittent
	}
)

// UnmarshalPlan reads one of the forms.
func (o *Outage) UnmarshalPlan(n *syntax.Node) error {
	if _, random := n.Get("kind"); !random {
		return settings.Decode(n, (*fixedOutage)(o))
	}
	var many randomOutages
	if err := settings.Decode(n, &many); err != nil {
		return err
	}
	*o = Outage{Random: &many.Intermittent}
	return settings.AtField(n, many.Validate())
}

// MarshalPlan writes the form that it has.
func (o Outage) MarshalPlan() (*syntax.Node, error) {
	if o.Random == nil {
		return settings.Encode(fixedOutage(o))
	}
	return settings.Encode(randomOutages{"gilbert-elliott", *o.Random})
}

// Loss makes a link lose messages, each for itself with a probability, or in bursts.
type Loss link.Loss

// UnmarshalPlan reads a loss; the keys that are absent get their defaults.
func (l *Loss) UnmarshalPlan(n *syntax.Node) error {
	loss := (*link.Loss)(l)
	loss.SetDefaults()
	if err := settings.Decode(n, loss); err != nil {
		return err
	}
	if _, even := n.Get("probability"); !even && l.Bursts == nil {
		return syntax.Errorf(n, "missing: probability, or bursts")
	}
	return settings.AtField(n, loss.Validate())
}
