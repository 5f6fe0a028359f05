package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/gradwire/gradwire/cluster/protocol"
)

// The timing of the protocol. The package's documentation says why.
const (
	probeInterval  = 500 * time.Millisecond
	probeTimeout   = 250 * time.Millisecond // of the direct question; then others are asked to ask
	suspicionMult  = 5
	suspicionMax   = 6 // × the time to object, where nobody else suspects
	gossipInterval = 100 * time.Millisecond
	gossipDeadTime = 30 * time.Second
	syncInterval   = 15 * time.Second // between exchanges of the whole list with a random node
	// reclaimTime is how long a name stays with a node that has failed, before it may be somewhere
	// else: news of the failure that is still under way then would hit the new one, because
	// memberlist counts its incarnations from 1 again.
	reclaimTime   = 2 * time.Second
	streamTimeout = 5 * time.Second
	dialTimeout   = 2 * time.Second
	joinPatience  = 10 * time.Second // of a Join without a deadline
	leavePatience = 5 * time.Second  // of a Leave without a deadline
	firstRetry    = 200 * time.Millisecond
	lastJoinRetry = 2 * time.Second
	maxStreams    = 128
	// packetSize is the size up to which memberlist fills packets, without a checksum; maxPacket
	// includes it.
	packetSize = 1400
	maxPacket  = packetSize + 8
	// maxNonces is how many packets are remembered so that repeated ones are refused: a quarter of
	// an hour's in a cluster of eight.
	maxNonces       = 32 << 10
	keySize         = 32
	maxLabel        = 64
	maxSeeds        = 64
	receiveBuffer   = 2 << 20
	waitingPackets  = 256
	awarenessFactor = 8 // a process that hears little waits up to this much longer before it accuses
)

// Streams is the TCP side of the process's port.
type Streams interface {
	// Conns yields incoming gossip connections, authenticated and ready to be read. After Shutdown
	// the caller closes those that are still in the channel.
	Conns() <-chan net.Conn
	// Dial connects to the gossip of the process at an address, IP:PORT, within timeout.
	Dial(address string, timeout time.Duration) (net.Conn, error)
}

// Config describes this process and says where the cluster is.
type Config struct {
	// Name names the process, uniquely in the cluster: up to 64 letters, digits, '-', '_', '.'.
	Name string
	// Bind is the IP:PORT of the UDP side, with the port of the process's listener.
	Bind string
	// Seeds are addresses, HOST:PORT, of processes that may be in the cluster, at most 64. Without
	// seeds, or if its own address is one of them and no other answers, the process starts a
	// cluster.
	Seeds []string
	// Key is the cluster's secret, 32 bytes.
	Key []byte
	// Insecure allows there to be no key, where Bind is a loopback address.
	Insecure bool
	// Label is the cluster's name, at most 64 bytes. Clusters with different labels ignore each
	// other.
	Label string
	// Meta is what the process announces about itself. If Bind names no particular IP, Address must
	// be set; otherwise it defaults to Bind. Protocol defaults to the versions that this build
	// speaks.
	Meta Meta
	// Streams is the TCP side. It must work before Join is called.
	Streams Streams
	// Waits, if not nil, has Join try the seeds until ctx ends, and is called with what has come of
	// them: at first, when that changes, and every 10 s.
	Waits func(error)
	// Notify is called with each event, in order and from one goroutine, once Join has
	// succeeded. It may call View, and may take its time, but must not call Leave or Shutdown.
	Notify func(Event)

	// pace is how many times faster than usual everything goes, for tests that would take long; 0
	// stands for 1.
	pace time.Duration
}

// paced is a time of the protocol at the configured pace.
func (m *Members) paced(d time.Duration) time.Duration { return d / max(m.config.pace, 1) }

// checked returns the configuration with its defaults and where to bind, or an error
// that names the field.
func (c Config) checked() (Config, netip.AddrPort, error) {
	if err := checkName(c.Name); err != nil {
		return c, netip.AddrPort{}, err
	}
	bind, err := netip.ParseAddrPort(c.Bind)
	if err != nil || bind.Port() == 0 {
		return c, bind, fmt.Errorf("bind is %q, accepted is IP:PORT with the port of the process's listener", c.Bind)
	}
	bind = netip.AddrPortFrom(bind.Addr().Unmap(), bind.Port())
	switch {
	case len(c.Key) == keySize && !c.Insecure:
	case c.Insecure && c.Key != nil:
		return c, bind, errors.New("key and insecure: only one of them can be given")
	case !c.Insecure:
		return c, bind, fmt.Errorf("key has %d bytes, needed are %d", len(c.Key), keySize)
	case !bind.Addr().IsLoopback():
		return c, bind, fmt.Errorf("insecure: without a key only a loopback address can be bound to, not %s", c.Bind)
	}
	if err := checkText("label", c.Label, maxLabel); err != nil {
		return c, bind, err
	}
	if c.Streams == nil {
		return c, bind, errors.New("streams are missing: the TCP side of the port")
	}
	if len(c.Seeds) > maxSeeds {
		return c, bind, fmt.Errorf("%d seeds, accepted are at most %d", len(c.Seeds), maxSeeds)
	}
	for _, s := range c.Seeds {
		if err := checkAddress(s); err != nil {
			return c, bind, fmt.Errorf("seed: %w", err)
		}
	}
	if c.Meta.Address == "" {
		if bind.Addr().IsUnspecified() {
			return c, bind, fmt.Errorf("bind is %s, so meta.address must say where others reach the node", c.Bind)
		}
		c.Meta.Address = bind.String()
	}
	if c.Meta.Protocol == (protocol.Range{}) {
		c.Meta.Protocol = protocol.Spoken()
	}
	if c.Notify == nil {
		c.Notify = func(Event) {}
	}
	c.Key, c.Seeds = slices.Clone(c.Key), slices.Clone(c.Seeds)
	c.Meta.Labels = maps.Clone(c.Meta.Labels)
	_, err = (&announcement{Meta: c.Meta, leaving: true, draining: true}).encode()
	return c, bind, err
}

// advertised returns where others reach the gossip: where it is bound, or the metadata's
// address if that is everywhere.
func (c *Config) advertised(ctx context.Context, bind netip.AddrPort) (netip.AddrPort, error) {
	if !bind.Addr().IsUnspecified() {
		return bind, nil
	}
	found, err := resolve(ctx, c.Meta.Address)
	if err != nil {
		return bind, fmt.Errorf("meta.address: %w", err)
	}
	return found[0], nil
}

// resolve returns the addresses, at least one, that HOST:PORT stands for.
func resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	all := make([]netip.AddrPort, len(found))
	for i, a := range found {
		all[i] = netip.AddrPortFrom(a.Unmap(), uint16(port))
	}
	return all, nil
}

// settings are memberlist's.
func (m *Members) settings() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.SecretKey = m.config.Name, m.config.Label, m.config.Key
	c.Transport = m.transport
	c.BindPort = int(m.transport.advertise.Port()) // for nodes that say none
	c.ProbeInterval, c.ProbeTimeout = m.paced(probeInterval), m.paced(probeTimeout)
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicionMult, suspicionMax
	c.AwarenessMaxMultiplier = awarenessFactor
	c.GossipInterval, c.GossipToTheDeadTime = m.paced(gossipInterval), m.paced(gossipDeadTime)
	c.PushPullInterval, c.TCPTimeout = m.paced(syncInterval), streamTimeout
	c.DeadNodeReclaimTime = m.paced(reclaimTime)
	c.UDPBufferSize = packetSize
	c.EnableCompression = false           // it costs more than it saves in packets of this size
	c.Logger = log.New(io.Discard, "", 0) // what matters are events, errors and refusals
	d := (*delegate)(m)
	c.Delegate, c.Events, c.Alive, c.Merge, c.Conflict = d, d, d, d, d
	return c
}
