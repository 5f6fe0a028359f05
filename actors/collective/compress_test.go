package collective_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// compressed is the architecture in which codes travel.
func compressed(reduce collective.Reduce, every int, f compress.Feedback,
	chain ...compress.Operator) collective.Architecture {
	return collective.Architecture{Algorithm: collective.AllToAll, Every: every, Reduce: reduce, Compress: chain,
		Feedback: f}
}

var everyFeedback = []compress.Feedback{compress.None, compress.EF, compress.EF21}

// Operators that lose nothing change no bit of a mean of gradients. Differences of models, and
// those of EF21, are rounded.
func TestCompressionThatLosesNothingChangesNothing(t *testing.T) {
	for _, shards := range [][]int{{50}, {64, 64, 64}, uneven} {
		task := simtest.Task(simtest.Perceptron(20, 15, 4), shards, 16, momentum(0.02))
		for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
			plain := trial{task: task, rounds: 15, strict: true, architecture: compressed(reduce, 2, "")}
			want := plain.run(t)
			for _, f := range everyFeedback {
				s := trial{task: task, rounds: 15, strict: true,
					architecture: compressed(reduce, 2, f, compress.TopK{Share: 1})}
				exact := reduce == collective.Gradients && f != compress.EF21
				if got := s.run(t); exact && !slices.Equal(got[0], want[0]) {
					t.Errorf("%d ranks, %s, %s: the models differ", len(shards), reduce, f)
				} else {
					compare(t, got, want[0], 1e-5)
				}
			}
		}
	}
}

// keep is the dumb second implementation of top-k: the vector without all but the k largest values.
func keep(x []float32, k int) []float32 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(math.Abs(float64(x[j])), math.Abs(float64(x[i])))
	})
	kept := make([]float32, len(x))
	for _, i := range order[:k] {
		kept[i] = x[i]
	}
	return kept
}

// lossy is the dumb second implementation of rounds with top-k of k values.
func (l *loop) lossy(a collective.Architecture, rounds, k int) []float32 {
	joint, ranks := l.task.Initial(), len(l.samplers)
	optimizer := l.task.Method.New(len(joint))
	memory := make([][]float64, ranks) // of each rank
	for rank := range memory {
		memory[rank] = make([]float64, len(joint))
	}
	for round := range rounds {
		mean := make([]float32, len(joint))
		for rank := range ranks {
			x, model := make([]float32, len(joint)), slices.Clone(joint)
			for i := range a.Every {
				l.add(rank, round*a.Every+i)
				g := l.gradient(model)
				if a.Reduce == collective.Models {
					optimizer.Step(model, model, g)
				}
				for j := range x {
					x[j] += g[j] / float32(a.Every)
				}
			}
			if a.Reduce == collective.Models {
				for j := range x {
					x[j] = model[j] - joint[j]
				}
			}
			for j, v := range l.told(a.Feedback, memory[rank], x, k) {
				mean[j] += v / float32(ranks)
			}
		}
		if a.Reduce == collective.Models {
			for j, v := range mean {
				joint[j] += v
			}
			continue
		}
		optimizer.Step(joint, joint, mean)
	}
	return joint
}

// told is what the others make of a rank's vector.
func (l *loop) told(f compress.Feedback, memory []float64, x []float32, k int) []float32 {
	input := slices.Clone(x)
	for j := range input {
		switch f {
		case compress.EF:
			input[j] += float32(memory[j])
		case compress.EF21:
			input[j] -= float32(memory[j])
		}
	}
	told := keep(input, k)
	for j := range told {
		switch f {
		case compress.EF:
			memory[j] = float64(input[j]) - float64(told[j])
		case compress.EF21:
			memory[j] += float64(told[j])
			told[j] = float32(memory[j])
		}
	}
	return told
}

func TestCompressedRoundsEqualTheirFormulas(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 4), []int{64, 64, 64, 64}, 16, sgd(0.1))
	const share, rounds = 0.1, 30
	for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
		for _, f := range everyFeedback {
			s := trial{task: task, rounds: rounds, strict: true,
				architecture: compressed(reduce, 2, f, compress.TopK{Share: share})}
			want := newLoop(t, task).lossy(s.architecture, rounds, int(math.Ceil(share*84)))
			compare(t, s.run(t), want, 1e-5)
		}
	}
}

// chains has every operator.
var chains = []compress.Chain{
	{compress.TopK{Share: 0.1}}, {compress.RandomK{Share: 0.2}}, {compress.PowerSGD{Rank: 1}}, {compress.Float16{}},
	{compress.BFloat16{}}, {compress.Int(8)}, {compress.Int(4)}, {compress.QSGD{Levels: 15}},
	{compress.Ternary{Clip: 2.5}}, {compress.Sign{}}, {compress.Natural{}},
	{compress.TopK{Share: 0.2}, compress.Int(4)},
}

func TestEveryChainTrainsAndLeavesAllRanksWithTheSameBits(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, sgd(0.1))
	loss := func(params []float32) float64 {
		return task.NewEvaluator(task.TestSamples(), 1).Evaluate(params).Loss
	}
	before := loss(task.Initial())
	for i, chain := range chains {
		if testing.Short() && i%3 > 0 {
			continue
		}
		for _, f := range everyFeedback {
			for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
				s := trial{task: task, rounds: 60, strict: i%2 == 0, reorder: i%3 == 0,
					architecture: compressed(reduce, 2, f, chain...)}
				models := s.run(t)
				for rank, m := range models {
					if !slices.Equal(m, models[0]) {
						t.Errorf("%T, %s, %s: the models of ranks %d and 0 differ", chain, f, reduce, rank)
					}
				}
				if after := loss(models[0]); !(after < 0.8*before) {
					t.Errorf("%T, %s, %s: the loss went from %g to %g", chain[0], f, reduce, before, after)
				}
			}
		}
	}
}

// What a rank has sent of a round counts once, in however many views the round is made, and what
// those have sent who are gone counts no more. Codes that lose nothing let the dumb second
// implementation say what that is.
func TestCompressedRoundsAreBySomeViewAloneWhateverHappens(t *testing.T) {
	t.Parallel()
	landed := 0
	for run := range 60 {
		random := rand.New(rand.NewPCG(uint64(run), 5))
		n := 2 + random.IntN(4)
		late := make([]time.Duration, n)
		for node := range late {
			late[node] = time.Duration(random.IntN(12_000)) * time.Microsecond
		}
		c := churn{task: churnTask(n, momentum(0.05)), schedule: shuffle(random, n), end: 500 * time.Millisecond,
			strict: run%2 == 0, posted: run%4 < 2, late: func(node int) time.Duration { return late[node] },
			architecture: compressed(collective.Gradients, 1, everyFeedback[run%3], compress.TopK{Share: 1})}
		if run%5 == 0 {
			c.task, c.architecture.Every, c.architecture.Reduce = churnTask(n, sgd(0.2)), 2, collective.Models
		}
		c.run(t)
		c.explain(t)
		if landed += c.landed; c.again > 0 {
			t.Errorf("run %d: %d chunks had a place after they had come", run, c.again)
		}
	}
	if landed == 0 {
		t.Error("no code arrived where it belongs")
	}
}

// Error feedback would count what it has lost twice if a round that is made again had another code.
func TestARoundThatIsMadeAgainHasTheSameCodes(t *testing.T) {
	type key struct {
		node, round uint64
	}
	type code struct {
		view  uint64
		words []float32
	}
	again := 0
	for run := range 40 {
		random := rand.New(rand.NewPCG(uint64(run), 7))
		codes := map[key]code{}
		c := churn{task: churnTask(4, momentum(0.05)), end: 300 * time.Millisecond, posted: true,
			architecture: compressed(collective.Gradients, 1, compress.EF, compress.TopK{Share: 0.2})}
		for _, node := range []int{1 + random.IntN(3), 1 + random.IntN(3)} {
			c.schedule = append(c.schedule, world.NodeChange{Node: node, Do: world.Crash,
				At: time.Duration(len(c.schedule)*100+random.IntN(100)) * time.Millisecond})
		}
		c.heard = func(head *protos.Chunk, words []float32) {
			k := key{uint64(c.views[head.View-1][head.Rank]), head.Round}
			before, known := codes[k]
			if known && before.view != head.View {
				again++
				if !slices.Equal(before.words, words) {
					t.Errorf("run %d: node %d has another code for round %d", run, k.node, k.round)
				}
			}
			codes[k] = code{head.View, slices.Clone(words)}
		}
		c.run(t)
	}
	if again == 0 {
		t.Error("no round was made again")
	}
}

// Ranks that have made as many rounds have the same bits, also where codes lose something.
func TestChurnLeavesCompressedModelsEqual(t *testing.T) {
	for run := range 30 {
		var digests []uint64
		for _, threads := range []int{0, 2} {
			random := rand.New(rand.NewPCG(uint64(run), 6))
			c := churn{task: churnTask(4, momentum(0.05)), schedule: shuffle(random, 4), end: 400 * time.Millisecond,
				threads:      threads,
				architecture: compressed(collective.Gradients, 1, everyFeedback[run%3], chains[run%len(chains)]...)}
			c.run(t)
			for round, model := range c.seen[0] {
				for node := range c.seen {
					if m := c.seen[node][round]; m != nil && !slices.Equal(m, model) {
						t.Errorf("run %d: nodes 0 and %d differ after %d rounds", run, node, round)
					}
				}
			}
			digests = append(digests, c.result.Digest)
		}
		if digests[0] != digests[1] {
			t.Errorf("run %d: digests %x", run, digests)
		}
	}
}

func TestCompressedResultDependsNotOnProcessors(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	for i, chain := range chains {
		var want [][]float32
		var digest uint64
		for procs := 1; procs <= 2; procs++ {
			s := trial{task: task, rounds: 6, threads: procs,
				architecture: compressed(collective.Models, 2, everyFeedback[i%3], chain...)}
			before := runtime.GOMAXPROCS(procs)
			models := s.run(t)
			runtime.GOMAXPROCS(before)
			if want == nil {
				want, digest = models, s.result.Digest
			}
			if !slices.Equal(models[0], want[0]) || s.result.Digest != digest {
				t.Errorf("%T: digest %x, want %x", chain[0], s.result.Digest, digest)
			}
		}
	}
}

func TestCompressedCostIsWhatARoundTakesInVirtualTime(t *testing.T) {
	for _, chain := range []compress.Chain{{compress.TopK{Share: 0.01}}, {compress.Int(8)},
		{compress.PowerSGD{Rank: 1}}} {
		for _, f := range everyFeedback {
			for _, n := range []int{2, 3, 8} {
				g := newTerrain(n, 5000, 1).each(func(_, _ int) train.Line {
					return train.Line{Delay: time.Millisecond, Rate: 1e5, Overhead: 100}
				})
				for i := range g.workers {
					g.workers[i].Speed = 1e6
				}
				a := compressed(collective.Gradients, 1, f, chain...)
				a.Algorithm = collective.Auto
				layout := g.layout()
				layout.Tensors = g.task.Model.Tensors()
				made, c, err := a.Choose(layout, false)
				if err != nil || len(c.Options) != 1 {
					t.Fatal(c, err)
				}
				update := 2 * 5000 * time.Microsecond // of the model, by the mean of the gradients
				took := apiece(g.play(t, made.(collective.Architecture), 8)) - update
				if off := math.Abs(float64(c.Options[0].Time - took)); off > 0.01*float64(took) {
					t.Errorf("%T over %d ranks: %v by formula, %v in virtual time", chain[0], n, c.Options[0].Time,
						took)
				}
			}
		}
	}
}

func TestCompressedRoundAllocatesNothing(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), []int{64, 64, 64, 64, 64}, 16, sgd(0.01))
	for _, f := range everyFeedback {
		m := &meter{from: 200, to: 400}
		s := trial{task: task, rounds: 400, observer: m, edge: link.Constant{},
			architecture: compressed(collective.Models, 1, f, compress.TopK{Share: 0.1}, compress.Int(4))}
		if s.run(t); m.each() > 1 {
			t.Errorf("%s: %.2f allocations a round of 5 ranks, want less than 1", f, m.each())
		}
	}
}

// The record has the bytes of codes: 36 or 37 words of 2,084 parameters with top-k 1 %, 21 values
// and as many indices of 12 bits.
func TestBytesOfARecordAreThoseOfCodes(t *testing.T) {
	bytes := func(set ...string) (messages, size int64) {
		p, err := driver.Parse("small.yaml", []byte(small), append(set, "architecture.algorithm=all-to-all",
			"nodes.first.compute={speed: 1000 TFLOP/s}", "nodes.peer.compute={speed: 1000 TFLOP/s}")...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := driver.Run(context.Background(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatal(err)
		}
		return r.Runs[0].Messages, r.Runs[0].Bytes
	}
	const params = 93*21 + 21 + 21*5 + 5
	messages, dense := bytes()
	for chain, words := range map[string]int64{
		"[{kind: top-k, share: 1%}]": 21 + (21*12+31)/32,
		"[float16]":                  params / 2,
		"[{kind: int8, block: 64}]":  (params+63)/64 + params/4,
		"[sign]":                     1 + (params+31)/32,
	} {
		for _, f := range everyFeedback {
			n, size := bytes(fmt.Sprintf("architecture.compress={up: %s, feedback: %s}", chain, f))
			if want := dense - messages*4*(params-words); n != messages || size != want || n == 0 {
				t.Errorf("%s, %s: %d messages of %d bytes, want %d of %d", chain, f, n, size, messages, want)
			}
		}
	}
}

func TestCompressionThatMakesNoSenseIsRefused(t *testing.T) {
	for set, want := range map[string]string{
		"{up: [float16, {kind: top-k, share: 1%}]}": "what keeps a part of the values comes first",
		"{down: [float16]}":                         `unknown key "down"`,
		"{up: [float16], feedback: never}":          `unknown feedback "never" (accepted: ef, ef21, none)`,
	} {
		p, err := driver.Parse("small.yaml", []byte(small), "architecture.compress="+set)
		if err == nil {
			err = p.Check(nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", set, err, want)
		}
	}
	ring := collective.Default()
	ring.Algorithm, ring.Compress = collective.Ring, compress.Chain{compress.Float16{}}
	const want = "must be all-to-all or auto with compress: the others send partial sums, and a sum of codes is no code"
	if err := ring.Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	a := compressed(collective.Gradients, 1, "", compress.Float16{})
	if err := a.Validate(); err == nil || !strings.Contains(err.Error(), "must be ef, ef21 or none") {
		t.Errorf("without a feedback: %v", err)
	}
}
