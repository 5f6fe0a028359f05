package innetwork

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// system is switches and workers whose network is whatever it wants to be: a packet that was once
// sent may come at any time, as often as it likes, or never.
type system struct {
	parent  []int // switches come first, the top one before all
	slots   []*slots
	windows []*window // of the nodes behind them
	packets uint64    // each worker has so many to send
	sent    uint64    // set of packets that were ever sent, see wire
}

// wire is the number of a packet to a node's parent, or down to the node.
func (s *system) wire(node int, down bool, number uint64) uint64 {
	i := uint64(node)
	if down {
		i += uint64(len(s.parent))
	}
	return i*s.packets + number
}

// newSystem returns one whose workers have sent all that they may.
func newSystem(parent []int, switches, size int, packets uint64) *system {
	s := &system{parent: parent, packets: packets}
	for node := range switches {
		s.slots = append(s.slots, newSlots(size, 1, len(s.children(node)), parent[node] == nobody))
	}
	for node := switches; node < len(parent); node++ {
		w := &window{}
		w.reset(size)
		w.grant(int(packets))
		s.windows = append(s.windows, w)
		for number := range packets {
			s.push(node, number)
		}
	}
	return s
}

func (s *system) children(node int) (children []int) {
	for child, parent := range s.parent {
		if parent == node {
			children = append(children, child)
		}
	}
	return children
}

func (s *system) push(node int, number uint64) {
	if w := s.windows[node-len(s.slots)]; w.ready(number) {
		w.send(number)
		s.sent |= 1 << s.wire(node, false, number)
	}
}

// truth is what the workers at and below a node add to a packet.
func (s *system) truth(node int, number uint64) packet {
	if node >= len(s.slots) {
		return packet{number: number, peak: number + uint64(node)*7%5, samples: 1 << node,
			words: []float32{word(int32(number+1) << (4 * node))}}
	}
	sum := packet{number: number, words: []float32{word(0)}}
	for _, child := range s.children(node) {
		p := s.truth(child, number)
		sum.peak, sum.samples = max(sum.peak, p.peak), sum.samples+p.samples
		sum.words[0] = word(integer(sum.words[0]) + integer(p.words[0]))
	}
	return sum
}

// deliver has a packet arrive. It returns the packets that are sent because of it.
func (s *system) deliver(node int, down bool, number uint64) (next uint64, err error) {
	before := s.sent
	s.sent = 0
	defer func() { next, s.sent = s.sent, before|s.sent }()
	to := node
	if !down {
		to = s.parent[node]
	}
	if to >= len(s.slots) {
		if s.windows[to-len(s.slots)].result(number) {
			s.push(to, number+uint64(len(s.windows[0].at)))
		}
		return 0, nil
	}
	switches := s.slots[to]
	var do reaction
	if down {
		news, err := switches.result(s.truth(0, number))
		if err != nil {
			return 0, err
		}
		if news {
			do = publish
		}
	} else if do, err = switches.add(slices.Index(s.children(to), node), s.truth(node, number)); err != nil {
		return 0, err
	}
	return 0, s.react(to, node, number, do)
}

// react sends what a switch does, which has to be the exact sum.
func (s *system) react(at, from int, number uint64, do reaction) error {
	want := s.truth(0, number)
	switch do {
	case quiet:
		return nil
	case forward:
		want = s.truth(at, number)
		s.sent |= 1 << s.wire(at, false, number)
	case reply:
		s.sent |= 1 << s.wire(from, true, number)
	case publish:
		for _, child := range s.children(at) {
			s.sent |= 1 << s.wire(child, true, number)
		}
	}
	q := s.slots[at].pool(number)
	if q.number != number || q.peak != want.peak || q.samples != want.samples ||
		len(q.sum) != 1 || q.sum[0] != integer(want.words[0]) {
		return fmt.Errorf("switch %d sends %+v as packet %d, want %+v", at, q, number, want)
	}
	return nil
}

// key tells states apart.
func (s *system) key() string {
	key := binary.AppendUvarint(nil, s.sent)
	for _, w := range s.windows {
		for i, at := range w.at {
			key = append(key, byte(at), bit(w.sent[i]))
		}
	}
	for _, l := range s.slots {
		for i := range l.pools {
			q := &l.pools[i]
			key = append(key, byte(q.number), byte(q.progress))
			for _, seen := range q.seen {
				key = append(key, bit(seen))
			}
		}
	}
	return string(key)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (s *system) clone() *system {
	c := *s
	c.slots, c.windows = nil, nil
	for _, l := range s.slots {
		other := *l
		other.pools = slices.Clone(l.pools)
		for i := range other.pools {
			q := &other.pools[i]
			q.seen, q.sum = slices.Clone(q.seen), append(make([]int32, 0, 1), q.sum...)
		}
		c.slots = append(c.slots, &other)
	}
	for _, w := range s.windows {
		other := *w
		other.at, other.sent = slices.Clone(w.at), slices.Clone(w.sent)
		c.windows = append(c.windows, &other)
	}
	return &c
}

// each calls f for every packet of a set.
func (s *system) each(set uint64, f func(node int, down bool, number uint64) error) error {
	for node := range s.parent {
		for _, down := range []bool{false, true} {
			for number := range s.packets {
				if set>>s.wire(node, down, number)&1 == 1 {
					if err := f(node, down, number); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// recover loses all that is on its way; from now on nothing is lost, and workers repeat their
// oldest packet.
func (s *system) recover() error {
	for range 3 * int(s.packets) {
		for i, w := range s.windows {
			number, ok := w.oldest()
			if !ok {
				continue
			}
			for set := uint64(1) << s.wire(len(s.slots)+i, false, number); set != 0; {
				var next uint64
				if err := s.each(set, func(node int, down bool, number uint64) error {
					more, err := s.deliver(node, down, number)
					next |= more
					return err
				}); err != nil {
					return err
				}
				set = next
			}
		}
	}
	for i, w := range s.windows {
		if w.left > 0 {
			return fmt.Errorf("worker %d lacks %d results", i, w.left)
		}
	}
	return nil
}

// explore visits every state that losses, repeats and orders can lead to, and returns how many.
func explore(t *testing.T, first *system) int {
	t.Helper()
	seen := map[string]bool{first.key(): true}
	for queue := []*system{first}; len(queue) > 0; {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if err := s.clone().recover(); err != nil {
			t.Fatalf("%v; in the state %+v", err, s)
		}
		err := s.each(s.sent, func(node int, down bool, number uint64) error {
			next := s.clone()
			if _, err := next.deliver(node, down, number); err != nil {
				return err
			}
			if key := next.key(); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v; after the state %+v", err, s)
		}
	}
	return len(seen)
}

// Every order, loss and repeat of three packets of three workers, and of some more where they go
// through few slots, at one switch and in a tree: what is sent is always the exact sum, and nobody
// waits for good once packets arrive. A packet alone at one switch has 15 states: 7 sets of workers
// that are heard, not all of them, and 8 of those that have heard; three in slots of their own have
// 15³.
func TestEveryOrderOfLossesAndRepeatsHasTheExactSum(t *testing.T) {
	flat, mixed, chain := []int{nobody, 0, 0, 0}, []int{nobody, 0, 0, 1, 1}, []int{nobody, 0, 1, 1, 1}
	for _, c := range []struct {
		parent  []int
		slots   int
		packets uint64
		states  int
	}{
		{flat, 1, 3, 67}, {flat, 2, 3, 615}, {flat, 3, 3, 3375},
		{mixed, 1, 3, 83}, {mixed, 2, 3, 969}, {chain, 1, 3, 73}, {chain, 2, 3, 765},
		{flat, 1, 7, 171}, {flat, 2, 5, 2747}, {mixed, 1, 6, 179}, {chain, 1, 6, 157},
	} {
		t.Run(fmt.Sprintf("%v/slots=%d/packets=%d", c.parent, c.slots, c.packets), func(t *testing.T) {
			t.Parallel()
			if states := explore(t, newSystem(c.parent, len(c.parent)-3, c.slots, c.packets)); states != c.states {
				t.Errorf("%d states, want %d", states, c.states)
			}
		})
	}
}

// Slots that no packet has gone through have no memory for sums, and others as much as they need.
func TestMemoryForSumsComesWithPackets(t *testing.T) {
	s := newSlots(4, 1<<20, 2, true)
	if _, err := s.add(0, packet{number: 5, words: make([]float32, 10)}); err != nil {
		t.Fatal(err)
	}
	for i := range s.pools {
		if has := cap(s.pools[i].sum); has > 16 || has > 0 && i != 5 {
			t.Errorf("pool %d has memory for %d values", i, has)
		}
	}
}
