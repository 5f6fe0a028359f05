package transport

import "time"

// PeerStats is what has passed between this node and a peer, all its incarnations
// together. Sent = Delivered + Lost + Waiting + Unacknowledged, always.
type PeerStats struct {
	Peer  Peer
	State State
	// Heard is when the peer was last heard of, moved on by the time in which this process did not run.
	Heard time.Time
	// Connected says whether there is a connection.
	Connected bool
	// Shared says whether that goes over memory shared with the peer.
	Shared bool
	// Connections counts those that there were.
	Connections uint64
	// Sent counts the messages that Send, TrySend and SendPacket took.
	Sent uint64
	// Delivered counts those that the peer has handled, as of its last heartbeat.
	Delivered uint64
	// Lost counts those that waited for a peer that went down, or were under way and it had not
	// said that they were handled.
	Lost uint64
	// Waiting counts those in the queue, WaitingBytes their bytes and those being written.
	Waiting      uint64
	WaitingBytes int
	// Unacknowledged counts those that are under way, or were when a connection broke.
	Unacknowledged uint64
	// Received counts the messages of the peer that were handled.
	Received uint64
	// BadFrames counts connections that ended because of bytes that no node sends.
	BadFrames uint64
	// RoundTrip is what a heartbeat takes there and back, smoothed; 0 before the first.
	RoundTrip time.Duration
}

// Peers returns the counters of all peers, by name. They are looked at one after the other.
func (n *Node) Peers() []PeerStats {
	var all []PeerStats
	for _, p := range n.all() {
		all = append(all, p.stats())
	}
	return all
}

// Peer returns the counters of one peer; false if there is none of this name.
func (n *Node) Peer(name string) (PeerStats, bool) {
	p := n.peer(name)
	if p == nil {
		return PeerStats{}, false
	}
	return p.stats(), true
}

func (p *peer) stats() PeerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PeerStats{
		Peer: p.about, State: p.state, Heard: p.heard, Connected: p.conn != nil, Connections: p.connections,
		Sent: p.sent, Delivered: p.delivered, Lost: p.lost, Waiting: uint64(p.waiting()), Received: p.received,
		BadFrames: p.bad.Load(), RoundTrip: p.trip,
	}
	for _, n := range p.held {
		s.WaitingBytes += n
	}
	s.Unacknowledged = p.begun() - p.acked
	if c := p.conn; c != nil {
		s.Received += c.handled.Load()
		s.Shared = c.socket.shared != nil
	}
	return s
}
