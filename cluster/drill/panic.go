package drill

import (
	"errors"
	"fmt"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
)

// NoPanic watches the runs themselves. Where the panic was beneath the actors, nothing else is
// known of the run, and nothing else is watched.
var NoPanic = Invariant{"no-panic", "neither an actor nor what carries its messages panics", noPanic}

func noPanic(w *Watch) (bool, string) {
	if w.Panicked != nil {
		return true, panicked(w.Panicked)
	}
	for _, t := range []*experiment.Trial{w.Run, w.Again, w.Calm, w.Count} {
		var p *world.Panic
		if errors.As(t.Failure, &p) {
			return true, panicked(p)
		}
	}
	return true, ""
}

// panicked says in a line what a panic was.
func panicked(err error) string {
	var p *world.Panic
	if !errors.As(err, &p) {
		return err.Error()
	}
	return fmt.Sprintf("panic: %v, in %s", p.Reason, p.Where)
}

// verdict checks an invariant. A check that panics has met what cannot be.
func (i *Invariant) verdict(w *Watch) (v Verdict) {
	v = Verdict{Name: i.Name, Doc: i.Doc}
	defer func() {
		if reason := recover(); reason != nil {
			v.Watched, v.Broken = true, "it cannot be checked: "+panicked(world.PanicError(reason))
		}
	}()
	v.Watched, v.Broken = i.Check(w)
	return v
}
