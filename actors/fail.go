package actors

import (
	"fmt"

	"github.com/gradwire/gradwire/protos"
)

// Name is the name of the node that an actor lives on.
func Name(env Env) string { return env.View().Members[env.Node()].Name }

// Fail ends the run because of what cannot be. Its error names the node that the actor lives on.
func Fail(env Env, format string, values ...any) {
	env.Fail(fmt.Errorf("node %s: %w", Name(env), fmt.Errorf(format, values...)))
}

// IsVector reports whether the tensors of a message are one vector with this number of values.
func IsVector(tensors []*protos.Tensor, values int) bool {
	return len(tensors) == 1 && len(tensors[0].Data) == values
}

// Known reports whether node is another node of the run than the actor's own. If not, it ends the
// run: the message that names it is no member's.
func Known(env Env, node int32) bool {
	if !env.View().Has(node) || int(node) == env.Node() {
		Fail(env, "a message from node %d, of %d nodes", node, len(env.View().Members))
		return false
	}
	return true
}

// Unexpected ends the run because of a message that the actor has no answer to.
func Unexpected(env Env, m *protos.Message) { Fail(env, "unexpected message %T", m.Head) }
