package plan

import (
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Checkpoint says how often the whole state of a run is saved, so that the run can go on from there
// after its process has ended.
type Checkpoint struct {
	// Every is the time between two.
	Every unit.Duration `plan:"every,required" range:">0s" doc:"between two, on the run's clock"`
	// Keep is how many are kept. Default 3.
	Keep int `plan:"keep" range:"1..1000" doc:"how many are kept, the newest ones"`
	// Source is the syntax that it was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// SetDefaults implements [settings.Defaulter].
func (c *Checkpoint) SetDefaults() { *c = Checkpoint{Keep: 3} }
