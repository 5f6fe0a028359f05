package dpsgd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// kept remembers the actors that it makes.
type kept struct {
	train.Architecture
	actors []actor.Actor
}

func (k *kept) Kind(task *train.Task, place train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		a, err := k.Architecture.Kind(task, place)(env)
		k.actors[place.Node] = a
		return a, err
	}
}

// The node in the middle of a path of three goes, after which nobody hears of the other end.
func TestStandstillNamesWhoWaitsForWhomBecauseOfTheLead(t *testing.T) {
	k := &kept{Architecture: dpsgd.Architecture{Lead: 2}, actors: make([]actor.Actor, 3)}
	s := simtest.Stage{Task: simtest.NewTask(3, 20, 0.1), Graph: actors.Graph{{1}, {0, 2}, {1}}, Kind: k,
		Step:     []time.Duration{simtest.StepTime, simtest.StepTime, simtest.StepTime},
		Schedule: []world.NodeChange{{At: 1050 * time.Millisecond, Node: 1, Do: world.Leave}}}
	if _, err := s.Try(t); !errors.Is(err, world.ErrStandstill) {
		t.Fatalf("the run ends with %v, want a standstill", err)
	}
	k.actors[1] = nil
	d := &world.Deployment{Nodes: []world.Node{{Name: "n0"}, {Name: "n1"}, {Name: "n2"}}}
	err := d.Standstill(0, world.Waits(k.actors), "")
	for _, want := range []string{"n0 waits for n2 because of lead: 2 (it has finished 12 steps and knows of 9 there)",
		"n2 waits for n0 because of lead: 2"} {
		if !errors.Is(err, world.ErrStandstill) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a standstill and %q", err, want)
		}
	}
}
