package request

// The states of a submission, as a protos.Submission names them.
const (
	// Waiting for others that were submitted to the same process before.
	Waiting = "waiting"
	// Running means that its runs are carried out.
	Running = "running"
	// Done means that all of them have finished.
	Done = "done"
	// Failed means that one of them has failed.
	Failed = "failed"
	// Stopped means that somebody has ended it.
	Stopped = "stopped"
	// Degraded means that all of them went to their end, but one lost state or had nodes that stood
	// still.
	Degraded = "degraded"
	// Interrupted means that the process that carried it out has ended before it.
	Interrupted = "interrupted"
	// Lost means that the process that carried it out is away, and that no other one goes on with it.
	Lost = "lost"
)

// Over reports whether a submission in a state has ended.
func Over(state string) bool { return state != Waiting && state != Running }
