package collective_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// churn is a run whose nodes come and go. All models are looked at again and again.
type churn struct {
	task         *train.Task
	architecture collective.Architecture
	schedule     []actors.NodeChange
	absent       []int
	end          time.Duration
	threads      int
	strict       bool

	made   []int               // steps of each node, in its present life
	seen   []map[int][]float32 // by node and finished rounds
	rounds map[int][]float32   // of all nodes
	mixed  string              // the first two models that should be equal and are not
	result sim.Result
	waits  map[string]time.Duration
}

const (
	churnStep   = 20 * time.Millisecond
	churnDetect = 3100 * time.Microsecond
	churnLook   = 3 * time.Millisecond
)

func (c *churn) Observe(_ time.Duration, node int, e actors.Event) {
	switch e.Kind {
	case actors.StepDone:
		c.made[node] = int(e.Step)
	case actors.Waited:
		c.waits[e.Cause] += e.Duration
	}
}

func (c *churn) run(t testing.TB) {
	t.Helper()
	n := len(c.task.Workers)
	c.made, c.seen, c.rounds, c.waits = make([]int, n), make([]map[int][]float32, n), map[int][]float32{}, map[string]time.Duration{}
	d := &actors.Deployment{Seed: c.task.Seed, Strict: c.strict, Observer: c, Schedule: c.schedule, Detect: churnDetect, Bounded: true}
	network := link.New(c.task.Seed, append(slices.Clone(c.task.Workers), actors.Coordinator))
	for i, name := range c.task.Workers {
		c.seen[i] = map[int][]float32{}
		profile := actors.Profile{Cores: 1, Speed: math.Inf(1), Step: churnStep + time.Duration(i)*1300*time.Microsecond}
		d.Nodes = append(d.Nodes, actors.Node{
			Name: name, Role: collective.RoleWorker, Profile: profile, Absent: slices.Contains(c.absent, i),
			Kind: c.architecture.Kind(c.task, train.Place{Role: collective.RoleWorker}),
		})
		for j := range n {
			delay := time.Duration(700+310*((3*i+5*j)%11)) * time.Microsecond
			if i != j {
				network.Set(int32(i), int32(j), link.Config{Delay: link.Constant{Delay: delay}})
			}
		}
	}
	d.Coordinate = func(env actors.Env, control actors.Control) (actor.Actor, error) {
		l := &leader{env: env, control: control, churn: c, gone: make([]bool, n)}
		for _, node := range c.absent {
			l.gone[node] = true
		}
		return l, nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: network, Threads: c.threads})
	if err != nil {
		t.Fatal(err)
	}
	if c.result, err = w.Run(context.Background()); err != nil {
		t.Fatalf("%s, %v: %v", c.architecture.Algorithm, c.schedule, err)
	}
}

// look takes in a model, if it is one between two rounds.
func (c *churn) look(node int, params []float32) {
	every := c.architecture.Every
	if c.made[node] == 0 || c.made[node]%every != 0 {
		return
	}
	round := c.made[node] / every
	c.seen[node][round] = slices.Clone(params)
	if c.rounds[round] == nil {
		c.rounds[round] = c.seen[node][round]
	}
	if c.mixed == "" && !slices.Equal(c.rounds[round], params) {
		c.mixed = fmt.Sprintf("after %d rounds the model of node %d differs from another's", round, node)
	}
}

// leader is a coordinator of the test's own.
type leader struct {
	env     actors.Env
	control actors.Control
	churn   *churn
	number  uint64
	gone    []bool
}

func (l *leader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		l.number = 1
		l.send(ctx, func() *protos.Message { return protos.NewMessage(&protos.Start{View: 1}) })
		l.env.After(churnLook, "look")
		l.env.After(l.churn.end, "end")
	case string:
		if m == "end" {
			l.control.Finish()
			return
		}
		l.send(ctx, func() *protos.Message { return protos.NewMessage(&protos.TakeSnapshot{}) })
		l.env.After(churnLook, "look")
	case actors.MemberChange:
		l.change(ctx, m)
	case *protos.Message:
		if head, ok := m.Head.(*protos.Snapshot); ok {
			l.churn.look(int(head.Node), m.Tensors[0].Data)
		}
		m.Release()
	}
}

func (l *leader) send(ctx actor.Context, message func() *protos.Message) {
	members := l.env.View().Members
	for i := range members {
		if members[i].Present {
			ctx.Send(members[i].PID, message())
		}
	}
}

func (l *leader) change(ctx actor.Context, m actors.MemberChange) {
	l.number++
	l.gone[m.Node] = !m.Present
	if l.churn.made[m.Node] = 0; !m.Present {
		clear(l.churn.seen[m.Node])
	}
	head := func() *protos.View {
		v := &protos.View{Number: l.number}
		for i, gone := range l.gone {
			if gone {
				v.Absent = append(v.Absent, int32(i))
			}
		}
		return v
	}
	l.control.Announce(head())
	l.send(ctx, func() *protos.Message { return protos.NewMessage(head()) })
	if m.Present {
		ctx.Send(l.env.View().Members[m.Node].PID, protos.NewMessage(&protos.Start{View: l.number, Joins: true}))
	}
}

// history is what one process makes of rounds whose members change at cuts: sets[i] make the
// rounds from cuts[i−1] to cuts[i]−1.
func history(t testing.TB, task *train.Task, a collective.Architecture, sets [][]int, cuts []int, rounds int) [][]float32 {
	l := newLoop(t, task)
	members := func(round int) []int {
		for i, cut := range cuts {
			if round < cut {
				return sets[i]
			}
		}
		return sets[len(cuts)]
	}
	if a.Reduce == collective.Models {
		return l.averaged(rounds, a.Every, members)
	}
	return l.joint(rounds, a.Every, members)
}

// histories are those of all ascending cuts up to the last round before which the members
// have changed.
type histories struct {
	cuts   [][]int
	models [][][]float32
}

func newHistories(t testing.TB, task *train.Task, a collective.Architecture, sets [][]int, last, rounds int) *histories {
	h := &histories{}
	var extend func(cuts []int)
	extend = func(cuts []int) {
		if len(cuts) == len(sets)-1 {
			h.cuts = append(h.cuts, slices.Clone(cuts))
			h.models = append(h.models, history(t, task, a, sets, cuts, rounds))
			return
		}
		first := 0
		if len(cuts) > 0 {
			first = cuts[len(cuts)-1]
		}
		for cut := first; cut <= last; cut++ {
			extend(append(cuts, cut))
		}
	}
	extend(nil)
	return h
}

// match returns the cuts of the histories that the run equals up to rounding.
func (h *histories) match(c *churn) (cuts [][]int) {
	for i, models := range h.models {
		equal := true
		for round, params := range c.rounds {
			equal = equal && (round >= len(models) || distance(params, models[round]) < 2e-6)
		}
		if equal {
			cuts = append(cuts, h.cuts[i])
		}
	}
	return cuts
}

// check fails unless the run equals one history with members that are there until the end, all
// of whom go on. It returns the cuts.
func (h *histories) check(t testing.TB, c *churn, alive []int) []int {
	t.Helper()
	where := fmt.Sprintf("%s over %d nodes, %v", c.architecture.Algorithm, len(c.task.Workers), c.schedule)
	if c.mixed != "" {
		t.Fatalf("%s: %s", where, c.mixed)
	}
	last := h.cuts[len(h.cuts)-1]
	for _, node := range alive {
		if rounds := c.made[node] / c.architecture.Every; rounds <= last[len(last)-1] {
			t.Fatalf("%s: node %d has finished only %d rounds", where, node, rounds)
		}
	}
	cuts := h.match(c)
	if len(cuts) != 1 {
		t.Fatalf("%s: equals the histories with cuts at %v, want exactly one", where, cuts)
	}
	return cuts[0]
}

// sizes are shards whose last batches differ.
var sizes = []int{40, 25, 64, 37, 51, 48}

func without(n int, gone ...int) (left []int) {
	for i := range n {
		if !slices.Contains(gone, i) {
			left = append(left, i)
		}
	}
	return left
}

// sweep calls run for instants of the first two rounds, and for few of them in a short test.
func sweep(n int, run func(i int, at time.Duration)) {
	step := 350 * time.Microsecond
	if testing.Short() {
		step = 7300 * time.Microsecond
	}
	span := 2 * (churnStep + time.Duration(n)*7*time.Millisecond)
	for i := 0; time.Duration(i)*step < span; i++ {
		run(i, time.Duration(i)*step+1)
	}
}

func churnTask(n int) *train.Task { return newTask(perceptron(4, 3), sizes[:n], 16, momentum(0.05)) }

// TestCrashAtAnyInstantEqualsSomeRoundWithoutTheNode covers every instant of two rounds.
func TestCrashAtAnyInstantCutsBetweenTwoRounds(t *testing.T) {
	for _, a := range algorithms {
		for n := 2; n <= 6; n++ {
			t.Run(fmt.Sprintf("%s/%d", a, n), func(t *testing.T) {
				task := churnTask(n)
				arch := collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients}
				expected := map[int]*histories{}
				found := map[int]bool{}
				sweep(n, func(i int, at time.Duration) {
					victim := i % n
					if expected[victim] == nil {
						expected[victim] = newHistories(t, task, arch, [][]int{without(n), without(n, victim)}, 4, 30)
					}
					c := churn{task: task, architecture: arch, end: 550 * time.Millisecond, schedule: []actors.NodeChange{{At: at, Node: victim, Do: actors.Crash}}}
					c.run(t)
					found[expected[victim].check(t, &c, without(n, victim))[0]] = true
				})
				if len(found) < 2 {
					t.Errorf("the members changed only before rounds %v", found)
				}
			})
		}
	}
}
