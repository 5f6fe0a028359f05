package membership

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/hashicorp/memberlist"
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
	m, _, err := understand(n)
	if err != nil {
		d.malformed.Add(1)
		return err
	}
	if d.roll.stale(m.Name, m.Meta.Incarnation) {
		d.outdated.Add(1)
		return fmt.Errorf("incarnation %d is over", m.Meta.Incarnation)
	}
	return nil
}

func (d *delegate) NotifyJoin(n *memberlist.Node) {
	if m, leaving, err := understand(n); err == nil { // as it was in NotifyAlive
		d.roll.appeared(m, leaving)
	}
}

func (d *delegate) NotifyUpdate(n *memberlist.Node) {
	if m, leaving, err := understand(n); err == nil {
		d.roll.changed(m, leaving)
	}
}

func (d *delegate) NotifyLeave(n *memberlist.Node) { d.roll.vanished(n.Name) }

// NotifyConflict hears of a second node with a name that is not free. The first stays.
func (d *delegate) NotifyConflict(_, _ *memberlist.Node) { d.conflicts.Add(1) }

// NotifyMerge refuses to join those that speak another protocol or among whom this node's name is
// taken, and sees whether they have let it in.
func (d *delegate) NotifyMerge(peers []*memberlist.Node) error {
	for _, p := range peers {
		here := p.State == memberlist.StateAlive || p.State == memberlist.StateSuspect
		m, _, err := understand(p)
		var other *protocolError
		switch {
		case here && p.Name != d.config.Name && errors.As(err, &other):
			d.malformed.Add(1)
			return d.refuse(fmt.Errorf("node %.80q speaks %w, this one %s: run the same program on all", p.Name, other,
				spoken(protocol, d.config.Meta.Build)))
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

// understand returns the member that memberlist's node stands for.
func understand(n *memberlist.Node) (Member, bool, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	if !ok || ip.IsUnspecified() || n.Port == 0 {
		return Member{}, false, errors.New("it cannot be reached")
	}
	if err := checkName(n.Name); err != nil {
		return Member{}, false, err
	}
	a, err := decode(n.Meta)
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
