package transport

// SetCores pretends that the machine has so many cores, and returns how many it had before.
func SetCores(n int) (before int) {
	before, cores = cores, n
	return before
}

// Near is how many connections to processes of this machine there are.
func (n *Node) Near() int { return int(n.near.Load()) }
