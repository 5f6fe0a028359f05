package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/registry/host"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

const (
	// claimPatience is how long a claim waits for the registry's answer. It is longer than an
	// election.
	claimPatience = 5 * time.Second
	// compareEvery is the interval at which a process compares the registry with its own actors.
	compareEvery = time.Second
)

// openRegistry makes this process a member of the cluster's registry. Only one process may found
// the registry: the process without seeds, or the process whose own address is the first seed.
func (p *process) openRegistry() {
	h, err := host.Open(host.Config{
		Process:     p.config.Name,
		Incarnation: p.incarnation,
		MayFound:    len(p.config.Seeds) == 0 || p.members.IsFirstSeed(),
		File:        filepath.Join(p.config.Out, ".registry-"+p.config.Name),
		Others:      p.others,
		Send: func(name string, f *protos.RegistryFrame) {
			_ = p.node.TrySend(name, &wire.Frame{Kind: wire.User, Head: f}) // the registry repeats lost frames
		},
		Log: func(format string, args ...any) { p.log("registry: "+format, args...) },
	})
	if err != nil {
		p.log("registry: this process takes no part in the registry until it is restarted: %v", err)
		return
	}
	p.registry.Store(h)
	p.work.Go(p.compareNames)
}

// receiveRegistryFrame passes a frame from another process to the registry.
func (p *process) receiveRegistryFrame(from string, f *wire.Frame, m *protos.RegistryFrame) {
	f.Release()
	if r := p.registry.Load(); r != nil && m.Name == from {
		r.Receive(m)
	}
}

// leaveRegistry releases the claims of this process and transfers its vote to another process.
func (p *process) leaveRegistry() {
	p.leaving.Store(true) // before the release, which a later claim would undo
	r := p.registry.Load()
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	err := host.ErrNoQuorum
	if r.Status().Leader != "" {
		err = p.releaseProcess(ctx, r, p.config.Name, p.incarnation)
	}
	if err == nil {
		err = r.Leave(ctx)
	}
	if err != nil {
		p.log("registry: this process leaves without transferring its vote: %v", err)
	}
	if err := r.Close(); err != nil {
		p.log("registry: %v", err)
	}
}

func (p *process) releaseProcess(ctx context.Context, r *host.Host, name string, incarnation uint64) error {
	_, err := r.Do(ctx, &protos.RegistryCommand{Kind: &protos.RegistryCommand_ReleaseProcess{
		ReleaseProcess: &protos.ReleaseProcess{Process: &protos.RegistryProcess{Name: name, Incarnation: incarnation}},
	}})
	return err
}

// claimName claims a name for the actor with an id. If another claim holds the name, it returns the
// process of that claim. After an error the registry may still grant the claim.
func (p *process) claimName(ctx context.Context, name string, id uint64) (owner string, err error) {
	r := p.registry.Load()
	switch {
	case p.leaving.Load():
		return "", fmt.Errorf("node %s is leaving the cluster", p.config.Name)
	case r == nil:
		return "", fmt.Errorf("node %s has not joined the registry yet", p.config.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	result, err := r.Do(ctx, &protos.RegistryCommand{Kind: &protos.RegistryCommand_ClaimName{
		ClaimName: &protos.ClaimName{Name: name, Token: id},
	}})
	switch {
	case err != nil:
		return "", err
	case result.Code == protos.RegistryResult_TAKEN:
		return result.Owner.GetName(), nil
	}
	return "", nil
}

// reserveName claims the name of a new actor. Its error names the node that has the name, if any.
func (p *process) reserveName(ctx context.Context, name string, id uint64) error {
	switch owner, err := p.claimName(ctx, name, id); {
	case err != nil:
		p.releaseName(name, id)
		return fmt.Errorf("the name %s cannot be claimed: %w", name, err)
	case owner != "":
		return refusal.Input(fmt.Errorf("the name %s is taken by an actor on node %s", name, owner))
	}
	return nil
}

// releaseName releases the name of an actor in the background. If the registry does not answer in
// time, compareNames repeats the release.
func (p *process) releaseName(name string, id uint64) {
	r := p.registry.Load()
	if r == nil {
		return
	}
	p.begin(func() {
		ctx, cancel := context.WithTimeout(p.stop, claimPatience)
		defer cancel()
		err := p.submitRelease(ctx, r, name, id)
		if err != nil && !errors.Is(err, host.ErrNoQuorum) && p.stop.Err() == nil {
			p.log("registry: the name %s is not released: %v", name, err)
		}
	})
}

func (p *process) submitRelease(ctx context.Context, r *host.Host, name string, id uint64) error {
	_, err := r.Do(ctx, &protos.RegistryCommand{Kind: &protos.RegistryCommand_ReleaseName{
		ReleaseName: &protos.ReleaseName{Name: name, Token: id},
	}})
	return err
}

// compareNames calls compareOnce at intervals until the process stops or leaves.
func (p *process) compareNames() {
	clock := time.NewTicker(compareEvery)
	defer clock.Stop()
	r := p.registry.Load()
	for p.stop.Err() == nil && !p.leaving.Load() {
		if s := r.Status(); s.Leader != "" {
			err := p.compareOnce(r, s.Leads)
			if err != nil && !errors.Is(err, host.ErrNoQuorum) && p.stop.Err() == nil && !p.leaving.Load() {
				p.log("registry: %v", err)
			}
		}
		select {
		case <-clock.C:
		case <-p.stop.Done():
		}
	}
}

// compareOnce makes claims and actors agree. The registry's leader releases the claims of dead
// processes. Every process releases its claims without an actor, claims the names of its actors
// again if they were released during its absence, and ends the actors whose names other processes
// have claimed.
func (p *process) compareOnce(r *host.Host, leads bool) error {
	ctx, cancel := context.WithTimeout(p.stop, claimPatience)
	defer cancel()
	own := map[string]uint64{} // ids of this process's claims, by name
	var ended []*protos.RegistryProcess
	err := r.ReadLocal(ctx, func(s *registry.State) {
		for _, n := range s.Names() {
			owner, incarnation := n.GetOwner().GetName(), n.GetOwner().GetIncarnation()
			switch {
			case owner == p.config.Name && incarnation == p.incarnation:
				own[n.Name] = n.Token
			case leads && owner != p.config.Name && p.hasEnded(owner, incarnation):
				ended = append(ended, &protos.RegistryProcess{Name: owner, Incarnation: incarnation})
			}
		}
	})
	if err != nil {
		return err
	}
	if err := p.releaseEnded(ctx, r, ended); err != nil {
		return err
	}
	for name, id := range own {
		if p.residents.Has(name, id) {
			continue
		}
		if err := p.submitRelease(ctx, r, name, id); err != nil {
			return err
		}
	}
	for name, id := range p.residents.Claims() {
		if own[name] == id {
			continue
		}
		owner, err := p.claimName(ctx, name, id)
		if err != nil {
			return err
		}
		if owner != "" {
			p.residents.EndForClaim(name, id, owner)
		}
	}
	return nil
}

// releaseEnded releases the claims of ended incarnations. One command per process suffices, because
// the release of an incarnation covers all earlier ones.
func (p *process) releaseEnded(ctx context.Context, r *host.Host, ended []*protos.RegistryProcess) error {
	slices.SortFunc(ended, func(a, b *protos.RegistryProcess) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Incarnation, a.Incarnation))
	})
	for _, owner := range slices.CompactFunc(ended, func(a, b *protos.RegistryProcess) bool { return a.Name == b.Name }) {
		if err := p.releaseProcess(ctx, r, owner.Name, owner.Incarnation); err != nil {
			return err
		}
	}
	return nil
}

// hasEnded reports whether an incarnation of another process has ended: a later incarnation is
// known, or the process is no longer a member of the cluster. A silent process has not ended.
func (p *process) hasEnded(name string, incarnation uint64) bool {
	peer, known := p.node.Peer(name)
	switch latest := peer.Peer.Incarnation; {
	case known && latest > incarnation:
		return true
	case known && peer.State != transport.Down && peer.State != transport.Unknown:
		return false
	}
	return !p.isMember(name)
}

// registryRole returns the role of a process in the registry: "leads", "votes" or "learns",
// followed by "in memory" if its log is there; "" if the process has no role.
func registryRole(s *registry.Status, name string) (role string) {
	switch {
	case s.Leader == name:
		role = "leads"
	case slices.Contains(s.Voters, name):
		role = "votes"
	case slices.Contains(s.Learners, name):
		role = "learns"
	default:
		return ""
	}
	if slices.Contains(s.InMemory, name) {
		role += " in memory"
	}
	return role
}

// describeQuorum returns the status of the registry, and why it does not answer this process; empty
// if it does.
func (p *process) describeQuorum() (status registry.Status, unanswered string) {
	r := p.registry.Load()
	if r == nil {
		return status, "this node has not joined the registry yet"
	}
	if status = r.Status(); status.Leader == "" {
		unanswered = host.Describe(status)
	}
	return status, unanswered
}
