// Package link computes what happens to a message between two nodes: when it leaves the
// sender's uplink, when it reaches the far end of the directed edge, when the receiver's
// downlink delivers it, or that it is lost.
//
// A message passes three first-in-first-out queues, each with its own rate:
//
//	sender's uplink → edge → receiver's downlink
//
//	departure = max(sent, queue free) + size/rate
//	arrival   = departure from the edge + the delays drawn for the edge and for
//	            the accesses of its two nodes ([Network.SetAccess]), not before
//	            the previous arrival unless the edge may reorder
//
// A message whose departure falls into an outage, a listed or a random one ([Intermittent]),
// waits for the end of the outage. An attempt that fails ([Loss], [Bursts]) is repeated after a
// timeout. Both can instead lose the message.
//
// All edges of a node share its uplink and its downlink. [Edge.Send] computes uplink and edge
// at the instant of sending. The downlink serves messages in the order in which they arrive,
// over all edges, so the world calls [Edge.Receive] when an arrival is due.
//
// With [Network.ShareFairly] there are no queues: messages under way share uplinks, edges and
// downlinks max–min fairly, each at one rate over the three. When one is through is not known
// before, so the world asks [Network.Due] and [Network.Settle].
//
// The package is pure: it has no clock, goroutine, lock or I/O (except [ReadTrace] and
// [ReadEdges], which read a bounded amount). The world that owns a [Network] supplies the time
// and calls it from one goroutine at a time.
//
// What a message draws is a function of the network's seed, the names of the edge's two nodes, the
// purpose, and the number of the message: how many were sent before on the edge. Adding a node or
// an edge, or changing another edge's delay, therefore moves no draw of this one; neither does the
// instant at which an edge is first used. When a random outage begins depends on no message. Delays
// and outages have the same bits on every processor, which tests compare between amd64 and arm64.
//
// A network with more than [MaxPairs] edges counts by sender. From then on an edge is forgotten
// when nothing is under way on it, and made again when it is needed, unless its law remembers more:
// a random walk, bursts of losses, random outages, a rate that changes. Results do not depend on
// it: what a queue, or the order of messages, remembers of messages that have arrived changes
// nothing. The number of a message is then how many its sender sent before, over all its edges.
package link
