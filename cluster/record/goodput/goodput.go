// Package goodput holds what the record of a run says of faults.
package goodput

// Goodput is what faults have left of the work of a run: the samples that count, divided by those
// that an undisturbed run would have made in the same time.
type Goodput struct {
	// Share is Counted ÷ Undisturbed.
	Share float64 `json:"share"`
	// Counted are the samples that the workers processed before the instant at which the run ended,
	// but for the Lost ones. Lost are
	// those that were processed on a node that then crashed or left, before any other node took in
	// what came of them, and those of which all models are gone.
	Counted uint64 `json:"samples"`
	Lost    uint64 `json:"lost"`
	// Undisturbed are the samples that count before that instant in a run of the same plan and
	// seed, in virtual time, without faults and without what the schedule does to nodes and links
	// that hurts.
	Undisturbed uint64 `json:"undisturbed"`
}

// Fault is one that was drawn from the seed, or that the schedule says.
type Fault struct {
	// At is when it begins, Until when what it does is over, in seconds on the run's clock. Until
	// is 0 where that is never.
	At    float64 `json:"at_s"`
	Until float64 `json:"until_s,omitempty"`
	// What is the word for it, such as crash or cut, and Nodes whom it is about: of a cut one of
	// its sides. Factor is of a slow.
	What   string   `json:"what"`
	Nodes  []string `json:"nodes"`
	Factor float64  `json:"factor,omitempty"`
	// Drawn says that the plan's faults: were the reason, not its schedule.
	Drawn bool `json:"drawn,omitempty"`
}
