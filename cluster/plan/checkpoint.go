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
	// To is the address of a store that the record is copied to, as s3://bucket/path; empty for none.
	To string `plan:"to,omitzero" doc:"s3://BUCKET/PATH or folder to which the record is copied at each checkpoint and finished run; run --continue goes on from there; credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials; default: none"`
	// Source is the syntax that it was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// SetDefaults implements [settings.Defaulter].
func (c *Checkpoint) SetDefaults() { *c = Checkpoint{Keep: 3} }
