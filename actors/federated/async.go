package federated

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Exchange is what a client sends the server.
type Exchange string

// What clients send. In rounds both come to the same.
const (
	// PseudoGradient is the model that the client was sent less what it has made of it, x_τ − θ: a
	// late one is added to a model that has moved on (J. Nguyen et al., "Federated Learning with
	// Buffered Asynchronous Aggregation", AISTATS 2022).
	PseudoGradient Exchange = "pseudo-gradient"
	// Parameters is θ, which the server compares with its own model x_t as it is by then: a step of
	// rate α is x ← (1−α)x + αθ (C. Xie, S. Koyejo and I. Gupta, "Asynchronous Federated
	// Optimization", arXiv 1903.03934, algorithm 1).
	Parameters Exchange = "parameters"
)

// asynchronous reports whether clients work on while the server makes steps.
func (a *Architecture) asynchronous() bool { return a.Buffer > 0 }

// checkAsynchronous returns an error about the first field that makes no sense beside a buffer, a
// [*field.Error].
func (a *Architecture) checkAsynchronous() error {
	const alone = "left out where buffer is given: "
	switch {
	case !a.asynchronous():
		return nil
	case a.Spare > 0:
		return field.Errorf(a, "Spare", alone+"no update of a client at work is dropped")
	case a.Deadline > 0:
		return field.Errorf(a, "Deadline", alone+"no client waits for the end of a round")
	case a.Grace != nil:
		return field.Errorf(a, "Grace", alone+"no client waits for the end of a round")
	case a.Controls:
		return field.Errorf(a, "Controls", alone+"SCAFFOLD's are of rounds that begin with one model")
	}
	return nil
}

// refill has other clients work in the place of those that have answered or gone, unless a round
// ends without them.
func (s *server) refill(ctx actor.Context) {
	if s.arch.asynchronous() {
		_, atWork := s.arch.wanted(len(s.env.View().Role(RoleClient)))
		s.draw(ctx, atWork)
	}
}
