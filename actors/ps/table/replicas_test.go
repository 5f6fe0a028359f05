package table_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
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
	c.ready, c.left = make([]bool, c.clients), len(c.tables)
	for range c.tables {
		c.sent, c.answered = append(c.sent, map[uint64][]float32{}), append(c.answered, map[uint64][]float32{})
	}
	c.program = c.play
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

// play has a client push ones to some keys whenever a task has finished, and compares what it pulls
// with what it knows.
func (c *trial) play(u *user) {
	if u.index == 0 {
		c.judge(u)
		return
	}
	random, open := u.env.Rand("program"), map[table.Timestamp]func(table.Done){}
	c.ready[u.index] = false
	next := func() {
		k := random.IntN(len(c.tables))
		keys := c.draw(u, random, k)
		for _, key := range keys.all {
			count(c.sent[k], key, c.clients)[u.index]++
		}
		known := c.known(k, keys.all, u.index)
		finished := func(d table.Done) {
			for i, key := range keys.all {
				count(c.answered[k], key, c.clients)[u.index]++
				if d.Values != nil && d.Values.Data[i*c.clients+u.index] < known[i]+1 {
					c.Errorf("client %d pulls %v of key %d, and %v pushes were answered before", u.index,
						d.Values.Data[i*c.clients+u.index], key, known[i])
				}
			}
			if d.Values != nil {
				d.Values.Release()
			}
		}
		ones := make([]float32, len(keys.all)*c.clients)
		for i := range keys.all {
			ones[i*c.clients+u.index] = 1
		}
		if random.IntN(2) == 0 {
			open[u.Push(u.ctx, keys.keys, vector(ones...))] = finished
		} else {
			open[u.PushPull(u.ctx, keys.keys, vector(ones...))] = finished
		}
	}
	u.done = func(d table.Done) {
		open[d.Time](d)
		delete(open, d.Time)
		if u.env.Now() < c.end {
			next()
		}
		c.ready[u.index] = len(open) == 0
	}
	for range 3 {
		next()
	}
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

// judge waits until nobody pushes any more, and compares the tables with what was sent and
// answered.
func (c *trial) judge(u *user) {
	u.tick = func() {
		if u.env.Now() < c.end+100*ms || slices.Contains(c.ready[1:], false) {
			u.env.After(20*ms, tick{})
			return
		}
		for _, t := range c.tables {
			keys, err := u.Range(t.Name, 0, t.Keys-1)
			if err != nil {
				c.Fatal(err)
			}
			u.Pull(u.ctx, keys)
		}
	}
	u.done = func(d table.Done) {
		k := int(d.Time) - 1
		if !c.tables[k].Sparse {
			for key := range c.tables[k].Keys {
				d.Keys = append(d.Keys, key)
			}
		}
		c.check(k, d.Keys, d.Values.Data)
		c.left--
		u.over = c.left == 0
	}
	u.tick()
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
			if seed%20 > 0 {
				return
			}
			again := newTrial(t, seed)
			if _, err := again.run(t); err != nil || again.digest != c.digest {
				t.Errorf("digest %x, then %x: %v", c.digest, again.digest, err)
			}
		})
	}
}

// adder is a client of which a checkpoint can have all: it pushes to lists and pulls them.
type adder struct {
	env    actors.Env
	client *table.Client
	sum    float32
}

func (a *adder) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	done, _ := a.client.Receive(ctx, m)
	for _, d := range done {
		a.sum += d.Values.Data[0]
		d.Values.Release()
		a.push(ctx)
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		a.push(ctx)
		a.push(ctx)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, a.env, head, vector(a.sum), 0)
	}
}

func (a *adder) push(ctx actor.Context) {
	first := a.env.Rand("keys").Uint64N(50)
	keys, err := a.client.List("sparse", []uint64{first, 100, 1 << 39})
	if err != nil {
		a.env.Fail(err)
		return
	}
	a.client.PushPull(ctx, keys, vector(1, 2, 3))
}

// A run with a server that crashes is the same when it is saved, and when it goes on from any of
// its states.
func TestRunOfCopiedTablesGoesOnFromEachCheckpointToTheSameEnd(t *testing.T) {
	played := func(from []byte, saves *sim.Checkpoints) uint64 {
		s := &site{tables: tables(), options: table.Options{Delay: table.Eventual}, servers: 3, clients: 3, seed: 5,
			time: 900 * ms, from: from, saves: saves, spread: &shards.Servers{},
			schedule: []world.NodeChange{{At: 100 * ms, Node: 1, Do: world.Crash},
				{At: 160 * ms, Node: 1, Do: world.Join}, {At: 400 * ms, Node: 0, Do: world.Leave},
				{At: 650 * ms, Node: 4, Do: world.Crash}},
			links: &link.Config{Delay: link.Uniform{Min: ms, Max: 9 * ms},
				Loss: link.Loss{Drop: true, Probability: 0.1}},
			actor: func(env actors.Env, c *table.Client) actor.Actor { return &adder{env: env, client: c} }}
		s.spread.SetDefaults()
		s.spread.Replicas = 1
		s.must(t)
		return s.digest
	}
	var states [][]byte
	want := played(nil, nil)
	got := played(nil, &sim.Checkpoints{Every: 93 * ms, Save: func(_ time.Duration, state []byte) error {
		states = append(states, state)
		return nil
	}})
	if got != want || len(states) < 9 {
		t.Errorf("digest %x with %d checkpoints, %x without", got, len(states), want)
	}
	for i, state := range states {
		none := func(time.Duration, []byte) error { return nil }
		if got := played(state, &sim.Checkpoints{Every: 93 * ms, Save: none}); got != want {
			t.Errorf("digest %x from checkpoint %d, want %x", got, i, want)
		}
	}
}
