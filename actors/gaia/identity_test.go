package gaia

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

func by(method optim.Method) train.Task { return train.Task{Method: method} }

func sgd(rate float64) train.Task { return by(optim.SGD{Rate: optim.Constant(rate)}) }

// loop is synchronous training with the sum of all workers' gradients as plain loops in float64.
func loop(t *testing.T, task *train.Task, rounds int, rate, momentum, scale float64) []float64 {
	t.Helper()
	var samplers []*datasets.Sampler
	for i, name := range task.Workers {
		s, err := datasets.NewSampler(task.Train, task.Shards[i], task.Batch, task.Seed, name)
		if err != nil {
			t.Fatal(err)
		}
		samplers = append(samplers, s)
	}
	initial := task.Initial()
	params, moved := make([]float64, len(initial)), make([]float64, len(initial))
	for k, v := range initial {
		params[k] = float64(v)
	}
	scratch := task.Model.NewWorkspace(task.Batch)
	narrow, g := make([]float32, len(params)), make([]float32, len(params))
	x, y := make([]float32, task.Batch*task.Model.Inputs()), make([]int32, task.Batch)
	for round := range rounds {
		sum := make([]float64, len(params))
		for k, v := range params {
			narrow[k] = float32(v)
		}
		for _, s := range samplers {
			n := s.Fill(round/s.Steps(), round%s.Steps(), x, y)
			scratch.Gradient(narrow, g, nn.Batch{X: x[:n*task.Model.Inputs()], Y: y[:n]})
			for k, v := range g {
				sum[k] += scale * float64(v)
			}
		}
		for k, v := range sum {
			moved[k] = momentum*moved[k] + v
			params[k] -= rate * moved[k]
		}
	}
	return params
}

// With a threshold of 0, BSP within the sites and clocks that are never apart, Gaia is synchronous
// training over all workers, however many sites they are in.
func TestGaiaWithoutAThresholdIsSynchronousTraining(t *testing.T) {
	for name, sites := range map[string][]int{"one site": {4}, "two sites": {3, 1}, "four sites": {1, 1, 1, 1}} {
		for _, scale := range []train.Scale{train.Sum, train.Mean} {
			for _, momentum := range []float64{0, 0.9} {
				s := newStage(sgd(0.03), sites...)
				s.arch.Significance, s.arch.Clock, s.arch.Scale = 0, 0, scale
				if momentum > 0 {
					s.task.Method = optim.Momentum{Rate: optim.Constant(0.03), Momentum: momentum}
				}
				s.near.Delay = link.Constant{Delay: time.Millisecond}
				s.far.Delay = link.Constant{Delay: 30 * time.Millisecond}
				models := s.run(t)
				if s.rounds < 5 {
					t.Fatalf("%s: only %d rounds", name, s.rounds)
				}
				want := loop(t, s.task, s.rounds, 0.03, momentum, float64(scale.Factor(4)))
				for i := range models {
					for k, v := range models[i] {
						if !(math.Abs(float64(v)-want[k]) <= 1e-6*max(1, math.Abs(want[k]))) {
							t.Fatalf("%s, %s, momentum %v: after %d rounds parameter %d of s%d is %v, want %v", name,
								scale, momentum, s.rounds, k, i, v, want[k])
						}
					}
				}
			}
		}
	}
}

// drawn is a stage of whole numbers drawn at random, with workers that come and go.
func drawn(seed uint64) *stage {
	r := rand.New(rand.NewPCG(seed, 3))
	workers := make([]int, 1+r.IntN(4))
	for i := range workers {
		workers[i] = 1 + r.IntN(3)
	}
	s := newStage(sgd(1), workers...)
	s.task.Seed = seed
	s.count(r)
	s.arch.Consistency = []consistency.Model{consistency.BSP{}, consistency.SSP{Rounds: 2}, consistency.SSP{},
		consistency.DSSP{Low: 1, High: 3}}[r.IntN(4)]
	s.arch.Significance = []float64{0, 0.01, 0.1, 0.5}[r.IntN(4)]
	s.arch.Clock = r.IntN(4)
	if r.IntN(2) == 0 {
		s.arch.Rate = 200 + 4000*r.Float64()
		s.far = slow(s.arch.Rate)
	}
	for range s.task.Workers {
		s.steps = append(s.steps, time.Duration(3+r.IntN(20))*time.Millisecond)
	}
	return s
}

// shake has workers come and go, at most one change at a time, also while the last updates travel.
func (s *stage) shake(r *rand.Rand) {
	away := map[int]bool{}
	end := s.time + 100*time.Millisecond
	for at := 20 * time.Millisecond; at < end; at += time.Duration(10+r.IntN(80)) * time.Millisecond {
		node := s.sites + r.IntN(len(s.task.Workers))
		do := []world.NodeEvent{world.Crash, world.Leave}[r.IntN(2)]
		if away[node] {
			do = world.Join
		}
		away[node] = !away[node]
		s.schedule = append(s.schedule, world.NodeChange{At: at, Node: node, Do: do})
	}
}

// Every update that a server has taken in is in all final models, once and in full, whatever was
// significant, however late messages are and whoever comes and goes; nothing is held back then.
func TestFinalModelsHaveAllUpdates(t *testing.T) {
	first, last := simtest.Seeds(t, 60)
	for seed := first; seed < last; seed++ {
		s := drawn(seed)
		r := rand.New(rand.NewPCG(seed, 4))
		if seed%3 > 0 {
			s.shake(r)
		}
		if seed%4 == 0 {
			s.near.Loss, s.far.Loss = link.Loss{Drop: true, Probability: 0.1}, link.Loss{Drop: true, Probability: 0.2}
			s.reliable = true
		}
		s.run(t)
		want := s.total()
		for i, model := range s.models {
			if !slices.Equal(model, want) {
				t.Fatalf("seed %d: the model of s%d is not that of all updates: %v, want %v", seed, i, model[:5],
					want[:5])
			}
			if held := s.servers[i].between.filter.changed(true); len(held) > 0 {
				t.Fatalf("seed %d: s%d holds back updates of %v", seed, i, held)
			}
		}
	}
}

// What a site has applied of its own is what it has sent and what it still holds, after every
// message; and it sends parameters whose accumulated update is v/√t of them or more, until the end.
func TestWhatIsSentIsWhatIsSignificant(t *testing.T) {
	first, last := simtest.Seeds(t, 20)
	for seed := first; seed < last; seed++ {
		s := drawn(seed)
		params := s.task.Model.Params()
		sent := make([][]float32, s.sites)
		for i := range sent {
			sent[i] = make([]float32, params)
		}
		var before *protos.Message
		s.sends = func(site *server, m *protos.Message) {
			head, is := m.Head.(*protos.Mirror)
			if !is || m == before { // to the next site
				return
			}
			before = m
			indices, values := read(t, m, params)
			for n, i := range indices {
				change, w := 0.0, math.Abs(float64(site.params.Data[i]))
				if values != nil {
					sent[head.Node][i] += values[n]
					change = float64(values[n])
				} else {
					change = float64(site.between.filter.held[i])
				}
				least := s.arch.Significance / math.Sqrt(math.Max(float64(head.Clock), 1)) * w
				if waited := s.arch.Rate > 0; !head.Last && !waited && math.Abs(change) < least*(1-1e-6) {
					t.Fatalf("seed %d: %v of %v is sent at clock %d", seed, change, w, head.Clock)
				}
			}
		}
		s.handled = func(site *server, _ *protos.Message) {
			node, b := site.env.Node(), site.between
			before = nil
			inputs, model := s.task.Train.Inputs, make([]float32, params)
			for i, at := range s.of {
				if at == node {
					row := s.task.Train.X[int(s.task.Shards[i][0])*inputs:]
					for k := range model {
						model[k] -= float32(s.taken[s.sites+i]) * row[k%inputs]
					}
				}
			}
			for k, v := range model {
				if s.sites > 1 && v != sent[node][k]+b.filter.held[k] {
					t.Fatalf("seed %d: s%d has changed parameter %d by %v, sent %v and holds %v", seed, node, k, v,
						sent[node][k], b.filter.held[k])
				}
			}
		}
		s.run(t)
	}
}

// No worker begins a step further ahead of the slowest one than the consistency of its site and the
// clocks of the sites allow, and on links that are slow enough one comes as far.
func TestSitesAreNotFurtherApartThanClocksAllow(t *testing.T) {
	reached := 0
	first, last := simtest.Seeds(t, 40)
	for seed := first; seed < last; seed++ {
		s := drawn(seed)
		s.run(t)
		rounds, _, bounded := s.arch.RoundsAhead()
		if !bounded {
			t.Fatal("no bound")
		}
		if s.apart > int(rounds)+1 {
			t.Errorf("seed %d: a worker was %d steps ahead, and %d rounds are allowed", seed, s.apart, rounds)
		}
		if s.apart == int(rounds)+1 {
			reached++
		}
	}
	if last-first >= 40 && reached == 0 {
		t.Error("nobody came as far as is allowed")
	}
}

// A worker is sent parameters exactly when no key is missing that another site has listed, and the
// clocks let it.
func TestWorkersWaitForKeysThatAreListed(t *testing.T) {
	lists, held := 0, 0
	for seed := range uint64(24) {
		s := drawn(1000 + seed)
		s.arch.Clock, s.arch.Rate, s.speed = 1000, 2000, 1e5
		s.far = slow(s.arch.Rate)
		missing := make([]map[[2]int32]bool, s.sites)
		for i := range missing {
			missing[i] = map[[2]int32]bool{}
		}
		s.sends = func(site *server, m *protos.Message) {
			if _, is := m.Head.(*protos.Parameters); is && len(missing[site.env.Node()]) > 0 {
				t.Fatalf("seed %d: s%d answers while keys are missing", seed, site.env.Node())
			}
		}
		s.handled = func(site *server, _ *protos.Message) {
			node := site.env.Node()
			if len(missing[node]) == 0 && len(site.ready) > 0 && !site.between.over {
				t.Fatalf("seed %d: s%d holds back %v while nothing is missing", seed, node, site.ready)
			}
			held += len(site.ready)
		}
		s.arrives = func(site *server, m *protos.Message) {
			head := m.Head.(*protos.Mirror)
			indices, values := read(t, m, s.task.Model.Params())
			for _, i := range indices {
				if key := [2]int32{head.Node, i}; values == nil {
					missing[site.env.Node()][key] = true
					lists++
				} else {
					delete(missing[site.env.Node()], key)
				}
			}
		}
		s.run(t)
	}
	if lists == 0 || held == 0 {
		t.Errorf("%d keys were listed, and workers waited %d times", lists, held)
	}
}

// A higher threshold sends fewer bytes.
func TestBytesFallAsTheThresholdGrows(t *testing.T) {
	before := math.MaxInt
	for _, v := range []float64{0, 0.01, 0.05, 0.2, 1} {
		s := newStage(sgd(0.05), 2, 2)
		s.arch.Significance, s.arch.Clock, s.time = v, 3, 2*time.Second
		s.run(t)
		if s.bytes >= before {
			t.Errorf("with a threshold of %v %d bytes are sent, and %d with the one below", v, s.bytes, before)
		}
		before = s.bytes
	}
}

func TestRunsRepeatWhateverComputesThem(t *testing.T) {
	var want *stage
	for _, c := range []struct{ processors, threads int }{{1, 0}, {2, 0}, {2, 2}} {
		before := runtime.GOMAXPROCS(c.processors)
		s := newStage(sgd(0.05), 2, 1, 2)
		s.arch.Consistency, s.threads = consistency.SSP{Rounds: 1}, c.threads
		s.run(t)
		runtime.GOMAXPROCS(before)
		if want == nil {
			want = s
		}
		if s.digest != want.digest || !slices.Equal(s.models[1], want.models[1]) {
			t.Errorf("%+v: the run is another one", c)
		}
	}
}
