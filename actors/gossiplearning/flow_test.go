package gossiplearning

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

func TestStrategiesHaveThePapersValues(t *testing.T) {
	simple := Flow{Kind: Simple, Capacity: 3}
	general := Flow{Kind: Generalized, Capacity: 10, Reactivity: 4}
	random := Flow{Kind: Randomized, Capacity: 10, Reactivity: 5}
	for _, c := range []struct {
		flow   Flow
		tokens int
		send   float64    // the probability in a period
		answer [2]float64 // the mean number after a creation: useful, not
	}{
		{Flow{Kind: Proactive}, 0, 1, [2]float64{0, 0}},
		{simple, 0, 0, [2]float64{0, 0}}, {simple, 2, 0, [2]float64{1, 1}}, {simple, 3, 1, [2]float64{1, 1}},
		{general, 0, 0, [2]float64{0, 0}}, {general, 1, 0, [2]float64{1, 0}}, {general, 4, 0, [2]float64{1, 0}},
		{general, 5, 0, [2]float64{2, 1}}, {general, 10, 1, [2]float64{3, 1}},
		{random, 0, 0, [2]float64{0, 0}}, {random, 3, 0, [2]float64{0.6, 0}}, {random, 4, 0, [2]float64{0.8, 0}},
		{random, 7, 0.5, [2]float64{1.4, 0}}, {random, 10, 1, [2]float64{2, 0}},
	} {
		if got := c.flow.proactive(c.tokens); math.Abs(got-c.send) > 1e-12 {
			t.Errorf("%+v with %d tokens sends with probability %v, want %v", c.flow, c.tokens, got, c.send)
		}
		for i, useful := range []bool{true, false} {
			n, more := c.flow.reactive(c.tokens, useful)
			if got := float64(n) + more; math.Abs(got-c.answer[i]) > 1e-12 {
				t.Errorf("%+v with %d tokens answers %v (useful: %v), want %v", c.flow, c.tokens, got, useful,
					c.answer[i])
			}
		}
	}
}

// With any k periods in a row at most k + C models are sent, and the account is never overdrawn nor
// overfull.
func TestAccountsKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Flow{Kind: rapid.SampledFrom([]Strategy{Simple, Generalized, Randomized}).Draw(t, "kind"),
			Capacity: rapid.IntRange(1, 30).Draw(t, "capacity")}
		if f.Kind != Simple {
			f.Reactivity = rapid.IntRange(1, f.Capacity).Draw(t, "reactivity")
		}
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		a, random := account{flow: f}, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var sent []int // until each period
		total := 0
		for _, arrivals := range rapid.SliceOfN(rapid.IntRange(0, 5), 1, 200).Draw(t, "arrivals") {
			for range arrivals {
				total += a.created(random.IntN(2) == 0, random)
				if a.tokens < 0 || a.tokens > f.Capacity {
					t.Fatalf("%d tokens, the capacity is %d", a.tokens, f.Capacity)
				}
			}
			sent = append(sent, total)
			if a.period(random) {
				total++
			}
			if a.tokens < 0 || a.tokens > f.Capacity {
				t.Fatalf("%d tokens, the capacity is %d", a.tokens, f.Capacity)
			}
		}
		for k := range sent {
			for i := range sent[k:] {
				if n := sent[k+i] - sent[k]; n > i+f.Capacity {
					t.Fatalf("%d models in %d periods, the capacity is %d", n, i, f.Capacity)
				}
			}
		}
	})
}

func TestRandomRoundingKeepsTheMean(t *testing.T) {
	f, random, sent := Flow{Kind: Randomized, Capacity: 10, Reactivity: 5}, rand.New(rand.NewPCG(1, 2)), 0
	const times = 20_000
	for range times {
		a := account{flow: f, tokens: 7}
		sent += a.created(true, random)
	}
	if mean := float64(sent) / times; math.Abs(mean-1.4) > 4*math.Sqrt(0.24/times) {
		t.Errorf("%v models in the mean, want 7/5", mean)
	}
}

func TestFlowsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, f := range map[string]Flow{
		"left out with kind: proactive":           {Kind: Proactive, Capacity: 2},
		"at least 1 with kind: simple":            {Kind: Simple},
		"left out with kind: simple":              {Kind: Simple, Capacity: 2, Reactivity: 1},
		"1 to the capacity, which is 2, with":     {Kind: Generalized, Capacity: 2, Reactivity: 3},
		"1 to the capacity, which is 2":           {Kind: Randomized, Capacity: 2},
		"proactive, simple, generalized or rando": {Kind: "often"},
	} {
		a := Default()
		a.Flow = f
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

// world has tensors.
type world struct {
	actors.Env
	pool    protos.TensorPool
	charged float64
}

func (w *world) Tensors() *protos.TensorPool { return &w.pool }
func (w *world) Charge(work float64)         { w.charged += work }

func TestMergeWeighsByHand(t *testing.T) {
	w := &world{}
	a, b := model{protos.NewTensor([]float32{8, -4}), 3}, model{protos.NewTensor([]float32{0, 4}), 1}
	zero := model{b.params, 0}
	for i, c := range []struct {
		merge Merge
		a, b  model
		want  []float32
		age   uint64
	}{
		{Mean, a, b, []float32{4, 0}, 3},
		{Age, a, b, []float32{6, -2}, 3}, // ¾ and ¼
		{Age, b, a, []float32{6, -2}, 3},
		{Age, a, zero, []float32{8, -4}, 3},
		{Age, zero, zero, []float32{0, 4}, 0},
		{Age, model{a.params, 0}, zero, []float32{4, 0}, 0},
	} {
		got := c.merge.merge(w, c.a, c.b)
		if !slices.Equal(got.params.Data, c.want) || got.age != c.age {
			t.Errorf("case %d: %v of age %d, want %v of age %d", i, got.params.Data, got.age, c.want, c.age)
		}
	}
	if w.charged != 6*3*2 {
		t.Errorf("%v FLOPs are charged, want 3 for each of 2 parameters, 6 times", w.charged)
	}
}
