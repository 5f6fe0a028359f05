// Package link computes what becomes of a message between two nodes: when it leaves the sender's
// uplink, when it arrives at the far end of the directed edge, when the receiver's downlink hands
// it over, or that it is lost.
//
// A message passes three queues, each first in, first out and each with a rate of its own:
//
//	sender's uplink → edge → receiver's downlink
//
//	departure = max(sent, queue free) + size/rate
//	arrival   = departure from the edge + the drawn delay,
//	            not before the previous arrival unless the edge may reorder
//
// Where a departure falls into an outage, of those listed or of those that come at random
// ([Intermittent]), the message waits for its end; a try that fails ([Loss], [Bursts]) is repeated
// after a timeout; or both lose the message.
//
// The uplink and the downlink are shared by all edges of a node. [Edge.Send] answers for uplink and
// edge at the instant of sending; the downlink serves messages in the order in which they arrive at
// it, over all its edges, so the world calls [Edge.Receive] when the arrival is due.
//
// Who is whose neighbour is a [Topology], made by [NewGraph]. It says whom an architecture talks
// to; links are there between any two nodes.
//
// The package is pure: it has no clock, goroutine, lock or I/O (save [ReadTrace] and [ReadEdges],
// bounded readers). The world that owns a [Network] says what time it is and calls it from one
// goroutine at a time.
//
// Random numbers come from a stream of its own for each (source name, destination name, purpose),
// so adding a node or an edge, or giving another edge another delay, moves no draw of this one; nor
// does the instant at which an edge is first asked for. When an edge is down at random depends on
// no message at all. Delays and outages have the same bits on every architecture.
package link
