package collective_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// churn is a run whose nodes come and go. All models are looked at again and again.
type churn struct {
	task         *train.Task
	architecture collective.Architecture
	schedule     []world.NodeChange
	absent       []int
	end          time.Duration
	threads      int
	strict       bool
	posted       bool // chunks arrive where their receivers have memory ready, as from another process
	landed       int  // how many did
	asked        int  // how many there were
	again        int  // how many had a place after they had come

	// heard, unless nil, looks at the chunks that come where chunks are posted.
	heard func(head *protos.Chunk, values []float32)

	// late is how long the coordinator's messages to a node take; nil stands for no time.
	late func(node int) time.Duration
	// delay returns the delay of a link; nil stands for delays that differ.
	delay    func(from, to int) time.Duration
	observer world.Observer

	made   []int               // steps of each node, in its present life
	seen   []map[int][]float32 // by node and finished rounds, in its present life
	views  [][]int             // the members of each
	result sim.Result
}

const (
	churnStep   = 20 * time.Millisecond
	churnDetect = 3100 * time.Microsecond
	churnLook   = 3 * time.Millisecond
)

func (c *churn) Observe(at time.Duration, node int, e actors.Event) {
	if c.observer != nil {
		c.observer.Observe(at, node, e)
	}
	if e.Kind == actors.StepDone {
		c.made[node] = int(e.Step)
	}
}

func (c *churn) run(t testing.TB) {
	t.Helper()
	n := len(c.task.Workers)
	c.made, c.seen, c.views = make([]int, n), make([]map[int][]float32, n), nil
	d := &world.Deployment{Seed: c.task.Seed, Strict: c.strict, Observer: c, Schedule: c.schedule, Detect: churnDetect,
		Bounded: true}
	network := link.New(c.task.Seed, append(slices.Clone(c.task.Workers), actors.Coordinator))
	for i, name := range c.task.Workers {
		c.seen[i] = map[int][]float32{}
		profile := world.Profile{Cores: 1, Speed: math.Inf(1), Step: churnStep + time.Duration(i)*1300*time.Microsecond}
		d.Nodes = append(d.Nodes, world.Node{
			Name: name, Role: collective.RoleWorker, Profile: profile, Absent: slices.Contains(c.absent, i),
			Site: simtest.Site(i), Kind: c.kind(),
		})
		for j := range n {
			delay := time.Duration(700+310*((3*i+5*j)%11)) * time.Microsecond
			if c.delay != nil {
				delay = c.delay(i, j)
			}
			if i != j {
				network.Set(int32(i), int32(j), link.Config{Delay: link.Constant{Delay: delay}})
			}
		}
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
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

// kind returns the kind of actor that every node runs.
func (c *churn) kind() actors.Kind {
	inner := c.architecture.Kind(c.task, train.Place{Role: collective.RoleWorker})
	if !c.posted {
		return inner
	}
	return func(env actors.Env) (a actor.Actor, err error) {
		r := &receiver{Env: env, churn: c}
		r.Actor, err = inner(r)
		return r, err
	}
}

// receiver stands before a worker and does what the transport would do with chunks of another
// process.
type receiver struct {
	actor.Actor
	actors.Env
	churn *churn
	posts world.Posts
}

func (r *receiver) Post(memory *protos.Tensor, places iter.Seq[actors.Place]) {
	r.posts.Put(memory, places)
}
func (r *receiver) Unpost(name protos.PlaceName) { r.posts.Remove(name) }

// Every other chunk it lets arrive elsewhere, as those whose heads come before their round.
func (r *receiver) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	var head *protos.Chunk
	if ok {
		head, ok = m.Head.(*protos.Chunk)
	}
	if !ok {
		r.Actor.Receive(ctx)
		return
	}
	c, place, values := r.churn, head.Place(), len(m.Tensors[0].Data)
	if c.heard != nil {
		c.heard(head, m.Tensors[0].Data)
	}
	if c.asked++; c.asked%2 == 0 {
		if ready := r.posts.Take(place, values); ready != nil {
			copy(ready.Data, m.Tensors[0].Data)
			m.Tensors[0].Release()
			m.Tensors[0] = ready
			c.landed++
		}
	}
	if r.Actor.Receive(ctx); r.posts.Take(place, values) != nil {
		c.again++
	}
}

// look takes in a model, if it is one between two rounds: the last of a round's steps is
// recorded when the round is over, and with Models every step is an update.
func (c *churn) look(node int, version uint64, params []float32) {
	every := c.architecture.Every / max(c.architecture.Fragments, 1)
	if c.made[node] == 0 || c.made[node]%every != 0 || c.architecture.Reduce == collective.Models &&
		version != uint64(c.made[node]) {
		return
	}
	c.seen[node][c.made[node]/every] = slices.Clone(params)
}

// leader is a coordinator of the test's own.
type leader struct {
	env     actors.Env
	control world.Control
	churn   *churn
	number  uint64
	gone    []bool
}

func (l *leader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		l.number = 1
		l.begin()
		l.send(ctx, func() *protos.Message { return protos.NewMessage(&protos.Start{View: 1}) })
		l.env.After(churnLook, "look")
		l.env.After(l.churn.end, "end")
	case string:
		if m == "end" {
			l.control.Finish()
			return
		}
		for _, node := range l.churn.present() {
			ctx.Send(l.env.View().Members[node].PID, protos.NewMessage(&protos.TakeSnapshot{}))
		}
		l.env.After(churnLook, "look")
	case letter:
		ctx.Send(m.to, m.message)
	case world.MemberChange:
		l.change(ctx, m)
	case *protos.Message:
		if head, ok := m.Head.(*protos.Snapshot); ok {
			l.churn.look(int(head.Node), head.Version, m.Tensors[0].Data)
		}
		m.Release()
	}
}

// letter is a message that the coordinator sends later.
type letter struct {
	to      *actor.PID
	message *protos.Message
}

func (l *leader) send(ctx actor.Context, message func() *protos.Message) {
	for _, node := range l.churn.present() {
		l.sendTo(ctx, node, message())
	}
}

func (l *leader) sendTo(ctx actor.Context, node int, message *protos.Message) {
	to := l.env.View().Members[node].PID
	if l.churn.late == nil {
		ctx.Send(to, message)
		return
	}
	l.env.After(l.churn.late(node), letter{to, message})
}

// begin notes the members of a view.
func (l *leader) begin() {
	var members []int
	for node, gone := range l.gone {
		if !gone {
			members = append(members, node)
		}
	}
	l.churn.views = append(l.churn.views, members)
}

// present are the members of the last view.
func (c *churn) present() []int { return c.views[len(c.views)-1] }

func (l *leader) change(ctx actor.Context, m world.MemberChange) {
	l.number++
	l.gone[m.Node] = !m.Present
	l.begin()
	l.churn.made[m.Node] = 0
	clear(l.churn.seen[m.Node])
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
		l.sendTo(ctx, m.Node, protos.NewMessage(&protos.Start{View: l.number, Joins: true}))
	}
}

// past is what one process makes of rounds by given members: the dumb second implementation.
type past struct {
	view      int   // that made the last round, from 0
	members   []int // of the last round
	joint     []float32
	models    [][]float32 // by node, after the last round
	optimizer optim.State
	outer     optim.State
	exchanges int
}

// next is the past with another round, by the given members.
func (p *past) next(l *loop, a collective.Architecture, round, view int, members []int) *past {
	q := &past{view: view, members: members, joint: slices.Clone(p.joint), models: make([][]float32, len(l.samplers)),
		outer: p.outer, exchanges: p.exchanges}
	optimizer := l.task.Method.New(len(q.joint))
	if a.Reduce == collective.Gradients {
		for _, node := range members {
			for i := range a.Every {
				l.add(node, round*a.Every+i)
			}
		}
		if err := optimizer.Restore(p.optimizer); err != nil {
			panic(err)
		}
		optimizer.Step(q.joint, q.joint, l.gradient(q.joint))
		q.optimizer = optimizer.State()
		q.spread()
		return q
	}
	mean, total, moved := make([]float64, len(q.joint)), 0.0, a.Moved == 0
	for _, node := range members {
		params := slices.Clone(p.joint)
		if slices.Contains(p.members, node) {
			params = slices.Clone(p.models[node])
		}
		samples := 0
		for i := range a.Every - a.Overlap { // what the others make is replaced
			samples += l.add(node, round*a.Every+i)
			optimizer.Step(params, params, l.gradient(params)) // plain descent has no state
		}
		squares := 0.0
		for i, v := range params {
			mean[i] += float64(samples) * float64(v)
			squares += math.Pow(float64(v)-float64(p.joint[i]), 2)
		}
		total += float64(samples)
		moved = moved || math.Sqrt(squares) > a.Moved
		q.models[node] = params
	}
	if moved {
		for i, v := range mean {
			q.joint[i] = float32(v / total)
		}
		q.step(a.Outer, p.joint)
		q.exchanges++
		q.spread()
	}
	return q
}

// step makes a step of the outer optimizer, from the joint model that was to the one whose place
// the mean has taken.
func (p *past) step(m optim.Method, was []float32) {
	if m == nil {
		return
	}
	outer, delta := m.New(len(was)), slices.Clone(was)
	if p.outer.Slots != nil {
		if err := outer.Restore(p.outer); err != nil {
			panic(err)
		}
	}
	for i := range delta {
		delta[i] -= p.joint[i]
	}
	outer.Step(p.joint, was, delta)
	p.outer = outer.State()
}

// spread gives the joint model to all members.
func (p *past) spread() {
	for _, node := range p.members {
		p.models[node] = p.joint
	}
}

// fits reports whether what was seen after some rounds is what it should be, up to rounding.
func (p *past) fits(c *churn, round int) bool {
	for _, node := range c.present() {
		if params := c.seen[node][round]; params != nil &&
			(p.models[node] == nil || distance(params, p.models[node]) > 5e-6) {
			return false
		}
	}
	return true
}

// explain fails unless the run equals rounds by the members of one view each, in the order of
// views: of exactly one. It returns the past of each round, and wants all members to be in
// the last view at the end.
func (c *churn) explain(t testing.TB) []*past {
	t.Helper()
	where := fmt.Sprintf("%s over %d nodes, %v", c.architecture.Algorithm, len(c.task.Workers), c.schedule)
	l := newLoop(t, c.task)
	initial := c.task.Initial()
	p := &past{joint: initial, models: make([][]float32, len(c.seen)),
		optimizer: c.task.Method.New(len(initial)).State()}
	var rounds []*past
	for round := 0; c.oneSaw(t, round+1); round++ {
		var next []*past
		for view := p.view; view < len(c.views); view++ {
			members := c.views[view]
			if slices.ContainsFunc(c.views[p.view:view],
				func(earlier []int) bool { return slices.Equal(earlier, members) }) {
				continue // cannot be told apart
			}
			if q := p.next(l, c.architecture, round, view, members); q.fits(c, round+1) {
				next = append(next, q)
			}
		}
		if len(next) == 0 {
			t.Fatalf("%s: the models after round %d are by the members of none of the views %v", where, round, c.views)
		}
		if len(next) > 1 && c.architecture.Moved == 0 {
			t.Fatalf("%s: the models after round %d can be by %v and by %v", where, round, next[0].members,
				next[1].members)
		}
		p = next[0]
		rounds = append(rounds, p)
	}
	if c.architecture.Moved > 0 && p.exchanges == 0 {
		return rounds // members that never exchange anything cannot be told apart
	}
	if len(rounds) == 0 || !slices.Equal(p.members, c.present()) {
		t.Fatalf("%s: after %d rounds the members do not match the last of the views %v yet", where, len(rounds),
			c.views)
	}
	return rounds
}

// oneSaw reports whether the model of a node that is there was seen after a round, and
// fails if two were that should have the same bits and have not.
func (c *churn) oneSaw(t testing.TB, round int) bool {
	t.Helper()
	var first []float32
	for _, node := range c.present() {
		params := c.seen[node][round]
		if first == nil {
			first = params
		}
		if params != nil && c.architecture.Moved == 0 && !slices.Equal(params, first) {
			t.Fatalf("%s over %d nodes, %v: after %d rounds the model of node %d has other bits",
				c.architecture.Algorithm, len(c.task.Workers), c.schedule, round, node)
		}
	}
	return first != nil
}

// sizes are shards whose last batches differ.
var sizes = []int{40, 25, 64, 37, 51, 48}

func churnTask(n int, method optim.Method) *train.Task {
	return simtest.Task(simtest.Perceptron(4, 3), sizes[:n], 16, method)
}

// sweep calls run for instants of the first two rounds, and for few of them in a brief test.
func sweep(n int, step time.Duration, run func(i int, at time.Duration)) {
	if simtest.Brief() {
		step *= 20
	}
	span := 2 * (churnStep + time.Duration(n)*7*time.Millisecond)
	for i := 0; time.Duration(i)*step < span; i++ {
		run(i, time.Duration(i)*step+1)
	}
}

// everywhere runs a test for all algorithms over 2 to most nodes.
func everywhere(t *testing.T, least, most int, run func(t *testing.T, a collective.Algorithm, n int)) {
	for _, a := range algorithms {
		for n := least; n <= most; n++ {
			t.Run(fmt.Sprintf("%s/%d", a, n), func(t *testing.T) { run(t, a, n) })
		}
	}
}

func TestRoundsAreBySomeViewAloneWheneverANodeCrashes(t *testing.T) {
	t.Parallel()
	everywhere(t, 2, 6, func(t *testing.T, a collective.Algorithm, n int) {
		task := churnTask(n, momentum(0.05))
		cuts := map[int]bool{}
		sweep(n, 500*time.Microsecond, func(i int, at time.Duration) {
			c := churn{
				task: task, end: 350 * time.Millisecond,
				schedule:     []world.NodeChange{{At: at, Node: i % n, Do: world.Crash}},
				architecture: collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients},
			}
			c.run(t)
			full := 0
			for _, p := range c.explain(t) {
				if len(p.members) == n {
					full++
				}
			}
			cuts[full] = true
		})
		if len(cuts) < 2 {
			t.Errorf("the node was always taken out before the same round: %v", cuts)
		}
	})
}

func TestRoundsAreBySomeViewAloneWheneverANodeJoins(t *testing.T) {
	t.Parallel()
	everywhere(t, 2, 6, func(t *testing.T, a collective.Algorithm, n int) {
		sweep(n, 2300*time.Microsecond, func(i int, at time.Duration) {
			node := i % n
			for _, arch := range []collective.Architecture{
				{Algorithm: a, Every: 1, Reduce: collective.Gradients},
				{Algorithm: a, Every: 2, Reduce: collective.Models},
			} {
				method := momentum(0.05)
				if arch.Reduce == collective.Models {
					method = sgd(0.2)
				}
				c := churn{
					task: churnTask(n, method), end: 400 * time.Millisecond, absent: []int{node}, architecture: arch,
					schedule: []world.NodeChange{{At: at, Node: node, Do: world.Join}},
				}
				c.run(t)
				c.explain(t)
			}
		})
	})
}

func TestRoundsAreBySomeViewAloneWhenChangesFollowEachOther(t *testing.T) {
	t.Parallel()
	everywhere(t, 3, 5, func(t *testing.T, a collective.Algorithm, n int) {
		task := churnTask(n, momentum(0.05))
		sweep(n, 3100*time.Microsecond, func(i int, at time.Duration) {
			first, second := i%n, (i+1+i/n%(n-1))%n
			soon := at + time.Duration(i%13)*700*time.Microsecond
			for _, c := range []churn{
				{schedule: []world.NodeChange{{At: at, Node: first, Do: world.Crash},
					{At: soon, Node: second, Do: world.Crash}}},
				{absent: []int{second}, schedule: []world.NodeChange{{At: at, Node: first, Do: world.Crash},
					{At: soon, Node: second, Do: world.Join}}},
				{absent: []int{second}, schedule: []world.NodeChange{{At: at, Node: second, Do: world.Join},
					{At: soon, Node: first, Do: world.Crash}}},
				{schedule: []world.NodeChange{{At: at, Node: first, Do: world.Crash},
					{At: soon, Node: first, Do: world.Join}}},
				{absent: []int{first}, schedule: []world.NodeChange{{At: at, Node: first, Do: world.Join},
					{At: soon + 1, Node: first, Do: world.Leave}}},
				{absent: []int{first, second}, schedule: []world.NodeChange{{At: at, Node: first, Do: world.Join},
					{At: at, Node: second, Do: world.Join}}},
				{absent: []int{second}, schedule: []world.NodeChange{{At: at, Node: first, Do: world.Leave},
					{At: at, Node: second, Do: world.Join}}},
			} {
				c.task, c.end = task, 400*time.Millisecond
				c.architecture = collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients}
				c.run(t)
				c.explain(t)
			}
		})
	})
}
