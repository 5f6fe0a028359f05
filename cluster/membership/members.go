package membership

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Members is a process's membership of the cluster. It is safe for use by many goroutines.
type Members struct {
	config    Config
	roll      *roll
	transport *transport
	list      *memberlist.Memberlist

	announced atomic.Pointer[[]byte] // the node's own metadata
	refusal   atomic.Pointer[error]  // why the latest merge was not made
	admitted  atomic.Bool            // somebody has this node in its list
	entered   atomic.Bool            // this node has joined a cluster, or started one

	// Announcements that were not believed: of what cannot be a node, of an incarnation before that
	// which is here, and of a second node with a name that is not free.
	malformed, outdated, conflicts atomic.Uint64

	closing chan struct{}
	running sync.WaitGroup

	mu   sync.Mutex // held while the node goes
	gone bool
}

// Join binds the UDP side of the port and makes the node a member. It tries the seeds until one has
// it in its list, ctx has ended (without a deadline, and without Config.Waits: for 10 s) or trying
// is of no use, because the key, label or name is wrong; the error says of each seed what came of
// it. A node without seeds begins a cluster. A failed Join leaves nothing behind.
func Join(ctx context.Context, c Config) (*Members, error) { return join(ctx, c, listen) }

func join(ctx context.Context, c Config, listen func(netip.AddrPort) (net.PacketConn, error)) (*Members, error) {
	fail := func(err error) (*Members, error) {
		return nil, fmt.Errorf("membership of node %q: %w", c.Name, err)
	}
	c, bind, err := c.checked()
	if err != nil {
		return fail(err)
	}
	advertise, err := c.advertised(ctx, bind)
	if err != nil {
		return fail(err)
	}
	gate, err := newGate(c.Key, c.Label)
	if err != nil {
		return fail(err)
	}
	packets, err := listen(bind)
	if err != nil {
		return fail(err)
	}
	m := &Members{
		config: c, roll: newRoll(c.Name), transport: newTransport(packets, gate, c.Streams, advertise),
		closing: make(chan struct{}),
	}
	if err := m.setAnnouncement(announcement{Meta: c.Meta}); err != nil {
		return fail(errors.Join(err, m.transport.Shutdown()))
	}
	if m.list, err = memberlist.Create(m.settings()); err != nil {
		return fail(errors.Join(err, m.transport.Shutdown()))
	}
	m.transport.begin()
	if err := m.enter(ctx); err != nil {
		return fail(errors.Join(err, m.Shutdown()))
	}
	m.entered.Store(true)
	m.running.Go(func() { m.roll.deliver(c.Notify, m.closing) })
	m.running.Go(m.rejoinLoop)
	m.running.Go(m.examine)
	return m, nil
}

// setAnnouncement sets what memberlist will announce.
func (m *Members) setAnnouncement(a announcement) error {
	b, err := a.encode()
	if err == nil {
		m.announced.Store(&b)
	}
	return err
}

// View returns who is here.
func (m *Members) View() View { return m.roll.snapshot() }

// Incompatible returns one error text for each process that the cluster has refused because of its
// protocol, and that has not become a member since.
func (m *Members) Incompatible() []string { return m.roll.refused() }

// IsFirstSeed reports whether the first seed resolves to this node's own address. It may take until
// dialTimeout.
func (m *Members) IsFirstSeed() bool {
	if len(m.config.Seeds) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	all, err := resolve(ctx, m.config.Seeds[0])
	return err == nil && slices.Contains(all, m.transport.advertise)
}

// Drain tells the other members that this process is about to leave. It stays a member until Leave.
func (m *Members) Drain(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeLeft(ctx))
	defer cancel()
	err := m.setAnnouncement(announcement{Meta: m.config.Meta, draining: true})
	if err == nil {
		err = m.untilAlone(func() error { return m.list.UpdateNode(timeLeft(ctx)) })
	}
	if err != nil {
		return fmt.Errorf("membership of node %q: draining: %w", m.config.Name, err)
	}
	return nil
}

// Leave tells the others that the process leaves, and shuts down. It takes about a second, at most
// until ctx's deadline (without one: 5 s). If it returns an error, the others may see a crash.
func (m *Members) Leave(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeLeft(ctx))
	defer cancel()
	err := m.setAnnouncement(announcement{Meta: m.config.Meta, leaving: true, draining: true})
	if err == nil {
		err = m.untilAlone(func() error { return m.list.UpdateNode(timeLeft(ctx)) })
	}
	if err == nil {
		err = m.awaitSpread(ctx)
	}
	if left := m.untilAlone(func() error { return m.list.Leave(timeLeft(ctx)) }); err == nil {
		err = left
	}
	if err := errors.Join(err, m.shutdown()); err != nil {
		return fmt.Errorf("membership of node %q: leaving: %w", m.config.Name, err)
	}
	return nil
}

// untilAlone waits until memberlist has told the others something or, since they may leave at the
// same time, until nobody is left to tell. What goes on then ends with its own timeout.
func (m *Members) untilAlone(tell func() error) error {
	told := make(chan error, 1)
	go func() { told <- tell() }()
	look := time.NewTicker(m.paced(gossipInterval))
	defer look.Stop()
	for {
		select {
		case err := <-told:
			return err
		case <-look.C:
			if !slices.ContainsFunc(m.View().Members, func(o Member) bool { return o.Name != m.config.Name }) {
				return nil
			}
		}
	}
}

// awaitSpread waits until the announcement that this process leaves has spread. The news of its end
// would otherwise overtake the announcement.
func (m *Members) awaitSpread(ctx context.Context) error {
	n := len(m.View().Members)
	if n == 1 {
		return nil
	}
	select {
	case <-time.After(time.Duration(4+bits.Len(uint(n))) * m.paced(gossipInterval)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timeLeft is how long memberlist may wait. It is never 0, which memberlist takes for no limit.
func timeLeft(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return max(time.Until(d), time.Nanosecond)
	}
	return leavePatience
}

// Shutdown ends the membership as a crash would, but leaves nothing open: when it returns, the port
// is free, Notify is no longer called and all streams are closed. A probe that memberlist has just
// sent still waits for its answer, for 0.5 s, or 4 s on an overloaded machine.
func (m *Members) Shutdown() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shutdown()
}

func (m *Members) shutdown() error {
	if m.gone {
		return nil
	}
	m.gone = true
	close(m.closing)
	err := m.list.Shutdown()
	m.running.Wait()
	return err
}
