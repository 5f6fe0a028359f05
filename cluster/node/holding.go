package node

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/holders"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// newHolders returns what this process holds of submissions, its own and those of others.
func (p *process) newHolders() *holders.Service {
	return holders.New(holders.Config{
		Process:     p.config.Name,
		Incarnation: p.incarnation,
		Stop:        p.stop,
		Out:         p.config.Out,
		Others:      p.others,
		Build:       p.buildOf,
		Gone:        p.isGone,
		Silent:      p.isSilent,
		Heard:       p.heard,
		Registry:    p.submissionRegistry,
		Send:        p.sendLossy,
		Open:        p.openCopy,
		Begin:       p.begin,
		Log:         p.log,
		Ready: func(ctx context.Context, plan *protos.HeldPlan, dir string) error {
			return p.queue.Ready(ctx, plan, dir)
		},
		Adopt: func(plan *protos.HeldPlan, term uint64, why string) *protos.Submission {
			return p.queue.Adopt(plan, term, why)
		},
		Drop:   func(id, to string) { p.queue.Drop(id, to) },
		Held:   func(id string, names []string) { p.queue.Held(id, names) },
		Note:   func(id, text string) { p.queue.Note(id, text) },
		Has:    func(id string) bool { return p.queue.Has(id) },
		Intact: func(id string) error { return p.queue.Intact(id) },
	})
}

// others names the other processes of the cluster.
func (p *process) others() (names []string) {
	for _, m := range p.reachable() {
		if m.Name != p.config.Name {
			names = append(names, m.Name)
		}
	}
	return names
}

// present are the members of the cluster that runs can be placed on.
func (p *process) present() []membership.Member {
	return slices.DeleteFunc(p.reachable(), func(m membership.Member) bool { return p.holders.Leaves(m.Name) })
}

// reachable returns the members of the cluster that are neither absent nor down. Connections tell
// that sooner than membership.
func (p *process) reachable() []membership.Member {
	return slices.DeleteFunc(slices.Clone(p.members.View().Members), func(m membership.Member) bool {
		peer, known := p.node.Peer(m.Name)
		return known && peer.State.Gone() && m.Name != p.config.Name
	})
}

// isGone reports whether an incarnation of another process has ended or is absent, as far as this
// process knows. Incarnation 0 stands for the latest one.
func (p *process) isGone(name string, incarnation uint64) bool {
	peer, known := p.node.Peer(name)
	return known && peer.State.Gone() || p.hasEnded(name, cmp.Or(incarnation, peer.Peer.Incarnation))
}

// isSilent reports whether an incarnation of another process is absent rather than ended.
func (p *process) isSilent(name string, incarnation uint64) bool {
	peer, known := p.node.Peer(name)
	return known && peer.State == transport.Absent && peer.Peer.Incarnation == incarnation
}

// heard returns the time of the last message from another process; the zero time if there was none.
func (p *process) heard(name string) time.Time {
	peer, _ := p.node.Peer(name)
	return peer.Heard
}

// submissionRegistry returns the registry; nil until this process has joined it.
func (p *process) submissionRegistry() holders.Registry {
	if r := p.registry.Load(); r != nil {
		return r
	}
	return nil
}

// sendLossy sends a message that may be lost.
func (p *process) sendLossy(name string, m proto.Message) {
	_ = p.node.TrySend(name, &wire.Frame{Kind: wire.KindOf(m), Head: m}) // the sender repeats it
}

// receiveLeaving notes that another process leaves.
func (p *process) receiveLeaving(from string, f *wire.Frame, m *protos.Leaving) {
	f.Release()
	p.holders.Receive(from, m)
}

// openCopy makes a connection for copies with a process of the cluster.
func (p *process) openCopy(ctx context.Context, name string) (net.Conn, error) {
	members := p.members.View().Members
	i := slices.IndexFunc(members, func(m membership.Member) bool { return m.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("process %s is not in the cluster", name)
	}
	conn, to, err := p.node.Open(ctx, members[i].Meta.Address, identity.Copies)
	if err == nil && p.config.Identity != nil && to.Name != name {
		conn.Close() //nolint:errcheck // nothing was said on it
		return nil, fmt.Errorf("process %s is called at the address of %s", to.Name, name)
	}
	return conn, err
}

// takeCopy takes a connection for copies.
func (p *process) takeCopy(conn net.Conn, from transport.Peer) {
	name := from.Name
	if p.config.Identity == nil {
		name = "" // it is not known
	}
	p.holders.Take(conn, name)
}

// awaitPlaces is conductor, and waits for a process that nodes must live on while it is gone. The
// runs of a submission wait for it together.
func (v *venue) awaitPlaces(ctx context.Context, s *experiment.Stage) (c *conductor, err error) {
	for {
		c, err = v.conductor(ctx, s)
		switch {
		case err == nil:
			v.placeless = time.Time{}
			return c, nil
		case v.placeless.IsZero():
			v.placeless = time.Now()
			v.submission.Log("waits for a place for each node: %v", err)
		case time.Since(v.placeless) >= v.process.config.Absence:
			return nil, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// submissionBits is where those bits of a run's number begin that tell the submission. The others
// are larger for a later conductor.
const submissionBits = 32

// supersede ends what an earlier conductor began of the submission that the next run is of, and
// returns an error if a later one has begun.
func (p *process) supersede(next *hosted) error {
	for _, h := range p.hosts() {
		switch {
		case h.Number()>>submissionBits != next.Number()>>submissionBits || h.Lead() == next.Lead():
		case h.Number() > next.Number():
			return fmt.Errorf("process %s conducts this submission now", h.Lead())
		case h.conductor == nil:
			h.end(errRunOver)
		}
	}
	return nil
}
