package ps_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
)

// Operators that lose nothing change nothing, whatever is fed back.
func TestCompressionThatLosesNothingChangesNoBit(t *testing.T) {
	all := compress.Chain{compress.TopK{Share: 1}}
	for _, m := range []consistency.Model{consistency.BSP{}, consistency.ASP{}, consistency.SSP{Rounds: 2}} {
		plain := ps.Architecture{Consistency: m, Scale: ps.Mean}
		for _, f := range []compress.Feedback{compress.None, compress.EF} {
			squeezed := plain
			squeezed.Compress = compress.Both{Up: all, Feedback: f}
			for seed := range uint64(5) {
				one, _ := unequal(t, seed, 3, plain)
				other, _ := unequal(t, seed, 3, squeezed)
				for i := range one.steps { // what compression itself takes does not count
					one.delays[i] += time.Duration(i) * 97
					other.delays[i] += time.Duration(i) * 97
				}
				a, n := one.run(t, 300*ms)
				b, n2 := other.run(t, 300*ms)
				if n == 0 || n != n2 {
					t.Fatalf("%+v: %d and %d updates", m, n, n2)
				}
				sameBits(t, "model", a, b)
			}
		}
	}
}

// A run whose gradients are compressed with error feedback, written out: the server's step is with
// what each code stands for, and each worker adds what was lost to its next gradient.
func TestWhatAGradientLosesIsAddedToTheNext(t *testing.T) {
	chain := compress.Chain{compress.TopK{Share: 0.1}}
	s, log := unequal(t, 4, 3, ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean,
		Compress: compress.Both{Up: chain, Feedback: compress.EF}})
	params, version := s.run(t, time.Second)
	if version < 20 {
		t.Fatalf("%d rounds", version)
	}
	model, k := s.task.Initial(), int(math.Ceil(0.1*float64(s.task.Model.Params())))
	rest := make([][]float32, 3)
	for round := range int(version) {
		sum := make([]float32, len(model))
		for w := range rest {
			p := s.gradient(t, w, round, model)
			if rest[w] != nil {
				nn.AddScaled(p, 1, rest[w])
			}
			order := make([]int, len(p))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(i, j int) int {
				return cmp.Compare(math.Abs(float64(p[j])), math.Abs(float64(p[i])))
			})
			rest[w] = slices.Clone(p)
			for _, i := range order[:k] {
				sum[i] += p[i]
				rest[w][i] = 0
			}
		}
		nn.Scale(sum, 1/float32(3))
		nn.AddScaled(model, -0.1, sum)
	}
	sameBits(t, "model", params, model)
	if n := len(log.of(actors.UpdateApplied)); n < 60 {
		t.Errorf("%d updates", n)
	}
}

// Models that are compressed on the way down are what the worker has, and approach the server's
// once that stands still.
func TestEveryChainTrainsInBothDirections(t *testing.T) {
	for i, up := range []compress.Chain{
		nil, {compress.TopK{Share: 0.1}}, {compress.RandomK{Share: 0.1}}, {compress.PowerSGD{Rank: 1}},
		{compress.Float16{}}, {compress.Int(8)}, {compress.QSGD{Levels: 15}}, {compress.Ternary{Clip: 2.5}},
		{compress.Sign{}}, {compress.Natural{}}, {compress.TopK{Share: 0.2}, compress.Int(4)},
	} {
		for _, f := range []compress.Feedback{compress.EF, compress.EF21, compress.None} {
			a := ps.Architecture{Consistency: consistency.SSP{Rounds: 1}, Scale: ps.Mean,
				Compress: compress.Both{Up: up, Down: compress.Chain{compress.Int(8)}, Feedback: f}}
			if err := a.Compress.Up.Validate(); err != nil {
				t.Fatal(err)
			}
			s, _ := unequal(t, uint64(i), 2, a)
			s.strict = i%2 == 0
			before := s.loss(s.task.Initial())
			params, n := s.run(t, 3*time.Second)
			if after := s.loss(params); !(after < 0.9*before) {
				t.Errorf("%T %s: the loss went from %g to %g in %d updates", up, f, before, after, n)
			}
		}
	}
}

// loss is that of a model on all samples.
func (s *stage) loss(params []float32) float64 {
	n := s.task.Train.Len()
	gradient := make([]float32, len(params))
	return s.task.Model.NewWorkspace(n).Gradient(params, gradient, nn.Batch{X: s.task.Train.X, Y: s.task.Train.Y})
}

func TestCompressedCyclesAllocateNothing(t *testing.T) {
	for _, f := range []compress.Feedback{compress.EF, compress.EF21} {
		a := ps.Architecture{Scale: ps.Mean, Compress: compress.Both{
			Up: compress.Chain{compress.TopK{Share: 0.01}, compress.Int(4)}, Down: compress.Chain{compress.Int(8)},
			Feedback: f}}
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			simtest.ExpectNoAllocations(t, warm, 1000, func(watch *simtest.Stopwatch) { cycles(t, a, watch) })
		})
	}
}
