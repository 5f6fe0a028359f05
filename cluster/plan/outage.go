package plan

import (
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// GilbertElliott is the kind of outages that come at random.
const GilbertElliott = "gilbert-elliott"

// Bounds of the mean times of outages at random.
const (
	MinSojourn   = unit.Duration(1e6)           // of each of them
	MaxSojourn   = unit.Duration(8760 * 3600e9) // of each of them: a year
	MaxDownPerUp = 1000                         // how often the time up goes into the time down
)

// Outage is a time during which a link delivers nothing: {from: 30s, for: 5s}, or, with a kind,
// many of them at random: {kind: gilbert-elliott, up: 30s, down: 5s}.
type Outage struct {
	From unit.Duration `plan:"from"`
	For  unit.Duration `plan:"for"` // above 0
	// Kind is GilbertElliott, or empty for the one outage that From and For say.
	Kind string `plan:"kind,omitzero"`
	// Up and Down are the mean times that the link is up and down, one after the other,
	// exponentially distributed.
	Up   unit.Duration `plan:"up,omitzero"`
	Down unit.Duration `plan:"down,omitzero"`
}

// The forms of an outage.
type (
	fixedOutage struct {
		From unit.Duration `plan:"from,required" doc:"when it begins, from the start of the run"`
		For  unit.Duration `plan:"for,required" doc:"how long it lasts, more than 0s"`
	}
	randomOutages struct {
		Kind string        `plan:"kind,required" words:"gilbert-elliott" doc:"many outages at random"`
		Up   unit.Duration `plan:"up,required" doc:"mean time that the link is up in between, exponentially distributed, from 1ms to a year"`
		Down unit.Duration `plan:"down,required" doc:"mean time that an outage lasts, likewise, at most 1000 times as long"`
	}
)

// UnmarshalPlan reads one of the forms.
func (o *Outage) UnmarshalPlan(n *syntax.Node) error {
	if _, random := n.Get("kind"); !random {
		var one fixedOutage
		err := settings.Decode(n, &one)
		*o = Outage{From: one.From, For: one.For}
		return err
	}
	var many randomOutages
	err := settings.Decode(n, &many)
	if err == nil {
		err = many.check(n)
	}
	*o = Outage{Kind: many.Kind, Up: many.Up, Down: many.Down}
	return err
}

func (o *randomOutages) check(n *syntax.Node) error {
	for _, mean := range []struct {
		key  string
		time unit.Duration
	}{{"up", o.Up}, {"down", o.Down}} {
		if mean.time < MinSojourn || mean.time > MaxSojourn {
			return syntax.Errorf(n.At(mean.key), "a mean time %s of %v; accepted is %v to %v", mean.key, mean.time,
				MinSojourn, MaxSojourn)
		}
	}
	if o.Down/MaxDownPerUp > o.Up {
		return syntax.Errorf(n.At("down"),
			"down for %v in the mean, up for %v; accepted is to be down at most %d times as long as up",
			o.Down, o.Up, MaxDownPerUp)
	}
	return nil
}

// MarshalPlan writes the form that it has.
func (o Outage) MarshalPlan() (*syntax.Node, error) {
	if o.Kind == "" {
		return settings.Encode(fixedOutage{o.From, o.For})
	}
	return settings.Encode(randomOutages{o.Kind, o.Up, o.Down})
}

// Bursts are losses by the model of Gilbert and Elliott, judged at every transmission.
type Bursts struct {
	P unit.Fraction `plan:"p,required" doc:"probability to go from the good state to the bad one, more than 0%"`
	R unit.Fraction `plan:"r,required" doc:"probability to go back, more than 0%"`
	H unit.Fraction `plan:"h" doc:"probability of a transmission to arrive in the bad state"`
	K unit.Fraction `plan:"k" doc:"probability of a transmission to arrive in the good state"`
}

// UnmarshalPlan reads bursts; the keys that are absent get their defaults.
func (b *Bursts) UnmarshalPlan(n *syntax.Node) error {
	type plain Bursts
	b.SetDefaults()
	if err := settings.Decode(n, (*plain)(b)); err != nil {
		return err
	}
	switch {
	case b.P == 0:
		return syntax.Errorf(n.At("p"),
			"with 0%% the good state, once it is reached, is never left; give more, such as 1%%")
	case b.R == 0:
		return syntax.Errorf(n.At("r"),
			"with 0%% the bad state, once it is reached, is never left; give more, such as 25%%")
	}
	return nil
}

// SetDefaults makes the simple model of Gilbert: everything arrives in the good state, nothing in
// the bad one.
func (b *Bursts) SetDefaults() { *b = Bursts{K: 1} }
