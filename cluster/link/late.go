package link

import "time"

// noteLate counts a message that is lost because it would arrive after Horizon.
func (e *Edge) noteLate(arrival time.Duration) {
	if arrival <= Horizon {
		return
	}
	n := e.network
	if n.late == nil {
		n.late = map[[2]int32]int64{}
	}
	n.late[[2]int32{e.source, e.destination}]++
}

// Late returns how many messages from one node to another, or to Anyone, were lost because they
// would arrive after Horizon: the part of Stats.Lost that links do not lose but take too long for.
func (n *Network) Late(source, destination int32) (late int64) {
	if destination != Anyone {
		return n.late[[2]int32{source, destination}]
	}
	for edge, count := range n.late {
		if edge[0] == source {
			late += count
		}
	}
	return late
}
