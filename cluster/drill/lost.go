package drill

import (
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/sim"
)

// pushOf is the push that an update is of.
func pushOf(e *world.Recorded) sim.Push {
	return sim.Push{Worker: e.Origin, Shard: e.Shard, Life: e.Life, Number: e.Push}
}

// lost are the instants at which pushes of a run were lost, in order: those that no model took in,
// and that were not still on their way when the run ended. Such a push is lost when its worker, or
// a server without replicas, is gone for the first time before a later push of the worker to the
// shard is taken in; if none of them is, the push was refused or lost on its link, and counts from
// when it was sent.
func lost(t *experiment.Trial) (at []time.Duration) {
	taken := map[sim.Push]time.Duration{}
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == actors.UpdateApplied && e.Push > 0 {
			taken[pushOf(e)] = e.At
		}
	}
	later := map[sim.Push]time.Duration{} // of any life and number: when the next one was taken in
	for _, p := range slices.Backward(t.Audit.Pushes) {
		of := sim.Push{Worker: p.Worker, Shard: p.Shard}
		until, is := later[of]
		if when, was := taken[p.Push]; was {
			later[of] = when
			continue
		}
		if !is {
			until = t.End
		}
		switch gone := goneBetween(t, p.Worker, p.At, until); {
		case gone < until:
			at = append(at, gone)
		case is:
			at = append(at, p.At)
		}
	}
	slices.Sort(at)
	return at
}

// goneBetween is the first instant of some, until before another one, at which a worker is not
// there, or a node that holds a model of which others have no copy; the other one if there is none.
func goneBetween(t *experiment.Trial, worker int, from, until time.Duration) time.Duration {
	for node, role := range t.Stage.Point.Spec.Roles {
		if node != worker && (!role.Holds || role.Copied) {
			continue
		}
		if !t.Stage.Deployment.Present(node, from) {
			return min(from, until)
		}
		for _, c := range t.Stage.Deployment.Schedule {
			if c.Node == node && c.Ends() && c.At >= from {
				until = min(until, c.At)
			}
		}
	}
	return until
}
