package link

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// Network is the links between a fixed set of nodes, which are numbered by their place in the list
// that New was given. Every pair of nodes has a directed edge each way; memory is taken only for
// those that were asked for. A Network must not be used by two goroutines at once.
type Network struct {
	seed     uint64
	names    []string
	defaults *Config
	configs  func(src, dst int32) *Config // of edges that differ; nil for none
	nodes    []node
	edges    int // made so far
}

// node is a node's side of the network: its shared queues and the edges that lead out of it.
type node struct {
	uplink, downlink queue
	out              table
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
	return &Network{
		seed:     seed,
		names:    slices.Clone(nodes),
		defaults: &Config{},
		nodes:    make([]node, len(nodes)),
	}
}

// SetDefault configures all edges that Set was not called for. It panics if c.Validate reports an
// error. Called during a run it changes what is sent from then on, as Set does.
func (n *Network) SetDefault(c Config) {
	old := n.defaults
	n.defaults = validCopy(c)
	for i := range n.nodes {
		for _, e := range n.nodes[i].out.slots {
			if e != nil && e.config == old {
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
	n.configure(n.Edge(src, dst), validCopy(c))
}

// SetConfigs says what each edge is like. The function is asked when an edge is first used, and
// again by Reconfigure. It returns nil for the default, and else a configuration for which Validate
// returns nil, and which stays as it is. SetConfigs is called before the first edge is used.
func (n *Network) SetConfigs(of func(src, dst int32) *Config) { n.configs = of }

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
	if c := n.configOf(e.source, e.destination); c != e.config {
		n.configure(e, c)
	}
}

// configOf is what an edge is to be like.
func (n *Network) configOf(src, dst int32) *Config {
	if n.configs != nil {
		if c := n.configs(src, dst); c != nil {
			return c
		}
	}
	return n.defaults
}

// validCopy returns a copy of c that a later change of the caller's slice does not reach.
func validCopy(c Config) *Config {
	if c.Validate() != nil {
		panic(invalidSetup)
	}
	c.Outages = slices.Clone(c.Outages)
	return &c
}

// SetUplink limits what a node sends over all its edges together, in bytes per second; 0 is
// unlimited. It panics if the rate is negative or not a number. What is queued already leaves at
// the old rate.
func (n *Network) SetUplink(node int32, bytesPerSecond float64) {
	n.at(node).uplink.setRate(bytesPerSecond)
}

// SetDownlink limits what a node receives over all its edges together, in bytes per second; 0 is
// unlimited. It panics if the rate is negative or not a number. What is queued already arrives at
// the old rate.
func (n *Network) SetDownlink(node int32, bytesPerSecond float64) {
	n.at(node).downlink.setRate(bytesPerSecond)
}

func (n *Network) at(index int32) *node {
	if index < 0 || int(index) >= len(n.nodes) {
		panic(nodeRange)
	}
	return &n.nodes[index]
}

func (q *queue) setRate(bytesPerSecond float64) {
	if !(bytesPerSecond >= 0) || math.IsInf(bytesPerSecond, 0) {
		panic(invalidSetup)
	}
	q.rate = bytesPerSecond
}

// Edge returns the edge from node src to node dst, always the same pointer for the same pair.
func (n *Network) Edge(src, dst int32) *Edge {
	if uint(src) >= uint(len(n.nodes)) {
		panic(nodeRange)
	}
	if e := n.nodes[src].out.find(dst); e != nil {
		return e
	}
	return n.create(src, dst)
}

func (n *Network) create(src, dst int32) *Edge {
	e := &Edge{
		source:      src,
		destination: dst,
		uplink:      &n.nodes[src].uplink,
		downlink:    &n.at(dst).downlink,
	}
	n.configure(e, n.configOf(src, dst))
	n.edges++
	n.nodes[src].out.add(e)
	return e
}

// Used returns the edges over which anything was sent, ordered by source, then destination.
func (n *Network) Used() []*Edge {
	var used []*Edge
	for i := range n.nodes {
		first := len(used)
		for _, e := range n.nodes[i].out.slots {
			if e != nil && e.used() {
				used = append(used, e)
			}
		}
		slices.SortFunc(used[first:], func(a, b *Edge) int { return cmp.Compare(a.destination, b.destination) })
	}
	return used
}

// Edges returns how many edges were asked for so far.
func (n *Network) Edges() int { return n.edges }

// Dropped counts the messages that were lost for good, of all edges.
func (n *Network) Dropped() (dropped int64) {
	for i := range n.nodes {
		dropped += n.Sum(int32(i)).Dropped
	}
	return dropped
}

// Sum returns the counters of all edges that lead out of a node, added up. It takes no memory.
func (n *Network) Sum(src int32) Stats {
	var sum Stats
	for _, e := range n.at(src).out.slots {
		if e != nil {
			sum.add(&e.stats)
		}
	}
	return sum
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

// configure puts an edge under a configuration. An edge that has carried nothing starts over, so
// that when it was first asked for makes no difference.
func (n *Network) configure(e *Edge, c *Config) {
	if e.stats.Sent == 0 {
		e.delays, e.losses, e.process = nil, nil, nil
	}
	if e.stats.Sent == 0 || c.Loss.Bursts == nil {
		e.channel = unset
	}
	previous := e.process
	e.config = c
	e.line.rate = c.Rate
	e.reorder = c.Reorder
	e.hazardous = c.Loss.possible() || len(c.Outages) > 0 || c.Intermittent != (Intermittent{})
	e.outage = 0
	e.flapper = nil
	if c.Intermittent != (Intermittent{}) {
		seed, salt := streamSeed(n.seed, n.names[e.source], n.names[e.destination], "outages")
		e.flapper = newFlapper(c.Intermittent, seed, salt)
	}
	e.constant, e.process = 0, nil
	switch model := c.Delay.(type) {
	case nil:
	case Constant:
		e.constant = model.Delay
	default:
		e.process = model.Start(func() *rand.Rand { return n.stream(e, &e.delays, "delay") }, previous)
	}
	if c.Loss.possible() {
		n.stream(e, &e.losses, "loss")
	}
}

// table finds an edge by its destination: open addressing with linear probing, at most half full.
// It is as small as a ring needs and as fast as a complete graph needs.
type table struct {
	slots []*Edge // a power of two of them, or none
	shift uint8   // 64 − log2(len(slots))
	count int
}

func (t *table) home(dst int32) int {
	return int(uint64(uint32(dst)) * 0x9e3779b97f4a7c15 >> (t.shift & 63))
}

func (t *table) find(dst int32) *Edge {
	if len(t.slots) == 0 {
		return nil
	}
	mask := len(t.slots) - 1
	for i := t.home(dst); ; i++ {
		e := t.slots[i&mask]
		if e == nil || e.destination == dst {
			return e
		}
	}
}

func (t *table) add(e *Edge) {
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	t.insert(e)
	t.count++
}

func (t *table) insert(e *Edge) {
	mask := len(t.slots) - 1
	i := t.home(e.destination)
	for t.slots[i&mask] != nil {
		i++
	}
	t.slots[i&mask] = e
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]*Edge, max(4, 2*len(old)))
	t.shift = uint8(64 - bits.TrailingZeros(uint(len(t.slots))))
	for _, e := range old {
		if e != nil {
			t.insert(e)
		}
	}
}
