// Package membership tells a process which processes are members of the cluster. A process
// joins through the address of any member, and from then on learns who joins, leaves, fails and
// returns. All members eventually learn the same, but not at the same moment: whatever must not
// happen twice needs its own epoch or lease.
//
// It uses memberlist: SWIM (Das, Gupta, Motivala, DSN 2002) with Lifeguard (Dadgar, Phillips,
// Currey, DSN-W 2018). A process has one port number. This package owns its UDP side; the
// process owns the TCP side and hands over the connections that carry gossip ([Streams]).
//
// # Timing
//
// Every probeInterval (500 ms) a process probes one other member, in an order shuffled in each
// round. The member has that long to answer: directly, by way of three others, or over a
// stream. A member that does not answer is suspected. It has suspicionMult · max(1, log10 n) ·
// probeInterval = 2.5 s to object if three others suspect it too or the cluster has fewer than
// five members, and up to six times as long if nobody else does. Then memberlist gives it up.
//
// That alone would be too hasty on busy cores. Of 8 processes with 16 computing goroutines on
// two shared cores, one was given up every few seconds, often by a process that had no time to
// read the objection. So before a process reports a member as failed, it calls the member over
// a stream: a member that answers learns what is said about it, and objects. A member has
// failed if nobody listens at its address, or if it has not objected within recallPatience, 10
// s. The cluster thus notices within 3 to 5 s a process that was killed, and within 13 to 15 s
// one that was stopped or cut off. Code that must know sooner uses its own connections with
// heartbeats, and treats what they report as reversible, as package node does with absence.
//
// # Who is trusted
//
// Packets and streams are encrypted with AES-256-GCM under a key that all processes share; the
// label is authenticated with them. A process that has the key is a member, and the others believe
// it when it accuses another; what it says about itself is bounded and checked. The key cannot be
// replaced while the cluster runs. A packet that arrives again is refused while it is remembered.
// Older packets, and packets replayed to a process that has just started, can at worst cause a
// member to be suspected, which then objects. Without a key the package does not listen, except on
// a loopback address where Config.Insecure is set.
//
// # Builds
//
// Processes of two builds that would misunderstand each other do not become members of one cluster:
// each announces the versions of the protocol that it speaks (see package protocol), and a cluster
// admits a process only if it has a version in common with all members. Join then
// says which process to upgrade, and the members publish a Refused event.
package membership
