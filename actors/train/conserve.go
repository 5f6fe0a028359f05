package train

// Conserving is an Architecture that can say what becomes of what steps add to its models.
type Conserving interface {
	Conserves() Conserved
}

// Conserved says what holds of models that begin equal, however messages are late and nodes pause.
type Conserved struct {
	// Between says that a model which averages has each parameter between the least and the
	// greatest of those that go into it.
	Between bool
	// Sum says that the sum of all models grows by what each step adds to one, as long as nobody
	// comes or goes. Weighted says that steps count by the sizes of their batches in it, each round
	// as much as all its steps.
	Sum, Weighted bool
	// Alone says that no model takes in anything of another.
	Alone bool
	// Weighed, unless 0, says that there is one model, which moves each round by the mean of the
	// updates, weighed by the samples of their nodes, and that each is of this many steps.
	Weighed int
	// Once says that there is one model, to which each gradient is added once and in full. Pending
	// is how many steps of a worker it may be without at most.
	Once    bool
	Pending uint64
}
