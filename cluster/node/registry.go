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
	// claimPatience is how long a claim of a name waits for the registry's answer. An election takes
	// less.
	claimPatience = 5 * time.Second
	// compareEvery is the time between two comparisons of the registry with what is here.
	compareEvery = time.Second
)

// openRegistry makes this process a member of the cluster's registry. Exactly one process may found
// it: the one without seeds, or the one whose own address is the first seed. Without a file there is
// no member here, and this process claims no names.
func (p *process) openRegistry() {
	h, err := host.Open(host.Config{
		Process:     p.config.Name,
		Incarnation: p.incarnation,
		MayFound:    len(p.config.Seeds) == 0 || p.members.IsFirstSeed(),
		File:        filepath.Join(p.config.Out, ".registry-"+p.config.Name),
		Others:      p.others,
		Send: func(name string, f *protos.RegistryFrame) {
			_ = p.node.TrySend(name, &wire.Frame{Kind: wire.User, Head: f}) // the registry repeats what is lost
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

// receiveRegistryFrame gives the registry a frame of another process.
func (p *process) receiveRegistryFrame(from string, f *wire.Frame, m *protos.RegistryFrame) {
	f.Release()
	if r := p.registry.Load(); r != nil && m.Name == from {
		r.Receive(m)
	}
}

// leaveRegistry releases what this process has claimed, and hands its vote over.
func (p *process) leaveRegistry() {
	p.leaving.Store(true) // or a claim would undo the release
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
		p.log("registry: this process leaves without handing its vote over: %v", err)
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

// claimName claims the name of an actor, by its id. It returns whose the name is, if it is not this
// process's. After an error the registry may have the claim nevertheless.
func (p *process) claimName(ctx context.Context, name string, id uint64) (owner string, err error) {
	r := p.registry.Load()
	switch {
	case p.leaving.Load():
		return "", fmt.Errorf("node %s is leaving the cluster", p.config.Name)
	case r == nil:
		return "", fmt.Errorf("node %s has no file for the registry in its folder of records", p.config.Name)
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

// reserveName claims the name of a new actor.
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

// releaseName releases the name of an actor. If the registry does not answer in time, compareNames
// releases it.
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

// compareNames compares the registry with what is here, from time to time: the process that leads it
// releases what processes have claimed that are gone; each releases the names of actors that it has no
// longer, claims the names of its actors again that were released while it was away, and ends those
// whose names others have.
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

func (p *process) compareOnce(r *host.Host, leads bool) error {
	ctx, cancel := context.WithTimeout(p.stop, claimPatience)
	defer cancel()
	mine := map[string]uint64{}
	var gone []*protos.RegistryProcess
	err := r.ReadLocal(ctx, func(s *registry.State) {
		for _, n := range s.Names() {
			owner, incarnation := n.GetOwner().GetName(), n.GetOwner().GetIncarnation()
			switch {
			case owner == p.config.Name && incarnation == p.incarnation:
				mine[n.Name] = n.Token
			case leads && owner != p.config.Name && p.hasEnded(owner, incarnation):
				gone = append(gone, &protos.RegistryProcess{Name: owner, Incarnation: incarnation})
			}
		}
	})
	if err != nil {
		return err
	}
	if err := p.releaseEnded(ctx, r, gone); err != nil {
		return err
	}
	for name, id := range mine {
		if p.residents.Has(name, id) {
			continue
		}
		if err := p.submitRelease(ctx, r, name, id); err != nil {
			return err
		}
	}
	for name, id := range p.residents.Claims() {
		if mine[name] == id {
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

// releaseEnded releases what processes have claimed that have ended. A release of an incarnation is one
// of all before it.
func (p *process) releaseEnded(ctx context.Context, r *host.Host, gone []*protos.RegistryProcess) error {
	slices.SortFunc(gone, func(a, b *protos.RegistryProcess) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Incarnation, a.Incarnation))
	})
	for _, owner := range slices.CompactFunc(gone, func(a, b *protos.RegistryProcess) bool { return a.Name == b.Name }) {
		if err := p.releaseProcess(ctx, r, owner.Name, owner.Incarnation); err != nil {
			return err
		}
	}
	return nil
}

// hasEnded reports whether an incarnation of another process has ended, or the cluster has given it
// up. A silent process has not ended yet.
func (p *process) hasEnded(name string, incarnation uint64) bool {
	peer, known := p.node.Peer(name)
	switch life := peer.Peer.Incarnation; {
	case known && life > incarnation:
		return true
	case known && peer.State != transport.Down && peer.State != transport.Unknown:
		return false
	}
	return !p.isMember(name)
}

// registryRole says what part a process has in the registry, as far as this one knows.
func registryRole(s *registry.Status, name string) string {
	switch {
	case s.Leader == name:
		return "leads"
	case slices.Contains(s.Voters, name):
		return "votes"
	case slices.Contains(s.Learners, name):
		return "learns"
	}
	return ""
}

// describeQuorum says why the registry gives this process no answers; empty if it does.
func (p *process) describeQuorum() (status registry.Status, without string) {
	r := p.registry.Load()
	if r == nil {
		return status, "this node has no file for the registry"
	}
	if status = r.Status(); status.Leader == "" {
		without = host.Describe(status)
	}
	return status, without
}
