package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/protos"
)

// Recovery describes a new registry, which a process has started from its log because the former
// registry lost its quorum for good. The lists name the entries and claims that the process cannot
// prove.
type Recovery struct {
	Node string `json:"node"`
	// Registry identifies the new registry, Superseded the former one.
	Registry   string `json:"registry"`
	Superseded string `json:"superseded"`
	// Already is true if an earlier request started the new registry.
	Already bool `json:"already,omitempty"`
	// Last is the index of the last entry in the former log. Behind is the number of later entries that
	// the former registry has committed, as far as the process knows: there may be more.
	Last   uint64 `json:"last_entry"`
	Behind uint64 `json:"entries_behind"`
	// Unproven are entries that the new registry keeps although they may not have been committed.
	// Unlisted is the number of further ones.
	Unproven []UnprovenEntry `json:"unproven"`
	Unlisted uint64          `json:"unlisted,omitempty"`
	// Claims belong to processes that the node cannot reach. The former registry may have ended
	// them.
	Claims []UnreachableClaim `json:"unreachable_claims"`
	// Dropped are the other processes of the former registry. They join the new one when they hear of it.
	Dropped []string `json:"dropped"`
	// Copy is the path of the copy of the former log, on the node.
	Copy string `json:"copy"`
}

// UnprovenEntry is an entry of the former log.
type UnprovenEntry struct {
	Index   uint64 `json:"index"`
	Command string `json:"command"`
}

// UnreachableClaim is a claim of a name or a submission.
type UnreachableClaim struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Owner string `json:"owner"`
}

// Recover has a process start a new registry from its log. Only an operator may recover. An
// InputError says why the process refuses, as when the registry has a quorum; an AgainError says
// that the voters may still elect a leader.
func (c *Client) Recover(ctx context.Context, node string) (*Recovery, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == node })
	if at < 0 {
		return nil, refusal.Input(fmt.Errorf("the cluster has no node %.80q", node))
	}
	r, err := c.prompt(ctx, nodes[at].Address,
		&protos.Request{Kind: &protos.Request_Recover{Recover: &protos.RecoverRegistry{Node: node}}})
	if err != nil {
		return nil, err
	}
	m := r.GetRecovered()
	if m.GetRecovery() == nil {
		return nil, errors.New("the process answered without a recovery")
	}
	return recoveryOf(m), nil
}

func recoveryOf(m *protos.Recovered) *Recovery {
	r := m.GetRecovery()
	text := func(number uint64) string { return fmt.Sprintf("%x", number) }
	all := &Recovery{
		Node: r.Process, Registry: text(r.Cluster), Superseded: text(r.Superseded), Already: m.Already, Last: r.Last,
		Unproven: []UnprovenEntry{}, Unlisted: r.Unlisted, Claims: []UnreachableClaim{},
		Dropped: append([]string{}, r.Dropped...), Copy: m.Copy,
	}
	if r.Announced > r.Last {
		all.Behind = r.Announced - r.Last
	}
	for _, u := range r.Unproven {
		all.Unproven = append(all.Unproven, UnprovenEntry{u.Index, u.Command})
	}
	for _, v := range m.Claims {
		all.Claims = append(all.Claims, UnreachableClaim{v.Kind, v.Name, v.Owner})
	}
	return all
}
