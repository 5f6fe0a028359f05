package table_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// hand is a road on which a test answers, in the order that it likes.
type hand struct{ sent []*protos.Message }

func (h *hand) Send(_ actor.Context, _ int, m *protos.Message) { h.sent = append(h.sent, m) }
func (h *hand) Server(int) int                                 { return 0 }

// clock is what a test of bounded delays knows of tasks.
type clock struct {
	tau      int
	last     uint64
	after    map[uint64]uint64 // task that a task names
	missing  map[uint64]int    // answers
	started  map[uint64]bool
	finished map[uint64]bool
}

// may reports whether a task may start: all that are more than τ older have finished, and the one
// that it names.
func (c *clock) may(task uint64) bool {
	for older := uint64(1); c.tau >= 0 && older+uint64(c.tau) < task; older++ {
		if !c.finished[older] {
			return false
		}
	}
	return c.after[task] == 0 || c.finished[c.after[task]]
}

// push begins a task of one to three pieces, which perhaps names another.
func (c *clock) push(r *rapid.T, tasks *table.Tasks) {
	first := rapid.Uint64Range(0, 11).Draw(r, "first")
	keys, err := tasks.Range("t", first, 11)
	if err != nil {
		r.Fatal(err)
	}
	c.last++
	c.missing[c.last] = 3 - int(first)/4
	values := vector(make([]float32, 12-first)...)
	if c.last == 1 || rapid.Bool().Draw(r, "alone") {
		tasks.Push(nil, keys, values)
		return
	}
	c.after[c.last] = rapid.Uint64Range(1, c.last-1).Draw(r, "named")
	tasks.Push(nil, keys, values, table.Timestamp(c.after[c.last]))
}

// answer answers one of the messages under way.
func (c *clock) answer(r *rapid.T, tasks *table.Tasks, h *hand) {
	i := rapid.IntRange(0, len(h.sent)-1).Draw(r, "which")
	head := h.sent[i].Head.(*protos.Access)
	h.sent = slices.Delete(h.sent, i, i+1)
	if c.missing[head.Time]--; c.missing[head.Time] == 0 {
		c.finished[head.Time] = true
	}
	done, err := tasks.Answer(nil, &protos.Accessed{Time: head.Time, Shard: head.Shard}, nil)
	if err != nil || len(done) == 1 != c.finished[head.Time] {
		r.Fatalf("task %d: %v, %v", head.Time, done, err)
	}
}

// No task starts before all that are more than τ older have finished, nor before those that it
// names; and each starts as soon as it may.
func TestTasksStartWhenTheBoundedDelayAllowsItAndNotLater(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := &clock{tau: rapid.IntRange(-1, 5).Draw(r, "delay"), after: map[uint64]uint64{}, missing: map[uint64]int{},
			started: map[uint64]bool{}, finished: map[uint64]bool{}}
		of := &table.Table{Name: "t", Keys: 12, Width: 1, Update: table.Add(), Shards: 3}
		l, err := table.NewLayout([]*table.Table{of}, nil, 1)
		if err != nil {
			r.Fatal(err)
		}
		h := &hand{}
		tasks, err := table.NewTasks(l, table.Options{Delay: c.tau}, &protos.TensorPool{}, h, 0)
		if err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(1, 80).Draw(r, "steps") {
			if rapid.Bool().Draw(r, "answer") && len(h.sent) > 0 {
				c.answer(r, tasks, h)
			} else {
				c.push(r, tasks)
			}
			for _, m := range h.sent {
				task := m.Head.(*protos.Access).Time
				if !c.may(task) {
					r.Fatalf("task %d starts too early", task)
				}
				c.started[task] = true
			}
			for task := uint64(1); task <= c.last; task++ {
				if c.may(task) && !c.started[task] {
					r.Fatalf("task %d does not start", task)
				}
			}
		}
	})
}

// repeater pushes to the same list of keys, and stores the traffic at the end.
type repeater struct {
	quiet
	keys    *table.Keys
	n       int
	traffic *table.Traffic
}

const repeats = 20 // pushes of a repeater

func (p *repeater) State(s *state.State) { state.Int(s, "n", &p.n) }
func (p *repeater) start(u *user)        { u.Push(u.ctx, p.keys, vector(1, 2, 3, 4, 5, 6)) }

func (p *repeater) done(u *user, _ table.Done) {
	if p.n++; p.n == repeats {
		u.over, *p.traffic = true, u.Traffic()
		return
	}
	p.start(u)
}

// Sending a list by its hash saves the list, and nothing else.
func TestKeyCachingSavesTheBytesOfTheLists(t *testing.T) {
	all := []*table.Table{{Name: "t", Keys: 1 << 30, Width: 1, Sparse: true, Update: table.Add(), Shards: 4}}
	layout, err := table.NewLayout(all, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := layout.List("t", []uint64{3, 77, 1 << 20, 1<<28 + 5, 1<<29 - 1, 1 << 29})
	if err != nil {
		t.Fatal(err)
	}
	run := func(whole bool) (bytes int64, traffic table.Traffic) {
		bytes, err := runReplaced(t, func() *site {
			return &site{tables: all, options: table.Options{WholeLists: whole}, servers: 2, clients: 1, delay: ms,
				strict: true, program: func(int) program { return &repeater{keys: keys, traffic: &traffic} }}
		})
		if err != nil {
			t.Fatal(err)
		}
		return bytes, traffic
	}
	dear, all1 := run(true)
	cheap, all2 := run(false)
	// By hand: shards have 2^28 keys, and distances are {3, 73, 2^20−78}, {5, 2^28−7} and {0}.
	lists := []int64{1 + 1 + 3, 1 + 4, 1}
	var words, saved int64
	for i, n := range lists {
		words += (n + 3) / 4 * 4
		with := frame(&protos.Access{Keys: []uint64{3, 2, 1}[i]}, int(n+3)/4)
		saved += with - frame(&protos.Access{}, -1)
	}
	if all1.Sent != repeats*words || all1.Saved != 0 || all2.Sent != words || all2.Saved != (repeats-1)*words {
		t.Errorf("%+v and %+v of %d bytes", all1, all2, words)
	}
	if dear-cheap != (repeats-1)*saved {
		t.Errorf("%d bytes saved, want %d", dear-cheap, (repeats-1)*saved)
	}
}

// frame is the size of a frame with a tensor of a number of values, none below 0.
func frame(head proto.Message, values int) int64 {
	f := &wire.Frame{Head: head}
	if values >= 0 {
		f.Tensors = append(f.Tensors, vector(make([]float32, values)...))
	}
	return int64(wire.Size(f))
}

// descent pushes gradients to a list, and pulls the list after them.
type descent struct {
	quiet
	gradients map[int][]float32
	n         int
	values    *[]float32
}

func (p *descent) start(u *user) {
	keys, _ := u.List("t", []uint64{0, 1, 2, 3, 4, 5})
	for i := range p.n {
		u.Push(u.ctx, keys, vector(p.gradients[i]...))
	}
	u.Pull(u.ctx, keys)
}

func (p *descent) done(u *user, d table.Done) {
	if d.Values != nil {
		*p.values, u.over = d.Values.Data, true
	}
}

// pushes returns the values of a table after pushes to a list of keys, with or without moving shards.
func pushes(t *testing.T, update table.Update, sparse bool, moves bool, gradients map[int][]float32, n int) []float32 {
	t.Helper()
	all := []*table.Table{{Name: "t", Keys: 6, Width: 2, Sparse: sparse, Update: update, Shards: 3,
		Initial: func(key uint64, v []float32) { v[0], v[1] = float32(key)/4, -1 }}}
	var values []*[]float32
	_, err := runReplaced(t, func() *site {
		d := &descent{gradients: gradients, n: n, values: new([]float32)}
		values = append(values, d.values)
		s := &site{tables: all, servers: 4, absent: []int{2, 3}, clients: 1, delay: 3 * ms, strict: true,
			program: func(int) program { return d }}
		if moves {
			s.schedule = movement
		}
		return s
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if !slices.Equal(*v, *values[0]) {
			t.Errorf("values %v after replacements, want %v", *v, *values[0])
		}
	}
	return *values[0]
}

func TestOptimizersStepAsTheyDoOnAModelAlsoWhileShardsMove(t *testing.T) {
	gradients := map[int][]float32{}
	const n = 30
	for i := range n {
		for j := range 12 {
			gradients[i] = append(gradients[i], float32(math.Sin(float64(7*i+j))))
		}
	}
	rate := optim.Inverse{First: 0.3, Half: 5}
	for name, m := range map[string]optim.Method{"sgd": optim.SGD{Rate: rate, WeightDecay: 0.01},
		"momentum": optim.Momentum{Rate: rate, Momentum: 0.9}, "adam": optim.NewAdam(rate)} {
		want := make([]float32, 12)
		for i := range want {
			if want[i] = -1; i%2 == 0 {
				want[i] = float32(i/2) / 4
			}
		}
		o := m.New(12)
		for i := range n {
			o.Step(want, want, gradients[i])
		}
		for _, sparse := range []bool{false, true} {
			for _, moves := range []bool{false, true} {
				if got := pushes(t, table.Optimizer(m), sparse, moves, gradients, n); !slices.Equal(got, want) {
					t.Errorf("%s, sparse %v, moves %v: %v, want %v", name, sparse, moves, got, want)
				}
			}
		}
	}
}

// The proximal step is the minimum of λ|v|·η + (v − (w − ηg))²/2, found by looking everywhere.
func TestProximalStepIsTheMinimumThatItIsDefinedBy(t *testing.T) {
	const eta, penalty = 0.5, 0.3
	rule, err := table.Proximal(optim.Constant(eta), penalty).New()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []float32{-1, -0.2, 0, 0.05, 0.7} {
		for _, g := range []float32{-2, -0.3, 0, 0.1, 0.35, 1} {
			b := table.Block{Values: []float32{w}, Pushed: []float32{g}, Width: 1}
			rule.Apply(&b)
			best, at := math.Inf(1), 0.0
			for v := -3.0; v <= 3; v += 1e-4 {
				far := v - (float64(w) - eta*float64(g))
				if cost := eta*penalty*math.Abs(v) + far*far/2; cost < best {
					best, at = cost, v
				}
			}
			if math.Abs(at-float64(b.Values[0])) > 2e-4 {
				t.Errorf("from %v with %v: %v, want %v", w, g, b.Values[0], at)
			}
		}
	}
}

// foreign is a method that is none of package optim.
type foreign struct{ optim.SGD }

func (foreign) New(int) optim.Optimizer { return struct{ optim.Optimizer }{} }

func TestMessagesOfNoClientEndTheRunAndSayWhy(t *testing.T) {
	list := func(words ...float32) []*protos.Tensor { return []*protos.Tensor{vector(words...)} }
	for name, c := range map[string]struct {
		head    *protos.Access
		tensors []*protos.Tensor
		want    string
	}{
		"node":            {&protos.Access{Node: 9, Last: 1, Pull: true}, nil, "a task of node 9, of 2 nodes"},
		"shard":           {&protos.Access{Shard: 77}, nil, "shard 77 of"},
		"range":           {&protos.Access{First: 5, Last: 2}, nil, "a range of keys that is none of its shard"},
		"beyond":          {&protos.Access{Last: 100}, nil, "a range of keys that is none of its shard"},
		"no values":       {&protos.Access{Push: true}, nil, "tensors that do not fit"},
		"few values":      {&protos.Access{Push: true, Last: 1}, list(1), "tensors that do not fit"},
		"many":            {&protos.Access{Last: 1}, list(1), "tensors that do not fit"},
		"keys of a range": {&protos.Access{Keys: 3}, list(1), "tensors that do not fit"},
		"list cut":        {&protos.Access{List: 5, Keys: 1 << 60}, list(1), "a list of keys that is none"},
		"list too long":   {&protos.Access{List: 5, Keys: 1}, list(0, 0), "a list of keys that is none"},
		"another hash":    {&protos.Access{List: 5, Keys: 1}, list(0), "a list of keys that is none"},
		"varint": {&protos.Access{List: 5, Keys: 1}, list(math.Float32frombits(0xffffffff)),
			"a list of keys that is none"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{tables: []*table.Table{{Name: "t", Keys: 10, Width: 1, Update: table.Add()}}, servers: 1,
				clients: 1, delay: ms}
			s.program = atStart(func(u *user) {
				u.ctx.Send(u.env.View().Members[0].PID, protos.NewMessage(c.head, c.tensors...))
			})
			if _, err := s.run(t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestAnswersAndShardsThatNobodyWaitsForEndTheRunAndSayWhy(t *testing.T) {
	for want, m := range map[string]*protos.Message{
		"shard 0 of 1, which is here": protos.NewMessage(&protos.TableShard{}),
		"shard 9 of 1":                protos.NewMessage(&protos.TableShard{Shard: 9}),
		"task 0 at shard 0: a":        protos.NewMessage(&protos.Accessed{Life: 1, Unknown: true}),
	} {
		s := &site{tables: []*table.Table{{Name: "t", Keys: 10, Width: 1, Update: table.Add()}}, servers: 1,
			clients: 1, delay: ms}
		s.program = atStart(func(u *user) {
			to := u.env.View().Members[0].PID
			if _, answer := m.Head.(*protos.Accessed); answer {
				to = u.ctx.Self()
			}
			u.ctx.Send(to, m)
		})
		if _, err := s.run(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for name, head := range map[string]proto.Message{
		"task": &protos.Accessed{Life: 1, Time: 4}, "shard": &protos.Accessed{Life: 1, Time: 1, Shard: 3},
		"values": &protos.Accessed{Life: 1, Time: 1},
	} {
		s := &site{tables: tables(), servers: 1, clients: 1, delay: ms}
		s.program = atStart(func(u *user) {
			keys, _ := u.Range("dense", 0, 9)
			u.Pull(u.ctx, keys)
			u.ctx.Send(u.ctx.Self(), protos.NewMessage(head))
		})
		if _, err := s.run(t); err == nil || !strings.Contains(err.Error(), "an answer that fits no task") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTablesThatCannotBeAreRefusedAndNamed(t *testing.T) {
	for want, of := range map[string]*table.Table{
		"keys of 0 values":            {Name: "t", Keys: 1, Update: table.Add()},
		"a dense table has 1 to":      {Name: "t", Width: 1, Update: table.Add()},
		"needs an update":             {Name: "t", Width: 1, Keys: 1},
		"up to 65536":                 {Name: "t", Width: 1, Keys: 1 << 20, Update: table.Add(), Shards: 1 << 20},
		"cannot work on the state of": {Name: "t", Width: 1, Keys: 1, Update: table.Optimizer(foreign{})},
	} {
		s := &site{tables: []*table.Table{of}, servers: 1, clients: 1, program: atStart(func(*user) {}),
			delay: time.Millisecond}
		if _, err := s.run(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
