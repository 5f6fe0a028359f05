// Package transport carries frames between the processes of a cluster. Each pair of processes has
// one connection, for everything that the actors on both say to each other.
//
// # What it replaces
//
// protoactor has a transport, remote. This one replaces it behind the door, because remote loses
// messages silently and any client can crash it. Of a burst of 5,000 messages of 8 KB with its
// default settings 432 arrived, without a dead letter. A message over 4 MB is dropped together with
// its stream. A malformed batch, or a call of a method that is not implemented, ends the process. A
// request to spawn an unknown kind kills every actor that was spawned from afar. Payloads are
// copied, with 2.2 to 2.8 bytes allocated for each one received.
//
// # What holds
//
//   - Both sides of a connection prove by TLS 1.3 who they are and that they belong to the cluster.
//     A node's one TCP port serves actors, gossip and clients, told apart by ALPN; package identity
//     says which role may speak what. Without TLS a node calls and listens at loopback addresses
//     only.
//   - A message that the queue has taken is handled at most once, in the queue's order. It counts
//     as delivered when its receiver says so, otherwise as lost. PeerStats adds up at any time.
//   - A message is kept until its receiver has read all of it. Connections may break at any byte:
//     the next one to the same incarnation begins with the first message that was not read. What
//     the receiver has read, it says in what it sends anyway, and by itself after each MiB.
//   - Two processes of one machine and one user share memory (Linux): a ring of bytes for each
//     direction. It is not encrypted, also where TLS has proved who the other is. The caller offers
//     it on a Unix socket, to who is of its user and says the secret that its greeting told. Where
//     one side wants sockets, or something stands between the two, such as a proxy, there is none.
//     A system call is made only to sleep and to wake who sleeps.
//   - Tensors ride beside the head. writev(2) writes them from where they lie, and they are read
//     into tensors of the receiver's pool. No payload is allocated, and only TLS and the ring copy
//     one.
//   - If nothing waits, the sender writes itself. The reader polls for some 100 µs before it
//     sleeps, as long as an answer mostly comes: waking a core takes longer than a short message.
//   - Large frames go in chunks of at most 1 MiB. Heartbeats and urgent frames go in between and do
//     not wait for the end of a tensor.
//   - A peer's queue is bounded. Send waits for room; SendPacket does not and has more of it.
//     A frame, a head, the number of peers and the number of callers that have not yet proved who
//     they are are bounded as well.
//   - A restarted process has a larger incarnation. It gets nothing that was meant for its
//     predecessor, and from then on all refuse the predecessor.
//   - Broken connections are re-established. Silence first suspends a peer, which is reversible,
//     and then takes it down. Bytes that no node sends end the connection and are counted; a
//     process survives whatever it receives.
//
// # What does not hold
//
// Messages for a peer that goes down or restarts are lost and counted. A message crosses on one
// connection or not at all: one that takes longer than connections last never arrives. A node of
// the cluster is trusted as its certificate says. It may send any frame to any actor, and fill the
// receiver's pool up to its bound with tensors of as many lengths as it likes. Strangers who open
// 64 connections at a time keep other callers out while they do, but do not disturb existing
// connections. Programs of the same user that may trace a process can read and change what it
// shares; a process that shares memory can keep the other's goroutine waiting.
package transport
