package request

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/protos"
)

// Caller is a client at the other end of a connection.
type Caller struct {
	Conn net.Conn
	// Name and Role come from its certificate.
	Name string
	Role identity.Role
	// Process is the one that answers.
	Process string
}

// Reply sends the caller a message.
func (c *Caller) Reply(m *protos.Reply) error { return Write(c.Conn, m) }

// Done tells the caller that its request was carried out, or that nothing more comes.
func (c *Caller) Done() error {
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Done{Done: &protos.Done{}}})
}

// May returns an error if the caller's role does not allow something.
func (c *Caller) May(what string, roles ...identity.Role) error {
	if slices.Contains(roles, c.Role) {
		return nil
	}
	return refusal.Input(fmt.Errorf("%s has role %s and may not %s, which takes role %s: %w", c.Name, c.Role, what,
		roles[0], identity.ErrRole))
}

// Refuse tells the caller why its request is not carried out.
func (c *Caller) Refuse(err error) {
	var wrong *refusal.InputError
	var later *refusal.AgainError
	no := &protos.Refusal{Error: Text(err.Error(), MaxText), Process: c.Process}
	no.Input, no.Again = errors.As(err, &wrong), errors.As(err, &later)
	_ = c.Reply(&protos.Reply{Kind: &protos.Reply_Refusal{Refusal: no}}) // who does not hear it finds the end
}
