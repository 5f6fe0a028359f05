// Package membership says which nodes are here. A node is a process; it joins the
// cluster through the address of any node that is in it, and from then on hears who
// joins, leaves, fails and returns. What it hears is eventually the same everywhere,
// but not at the same moment: what must not happen twice needs an epoch or a lease of
// its own.
//
// Underneath is memberlist: SWIM (Das, Gupta, Motivala, DSN 2002) with Lifeguard
// (Dadgar, Phillips, Currey, DSN-W 2018). A process has one port number. Its UDP side
// belongs to this package, its TCP side to the process, which hands over the
// connections that are gossip ([Streams]).
//
// # Timing
//
// A node asks one other node every probeInterval (500 ms, in an order shuffled anew in each round)
// and gives it that long to answer: directly, by way of three others, and over a stream. A node
// that does not is suspected, and has suspicionMult · max(1, log10 n) · probeInterval = 2.5 s to
// object if three others suspect it too or there are fewer than five nodes, and up to six times as
// long if nobody does. Then memberlist gives it up.
//
// That alone would be too hasty where cores compute: of 8 processes with 16 computing goroutines on
// two cores that had to share them with others, somebody was given up every few seconds, often by a
// node that had no time to read the objection. So every node calls whom memberlist has given up,
// over a stream, before it says so: whoever answers learns what is said of him, and objects. A node
// has failed if nobody listens at its address, or if it has not objected in recallPatience, 10 s. A
// process that was killed is thus noticed within 3 to 5 s, one that was stopped or cut off within
// 13 to 15 s. Whoever needs to know sooner has connections with heartbeats of his own, and treats
// what they say as reversible.
//
// # Who is trusted
//
// Packets and streams are encrypted with AES-256-GCM under a key that all nodes share;
// the label is authenticated with them. Who has the key is a member, and is believed
// when it accuses another; what it says of itself is bounded and checked. A key is not
// replaced while the cluster runs. A packet that arrives again is refused while it is remembered;
// older ones, and those played to a process that has just begun, can at worst cause a node to be
// doubted, which then objects. Without a key nothing listens, except on a loopback
// address where [Config].Insecure asks for it.
package membership
