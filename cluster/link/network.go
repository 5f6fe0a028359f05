package link

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
)

// MaxPairs is how many edges of a network are counted one by one. Of a network with more, the edges
// that lead out of each node are counted together.
const MaxPairs = 1 << 16

// Network is the links between a fixed set of nodes, which are numbered by their place in the list
// that New was given. Every pair of nodes has a directed edge each way. Up to MaxPairs edges take
// memory from when they are asked for. Beyond, only those do that have something under way, were
// given a configuration by Set, or have a law that remembers: delays that are not [Memoryless],
// [Bursts], random outages, or a rate that is a process. A Network must not be used by two
// goroutines at once.
type Network struct {
	defaults *law
	configs  func(src, dst int32) *Config // configurations that differ from the default; nil for none
	laws     map[*Config]*law             // of what configs has returned
	nodes    []node
	draws    counter
	random   *rand.Rand // draws from draws
	tides    counter    // what rates draw, while a message draws from draws
	tidal    *rand.Rand // draws from tides
	pairs    int        // edges that are counted one by one at most
	edges    int        // made so far, while they are counted one by one
	sums     []Stats    // by source, once there are more; nil before
	free     []*Edge    // to be used again
	kept     []*Edge    // scratch of sweep
	shared   *shared    // nil where messages wait for each other

	late map[[2]int32]int64 // lost because they would arrive after Horizon, by source and destination
}

// node is a node's side of the network: its shared queues and the edges that lead out of it.
type node struct {
	uplink, downlink lane
	access           access
	out              table
	key              uint64
}

const (
	nodeRange    = "link: node index out of range"
	invalidSetup = "link: invalid configuration, Validate tells why"
)

// New returns a network of perfect links between the nodes of the given names, unlimited uplinks
// and downlinks. The seed and the names alone determine all random streams. Names must differ; New
// panics if they do not.
func New(seed uint64, nodes []string) *Network {
	seen := make(map[string]bool, len(nodes))
	for _, name := range nodes {
		if seen[name] {
			panic("link: two nodes of the same name")
		}
		seen[name] = true
	}
	n := &Network{nodes: make([]node, len(nodes)), pairs: MaxPairs}
	for i, name := range nodes {
		n.nodes[i].key = nodeKey(seed, name)
	}
	n.random, n.tidal = rand.New(&n.draws), rand.New(&n.tides)
	n.defaults = n.newLaw(Config{})
	return n
}

// SetDefault configures all edges that Set was not called for. It panics if c.Validate reports an
// error. Called during a run it changes what is sent from then on, as Set does.
func (n *Network) SetDefault(c Config) {
	old := n.defaults
	n.defaults = n.newLaw(c)
	for i := range n.nodes {
		for _, e := range n.nodes[i].out.slots {
			if e != nil && e.law == old {
				n.configure(e, n.defaults)
			}
		}
	}
}

// Set configures the edge from node src to node dst. It panics if c.Validate reports an error.
//
// Called during a run, Set is a scheduled change. Messages under way are not affected; queue times
// and random streams continue. A new delay of the same kind continues from the old one's state (a
// random walk, within its new bounds); any other starts from the beginning.
func (n *Network) Set(src, dst int32, c Config) {
	law := n.newLaw(c)
	n.configure(n.Edge(src, dst), law)
}

// SetConfigs says what each edge is like. The function is asked when an edge is first used, and
// again by Reconfigure. It returns nil for the default, and else a configuration for which Validate
// returns nil, and which stays as it is. SetConfigs is called before the first edge is used.
func (n *Network) SetConfigs(of func(src, dst int32) *Config) {
	n.configs, n.laws = of, map[*Config]*law{}
}

// Reconfigure is a scheduled change of the edges from some nodes to others, both in ascending
// order: each is configured, as Set does it, as the function of SetConfigs says now, unless it is
// that way. An edge that was never used will be when it is.
func (n *Network) Reconfigure(from, to []int32) {
	for _, src := range from {
		out := &n.at(src).out
		if len(to) < len(out.slots) {
			for _, dst := range to {
				n.renew(out.find(dst))
			}
			continue
		}
		for _, e := range out.slots {
			if e != nil {
				if _, named := slices.BinarySearch(to, e.destination); named {
					n.renew(e)
				}
			}
		}
	}
}

// renew configures an edge, if there is one, unless it is as it should be.
func (n *Network) renew(e *Edge) {
	if e == nil {
		return
	}
	if law := n.lawOf(e.source, e.destination); law != e.law {
		n.configure(e, law)
	}
}

// lawOf is what an edge is to be like.
func (n *Network) lawOf(src, dst int32) *law {
	if n.configs == nil {
		return n.defaults
	}
	c := n.configs(src, dst)
	if c == nil {
		return n.defaults
	}
	l := n.laws[c]
	if l == nil {
		l = n.newLaw(*c)
		n.laws[c] = l
	}
	return l
}

// SetUplink limits what a node sends over all its edges together; nil is unlimited. It panics if
// r.Validate reports an error. What is queued already leaves at the old rate.
func (n *Network) SetUplink(node int32, r rate.Rate) {
	at := n.at(node)
	n.limit(&at.uplink, r, at.key, uplinks)
}

// SetDownlink limits what a node receives over all its edges together; nil is unlimited. It panics
// if r.Validate reports an error. What is queued already arrives at the old rate.
func (n *Network) SetDownlink(node int32, r rate.Rate) {
	at := n.at(node)
	n.limit(&at.downlink, r, at.key, downlinks)
}

// SetAccess adds a delay to that of every message that a node sends or receives; nil adds none. It
// panics if CheckAccess reports an error, and is called before the first edge is used.
func (n *Network) SetAccess(node int32, d Delay) {
	if d != nil && CheckAccess(d) != nil {
		panic(invalidSetup)
	}
	at := n.at(node)
	at.access = n.newAccess(d, at.key)
}

func (n *Network) at(index int32) *node {
	if index < 0 || int(index) >= len(n.nodes) {
		panic(nodeRange)
	}
	return &n.nodes[index]
}

func (n *Network) limit(q *lane, r rate.Rate, key uint64, p purpose) {
	if r != nil && r.Validate() != nil {
		panic(invalidSetup)
	}
	q.set(r, n, key, p)
}

// Edge returns the edge from node src to node dst. While edges are counted one by one it is always
// the same for the same pair. Beyond, it is good until the next call for an edge of the same
// source, and longer only while a message is under way on it.
func (n *Network) Edge(src, dst int32) *Edge {
	if uint(src) >= uint(len(n.nodes)) {
		panic(nodeRange)
	}
	if e := n.nodes[src].out.find(dst); e != nil {
		return e
	}
	return n.create(src, dst)
}

// counted is an edge with its own counters.
type counted struct {
	Edge
	own Stats
}

func (n *Network) create(src, dst int32) *Edge {
	if n.sums == nil && n.edges == n.pairs {
		n.countBySender()
	}
	if from := &n.nodes[src]; n.sums != nil && from.out.full() {
		n.sweep(from)
	}
	return n.add(src, dst)
}

// add makes an edge without sweeping idle ones.
func (n *Network) add(src, dst int32) *Edge {
	from, to := &n.nodes[src], n.at(dst)
	var e *Edge
	if n.sums == nil {
		c := &counted{}
		e, c.stats = &c.Edge, &c.own
		n.edges++
	} else {
		e = n.reuse()
		e.stats = &n.sums[src]
	}
	e.network, e.from, e.to, e.source, e.destination = n, from, to, src, dst
	e.key = edgeKey(from.key, to.key)
	e.far = from.access != access{} || to.access != access{}
	n.configure(e, n.lawOf(src, dst))
	from.out.add(e)
	return e
}

// reuse returns an edge that is as new.
func (n *Network) reuse() *Edge {
	last := len(n.free) - 1
	if last < 0 {
		return &Edge{}
	}
	e := n.free[last]
	n.free = n.free[:last]
	*e = Edge{}
	return e
}

// countBySender adds the counters of all edges up by source, and goes on so.
func (n *Network) countBySender() {
	n.sums = make([]Stats, len(n.nodes))
	for i := range n.nodes {
		for _, e := range n.nodes[i].out.slots {
			if e != nil {
				n.sums[i].add(e.stats)
				e.stats = &n.sums[i]
			}
		}
		n.sweep(&n.nodes[i])
	}
}

// sweep forgets the edges of a node that one made later could not be told from, and makes room for
// more.
func (n *Network) sweep(from *node) {
	n.kept = n.kept[:0]
	for _, e := range from.out.slots {
		switch {
		case e == nil:
		case e.law.memoryless && e.idle() && e.law == n.lawOf(e.source, e.destination):
			if e.line.resource > 0 {
				n.shared.flows.Remove(e.line.resource - 1)
			}
			n.free = append(n.free, e)
		default:
			n.kept = append(n.kept, e)
		}
	}
	from.out.hold(n.kept)
}

// Delay returns what Edge(src, dst).Delay(now) does, and takes no memory for the edge.
func (n *Network) Delay(src, dst int32, now time.Duration) time.Duration {
	from, to := n.at(src), n.at(dst)
	if e := from.out.find(dst); e != nil {
		return e.Delay(now)
	}
	law := n.lawOf(src, dst)
	process := law.process
	if law.remembers {
		process = n.begin(law, from, to, nil)
	}
	return bounded(law.present(process, now) + from.access.present(now) + to.access.present(now))
}

// Anyone stands for all nodes as the destination of a Count.
const Anyone = -1

// Count is what was carried from one node to another, or to Anyone.
type Count struct {
	Source, Destination int32
	Stats
}

// Used returns what was carried, ordered by source, then destination: of edges counted one by one
// for each that was used, else for each source that sent anything.
func (n *Network) Used() (used []Count) {
	for i := range n.nodes {
		used = n.UsedBy(int32(i), used)
	}
	return used
}

// UsedBy appends what was carried from a node, as Used has it.
func (n *Network) UsedBy(node int32, used []Count) []Count {
	if n.sums != nil {
		if n.sums[node] != (Stats{}) {
			used = append(used, Count{node, Anyone, n.sums[node]})
		}
		return used
	}
	first := len(used)
	for _, e := range n.at(node).out.slots {
		if e != nil && *e.stats != (Stats{}) {
			used = append(used, Count{e.source, e.destination, *e.stats})
		}
	}
	slices.SortFunc(used[first:], func(a, b Count) int { return cmp.Compare(a.Destination, b.Destination) })
	return used
}

// Dropped counts the messages that were lost for good, of all edges.
func (n *Network) Dropped() (dropped int64) {
	for _, c := range n.Used() {
		dropped += c.Dropped
	}
	return dropped
}

// add adds the counters of another edge.
func (s *Stats) add(t *Stats) {
	s.Sent += t.Sent
	s.Delivered += t.Delivered
	s.Dropped += t.Dropped
	s.Lost += t.Lost
	s.Control += t.Control
	s.SentBytes += t.SentBytes
	s.DeliveredBytes += t.DeliveredBytes
	s.DroppedBytes += t.DroppedBytes
	s.ControlBytes += t.ControlBytes
	s.DelayCount += t.DelayCount
	s.DelaySum = saturated(s.DelaySum, t.DelaySum)
	s.DelayMax = max(s.DelayMax, t.DelayMax)
	s.TookSum = saturated(s.TookSum, t.TookSum)
}

// saturated adds times that are not negative, up to Forever.
func saturated(a, b time.Duration) time.Duration {
	if a > Forever-b {
		return Forever
	}
	return a + b
}
