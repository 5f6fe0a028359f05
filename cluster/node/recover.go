package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/protos"
)

// answerRecover starts a new registry from this process's log, for an operator.
func (p *process) answerRecover(ctx context.Context, c *request.Caller, m *protos.RecoverRegistry) error {
	if err := c.May("recover the registry", identity.Operator); err != nil {
		return err
	}
	r := p.registry.Load()
	switch {
	case m.GetNode() != p.config.Name:
		return refusal.Input(fmt.Errorf("this is process %s, not %s", p.config.Name, m.GetNode()))
	case r == nil:
		return refusal.Input(fmt.Errorf("process %s has not joined the registry yet", p.config.Name))
	}
	var claims []*protos.UnreachableClaim
	recovery, err := r.Recover(ctx, func(s *registry.State) { claims = p.unreachableClaims(s) })
	switch {
	case errors.Is(err, registry.ErrUnsettled):
		return refusal.Again(err)
	case err != nil:
		return refusal.Input(err)
	}
	if !recovery.Already {
		p.log("registry: operator %s has started registry %x from entry %d; the log of registry %x is in %s", c.Name,
			recovery.Cluster, recovery.Last, recovery.Superseded, recovery.Copy)
	}
	return c.Reply(&protos.Reply{Kind: &protos.Reply_Recovered{Recovered: &protos.Recovered{
		Recovery: recovery.RegistryRecovery, Already: recovery.Already, Copy: recovery.Copy, Claims: claims,
	}}})
}

// unreachableClaims returns the claims of processes to which this one has no connection. Those
// processes may still run, and may have released or replaced claims without this process having
// received that.
func (p *process) unreachableClaims(s *registry.State) (claims []*protos.UnreachableClaim) {
	add := func(kind, name string, by *protos.RegistryProcess) {
		owner := by.GetName()
		if owner == "" || owner == p.config.Name {
			return
		}
		peer, known := p.node.Peer(owner)
		if known && peer.State == transport.Up && peer.Peer.Incarnation == by.GetIncarnation() {
			return
		}
		claims = append(claims, &protos.UnreachableClaim{Kind: kind, Name: name, Owner: owner})
	}
	for _, n := range s.Names() {
		add("name", n.Name, n.Owner)
	}
	for _, v := range s.Submissions() {
		add("submission", v.Id, v.Owner)
	}
	return claims
}
