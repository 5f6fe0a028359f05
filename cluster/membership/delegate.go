package membership

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/hashicorp/memberlist"

	"github.com/gradwire/gradwire/cluster/protocol"
)

// delegate is what memberlist calls, for the most part with its lock held: nothing here calls
// memberlist, or waits for anybody who might.
type delegate Members

var (
	_ memberlist.Delegate         = (*delegate)(nil)
	_ memberlist.EventDelegate    = (*delegate)(nil)
	_ memberlist.AliveDelegate    = (*delegate)(nil)
	_ memberlist.MergeDelegate    = (*delegate)(nil)
	_ memberlist.ConflictDelegate = (*delegate)(nil)
)

func (d *delegate) NodeMeta(int) []byte { return *d.announced.Load() }

func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(_, _ int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}

// NotifyAlive refuses what could not be a node, before memberlist believes it or tells others.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	m, _, err := d.understand(n)
	if err == nil {
		err = d.checkVersion(m)
	}
	if err != nil {
		d.malformed.Add(1)
		return d.roll.refuse(err)
	}
	if d.roll.stale(m.Name, m.Meta.Incarnation) {
		d.outdated.Add(1)
		return fmt.Errorf("incarnation %d is over", m.Meta.Incarnation)
	}
	return nil
}

func (d *delegate) NotifyJoin(n *memberlist.Node) {
	if m, leaving, err := d.understand(n); err == nil { // as it was in NotifyAlive
		d.roll.appeared(m, leaving)
	}
}

func (d *delegate) NotifyUpdate(n *memberlist.Node) {
	if m, leaving, err := d.understand(n); err == nil {
		d.roll.changed(m, leaving)
	}
}

func (d *delegate) NotifyLeave(n *memberlist.Node) { d.roll.vanished(n.Name) }

// NotifyConflict hears of a second node with a name that is not free. The first stays.
func (d *delegate) NotifyConflict(_, _ *memberlist.Node) { d.conflicts.Add(1) }

// NotifyMerge refuses to merge with nodes that have no version of the protocol in common with this
// one, or that know another node of its name. It also notes whether they have admitted this node.
func (d *delegate) NotifyMerge(peers []*memberlist.Node) error {
	if err := d.checkVersions(peers); err != nil {
		d.malformed.Add(1)
		return d.refuse(d.roll.refuse(err))
	}
	for _, p := range peers {
		here := isHere(p)
		m, _, err := d.understand(p)
		switch {
		case p.Name != d.config.Name || err != nil:
		case here && m.Gossip != d.transport.advertise:
			return d.refuse(&nameError{name: m.Name, holder: m.Gossip})
		case m.Meta.Incarnation > d.config.Meta.Incarnation:
			return d.refuse(&incarnationError{known: m.Meta.Incarnation, own: d.config.Meta.Incarnation})
		case here && m.Meta.Incarnation == d.config.Meta.Incarnation:
			d.admitted.Store(true)
		}
	}
	return nil
}

func (d *delegate) refuse(err error) error {
	d.refusal.Store(&err)
	return err
}

// isHere reports whether memberlist counts a node as alive, even if it suspects a failure.
func isHere(n *memberlist.Node) bool {
	return n.State == memberlist.StateAlive || n.State == memberlist.StateSuspect
}

// checkVersions returns an error if this node's cluster and the live nodes among peers have no
// version of the protocol in common. The error names the peer if this node is a member of a
// cluster, and this node if it is about to join one.
func (d *delegate) checkVersions(peers []*memberlist.Node) error {
	own := d.config.Meta.Protocol
	theirs := protocol.Range{Oldest: 1, Newest: math.MaxUint8}
	for _, p := range peers {
		if !isHere(p) || p.Name == d.config.Name {
			continue
		}
		m, _, err := d.understand(p)
		var other *protocol.Error
		switch {
		case errors.As(err, &other):
			m.Meta.Protocol = other.Range
		case err != nil:
			continue
		}
		if err == nil {
			err = d.checkVersion(m)
		}
		if theirs = theirs.Meet(m.Meta.Protocol); !theirs.Valid() {
			theirs = m.Meta.Protocol
		}
		if err != nil && d.entered.Load() {
			return err
		}
	}
	if own.Agreed(theirs) == 0 && !d.entered.Load() {
		return &protocol.Error{Name: d.config.Name, Build: d.config.Meta.Build, Range: own, Others: theirs,
			Whom: "this cluster"}
	}
	return nil
}

// checkVersion returns an error if a node and the other members of the cluster have no version of
// the protocol in common.
func (d *delegate) checkVersion(m Member) error {
	if m.Name == d.config.Name || d.spoken(m.Name).Agreed(m.Meta.Protocol) != 0 {
		return nil
	}
	return d.foreign(m.Name, &protocol.Error{Range: m.Meta.Protocol, Build: m.Meta.Build})
}

// foreign adds a node's name and the cluster's versions to an error about the node's versions.
func (d *delegate) foreign(name string, err *protocol.Error) *protocol.Error {
	err.Name, err.Others, err.Whom = name, d.spoken(name), "this cluster"
	return err
}

// spoken returns the versions that all members of the cluster speak, without asking the one named
// except.
func (d *delegate) spoken(except string) protocol.Range {
	all := d.config.Meta.Protocol
	for _, m := range d.roll.snapshot().Members {
		if both := all.Meet(m.Meta.Protocol); m.Name != except && both.Valid() {
			all = both
		}
	}
	return all
}

// understand decodes memberlist's node into a Member, and reports whether it leaves the cluster.
func (d *delegate) understand(n *memberlist.Node) (Member, bool, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	if !ok || ip.IsUnspecified() || n.Port == 0 {
		return Member{}, false, errors.New("it cannot be reached")
	}
	if err := checkName(n.Name); err != nil {
		return Member{}, false, err
	}
	a, err := decode(n.Meta, d.config.Meta.Protocol)
	var other *protocol.Error
	if errors.As(err, &other) {
		err = d.foreign(n.Name, other)
	}
	if err != nil {
		return Member{}, false, err
	}
	return Member{Name: n.Name, Meta: a.Meta, Gossip: netip.AddrPortFrom(ip.Unmap(), n.Port),
		Leaves: a.draining || a.leaving}, a.leaving, nil
}

// nameError says that another node has this one's name.
type nameError struct {
	name   string
	holder netip.AddrPort
}

func (e *nameError) Error() string {
	return fmt.Sprintf("the name %q is taken by the node at %s", e.name, e.holder)
}

// incarnationError says that the cluster knows a later life of this node.
type incarnationError struct{ known, own uint64 }

func (e *incarnationError) Error() string {
	return fmt.Sprintf("incarnation is %d, but %d of this node is known already: it must grow with every start", e.own,
		e.known)
}
