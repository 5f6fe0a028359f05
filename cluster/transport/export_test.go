package transport

// Refusals counts callers that did not become peers.
type Refusals struct{ Strangers, Malformed, Double, Stale, Crowded, Other, Failed uint64 }

// Refused returns what the node has counted.
func (n *Node) Refused() Refusals {
	r := &n.refused
	return Refusals{
		Strangers: r.stranger.Load(), Malformed: r.malformed.Load(), Double: r.double.Load(), Stale: r.stale.Load(),
		Crowded: r.crowd.Load(), Other: r.other.Load(), Failed: r.accept.Load(),
	}
}
