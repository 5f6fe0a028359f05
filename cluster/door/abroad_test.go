package door_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// country is a process with one node, a or b, that has sessions with the other. It is what a
// carrier is between two of them.
type country struct {
	house
	strict   bool
	node     int32
	life     session.Life
	sessions *door.Sessions
	world    *abroadWorld
	handled  []receipt
}

// receipt is a message that was handled.
type receipt struct {
	from, life session.Life // of its sender, and of the node
	index      uint32
	at         time.Duration
}

// abroadWorld is a time that both countries have.
type abroadWorld struct {
	t         *rapid.T
	now       time.Duration
	calendar  []occasion
	countries [2]*country
	random    *rand.Rand
	loses     float64 // of what the carrier carries
	sent      []shipment
}

// occasion is what happens at an instant.
type occasion struct {
	at time.Duration
	do func()
}

// shipment is a message that was sent.
type shipment struct {
	from, life session.Life // the sender's node, and its life
	index      uint32
	at         time.Duration
	tensor     *protos.Tensor
}

func (w *abroadWorld) enter(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(w.calendar, at+1, func(o occasion, at time.Duration) int { return int(o.at - at) })
	w.calendar = slices.Insert(w.calendar, i, occasion{at, do})
}

func (w *abroadWorld) run() {
	for steps := 0; len(w.calendar) > 0; steps++ {
		if steps > 100_000 {
			w.t.Fatalf("no end at %v", w.now)
		}
		o := w.calendar[0]
		w.calendar = w.calendar[1:]
		w.now = max(w.now, o.at)
		o.do()
	}
}

func (c *country) Away(node int32) bool     { return node != c.node }
func (c *country) Trip(int32) time.Duration { return ms }
func (c *country) ID(node int32) string     { return []string{"a", "b"}[node] }

// Travel has a copy reach the other country, or not.
func (c *country) Travel(p *door.Parcel) {
	if p.Again > 0 {
		second := p.Second()
		c.leave(&second)
	}
	c.leave(p)
}

func (c *country) leave(p *door.Parcel) {
	w := c.world
	w.enter(p.Arrival, func() {
		if err := p.Arrive(w.now); err != nil {
			w.t.Error(err)
		}
		f, err := p.Packet.Frame()
		if err != nil {
			w.t.Fatal(err)
		}
		p.Packet.Recycle()
		if w.random.Float64() < w.loses {
			f.Release()
			return
		}
		other := w.countries[1-c.node]
		w.enter(w.now+ms/2, func() { other.sessions.Admit(w.now, other.node, &f) })
	})
}

func (c *country) Hand(p *door.Parcel) {
	head := p.Frame.Head.(*protos.Chunk)
	if got := p.Frame.Tensors[0].Data; got[0] != float32(head.Index) || got[1] != float32(head.Index) {
		c.world.t.Fatalf("message %d has values %v, which its sender wrote later", head.Index, got)
	}
	c.handled = append(c.handled, receipt{session.Life(head.Round), c.life, head.Index, c.world.now})
	p.Frame.Release()
}

func (c *country) Wake(f *door.Flow, at time.Duration, vain bool) {
	if vain {
		c.world.t.Fatalf("vain at %v", c.world.now)
	}
	c.world.enter(at, func() { c.sessions.Wake(c.world.now, f, at) })
}

// send sends the next message, with a view of a tensor, and then overwrites the tensor. A ring does so
// when it learns of the delivery before the acknowledgement arrives. Strict doors report the write.
func (c *country) send() {
	w := c.world
	s := shipment{session.Life(c.node), c.life, uint32(len(w.sent)), w.now, c.pool.Get(3)}
	fill := func(v float32) {
		for i := range s.tensor.Data {
			s.tensor.Data[i] = v
		}
	}
	fill(float32(s.index))
	w.sent = append(w.sent, s)
	m := protos.NewMessage(&protos.Chunk{Index: s.index, Round: uint64(c.life)}, s.tensor.View(1, 3))
	if p, err := c.Pass(w.now, c.node, 1-c.node, "x", wire.User, m); err != nil || !p.Kept {
		w.t.Fatalf("%+v, error %v", p, err)
	}
	if !c.strict {
		fill(-1)
	}
}

// crash has the node live again.
func (c *country) crash(left bool) {
	c.sessions.End(c.node, left)
	c.life++
	c.sessions.Begin(c.node, c.life)
}

func newAbroad(t *rapid.T) *abroadWorld {
	edge := link.Config{Delay: link.Uniform{Min: ms, Max: 3 * ms}, Repeat: 0.2,
		Reorder: rapid.Bool().Draw(t, "reorder"), Loss: link.Loss{Drop: true,
			Probability: rapid.SampledFrom([]float64{0, 0.1, 0.3}).Draw(t, "loss")}}
	w := &abroadWorld{t: t, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		loses: rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "carrier loses")}
	first := session.Life(rapid.SampledFrom([]uint16{0, 1<<16 - 1}).Draw(t, "life"))
	for i := range w.countries {
		strict := rapid.Bool().Draw(t, "strict")
		c := &country{house: open(strict, edge), strict: strict, node: int32(i), life: first, world: w}
		c.Encodes = true
		c.sessions = c.KeepSessions(c)
		c.sessions.Reach(c, 4)
		c.sessions.Begin(0, first) // the beginning is known
		c.sessions.Begin(1, first)
		w.countries[i] = c
	}
	return w
}

// check compares what was handled with what was sent.
func (w *abroadWorld) check(again time.Duration) {
	for i, c := range w.countries {
		type pair struct{ from, life session.Life }
		last := map[pair]int64{}
		got := map[uint32]receipt{}
		for _, r := range c.handled {
			k := pair{r.from, r.life}
			if before, ok := last[k]; ok && before >= int64(r.index) {
				w.t.Fatalf("node %d handled %d after %d", i, r.index, before)
			}
			last[k] = int64(r.index)
			got[r.index] = r
		}
		for _, s := range w.sent {
			if int(s.from) == i {
				continue
			}
			if r, ok := got[s.index]; s.at >= again && (!ok || r.life != c.life) {
				w.t.Fatalf("message %d of %v to node %d: handled %v, %+v", s.index, s.at, i, ok, r)
			}
		}
	}
	for _, s := range w.sent {
		if !s.tensor.Sole() {
			w.t.Fatalf("the tensor of message %d is still held", s.index)
		}
	}
}

func TestSessionsBetweenProcessesDeliverOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAbroad(t)
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			c := w.countries[rapid.IntRange(0, 1).Draw(t, "from")]
			w.enter(time.Duration(rapid.IntRange(0, 100).Draw(t, "at"))*ms, c.send)
		}
		w.run()
		w.check(0)
	})
}

// Whoever crashes, or leaves, while sessions are at work: no life handles a message twice or after
// a later one, and what is sent when both live for good is handled.
func TestSessionsBetweenProcessesSurviveTheLivesOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAbroad(t)
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			c := w.countries[rapid.IntRange(0, 1).Draw(t, "from")]
			w.enter(time.Duration(rapid.IntRange(0, 100).Draw(t, "at"))*ms, c.send)
		}
		var last time.Duration
		for range rapid.IntRange(1, 5).Draw(t, "ends") {
			c, left := w.countries[rapid.IntRange(0, 1).Draw(t, "whose")], rapid.Bool().Draw(t, "left")
			at := time.Duration(rapid.IntRange(0, 100).Draw(t, "ends at"))*ms + ms/2
			last = max(last, at)
			w.enter(at, func() { c.crash(left) })
		}
		w.run()
		for _, c := range w.countries {
			c.sessions.End(c.node, false) // what a missing message of a former life keeps waiting
		}
		w.check(last)
	})
}

func TestHeaderOfNoNodeElsewhereIsDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAbroad(t)
		c := w.countries[0]
		for _, node := range []int32{0, 4, session.MaxNode - 1} {
			tensor := c.pool.Get(1)
			c.sessions.Admit(0, 0, &wire.Frame{Kind: wire.User, Head: &protos.Chunk{}, InSession: true,
				Tensors: []*protos.Tensor{tensor.Retain()}, Session: session.Header{Node: node, Answers: true}})
			if !tensor.Sole() || len(c.handled) > 0 || len(w.calendar) > 0 {
				t.Errorf("node %d: taken in", node)
			}
		}
	})
}
