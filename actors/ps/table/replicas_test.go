package table_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
)

// trial is a random run of probes: value w of each key is how many pushes of client w have been
// taken in there, exactly. The first client pushes nothing, and looks at all keys in the end.
type trial struct {
	site
	*testing.T
	end   time.Duration
	ready []bool // by client: all that it has pushed in its present life is answered
	left  int    // tables that are not judged
	// By table, key and client: pushes that were sent, and those that were answered.
	sent, answered []map[uint64][]float32
}

func newTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 78))
	c := &trial{T: t, end: 1500 * ms}
	c.site = site{seed: seed, servers: 3 + r.IntN(2), clients: 3 + r.IntN(3), strict: seed%2 == 0, overs: 1,
		options: table.Options{Delay: []int{table.Eventual, 0, 3}[r.IntN(3)], WholeLists: r.IntN(4) == 0}}
	c.spread = &shards.Servers{}
	c.spread.SetDefaults()
	c.spread.Replicas = 1 + r.IntN(2)
	down := table.Optimizer(optim.SGD{Rate: optim.Constant(-1)})
	c.tables = []*table.Table{
		{Name: "dense", Keys: 40, Width: c.clients, Update: table.Add(), Shards: 1 + r.IntN(6)},
		{Name: "sparse", Width: c.clients, Sparse: true, Update: down, Shards: 1 + r.IntN(6)},
	}
	c.links = new(simtest.Links(r))
	c.disturb(r)
	c.ready, c.left, c.replaced = make([]bool, c.clients), len(c.tables), true
	for range c.tables {
		c.sent, c.answered = append(c.sent, map[uint64][]float32{}), append(c.answered, map[uint64][]float32{})
	}
	c.program = func(index int) program {
		if index == 0 {
			return &judge{trial: c}
		}
		return &player{trial: c, open: map[table.Timestamp]*pending{}}
	}
	return c
}

// disturb draws what happens to nodes. As many servers may crash at a time as there are replicas;
// until there are that many again takes a while where links lose.
func (c *trial) disturb(r *rand.Rand) {
	quiet := 0 * ms
	for at := time.Duration(20+r.IntN(60)) * ms; at < c.end; at += time.Duration(40+r.IntN(200)) * ms {
		node := r.IntN(c.servers + c.clients)
		back := at + time.Duration(8+r.IntN(60))*ms
		switch {
		case node == c.servers || node < c.servers && at < quiet:
			continue
		case node < c.servers:
			quiet = back + 150*ms
			if c.links.Loss.Drop {
				quiet = back + 1000*ms
			}
		}
		do := []world.NodeEvent{world.Crash, world.Crash, world.Leave}[r.IntN(3)]
		c.schedule = append(c.schedule, world.NodeChange{At: at, Node: node, Do: do},
			world.NodeChange{At: back, Node: node, Do: world.Join})
	}
}

// player pushes ones to random keys whenever a task has finished. It checks that each pulled value
// contains the client's answered pushes.
type player struct {
	quiet
	*trial
	open map[table.Timestamp]*pending
}

// pending is an unfinished task.
type pending struct {
	table int
	keys  []uint64
	known []float32 // by key: answered pushes of the client when the task started
}

func (p *player) State(s *state.State) {
	state.Table(s, "open", &p.open, state.IntKey, func(s *state.State, of **pending) {
		if *of == nil {
			*of = &pending{}
		}
		state.Int(s, "table", &(*of).table)
		state.Ints(s, "keys", &(*of).keys)
		state.Floats(s, "known", &(*of).known)
	})
}

func (p *player) start(u *user) {
	p.ready[u.index] = false
	for range 3 {
		p.next(u)
	}
}

func (p *player) next(u *user) {
	random := u.env.Rand("program")
	k := random.IntN(len(p.tables))
	keys := p.draw(u, random, k)
	for _, key := range keys.all {
		count(p.sent[k], key, p.clients)[u.index]++
	}
	ones := make([]float32, len(keys.all)*p.clients)
	for i := range keys.all {
		ones[i*p.clients+u.index] = 1
	}
	of := &pending{k, keys.all, p.known(k, keys.all, u.index)}
	if random.IntN(2) == 0 {
		p.open[u.Push(u.ctx, keys.keys, vector(ones...))] = of
	} else {
		p.open[u.PushPull(u.ctx, keys.keys, vector(ones...))] = of
	}
}

func (p *player) done(u *user, d table.Done) {
	of := p.open[d.Time]
	delete(p.open, d.Time)
	for i, key := range of.keys {
		count(p.answered[of.table], key, p.clients)[u.index]++
		if d.Values != nil && d.Values.Data[i*p.clients+u.index] < of.known[i]+1 {
			p.Errorf("client %d pulls %v of key %d, and %v pushes were answered before", u.index,
				d.Values.Data[i*p.clients+u.index], key, of.known[i])
		}
	}
	if d.Values != nil {
		d.Values.Release()
	}
	if u.env.Now() < p.end {
		p.next(u)
	}
	p.ready[u.index] = len(p.open) == 0
}

// drawn are keys of a push.
type drawn struct {
	all  []uint64
	keys *table.Keys
}

// draw draws keys: again and again the same lists, so that servers know them, and some ranges.
func (c *trial) draw(u *user, r *rand.Rand, k int) drawn {
	var d drawn
	var err error
	of := c.tables[k]
	if r.IntN(3) == 0 {
		first := r.Uint64N(36)
		d.all = []uint64{first, first + 1, first + 2}
		d.keys, err = u.Range(of.Name, first, first+2)
	} else {
		for key := r.Uint64N(7); key < 40; key += 3 + key%5 {
			if d.all = append(d.all, key); of.Sparse {
				d.all[len(d.all)-1] |= key % 4 << 62
			}
		}
		slices.Sort(d.all)
		d.keys, err = u.List(of.Name, d.all)
	}
	if err != nil {
		c.Fatal(err)
	}
	return d
}

// known are how many pushes of a client to keys have been answered.
func (c *trial) known(k int, keys []uint64, client int) (counts []float32) {
	for _, key := range keys {
		counts = append(counts, count(c.answered[k], key, c.clients)[client])
	}
	return counts
}

// count is what there is of a key.
func count(of map[uint64][]float32, key uint64, clients int) []float32 {
	if of[key] == nil {
		of[key] = make([]float32, clients)
	}
	return of[key]
}

// judge waits until all clients have stopped pushing. Then it compares the tables with the counts of
// sent and answered pushes.
type judge struct {
	quiet
	*trial
}

func (p *judge) start(u *user) { p.tick(u) }

func (p *judge) tick(u *user) {
	if u.env.Now() < p.end+100*ms || slices.Contains(p.ready[1:], false) {
		u.env.After(20*ms, tick{})
		return
	}
	for _, t := range p.tables {
		keys, err := u.Range(t.Name, 0, t.Keys-1)
		if err != nil {
			p.Fatal(err)
		}
		u.Pull(u.ctx, keys)
	}
}

func (p *judge) done(u *user, d table.Done) {
	k := int(d.Time) - 1
	if !p.tables[k].Sparse {
		for key := range p.tables[k].Keys {
			d.Keys = append(d.Keys, key)
		}
	}
	p.check(k, d.Keys, d.Values.Data)
	p.left--
	u.over = p.left == 0
}

// check compares the values of a table with the counts.
func (c *trial) check(k int, keys []uint64, values []float32) {
	for key, answered := range c.answered[k] {
		if slices.Max(answered) > 0 && !slices.Contains(keys, key) {
			c.Errorf("%s: key %d has no values", c.tables[k].Name, key)
		}
	}
	for i, key := range keys {
		sent, answered := count(c.sent[k], key, c.clients), count(c.answered[k], key, c.clients)
		for w, v := range values[i*c.clients : (i+1)*c.clients] {
			if v < answered[w] || v > sent[w] {
				c.Errorf("%s: key %d has %v pushes of client %d, which has sent %v; %v were answered", c.tables[k].Name,
					key, v, w, sent[w], answered[w])
			}
		}
	}
}

// pushes are how many pushes of keys were answered.
func (c *trial) pushes() (n float32) {
	for _, of := range c.answered {
		for _, counts := range of {
			for _, v := range counts {
				n += v
			}
		}
	}
	return n
}

// Integers count what was taken in.
func TestNoAnsweredPushToARowIsLostAndNoneCountsTwice(t *testing.T) {
	number := uint64(60)
	if testing.Short() {
		number = 12
	}
	first, last := simtest.Seeds(t, number)
	for seed := first; seed <= last; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			c := newTrial(t, seed)
			_, err := c.run(t)
			if n := c.pushes(); n == 0 || n < 100 && c.links.Loss.Probability < 0.1 || c.left > 0 {
				err = errors.Join(err, fmt.Errorf("%v pushes to keys were answered, %d tables not judged", n, c.left))
			}
			if err != nil || t.Failed() {
				t.Fatalf("%v\n%d servers, %+v, %d clients, %+v\n%v\nlinks %+v", err, c.servers, c.spread, c.clients,
					c.options, c.schedule, c.links)
			}
			for _, share := range []float64{0, 0.2, 0.05} {
				if seed%4 > 0 || share != 0.05 && seed%20 > 0 {
					continue
				}
				again := newTrial(t, seed)
				again.share = share
				if _, err := again.run(t); err != nil || again.digest != c.digest || again.pushes() != c.pushes() {
					t.Errorf("digest %x, then %x after %d replacements: %v", c.digest, again.digest, again.times, err)
				}
			}
		})
	}
}

// adder pushes to lists of keys and pulls them. It shares no memory with the test, so that a checkpoint
// has its whole state.
type adder struct {
	quiet
	sum float32
}

func (a *adder) State(s *state.State) { state.Float(s, "sum", &a.sum) }
func (a *adder) value() float32       { return a.sum }

func (a *adder) start(u *user) {
	a.push(u)
	a.push(u)
}

func (a *adder) done(u *user, d table.Done) {
	a.sum += d.Values.Data[0]
	d.Values.Release()
	a.push(u)
}

func (a *adder) push(u *user) {
	first := u.env.Rand("keys").Uint64N(50)
	keys, err := u.List("sparse", []uint64{first, 100, 1 << 39})
	if err != nil {
		u.env.Fail(err)
		return
	}
	u.PushPull(u.ctx, keys, vector(1, 2, 3))
}

// A run with a server that crashes is the same when it is saved, and when it goes on from any of
// its states.
func TestRunOfCopiedTablesGoesOnFromEachCheckpointToTheSameEnd(t *testing.T) {
	played := func(from *state.Saved, saves *sim.Checkpoints) uint64 {
		s := &site{tables: tables(), options: table.Options{Delay: table.Eventual}, servers: 3, clients: 3, seed: 5,
			time: 900 * ms, from: from, saves: saves, spread: &shards.Servers{},
			schedule: []world.NodeChange{{At: 100 * ms, Node: 1, Do: world.Crash},
				{At: 160 * ms, Node: 1, Do: world.Join}, {At: 400 * ms, Node: 0, Do: world.Leave},
				{At: 650 * ms, Node: 4, Do: world.Crash}},
			links: &link.Config{Delay: link.Uniform{Min: ms, Max: 9 * ms},
				Loss: link.Loss{Drop: true, Probability: 0.1}},
			program: func(int) program { return &adder{} }}
		s.spread.SetDefaults()
		s.spread.Replicas = 1
		s.must(t)
		return s.digest
	}
	var states []*state.Saved
	want := played(nil, nil)
	got := played(nil, &sim.Checkpoints{Every: 93 * ms, Save: func(_ time.Duration, saved *state.Saved) error {
		states = append(states, saved)
		return nil
	}})
	if got != want || len(states) < 9 {
		t.Errorf("digest %x with %d checkpoints, %x without", got, len(states), want)
	}
	for i, saved := range states {
		none := func(time.Duration, *state.Saved) error { return nil }
		if got := played(saved, &sim.Checkpoints{Every: 93 * ms, Save: none}); got != want {
			t.Errorf("digest %x from checkpoint %d, want %x", got, i, want)
		}
	}
}
