package dpsgd_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
)

// steady looks at the models in the middle of each of a number of steps.
func steady(steps int) (looks []time.Duration) {
	for k := range steps {
		looks = append(looks, time.Duration(k)*simtest.StepTime+simtest.StepTime/2)
	}
	return looks
}

// Where models travel as they are, γ = 1 is D-PSGD bit for bit. With an operator that loses nothing
// x̂ ← x̂ + C(x − x̂) is x but for its rounding.
func TestChocoWithoutCompressionIsDPSGD(t *testing.T) {
	for _, c := range graphs {
		task := simtest.NewTask(len(c.graph), 60, 0.1)
		run := func(choco dpsgd.Choco) [][]simtest.Seen {
			s := simtest.Stage{Task: task, Graph: c.graph, Distinct: true, Strict: true, Looks: steady(60),
				Kind: dpsgd.Architecture{Lead: -1, Choco: choco}}
			return s.Run(t)
		}
		plain, whole := run(dpsgd.Choco{}), run(dpsgd.Choco{Rate: 1})
		all := run(dpsgd.Choco{Compress: compress.Chain{compress.TopK{Share: 1}}, Rate: 1})
		for k, look := range plain {
			for i := range look {
				if !slices.Equal(look[i].Params, whole[k][i].Params) {
					t.Fatalf("%s: the models of node %d differ in step %d", c.name, i, k)
				}
				off, size := 0.0, 0.0
				for j, v := range look[i].Params {
					off = math.Hypot(off, float64(v)-float64(all[k][i].Params[j]))
					size = math.Hypot(size, float64(v))
				}
				if !(off <= 1e-6*size) {
					t.Fatalf("%s: x̂ makes the models of node %d differ by %.1e, relatively, in step %d", c.name, i,
						off/size, k)
				}
			}
		}
	}
}

// Without gradients, consensus alone leaves the mean of the models, and brings them together,
// however much each message loses.
func TestChocoLeavesTheMeanAndFindsAConsensus(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	for _, o := range []struct {
		chain compress.Chain
		rate  float64
	}{
		{compress.Chain{compress.TopK{Share: 0.1}}, 0.1}, {compress.Chain{compress.Sign{}}, 0.1},
		{compress.Chain{compress.Int(4)}, 0.8}, {compress.Chain{compress.RandomK{Share: 0.2}}, 0.15},
	} {
		for _, c := range graphs {
			task := simtest.NewTask(len(c.graph), 60, 0)
			s := simtest.Stage{Task: task, Graph: c.graph, Distinct: true, Strict: true, Looks: steady(900),
				Kind: dpsgd.Architecture{Lead: -1, Choco: dpsgd.Choco{Compress: o.chain, Rate: o.rate}}}
			looks := s.Run(t)
			first, _ := simtest.Total(looks[0])
			last, n := simtest.Total(looks[len(looks)-1])
			if d := simtest.Distance(first, last) / float64(n); d > 1e-6*math.Sqrt(float64(len(first))) {
				t.Errorf("%s, %T: the mean has moved by %g", c.name, o.chain[0], d)
			}
			if a, b := simtest.Spread(looks[0]), simtest.Spread(looks[len(looks)-1]); b > 0.02*a {
				t.Errorf("%s, %T: the models were %g apart and are %g apart", c.name, o.chain[0], a, b)
			}
		}
	}
}

// The dumb second implementation of a step, from the models before it: x̂ and C by their
// definitions.
func TestChocoEqualsItsFormula(t *testing.T) {
	const rate, gamma, share, steps = 0.1, 0.4, 0.2, 60
	for _, c := range graphs {
		task := simtest.NewTask(len(c.graph), 60, rate)
		s := simtest.Stage{Task: task, Graph: c.graph, Distinct: true, Strict: true, Looks: steady(steps),
			Kind: dpsgd.Architecture{Lead: -1, Choco: dpsgd.Choco{Compress: compress.Chain{compress.TopK{Share: share}},
				Rate: gamma}}}
		looks := s.Run(t)
		l := newLoop(task, matrix(c.graph), rate, 0, true)
		known := make([][]float32, len(c.graph))
		for step := range steps - 1 {
			for i, m := range looks[step] {
				known[i] = approach(known[i], m.Params, share)
				for k, v := range m.Params {
					l.x[i][k] = float64(v)
				}
			}
			for i, m := range looks[step+1] {
				g := l.gradient(i, step)
				want := make([]float64, len(g))
				for k := range g {
					want[k] = l.x[i][k] - rate*float64(g[k])
					for j := range l.w {
						want[k] += gamma * l.w[i][j] * (float64(known[j][k]) - float64(known[i][k]))
					}
				}
				got := make([]float64, len(want))
				for k, v := range m.Params {
					got[k] = float64(v)
				}
				if d := simtest.Distance(got, want); d > 1e-5 {
					t.Fatalf("%s: node %d is %g from the formula after step %d", c.name, i, d, step)
				}
			}
		}
	}
}

// approach is x̂ + C(x − x̂) with the largest differences, the first of equal ones.
func approach(known, x []float32, share float64) []float32 {
	if known == nil {
		return slices.Clone(x)
	}
	next, taken := slices.Clone(known), make([]bool, len(x))
	for range int(math.Ceil(share * float64(len(x)))) {
		best, most := -1, float32(-1)
		for i := range x {
			if d := float32(math.Abs(float64(x[i] - known[i]))); d > most && !taken[i] {
				best, most = i, d
			}
		}
		next[best] += x[best] - known[best]
		taken[best] = true
	}
	return next
}

func TestTrackingEqualsItsFormula(t *testing.T) {
	const rate, steps = 0.1, 100
	for _, c := range graphs {
		task := simtest.NewTask(len(c.graph), 60, rate)
		l := newLoop(task, matrix(c.graph), rate, 0, true)
		n := len(c.graph)
		y, before := make([][]float64, n), make([][]float32, n)
		for step := range steps {
			gradients, mixed, next := make([][]float32, n), make([][]float64, n), make([][]float64, n)
			for i := range n {
				gradients[i] = l.gradient(i, step)
				mixed[i], next[i] = make([]float64, len(l.x[i])), make([]float64, len(l.x[i]))
				for k := range mixed[i] {
					for j := range n {
						if y[j] != nil {
							mixed[i][k] += l.w[i][j] * y[j][k]
						}
						next[i][k] += l.w[i][j] * l.x[j][k]
					}
					if mixed[i][k] += float64(gradients[i][k]); before[i] != nil {
						mixed[i][k] -= float64(before[i][k])
					}
					next[i][k] -= rate * mixed[i][k]
				}
			}
			l.x, y, before = next, mixed, gradients
		}
		s := simtest.Stage{Task: task, Graph: c.graph, Kind: dpsgd.Architecture{Lead: -1, Track: true}, Distinct: true,
			Strict: true, Looks: []time.Duration{steps*simtest.StepTime + simtest.StepTime/2}}
		if d := worst(s.Run(t)[0], l.x); !(d <= 1e-5) {
			t.Errorf("%s: distance %.1e from the formula, want at most 1e-5", c.name, d)
		}
	}
}
