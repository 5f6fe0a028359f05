package transport

// SetCores pretends that the machine has n cores, and returns how many it had before.
func SetCores(n int) (before int) {
	before, cores = cores, n
	return before
}

// Near is how many connections to processes of this machine there are.
func (n *Node) Near() int { return int(n.near.Load()) }

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
