package peer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// seat is what a Lead asks of the world.
type seat struct {
	actors.Env
	node   int
	view   *actors.View
	failed error
}

func (s *seat) Node() int          { return s.node }
func (s *seat) View() *actors.View { return s.view }
func (s *seat) Fail(err error)     { s.failed = err }

// whole is a peer beside its whole clock.
type whole struct {
	seat
	lead    *Lead
	clock   []uint64
	present bool
	joins   bool // and has no model yet
}

// letter is what a peer knew when it sent a message: as a head in bytes, and whole.
type letter struct {
	from, to int
	head     []byte
	clock    []uint64
}

// crowd is peers to which things happen by chance.
type crowd struct {
	t      *testing.T
	random *rand.Rand
	peers  []whole
	mail   []letter
	number uint64 // of the view
	bound  int
}

func newCrowd(t *testing.T, seed uint64) *crowd {
	random := rand.New(rand.NewPCG(seed, 1))
	c := &crowd{t: t, random: random, bound: random.IntN(4),
		peers: make([]whole, []int{1, 2, 3, 5, 9, 70, 150}[random.IntN(7)])}
	for i := range c.peers {
		c.peers[i].node, c.peers[i].present = i, i == 0 || random.IntN(5) > 0
	}
	c.announce()
	for i := range c.peers {
		c.begin(i)
	}
	return c
}

// announce gives all peers a new view. Peers with an odd number have another role.
func (c *crowd) announce() {
	c.number++
	members := make([]actors.Member, len(c.peers))
	for i := range members {
		members[i] = actors.Member{Role: []string{"peer", "other"}[i%2], Present: c.peers[i].present}
	}
	view := actors.NewView(c.number, members, nil, nil)
	for i := range c.peers {
		c.peers[i].view = view
	}
}

// begin begins a life of a node.
func (c *crowd) begin(node int) {
	p := &c.peers[node]
	p.lead, p.clock = NewLead(p, c.bound), make([]uint64, len(c.peers))
}

// write puts what a peer knows into the mail.
func (c *crowd) write(from, to int) {
	p, m := &c.peers[from], &protos.Clock{Node: int32(from)}
	m.Floor, m.Others = p.lead.Append(nil)
	head, err := proto.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mail = append(c.mail, letter{from, to, head, slices.Clone(p.clock)})
}

// read hands a message of the mail to its receiver.
func (c *crowd) read(m letter) {
	p, head := &c.peers[m.to], &protos.Clock{}
	if err := proto.Unmarshal(m.head, head); err != nil {
		c.t.Fatal(err)
	}
	if !p.present {
		return
	}
	if p.joins && c.random.IntN(2) == 0 { // a Welcome
		p.joins = false
		steps := max(m.clock[m.from], p.lead.MergeEarlier(head.Node, head.Floor, head.Others))
		p.lead.Finish(steps)
		p.merge(m.clock)
		p.clock[m.to] = max(m.clock[m.from], m.clock[m.to])
		return
	}
	if told, is := p.lead.Merge(head.Node, head.Floor, head.Others), p.merge(m.clock); told != is {
		c.t.Fatalf("what is said to be new is %v, and is %v", told, is)
	}
}

// merge is Lead.Merge of whole clocks.
func (p *whole) merge(clock []uint64) (news bool) {
	for i, steps := range clock {
		if i != p.node && steps > p.clock[i] {
			p.clock[i] = steps
			news = true
		}
	}
	return news
}

// slowest is Lead.Slowest of whole clocks.
func (p *whole) slowest() int {
	slowest := p.node
	for i, m := range p.view.Members {
		if m.Present && m.Role == p.view.Members[p.node].Role && p.clock[i] < p.clock[slowest] {
			slowest = i
		}
	}
	return slowest
}

// happen lets one thing happen.
func (c *crowd) happen() {
	node, other := c.random.IntN(len(c.peers)), c.random.IntN(len(c.peers))
	p := &c.peers[node]
	switch k := c.random.IntN(20); {
	case k < 7 && p.present && !p.joins:
		p.clock[node]++
		if c.random.IntN(100) == 0 {
			p.clock[node] += 1 << c.random.IntN(50)
		}
		p.lead.Finish(p.clock[node])
	case k < 11 && p.present && node != other:
		c.write(node, other)
	case k < 18 && len(c.mail) > 0: // in any order, some twice, one in five never
		i := c.random.IntN(len(c.mail))
		if c.random.IntN(5) > 0 {
			c.read(c.mail[i])
		}
		if c.random.IntN(4) > 0 {
			c.mail = slices.Delete(c.mail, i, i+1)
		}
	case k == 18 && node > 0 && p.present:
		p.present = false
		c.announce()
	case k == 19 && !p.present:
		p.present, p.joins = true, true
		c.announce()
		c.begin(node)
	}
}

// What peers know of each other, whom they wait for, and after how many steps a node goes on that
// has left and come again, is what whole clocks say, after whatever happens.
func TestPeersKnowOfEachOtherWhatWholeClocksSay(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	for seed := range uint64(40) {
		c := newCrowd(t, seed)
		for event := range 3000 {
			c.happen()
			for i := range c.peers {
				p := &c.peers[i]
				if p.failed != nil || !slices.Equal(p.clock, p.lead.clock) {
					t.Fatalf("seed %d, event %d: node %d knows %v (%v), whole clock: %v", seed, event, i, p.lead.clock,
						p.failed, p.clock)
				}
				slowest, held := p.lead.Slowest()
				want := p.slowest()
				if slowest != want || held != (p.clock[i]-p.clock[want] > uint64(c.bound)) {
					t.Fatalf("seed %d, event %d: node %d waits for %d: %v, by its whole clock for %d: %v, %v", seed,
						event, i, slowest, held, want, p.clock, p.present)
				}
			}
		}
	}
}

// alone is the Lead of node 0 of n.
func alone(n, bound int) (*seat, *Lead) {
	members := make([]actors.Member, n)
	for i := range members {
		members[i] = actors.Member{Role: "peer", Present: true}
	}
	s := &seat{view: actors.NewView(1, members, nil, nil)}
	return s, NewLead(s, bound)
}

// numbers are varints.
func numbers(list ...uint64) (others []byte) {
	for _, x := range list {
		others = protowire.AppendVarint(others, x)
	}
	return others
}

// The ZigZag of 2, −1 and 995 is 4, 1 and 1990.
func TestHeadNamesThoseWhoAreNotAtTheFloor(t *testing.T) {
	_, l := alone(6, 0)
	l.clock = []uint64{5, 5, 7, 5, 4, 1000}
	floor, others := l.Append(nil)
	if want := numbers(2<<3|3, 1<<3, 7, 1982); floor != 5 || !slices.Equal(others, want) {
		t.Errorf("floor %d, others %v, want 5, %v", floor, others, want)
	}
}

// A lead of 2 leaves four numbers of steps, of which the commonest is not named and the others take
// a byte each where less than 16 nodes are skipped.
func TestHeadsOfPeersCloseToEachOtherTakeAByteForEachThatIsNotAtTheFloor(t *testing.T) {
	const n = 1000
	random := rand.New(rand.NewPCG(1, 1))
	for _, level := range []float64{1, 0.99, 0.6, 0.25} {
		_, l := alone(n, 2)
		apart := 0
		for i := range l.clock {
			if l.clock[i] = 500; random.Float64() > level {
				l.clock[i] += 1 + random.Uint64N(3)
				apart++
			}
		}
		if l.clock[0] == 500 { // the first is not like the others
			l.clock[0]++
			apart++
		}
		head := &protos.Clock{}
		head.Floor, head.Others = l.Append(nil)
		most := 10 + apart + n/16
		if size := proto.Size(head); size > most || head.Floor != 500 && level > 0.5 {
			t.Errorf("%d of %d nodes are ahead: %d bytes, want %d at most, floor %d", apart, n, size, most, head.Floor)
		}
	}
}

func TestHeadsThatMakeNoSenseEndTheRun(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		what   string
		bound  int
		floor  uint64
		others []byte
		fails  bool
	}{
		{"nothing", 0, 0, nil, false},
		{"the highest floor", 0, most, nil, false},
		{"a floor that is too high", 0, most + 1, nil, true},
		{"the highest of all floors", 0, math.MaxUint64, numbers(0), true},
		{"one step below the floor of 0", 0, 0, numbers(0), true},
		{"one step above the highest floor", 0, most, numbers(1), true},
		{"as far above the floor as can be", 0, 0, numbers(7, 2*most-8), false},
		{"a difference that is too large", 0, 5, numbers(7, math.MaxUint64), true},
		{"a difference that is missing", 0, 5, numbers(1, 7), true},
		{"a difference that is cut short", 0, 5, []byte{7, 0x80}, true},
		{"an entry that is cut short", 0, 5, []byte{1, 0x80}, true},
		{"an entry of more than 64 bits", 0, 5, slices.Repeat([]byte{0xff}, 11), true},
		{"the last node", 0, 5, numbers(3<<3 | 1), false},
		{"a node beyond the last", 0, 5, numbers(4<<3 | 1), true},
		{"a node beyond the last, after another", 0, 5, numbers(3<<3|1, 1), true},
		{"a node beyond any", 0, 5, numbers(math.MaxUint64 - 7 | 1), true},
		{"more nodes than there are", 0, 5, numbers(1, 1, 1, 1, 1), true},
		{"nothing, without a bound", -1, 0, nil, false},
		{"a floor, without a bound", -1, 1, nil, true},
		{"a node, without a bound", -1, 0, numbers(1), true},
	} {
		for _, earlier := range []bool{false, true} {
			s, l := alone(4, c.bound)
			if earlier {
				l.MergeEarlier(1, c.floor, c.others)
			} else {
				l.Merge(1, c.floor, c.others)
			}
			if (s.failed != nil) != c.fails {
				t.Errorf("%s: %v", c.what, s.failed)
			}
			if s.failed == nil && l.Bounded() && slices.Max(l.clock) > most {
				t.Errorf("%s: %v", c.what, l.clock)
			}
		}
	}
}

// Whatever comes, no number falls, none is beyond the bound, and a peer's own is its own.
func TestHeadsOfAnyNumbersAreRefusedOrRaiseSome(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	number := func() uint64 { return random.Uint64() >> random.IntN(64) }
	accepted := 0
	for range 20_000 {
		s, l := alone(1+random.IntN(9), 1)
		for i := range l.clock {
			l.clock[i] = random.Uint64N(20)
		}
		before, others := slices.Clone(l.clock), make([]uint64, random.IntN(6))
		for i := range others {
			others[i] = number()
		}
		form := numbers(others...)
		l.Merge(0, number(), form[:len(form)-min(len(form), random.IntN(2))])
		for i, steps := range l.clock {
			if steps < before[i] || steps > math.MaxInt64 || i == 0 && steps != before[0] {
				t.Fatalf("%v became %v", before, l.clock)
			}
		}
		if s.failed == nil {
			accepted++
		}
	}
	if accepted < 1000 || accepted > 19_000 {
		t.Errorf("%d heads were accepted; the test tells little", accepted)
	}
}
