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
// A node asks one other node every probeInterval (400 ms, in an order shuffled anew
// in each round) and gives it that long to answer: directly, by way of three others, and
// over a stream. Among 8 nodes somebody asks a dead one after 0.2 s in the mean, and
// suspects it 0.4 s later. The suspect then has suspicionMult · max(1, log10 n) ·
// probeInterval = 2 s to object, if three other nodes suspect it too or there are
// fewer than five nodes, and up to six times as long if nobody does. Hence 2.5 to 3 s from a
// crash to the news: with 8 processes killed one at a time on two cores it was 2.7 s in the median and
// 3.9 s at worst.
//
// The time to object is what keeps healthy nodes in: one whose cores all compute answers
// late, but seldom misses all of 2 s of gossip. With 8 processes on two cores, each with
// eight goroutines that compute, nobody was declared dead in 65 s; asking every 400 ms with
// 1.6 s to object and two others to agree did so three times, every 500 ms with 2 s and two
// others once. With a question every 200 ms and 0.6 s to object it is dozens
// within a minute. Whoever needs to know sooner has connections with heartbeats of his own, and
// treats what they say as reversible.
//
// # Who is trusted
//
// Packets and streams are encrypted with AES-256-GCM under a key that all nodes share;
// the label is authenticated with them. Who has the key is a member, and is believed
// when it accuses another; what it says of itself is bounded and checked. A key is not
// replaced while the cluster runs. Without a key nothing listens, except on a loopback
// address where [Config].Insecure asks for it.
package membership
