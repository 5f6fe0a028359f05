package link

// CountPairs sets how many edges are counted one by one, in the place of MaxPairs.
func (n *Network) CountPairs(most int) { n.pairs = most }

// Philox is philox.
var Philox = philox
