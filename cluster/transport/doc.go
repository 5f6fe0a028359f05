// Package transport carries frames between the processes of a cluster: one connection for each
// pair of them, with everything that the actors on both say to each other.
//
// # What it stands in for
//
// The actor library brings a transport of its own, protoactor's remote, which this one replaces
// behind the door because remote loses messages silently and can be crashed by any client: of a
// burst of 5,000 messages of 8 KB with its default settings 432 arrived, without a dead letter; a
// message over 4 MB is dropped together with its stream; a malformed batch, or a call of a method
// that is not implemented, ends the process; a request to spawn an unknown kind kills every actor
// that was spawned from afar. Payloads are copied, 2.2 to 2.8 bytes allocated for each one
// received.
//
// # What holds
//
//   - Both sides of a connection prove by TLS 1.3 that they belong to the cluster, and who they
//     are. A node's one TCP port serves actors, gossip and clients, told apart by ALPN; package identity
//     says which role may speak what. Without TLS only loopback addresses are called and listened at.
//   - Every message that Send took is handled at most once, in the order of its class, and counted as
//     delivered, which is what its receiver says, or as lost. PeerStats adds up at any time.
//   - Tensors ride beside the head: they are written from where they lie, with writev(2), and read
//     into tensors of the receiver's pool. No payload is copied or allocated, TLS apart.
//   - Where nothing waits, whoever sends writes. Whoever reads looks for an answer for some 100 µs before
//     it goes to sleep, as long as one mostly comes: waking a core takes longer than a short message.
//   - Where the processes of a machine have fewer than two cores each, one goroutine reads from a connection between them and
//     writes to it in turns (Linux, without TLS): two take each other's core, and Go's poller would wake a third thread for
//     every piece.
//   - What is large goes in chunks of at most 1 MiB, between which heartbeats and urgent frames go: they do
//     not wait for the end of a tensor.
//   - What waits for a peer is bounded, and Send waits for room. So are a frame, a head, the number
//     of peers and of callers that have not yet proved who they are: see Limits.
//   - A process that is started anew has a larger incarnation. It gets nothing that was meant for
//     its predecessor, which is refused from then on.
//   - Connections that break are made again; silence first suspends a peer, which is reversible, and then
//     takes it down. Bytes that no node sends end the connection, and are counted; a process survives
//     all that it is sent.
//
// # What does not
//
// What is under way when a connection breaks is lost and counted, not repeated: to repeat it is for
// actors that want that. A node that belongs to the cluster is trusted as its certificate says: it
// may send any frame to any actor, and fill the receiver's pool up to its bound with tensors of as
// many lengths as it likes. Strangers who open Limits.Handshakes connections at a time keep others
// from being welcomed while they do, but do not disturb connections that there are.
//
// Memory is the twin of such a network inside one process: heads are encoded and decoded
// as on a connection, tensors change hands by reference.
package transport
