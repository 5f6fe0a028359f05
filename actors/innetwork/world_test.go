package innetwork

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// sgd is a step of synchronous SGD with all workers' batches, in plain loops of 64 bits: what the
// parameters are after it, and by how much one may differ where gradients travel as integers.
func sgd(tb testing.TB, task *train.Task, steps int, params []float32, rate float64) (next, within []float64) {
	tb.Helper()
	sum, greatest, samples := make([]float64, len(params)), 0.0, 0
	for i, shard := range task.Shards {
		sampler, err := datasets.NewSampler(task.Train, shard, task.Batch, task.Seed, task.Workers[i])
		if err != nil {
			tb.Fatal(err)
		}
		x, y := make([]float32, task.Batch*task.Train.Inputs), make([]int32, task.Batch)
		n := sampler.Fill(steps/sampler.Steps(), steps%sampler.Steps(), x, y)
		gradient := make([]float32, len(params))
		task.Model.NewWorkspace(task.Batch).Gradient(params, gradient, nn.Batch{X: x[:n*task.Train.Inputs], Y: y[:n]})
		for k, g := range gradient {
			sum[k] += float64(n) * float64(g)
			greatest = max(greatest, float64(n)/float64(task.Batch)*math.Abs(float64(g)))
		}
		samples += n
	}
	workers, weight := float64(len(task.Shards)), float64(samples)/float64(task.Batch)
	unit := 2 * greatest * 2 * workers / (1 << 31)
	for k, s := range sum {
		mean := s / float64(samples)
		next = append(next, float64(params[k])-rate*mean)
		// What travels, and what a product, a quotient and a difference of 32 bits round.
		rounding := (math.Abs(float64(params[k])) + 4*rate*greatest*workers/weight) / (1 << 23)
		within = append(within, rate*workers*unit/2/weight+rounding)
	}
	return next, within
}

// Workers of shards that differ make the steps of synchronous SGD, each within the resolution that
// the integers have.
func TestStepsAreThoseOfSynchronousSGD(t *testing.T) {
	task := newTask(30, 17, 8, 41)
	task.Method = optim.SGD{Rate: optim.Constant(0.1)}
	for _, rules := range []Architecture{{Slots: 3, Values: 10}, {Slots: 1, Values: 7}, {Slots: 100, Values: 1000}} {
		s := &setup{task: task, rules: rules, steps: 12}
		s.run(t)
		for i := range int(s.steps) {
			got := s.model(uint64(i) + 1)
			want, within := sgd(t, task, i, s.model(uint64(i)), 0.1)
			for k := range want {
				if math.Abs(float64(got[k])-want[k]) > within[k] {
					t.Fatalf("%+v: parameter %d after %d steps is %v, want %v within %v", rules, k, i+1, got[k],
						want[k], within[k])
				}
			}
		}
	}
}

// Bits do not depend on the way that packets take: neither on switches above each other, nor on
// what links do to packets, nor on who repeats them.
func TestBitsAreThoseOfOneSwitchWhateverTheWay(t *testing.T) {
	rules := Architecture{Slots: 4, Values: 9}
	flat := &setup{task: newTask(30, 17, 8, 41, 24), rules: rules, steps: 15}
	flat.run(t)
	bad := link.Config{Loss: link.Loss{Probability: 0.1, Drop: true}, Repeat: 0.1, Reorder: true}
	slow := link.Config{Loss: link.Loss{Probability: 0.01, Drop: true}, Rate: rate.Constant(100e3 / 8)}
	tree := treeOf([]int{nobody, 0, 0, 2, 1, 1, 0, 2, 3}) // s0 over s1 and s2, s2 over s3
	for name, s := range map[string]*setup{
		"a tree":                {switches: 4, graph: tree},
		"a tree over bad links": {switches: 4, graph: tree, link: bad},
		"bad links":             {link: bad},
		"bad links, sessions":   {link: bad, reliable: true},
		"links that reorder":    {link: link.Config{Repeat: 0.3, Reorder: true}},
		"links that resend":     {link: link.Config{Loss: link.Loss{Probability: 0.1, Timeout: 20 * ms}}},
		"slow links":            {link: slow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.task, s.rules, s.steps = flat.task, flat.rules, flat.steps
			s.run(t)
			s.same(t, append(s.models, flat.models...)...)
		})
	}
}

// On links that lose nothing each worker sends every value of its gradient up once in a step. A
// switch below another sends as many on, and gets as many back.
func TestAStepBringsEachValueToASwitchOnce(t *testing.T) {
	tree := treeOf([]int{nobody, 0, 0, 2, 1, 1, 0, 2, 3})
	for _, s := range []*setup{{}, {switches: 4, graph: tree}} {
		s.task, s.rules, s.steps = newTask(30, 17, 8, 41, 24), Architecture{Slots: 4, Values: 9}, 15
		got := 0
		s.packet = func(_ *protos.Aggregate, words []float32) { got += len(words) }
		s.run(t)
		step := (len(s.task.Workers) + 2*max(s.switches-1, 0)) * s.task.Model.Params()
		if want := int(s.steps) * step; max(got-want, want-got) > step { // the last ones may be under way
			t.Errorf("%d switches: %d values have come in %d steps, want %d", s.switches, got, s.steps, want)
		}
	}
}

// Workers come and go at random, over links that lose, repeat and reorder: whoever is there goes
// on, and all have the same model after as many steps.
func TestWhoIsThereGoesOnWithTheSameBits(t *testing.T) {
	const end = 6 * time.Second
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			events := &simtest.Recorder{}
			s := &setup{task: newTask(30, 17, 8, 41, 24), rules: Architecture{Slots: 4, Values: 9}, time: end,
				observer: events, reliable: seed%3 == 2}
			if seed == 4 {
				s.link.Delay = link.Uniform{Min: ms, Max: 50 * ms}
			}
			if seed%2 == 1 {
				s.switches, s.graph = 3, treeOf([]int{nobody, 0, 0, 0, 1, 1, 2, 2})
			}
			if seed > 1 {
				s.link.Loss, s.link.Repeat, s.link.Reorder = link.Loss{Probability: 0.05, Drop: true}, 0.3, true
			}
			first := max(s.switches, 1)
			there := []bool{true, true, true, true, true}
			for at := 200 * ms; at < end-2*time.Second; at += time.Duration(20+random.IntN(250)) * ms {
				worker := 1 + random.IntN(4)
				do := world.Join
				if there[worker] {
					do = world.Crash + world.NodeEvent(random.IntN(2))
				}
				there[worker] = !there[worker]
				s.schedule = append(s.schedule, world.NodeChange{At: at, Node: first + worker, Do: do})
			}
			s.run(t)
			steps, lives, updates := make([]uint64, first+5), 0, make([]int, first+5)
			for i, e := range events.Events {
				switch e.Kind {
				case actors.UpdateApplied:
					updates[events.Nodes[i]]++
				case actors.StepDone:
					updates[events.Nodes[i]]--
				}
				if last := &steps[events.Nodes[i]]; e.Kind == actors.StepDone {
					if e.Step != *last+1 {
						lives++
					}
					*last = e.Step
				}
			}
			if slices.ContainsFunc(updates, func(n int) bool { return n != 0 }) {
				t.Errorf("nodes have recorded %v more updates than steps", updates)
			}
			if lives > len(s.schedule)/2 {
				t.Errorf("%d times a step does not follow the one before, with %d newcomers", lives, len(s.schedule)/2)
			}
			for worker, steps := range events.StepsAfter(first+5, end-time.Second)[first:] {
				if there[worker] && steps < 2 {
					t.Errorf("worker %d hardly makes steps any more: %d; %v", worker, steps, s.result.Waits)
				}
			}
		})
	}
}

// Without a switch the run waits until it is back, and says so if it is not.
func TestRunWaitsForItsSwitch(t *testing.T) {
	gone := world.NodeChange{At: time.Second, Node: 1, Do: world.Crash}
	back := world.NodeChange{At: 5 * time.Second, Node: 1, Do: world.Join}
	graph := treeOf([]int{nobody, 0, 0, 1})
	events := &simtest.Recorder{}
	s := &setup{task: newTask(8, 8), rules: Default(), switches: 2, graph: graph, observer: events,
		schedule: []world.NodeChange{gone, back}, time: 8 * time.Second}
	s.run(t)
	for i, e := range events.Events {
		if at := events.At[i]; e.Kind == actors.StepDone && at > 1100*ms && at < 5*time.Second {
			t.Fatalf("node %d makes a step at %v", events.Nodes[i], at)
		}
	}
	if n := events.StepsAfter(4, 5*time.Second); n[2] < 50 || n[3] < 50 {
		t.Errorf("%v steps after the switch is back", n)
	}
	s.schedule = s.schedule[:1]
	if err := s.try(t); err == nil || !strings.Contains(err.Error(), "n1 waits for switch s1 to be there") {
		t.Errorf("got %v", err)
	}
}

// Where nothing arrives any more repeats end, and the nodes say whom they wait for.
func TestRepeatsEndWhereNothingArrives(t *testing.T) {
	s := &setup{task: newTask(8), rules: Default(), link: link.Config{Loss: link.Loss{Probability: 1, Drop: true}},
		time: 10 * time.Hour}
	err := s.try(t)
	if err == nil || !strings.Contains(err.Error(), "n0 waits for the result of packet 0, of step 0, from switch s0") {
		t.Errorf("got %v", err)
	}
}

// A newcomer begins with the model and the optimizer of the others, the schedule of its rate and
// its walk through the samples where theirs are, whatever is lost.
func TestNewcomerGoesOnWhereTheOthersAre(t *testing.T) {
	for _, loss := range []float64{0, 0.4} {
		for _, method := range []optim.Method{
			optim.Adam{Rate: optim.Inverse{First: 0.1, Half: 10}, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
			optim.SGD{Rate: optim.Constant(0.1)},
		} {
			task := newTask(40, 24, 33)
			task.Method = method
			s := &setup{task: task, rules: Architecture{Slots: 2, Values: 20}, absent: []int{3}, time: 6 * time.Second,
				schedule: []world.NodeChange{{At: 500 * ms, Node: 3, Do: world.Join}},
				link:     link.Config{Loss: link.Loss{Probability: loss, Drop: loss > 0}}}
			s.run(t)
			if n := len(s.models[2]); n < 2 || s.models[2][0] != nil {
				t.Fatalf("the newcomer has %d models, that of the beginning: %v", n, s.models[2][0] != nil)
			}
			last := slices.Max(slices.Collect(maps.Keys(s.models[2])))
			want, within := sgd(t, task, int(last)-1, s.models[2][last-1], 0.1)
			for k, got := range s.models[2][last] {
				if _, plain := method.(optim.SGD); plain && math.Abs(float64(got)-want[k]) > within[k] {
					t.Fatalf("parameter %d after %d steps is %v, want %v within %v", k, last, got, want[k], within[k])
				}
			}
		}
	}
}

// The exponent of a chunk is that of its greatest value, told with the chunk before in its slot.
// Only the first of each slot have that of all of them.
func TestExponentsAreThoseOfTheChunks(t *testing.T) {
	const slots, values, workers, steps = 3, 7, 4, 6
	greatest := map[uint64]int32{}
	s := &setup{task: newTask(30, 17, 8, 41), rules: Architecture{Slots: slots, Values: values}, steps: steps,
		packet: func(head *protos.Aggregate, words []float32) {
			for _, w := range words {
				greatest[head.Number] = max(greatest[head.Number], integer(w), -integer(w))
			}
		}}
	s.run(t)
	chunks := (uint64(len(s.model(0))) + values - 1) / values
	if n := uint64(len(greatest)); n < steps*chunks {
		t.Fatalf("%d packets have values, want %d", n, steps*chunks)
	}
	const most = 1 << 28 // 4 of them fit 31 bits, with one to spare as no power of 2 is 2³¹ − 1
	for number := range greatest {
		chunk, first := (number-1)%(chunks+1)-1, int32(0)
		if chunk < slots {
			for i := range uint64(slots) {
				first = max(first, greatest[number-chunk+i])
			}
		} else {
			first = greatest[number]
		}
		if step := (number - 1) / (chunks + 1); step < steps && (first <= most/2-1 || first > most) {
			t.Errorf("the greatest of chunk %d of step %d is %d, want at most %d and more than half of that", chunk,
				step, first, most)
		}
	}
}

// A switch that hears of the run, or of a view, after its workers is not lost.
func TestSwitchesThatHearLateAreWaitedFor(t *testing.T) {
	s := &setup{task: newTask(8, 8, 8, 8), rules: Default(), switches: 3,
		graph: treeOf([]int{nobody, 0, 0, 1, 1, 2, 2}), tardy: true, steps: 60,
		schedule: []world.NodeChange{{At: 300 * ms, Node: 4, Do: world.Crash}, {At: 600 * ms, Node: 4, Do: world.Join},
			{At: 800 * ms, Node: 2, Do: world.Crash}, {At: 900 * ms, Node: 2, Do: world.Join}}}
	s.run(t)
}

func TestRunsDoNotDependOnThreads(t *testing.T) {
	var digests [2]uint64
	for i, threads := range []int{1, 4} {
		s := &setup{task: newTask(30, 17, 8), rules: Architecture{Slots: 4, Values: 9}, steps: 20, threads: threads,
			link: link.Config{Loss: link.Loss{Probability: 0.05, Drop: true}}}
		s.run(t)
		digests[i] = s.result.Digest
	}
	if digests[0] != digests[1] {
		t.Errorf("digests %x and %x", digests[0], digests[1])
	}
}

func TestSwitchesThatAreNoTreeAreRefused(t *testing.T) {
	for want, parent := range map[string][]int{
		"s2 has no way to switch s0": {nobody, 0, nobody, 0, 2},
		"n0 has 0 switches":          {nobody, 0, 0, nobody, 2},
		"":                           {nobody, 0, 0, 1, 2},
	} {
		if err := fit(treeOf(parent), 3, len(parent)-3); err == nil && want != "" ||
			err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", parent, err, want)
		}
	}
	for n, want := range map[int]string{1: "", 2: "n0 has 2 switches", 3: "are joined in more than one way"} {
		if err := fit(nil, n, 2); err == nil && want != "" ||
			err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d switches that all know all: %v, want %q", n, err, want)
		}
	}
}

func fit(graph actors.Graph, switches, workers int) error {
	var members []actors.Member
	for i := range switches {
		members = append(members, actors.Member{Name: fmt.Sprintf("s%d", i), Role: RoleSwitch, Present: true})
	}
	for i := range workers {
		members = append(members, actors.Member{Name: fmt.Sprintf("n%d", i), Role: RoleWorker, Present: true})
	}
	view := actors.NewView(1, members, graph, graph)
	return Default().Fit(view, view)
}

// What no member of the run has sent ends it, and says what it was.
func TestStrangeMessagesEndTheRun(t *testing.T) {
	for _, c := range []struct {
		to   int // 0 is the switch, 1 and 2 are its workers
		head proto.Message
		size []int // of the tensors
		want string
	}{
		{0, &protos.Aggregate{View: 1, Node: 1, Number: 1 << 63}, nil, "n0 in view 1: its slot is not"},
		{0, &protos.Aggregate{View: 1, Node: 1, Number: 5000}, []int{9}, "its slot is not free for it"},
		{0, &protos.Aggregate{View: 1, Node: 2, Number: 0}, []int{1, 1}, "it has 2 tensors instead of 1"},
		{0, &protos.Aggregate{View: 1, Node: 7}, nil, "a message from node 7, of 3 nodes"},
		{0, &protos.Model{}, nil, "unexpected message"},
		{1, &protos.Aggregate{View: 1, Node: 2, Number: 0}, nil, "this worker's switch is s0"},
		{1, &protos.Aggregate{View: 1, Node: 0, Number: 1}, []int{2, 2}, "it has 2 tensors instead of 1"},
		{1, &protos.Report{View: 1, Rank: 9}, nil, "worker 9 of 2 asks in view 1"},
		{1, &protos.Report{View: 1, Rank: 0}, nil, "worker 0 of 2 asks in view 1"},
		{2, &protos.Start{View: 1}, nil, "a second start"},
		{2, &protos.Push{}, nil, "unexpected message"},
		// Of no use, and no harm.
		{0, &protos.Aggregate{View: 2, Node: 1, Number: 9}, []int{400}, ""},
		{1, &protos.Aggregate{View: 7, Node: 0, Number: 9}, []int{3}, ""},
		{1, &protos.Aggregate{View: 1, Node: 0, Number: 1 << 63}, nil, ""},
		{1, &protos.Aggregate{View: 1, Node: 0, Number: math.MaxUint64}, []int{3}, ""},
		{1, &protos.Outcome{View: 1, Finished: 5}, []int{9}, ""},
		{1, &protos.Report{View: 3, Rank: -1}, nil, ""},
	} {
		s := &setup{task: newTask(8, 8), rules: Architecture{Slots: 2, Values: 30}, steps: 30,
			intrude: func(view *actors.View) (*actor.PID, *protos.Message) {
				m := protos.NewMessage(c.head)
				for _, n := range c.size {
					m.Tensors = append(m.Tensors, protos.NewTensor(make([]float32, n)))
				}
				return view.Members[c.to].PID, m
			}}
		if err := s.try(t); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T %v to node %d: %v, want %q", c.head, c.head, c.to, err, c.want)
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	simtest.ExpectNoAllocations(t, 1000, 400, func(watch *simtest.Stopwatch) {
		s := &setup{task: newTask(30, 17, 8, 41), rules: Architecture{Slots: 4, Values: 9}, observer: watch,
			blind: true, link: link.Config{Delay: link.Constant{Delay: ms}}, time: 10 * time.Second}
		if err := s.try(t); err != nil {
			t.Fatal(err)
		}
	})
}
