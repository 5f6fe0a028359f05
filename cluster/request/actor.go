package request

import (
	"fmt"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/plan"
)

// ActorSection returns the section of a plan that the settings of an actor of a kind stand for. An
// error names their line.
func ActorSection(name, kind, text string) (*plan.Node, error) {
	section := plan.NewMap()
	if strings.TrimSpace(text) != "" {
		var err error
		if section, err = plan.Parse("settings of actor "+name, []byte(text)); err != nil {
			return nil, err
		}
	}
	if word, ok := section.Get("kind"); ok {
		return nil, plan.Errorf(word, "the kind is given beside the settings, not among them")
	}
	section.Fields = append(section.Fields, plan.Field{Key: "kind", Value: plan.NewText(kind)})
	return section, nil
}

// Limits of actors outside of runs.
const (
	// MaxRestarts bounds how often an actor is restarted.
	MaxRestarts = 1000
	// MaxName is the length of the longest name of an actor, in bytes.
	MaxName = 128
)

// CheckActor says what is wrong with the specification of an actor: its name, the cores that it
// reserves, and how often it may be restarted within a time; 0 stands for its whole life.
func CheckActor(name string, cores, restarts int, within time.Duration) error {
	switch {
	case !goodName(name):
		return fmt.Errorf("%.150q is no name of an actor; accepted are 1 to %d printable ASCII characters without "+
			"spaces", name, MaxName)
	case cores < 0:
		return fmt.Errorf("actor %s: %d cores; accepted are 0 and more", name, cores)
	case restarts < 0 || restarts > MaxRestarts:
		return fmt.Errorf("actor %s: %d restarts; accepted are 0 to %d", name, restarts, MaxRestarts)
	case within != 0 && within < time.Second:
		return fmt.Errorf("actor %s: restarts within %v; accepted are 1 s and more, and 0 for the whole life", name,
			within)
	}
	return nil
}

func goodName(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}
