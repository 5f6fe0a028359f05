package table_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
)

// dumb is a table as a map.
type dumb struct {
	of     *table.Table
	assign bool
	values map[uint64][]float32
}

func (d *dumb) get(key uint64) []float32 {
	if v := d.values[key]; v != nil {
		return v
	}
	v := make([]float32, d.of.Width)
	if d.of.Initial != nil {
		d.of.Initial(key, v)
	}
	return v
}

func (d *dumb) push(keys []uint64, values []float32) {
	for i, key := range keys {
		v := d.get(key)
		for j := range v {
			if d.assign {
				v[j] = 0
			}
			v[j] += values[i*len(v)+j]
		}
		d.values[key] = v
	}
}

// tables are one of each sort.
func tables() []*table.Table {
	byKey := func(key uint64, v []float32) { v[0] = float32(key % 7) }
	return []*table.Table{
		{Name: "dense", Keys: 100, Width: 2, Update: table.Add(), Initial: byKey},
		{Name: "sparse", Keys: 1 << 40, Width: 1, Sparse: true, Update: table.Add(), Initial: byKey},
		{Name: "all", Width: 3, Sparse: true, Update: table.Assign(), Shards: 5},
		{Name: "parts", Keys: 31, Width: 1, Update: table.Assign(), Shards: 4},
	}
}

// operation is a task of a random program.
type operation struct {
	table       int
	kind        int // 0 push, 1 pull, 2 both
	ranged      bool
	keys        []uint64
	first, last uint64
	values      []float32
}

func drawOperation(r *rapid.T, all []*table.Table) operation {
	o := operation{table: rapid.IntRange(0, len(all)-1).Draw(r, "table"), kind: rapid.IntRange(0, 2).Draw(r, "kind")}
	t := all[o.table]
	last := t.Keys - 1
	key := rapid.Uint64Range(0, last)
	if t.Sparse { // near shards' ends, and again and again the same
		key = rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, 5, 6, last / 2, last/2 + 1, last - 1, last}), key)
	}
	if o.ranged = rapid.Bool().Draw(r, "ranged"); o.ranged {
		a, b := key.Draw(r, "a"), key.Draw(r, "b")
		o.first, o.last = min(a, b), max(a, b)
		if t.Sparse && o.kind != 1 {
			o.last = o.first + min(o.last-o.first, 9)
		}
		for k := o.first; !t.Sparse || o.kind != 1; k++ {
			if o.keys = append(o.keys, k); k == o.last {
				break
			}
		}
	} else {
		o.keys = rapid.SliceOfNDistinct(key, 1, 20, rapid.ID).Draw(r, "keys")
		slices.Sort(o.keys)
	}
	if o.kind != 1 {
		for range len(o.keys) * t.Width {
			o.values = append(o.values, float32(rapid.IntRange(-9, 9).Draw(r, "value")))
		}
	}
	return o
}

// begin begins an operation.
func (o *operation) begin(r *rapid.T, u *user, of *table.Table) table.Timestamp {
	keys, err := u.List(of.Name, o.keys)
	if o.ranged {
		keys, err = u.Range(of.Name, o.first, o.last)
	}
	if err != nil {
		r.Fatal(err)
	}
	switch o.kind {
	case 0:
		return u.Push(u.ctx, keys, vector(o.values...))
	case 1:
		return u.Pull(u.ctx, keys)
	}
	return u.PushPull(u.ctx, keys, vector(o.values...))
}

// check carries an operation out on the dumb table and compares what was pulled.
func (o *operation) check(r *rapid.T, d *dumb, done table.Done) {
	if o.kind != 1 {
		d.push(o.keys, o.values)
	}
	if o.kind == 0 {
		if done.Values != nil {
			r.Fatal("a push has values")
		}
		return
	}
	keys := o.keys
	if o.ranged && d.of.Sparse {
		keys = nil
		for key := range d.values {
			if key >= o.first && key <= o.last {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if !slices.Equal(keys, done.Keys) {
			r.Fatalf("keys %v, want %v", done.Keys, keys)
		}
	}
	var want []float32
	for _, key := range keys {
		want = append(want, d.get(key)...)
	}
	if !slices.Equal(want, done.Values.Data) {
		r.Fatalf("%+v: pulled %v, want %v", o, done.Values.Data, want)
	}
	done.Values.Release()
}

func dumbs(all []*table.Table) (ds []*dumb) {
	for _, t := range all {
		ds = append(ds, &dumb{of: t, assign: t.Name == "all" || t.Name == "parts", values: map[uint64][]float32{}})
	}
	return ds
}

// sequence starts all operations at once, and compares each result with a map.
type sequence struct {
	quiet
	*rapid.T
	ops     []operation
	plain   []*dumb
	checked int
}

func (p *sequence) State(s *state.State) { state.Int(s, "checked", &p.checked) }

func (p *sequence) start(u *user) {
	for i := range p.ops {
		p.ops[i].begin(p.T, u, p.plain[p.ops[i].table].of)
	}
}

func (p *sequence) done(u *user, d table.Done) {
	if int(d.Time) != p.checked+1 {
		p.Fatalf("task %d finishes after %d", d.Time, p.checked)
	}
	p.ops[p.checked].check(p.T, p.plain[p.ops[p.checked].table], d)
	p.checked++
	u.over = p.checked == len(p.ops)
}

// With a bounded delay of 0 all is as a program that does one thing after another, wherever the
// shards are.
func TestSequentialTasksAreThoseOfAMapWhileServersComeAndGo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := tables()
		draw := rapid.Custom(func(r *rapid.T) operation { return drawOperation(r, all) })
		ops := rapid.SliceOfN(draw, 1, 60).Draw(r, "ops")
		seed, jitter := rapid.Uint64().Draw(r, "seed"), rapid.Bool().Draw(r, "jitter")
		_, err := runReplaced(t, func() *site {
			s := &site{tables: all, servers: 4, absent: []int{2, 3}, clients: 1, delay: 2 * ms, schedule: movement,
				seed: seed, jitter: jitter, strict: true}
			if s.jitter { // farewells are for links that keep the order
				s.schedule = nil
			}
			plain := dumbs(all)
			s.program = func(int) program { return &sequence{T: r, ops: ops, plain: plain} }
			return s
		})
		if err != nil {
			r.Fatal(err)
		}
	})
}

// crowd is the memory that pushers to the sparse table share.
type crowd struct {
	*testing.T
	want map[uint64]float32 // by key: sum of all pushes
	left int                // clients that still push
}

const rounds = 60 // finished tasks after which a client pushes no more

// pusher pushes to random keys. The last pusher to finish checks the table.
type pusher struct {
	quiet
	*crowd
	n      int // finished tasks
	checks bool
}

func (p *pusher) State(s *state.State) {
	state.Int(s, "n", &p.n)
	s.Bool("checks", &p.checks)
}

func (p *pusher) start(u *user) {
	for range 4 {
		p.push(u)
	}
}

func (p *pusher) push(u *user) {
	random, v := u.env.Rand("program"), float32(u.index+1)
	keys := []uint64{random.Uint64N(5), 5 + random.Uint64N(5), random.Uint64() | 1<<63}
	for _, key := range keys {
		p.want[key] += v
	}
	list, err := u.List("sparse", keys)
	if err != nil {
		p.Fatal(err)
	}
	u.Push(u.ctx, list, vector(v, v, v))
}

func (p *pusher) done(u *user, d table.Done) {
	if p.checks {
		p.check(d)
		u.over = true
		return
	}
	if p.n++; p.n < rounds {
		p.push(u)
	} else if p.n == rounds+3 { // no task of this client is open
		if p.left--; p.left > 0 {
			u.over = true
			return
		}
		p.checks = true
		keys, _ := u.Range("sparse", 0, 1<<64-1)
		u.Pull(u.ctx, keys)
	}
}

func (p *pusher) check(d table.Done) {
	for i, key := range d.Keys {
		if d.Values.Data[i] != p.want[key] {
			p.Errorf("key %d is %v, want %v", key, d.Values.Data[i], p.want[key])
		}
	}
	if len(d.Keys) != len(p.want) {
		p.Errorf("%d keys, want %d", len(d.Keys), len(p.want))
	}
}

// Sums do not depend on the order, so that nothing may be lost or be there twice, whatever is under
// way when servers come and go.
func TestNothingIsLostOrThereTwiceWhenManyPushAndServersComeAndGo(t *testing.T) {
	all := []*table.Table{
		{Name: "dense", Keys: 200, Width: 2, Update: table.Add()},
		{Name: "sparse", Width: 1, Sparse: true, Update: table.Add()},
	}
	for seed := range uint64(20) {
		scenario := func() *site {
			c := &crowd{T: t, want: map[uint64]float32{}, left: 3}
			return &site{tables: all, options: table.Options{Delay: table.Eventual}, servers: 4, absent: []int{2, 3},
				clients: 3, delay: time.Duration(seed%8*3+1) * ms, schedule: movement, seed: seed, strict: true,
				program: func(int) program { return &pusher{crowd: c} }}
		}
		scenario().must(t)
		if seed%8 == 0 {
			if _, err := runReplaced(t, scenario); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// returner pulls a range ten times. The length of the range depends on the incarnation.
type returner struct {
	quiet
	*testing.T
	lives *int
	last  uint64
	n     int
}

func (p *returner) State(s *state.State) {
	state.Int(s, "last", &p.last)
	state.Int(s, "n", &p.n)
}

func (p *returner) start(u *user) {
	*p.lives++
	p.last = uint64(9 * *p.lives)
	p.pull(u)
}

func (p *returner) pull(u *user) {
	keys, err := u.Range("dense", 0, p.last)
	if err != nil {
		p.Fatal(err)
	}
	u.Pull(u.ctx, keys)
}

func (p *returner) done(u *user, d table.Done) {
	if len(d.Values.Data) != 2*(int(p.last)+1) {
		p.Errorf("%d values", len(d.Values.Data))
	}
	p.n++
	u.over = p.n == 10
	p.pull(u)
}

// What comes for a client's former life, before anybody has heard of its end, is none of its
// answers.
func TestClientThatReturnsTakesNoAnswersOfItsFormerLife(t *testing.T) {
	for at := range time.Duration(20) {
		_, err := runReplaced(t, func() *site {
			lives := new(int)
			return &site{tables: tables(), servers: 1, clients: 1, delay: 8 * ms, seed: uint64(at), strict: true,
				schedule: []world.NodeChange{{At: (20 + at) * ms, Node: 1, Do: world.Crash},
					{At: (21 + at) * ms, Node: 1, Do: world.Join}},
				program: func(int) program { return &returner{T: t, lives: lives} }}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// tireless pulls the dense table without end.
type tireless struct{ quiet }

func (tireless) start(u *user) {
	keys, _ := u.Range("dense", 0, 99)
	u.Pull(u.ctx, keys)
}

func (p tireless) done(u *user, d table.Done) {
	d.Values.Release()
	p.start(u)
}

func TestServerThatCrashesEndsTheRun(t *testing.T) {
	_, err := runReplaced(t, func() *site {
		return &site{tables: tables(), servers: 2, clients: 1, delay: ms,
			schedule: []world.NodeChange{{At: 5 * ms, Node: 0, Do: world.Crash}},
			program:  func(int) program { return tireless{} }}
	})
	if err == nil {
		t.Error("the run goes on")
	}
}
