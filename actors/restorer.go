package actors

import "github.com/gradwire/gradwire/protos"

// Restorer is an actor outside of any run whose state outlives its failures. It is asked of the
// actor that a Kind returns, when the policy that it was spawned with has it replaced.
type Restorer interface {
	// Save is called on the actor that has failed, after the handler that did, and returns
	// what its successor is to begin with. What that handler had changed already is in it unless
	// the actor changes its state at the end of a handler, or keeps what it will
	// vouch for apart. The message is the caller's; nil, or a panic, saves nothing.
	Save() *protos.Message
	// Restore is called on the successor before it receives anything. The message remains
	// the caller's. An error is a failure like any other, and the next successor is given the
	// same message.
	Restore(*protos.Message) error
}
