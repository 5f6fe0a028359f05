package gossiplearning_test

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossiplearning"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

const (
	ms     = time.Millisecond
	lambda = 0.05
)

// newTask is Pegasos on random samples.
func newTask(tb testing.TB, peers, samples, batch int) *train.Task {
	tb.Helper()
	m, err := nn.NewLinear(12, nn.Hinge)
	if err != nil {
		tb.Fatal(err)
	}
	return simtest.Task(m, slices.Repeat([]int{samples}, peers), batch,
		optim.SGD{Rate: optim.Inverse{First: 1 / lambda, Half: 1}, WeightDecay: lambda})
}

// copied is a model of the second, dumb implementation: a vector and an age.
type copied struct {
	w   []float32
	age uint64
}

// plain is gossip learning written down a second time: a list of things to do in the order of time,
// copied vectors, no actors. It is told who sent to whom, and when.
type plain struct {
	task  *train.Task
	rules gossiplearning.Architecture
	step  []time.Duration
	delay time.Duration

	todo    []thing
	now     time.Duration
	cache   [][]copied
	last    []copied
	waiting [][]copied
	busy    []bool
	walked  []int
	passed  int
}

// thing is something to do. Of several at one instant the end of a step comes first: what is sent
// then is sent in answer to it.
type thing struct {
	at    time.Duration
	order int
	do    func()
}

func (p *plain) run(sent []thing, end time.Duration) [][]copied {
	n := len(p.task.Workers)
	p.waiting, p.busy, p.walked, p.todo = make([][]copied, n), make([]bool, n), make([]int, n), sent
	for range n {
		p.cache, p.last = append(p.cache, []copied{{w: p.task.Initial()}}), append(p.last, copied{w: p.task.Initial()})
	}
	for len(p.todo) > 0 {
		next := 0
		for k, t := range p.todo {
			if cmp.Or(cmp.Compare(t.at, p.todo[next].at), t.order-p.todo[next].order) < 0 {
				next = k
			}
		}
		t := p.todo[next]
		if p.todo = slices.Delete(p.todo, next, next+1); t.at > end {
			break
		}
		p.now = t.at
		t.do()
	}
	return p.cache
}

func (p *plain) send(from, to int) {
	m := p.cache[from][len(p.cache[from])-1]
	p.todo = append(p.todo, thing{p.now + p.delay, 2, func() {
		if p.waiting[to] = append(p.waiting[to], m); len(p.waiting[to]) > p.rules.Cache {
			p.waiting[to] = p.waiting[to][1:]
			p.passed++
		}
		p.create(to)
	}})
}

func (p *plain) create(i int) {
	if p.busy[i] || len(p.waiting[i]) == 0 {
		return
	}
	m, last := p.waiting[i][0], p.last[i]
	p.waiting[i], p.last[i], p.busy[i] = p.waiting[i][1:], m, true
	then := func(made copied) {
		if p.cache[i] = append(p.cache[i], made); len(p.cache[i]) > p.rules.Cache {
			p.cache[i] = p.cache[i][1:]
		}
		p.busy[i] = false
		p.create(i)
	}
	switch p.rules.Create {
	case gossiplearning.RW:
		p.update(i, m, then)
	case gossiplearning.MU:
		p.update(i, p.merge(m, last), then)
	case gossiplearning.UM:
		p.update(i, m, func(a copied) { p.update(i, last, func(b copied) { then(p.merge(a, b)) }) })
	}
}

func (p *plain) merge(a, b copied) copied {
	share := 0.5
	if p.rules.Merge == gossiplearning.Age && a.age+b.age > 0 {
		share = float64(a.age) / float64(a.age+b.age)
	}
	merged := copied{make([]float32, len(a.w)), max(a.age, b.age)}
	for i := range merged.w {
		left, right := float32(share)*a.w[i], float32(1-share)*b.w[i]
		merged.w[i] = left + right
	}
	return merged
}

// update is a step of Pegasos by a batch.
func (p *plain) update(i int, m copied, then func(copied)) {
	p.todo = append(p.todo, thing{p.now + p.step[i], 0, func() {
		sampler, err := datasets.NewSampler(p.task.Train, p.task.Shards[i], p.task.Batch, p.task.Seed,
			p.task.Workers[i])
		if err != nil {
			panic(err)
		}
		x, y := make([]float32, p.task.Batch*12), make([]int32, p.task.Batch)
		n := sampler.Fill(p.walked[i]/sampler.Steps(), p.walked[i]%sampler.Steps(), x, y)
		p.walked[i]++
		gradient := make([]float32, len(m.w))
		p.task.Model.NewWorkspace(n).Gradient(m.w, gradient, nn.Batch{X: x[:n*12], Y: y[:n]})
		made := copied{make([]float32, len(m.w)), m.age + 1}
		eta := float32(1 / (lambda * float64(m.age+1)))
		for k, w := range m.w {
			decay := float32(lambda) * w
			move := eta * (gradient[k] + decay)
			made.w[k] = w - move
		}
		then(made)
	}})
}

func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// compare runs peers and the dumb implementation, and compares all models of the caches bit by bit.
func compare(t *testing.T, s *simtest.Stage, rules gossiplearning.Architecture, delay time.Duration) *simtest.Recorder {
	t.Helper()
	events := &simtest.Recorder{}
	rules.Predict = gossiplearning.Vote
	s.Kind, s.Observer, s.Strict, s.Edge = rules, events, true, link.Constant{Delay: delay}
	look, end := s.Run(t)[0], s.Looks[0]
	p := &plain{task: s.Task, rules: rules, step: s.Step, delay: delay}
	var sent []thing
	for i, e := range events.Events {
		if e.Kind == actors.Selected {
			from := events.Nodes[i]
			sent = append(sent, thing{events.At[i], 1, func() { p.send(from, e.Origin) }})
		}
	}
	caches, passed, oldest := p.run(sent, end), 0, uint64(0)
	for _, e := range events.Events {
		if e.Kind == actors.Measured && e.Name == gossiplearning.PassedOver {
			passed++
		}
	}
	for node, cache := range caches {
		want := cache[len(cache)-1]
		if got := look[node]; got.Version != want.age || !slices.EqualFunc(got.Params, want.w, same) {
			t.Errorf("node %d has a model of age %d, %v, want age %d, %v", node, got.Version, got.Params, want.age,
				want.w)
		}
		if !slices.EqualFunc(look[node].Voters, cache[:len(cache)-1],
			func(v []float32, c copied) bool { return slices.EqualFunc(v, c.w, same) }) {
			t.Errorf("node %d has %v besides, want %v", node, look[node].Voters, cache[:len(cache)-1])
		}
		oldest = max(oldest, want.age)
	}
	if passed != p.passed {
		t.Errorf("%d models passed over, want %d", passed, p.passed)
	}
	if oldest < 5 {
		t.Errorf("the oldest model has age %d", oldest)
	}
	return events
}

func TestPeersMakeWhatTheAlgorithmMakes(t *testing.T) {
	flows := []gossiplearning.Flow{{Kind: gossiplearning.Proactive}, {Kind: gossiplearning.Simple, Capacity: 4},
		{Kind: gossiplearning.Generalized, Capacity: 6, Reactivity: 2},
		{Kind: gossiplearning.Randomized, Capacity: 5, Reactivity: 3}}
	for _, create := range []gossiplearning.Create{gossiplearning.RW, gossiplearning.MU, gossiplearning.UM} {
		for i, flow := range flows {
			rules := gossiplearning.Default()
			rules.Period, rules.Create, rules.Flow, rules.Cache = 90*ms, create, flow, 3
			if rules.Merge = gossiplearning.Mean; i%2 == 0 {
				rules.Merge = gossiplearning.Age
			}
			t.Run(fmt.Sprintf("%s %s %s", create, rules.Merge, flow.Kind), func(t *testing.T) {
				s := &simtest.Stage{Task: newTask(t, 4, 10, 4), Looks: []time.Duration{4 * time.Second},
					Step: []time.Duration{10 * ms, 23 * ms, 37 * ms, 160 * ms}}
				compare(t, s, rules, 31*ms)
			})
		}
	}
}

// One peer computes so slowly that most models pass it over.
func TestWhoIsTooSlowIsPassedOver(t *testing.T) {
	rules := gossiplearning.Default()
	rules.Period, rules.Cache = 50*ms, 2
	s := &simtest.Stage{Task: newTask(t, 3, 10, 4), Looks: []time.Duration{3 * time.Second},
		Step: []time.Duration{10 * ms, 20 * ms, 400 * ms}}
	passed := 0
	for _, e := range compare(t, s, rules, 5*ms).Events {
		if e.Name == gossiplearning.PassedOver {
			passed++
		}
	}
	if passed < 10 {
		t.Errorf("%d models are passed over", passed)
	}
}

func TestRunsAreTheSameOnAnyNumberOfProcessors(t *testing.T) {
	rules := gossiplearning.Default()
	rules.Period, rules.Create = 40*ms, gossiplearning.UM
	rules.Flow = gossiplearning.Flow{Kind: gossiplearning.Randomized, Capacity: 5, Reactivity: 2}
	run := func(processors int, seed uint64) (uint64, []simtest.Seen) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		s := &simtest.Stage{Task: newTask(t, 8, 10, 4), Kind: rules, Threads: processors,
			Looks: []time.Duration{5 * time.Second}, Edge: link.Uniform{Min: 10 * ms, Max: 300 * ms},
			Loss: link.Loss{Probability: 0.3, Drop: true}}
		s.Task.Seed = seed
		look := s.Run(t)[0]
		return s.Result.Digest, look
	}
	digest, models := run(1, 1)
	for _, processors := range []int{1, 2} {
		if again, others := run(processors, 1); again != digest ||
			!slices.EqualFunc(models, others,
				func(a, b simtest.Seen) bool { return slices.Equal(a.Params, b.Params) }) {
			t.Errorf("another run on %d processors: %x, want %x", processors, again, digest)
		}
	}
	if other, _ := run(1, 2); other == digest {
		t.Error("another seed has the same digest")
	}
}
