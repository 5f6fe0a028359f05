package gossip

import (
	"fmt"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// place is a node that sees a view and delays; the rest of Env is not there.
type place struct {
	actors.Env
	view    *actors.View
	random  *rand.Rand
	latency []time.Duration
	asked   int // for how many delays
}

func (p *place) Node() int              { return 0 }
func (p *place) View() *actors.View     { return p.view }
func (p *place) Rand(string) *rand.Rand { return p.random }

func (p *place) Latency(node int) time.Duration {
	p.asked++
	return p.latency[node]
}

// around is a place with n neighbours; absent ones are there besides.
func around(n int, graph bool, absent ...int) *place {
	d := &world.Deployment{}
	star := make(actors.Graph, n+1+len(absent))
	for i := range star {
		d.Nodes = append(d.Nodes, world.Node{Name: fmt.Sprint(i), Role: RolePeer, Absent: slices.Contains(absent, i)})
		if i > 0 {
			star[0] = append(star[0], int32(i))
			star[i] = []int32{0}
		}
	}
	if graph {
		d.Topologies = []actors.Graph{star}
	}
	return &place{view: d.Views().First(), random: rand.New(rand.NewPCG(1, uint64(n))),
		latency: make([]time.Duration, len(star))}
}

// frequencies draws often and counts the sets that come out, in order if ordered.
func frequencies(t *testing.T, p *place, c Choice, draws int, ordered bool) map[string]float64 {
	t.Helper()
	if err := field.Check(c); err != nil {
		t.Fatal(err)
	}
	chooser := chooser{env: p, choice: c}
	seen := map[string]float64{}
	for range draws {
		nodes := slices.Clone(chooser.draw())
		if !ordered {
			slices.Sort(nodes)
		}
		if sorted := slices.Sorted(slices.Values(nodes)); len(slices.Compact(sorted)) != len(nodes) {
			t.Fatalf("drawn with replacement: %v", nodes)
		}
		seen[fmt.Sprint(nodes)] += 1 / float64(draws)
	}
	return seen
}

// fits compares frequencies with probabilities by Pearson's χ², whose mean is its degrees of
// freedom f and whose standard deviation √(2f); five of them are never exceeded by chance.
func fits(t *testing.T, seen, want map[string]float64, draws int) {
	t.Helper()
	sum, total := 0.0, 0.0
	for k, p := range want {
		d := seen[k] - p
		sum += d * d / p * float64(draws)
		total += seen[k]
	}
	f := float64(max(len(want)-1, 1))
	if math.Abs(total-1) > 1e-9 || sum > f+5*math.Sqrt(2*f) {
		t.Errorf("χ² is %.1f with %v degrees of freedom; probable outcomes have %.6f of the draws", sum, f, total)
	}
}

// sequences gives every ordered outcome of k weighted draws without replacement its probability.
func sequences(weights map[int]float64, k int, prefix []int, p float64, into map[string]float64) {
	if k == 0 {
		into[fmt.Sprint(prefix)] += p
		return
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for node, w := range weights {
		rest := map[int]float64{}
		for other, v := range weights {
			if other != node {
				rest[other] = v
			}
		}
		sequences(rest, k-1, append(slices.Clone(prefix), node), p*w/sum, into)
	}
}

func TestRandomChoiceGivesEverySequenceTheSameChance(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	t.Parallel()
	const draws = 200_000
	for _, graph := range []bool{false, true} {
		for n, c := range map[int]Choice{5: {By: Random, Share: 0.5}, 4: {By: Random, Count: 1},
			3: {By: Random, Count: 9}, 6: {By: Random, Count: 3}} {
			p := around(n, graph, 2)
			weights := map[int]float64{}
			for _, i := range p.view.Neighbours(0) {
				weights[i] = 1
			}
			want := map[string]float64{}
			sequences(weights, c.size(n), nil, 1, want)
			fits(t, frequencies(t, p, c, draws, true), want, draws)
		}
	}
}

func TestLatencyChoiceFollowsTheReciprocalsOfDelaysOneAfterTheOther(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	t.Parallel()
	const draws, sec = 200_000, time.Second
	for _, c := range []struct {
		latency []time.Duration
		floor   float64
		count   int
		weights map[int]float64 // by hand
	}{
		{[]time.Duration{0, sec, 2 * sec, 4 * sec, 5 * sec}, 0, 1, map[int]float64{1: 20, 2: 10, 3: 5, 4: 4}},
		{[]time.Duration{0, sec, 2 * sec, 4 * sec, 5 * sec}, 0, 3, map[int]float64{1: 20, 2: 10, 3: 5, 4: 4}},
		{[]time.Duration{0, sec, 2 * sec, 4 * sec, 4 * sec}, 1, 2, map[int]float64{1: 2, 2: 1, 3: 1, 4: 1}},
		{[]time.Duration{0, sec, 1000 * sec}, 0.5, 1, map[int]float64{1: 1, 2: 0.5 * 1.001 / 2}},
		{[]time.Duration{0, 0, 0, 2 * time.Microsecond}, 0, 2, map[int]float64{1: 2, 2: 2, 3: 1}},
	} {
		p := around(len(c.latency)-1, c.count == 3)
		p.latency = c.latency
		want := map[string]float64{}
		sequences(c.weights, c.count, nil, 1, want)
		fits(t, frequencies(t, p, Choice{By: Latency, Count: c.count, Floor: c.floor}, draws, true), want, draws)
	}
}

// Candidates are drawn alike, and those chosen among them by weights: so the probability of a
// sequence is the mean over all sets of candidates.
func TestLatencyChoiceIsMadeAmongCandidatesThatAreDrawnAlike(t *testing.T) {
	t.Parallel()
	const draws, sec = 200_000, time.Second
	p := around(5, false)
	p.latency = []time.Duration{0, sec, 2 * sec, 4 * sec, 5 * sec, 10 * sec}
	weights := map[int]float64{1: 20, 2: 10, 3: 5, 4: 4, 5: 2}
	for _, c := range []Choice{{By: Latency, Count: 1, Candidates: 3}, {By: Latency, Count: 2, Candidates: 1},
		{By: Latency, Count: 1, Candidates: 2, Floor: 1}} {
		size := max(c.Candidates, 2*c.Count)
		want := map[string]float64{}
		sets := 0.0
		for bits := range uint(1 << 5) {
			if mathbits.OnesCount(bits) == size {
				sets++
			}
		}
		for bits := range uint(1 << 5) {
			if mathbits.OnesCount(bits) != size {
				continue
			}
			candidates, sum := map[int]float64{}, 0.0
			for node, w := range weights {
				if bits>>(node-1)&1 == 1 {
					candidates[node] = w
					sum += w
				}
			}
			for node, w := range candidates {
				candidates[node] = max(w, c.Floor*sum/float64(size))
			}
			sequences(candidates, c.Count, nil, 1/sets, want)
		}
		p.asked = 0
		fits(t, frequencies(t, p, c, draws, true), want, draws)
		if p.asked != size*draws {
			t.Errorf("%+v: %v delays a draw were asked for, want %d", c, float64(p.asked)/draws, size)
		}
	}
}

func TestLatencyChoiceAmongTenThousandAsksForTheDelaysOfFew(t *testing.T) {
	for _, x := range []struct{ count, candidates, want int }{{1, 0, DefaultCandidates}, {100, 0, 200}, {1, 7, 7},
		{1, 20_000, 9_999}} {
		p := around(9_999, false)
		c := &chooser{env: p, choice: Choice{By: Latency, Count: x.count, Candidates: x.candidates}}
		if c.draw(); p.asked != x.want || len(c.weighted) != x.want {
			t.Errorf("%+v: asked for %d, keeps %d", x, p.asked, len(c.weighted))
		}
		if n := testing.AllocsPerRun(10, func() { c.draw() }); n != 0 {
			t.Errorf("%+v: %v allocations a draw", x, n)
		}
	}
}

func TestShareIsRoundedToTheNearestNumberAndIsAtLeastOne(t *testing.T) {
	for _, c := range []struct {
		share   float64
		n, want int
	}{{0.5, 4, 2}, {0.5, 5, 3}, {0.5, 3, 2}, {0.01, 7, 1}, {1, 7, 7}, {0.5, 1, 1}, {0.3, 4, 1}, {0.5, 0, 0}} {
		drawing := &chooser{env: around(c.n, false), choice: Choice{By: Random, Share: c.share}}
		if got := len(drawing.draw()); got != c.want {
			t.Errorf("a share of %v of %d is %d, want %d", c.share, c.n, got, c.want)
		}
	}
}

func TestChoiceAmongTenThousandTakesMemoryForThoseChosen(t *testing.T) {
	c := &chooser{env: around(9_999, false), choice: Choice{By: Random, Count: 1}}
	c.draw()
	if n := testing.AllocsPerRun(100, func() { c.draw() }); n != 0 {
		t.Errorf("%v allocations a draw", n)
	}
	if len(c.neighbours) > 0 || len(c.weighted) > 0 || len(c.taken.words) > 0 {
		t.Error("a list of all neighbours was made")
	}
}

func TestRulesWeighTheArrivingModel(t *testing.T) {
	for _, c := range []struct {
		rule          Rule
		own, arriving uint64
		want          float64
	}{{Mean, 7, 1, 0.5}, {Age, 0, 0, 0.5}, {Age, 3, 1, 0.25}, {Age, 0, 5, 1}, {Age, 5, 0, 0},
		{Age, math.MaxUint64, math.MaxUint64, 0.5}} {
		if got := c.rule.Weight(Counts{Age: c.own}, Counts{Age: c.arriving}); got != c.want {
			t.Errorf("%T of ages %d and %d: %v, want %v", c.rule, c.own, c.arriving, got, c.want)
		}
	}
}

func TestValidateNamesTheFieldThatMakesNoSense(t *testing.T) {
	good := Architecture{Every: 1, Choice: Choice{By: Random, Share: 0.5}, Exchange: Push, Wait: true, Merge: Mean,
		Lead: NoLead}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(a *Architecture){
		"Every is -1: must be 1 or more":                func(a *Architecture) { a.Every = -1 },
		"Period is -1s: must be more than 0s":           func(a *Architecture) { a.Period = -time.Second },
		"Every is 0: must be given where period is not": func(a *Architecture) { a.Every = 0 },
		"must be left out where period is given":        func(a *Architecture) { a.Period = time.Second },
		"Wait is true: must be left out without every": func(a *Architecture) {
			a.Every, a.Period = 0, time.Second
		},
		`Exchange is "shove": must be push, pull or push-pull`:       func(a *Architecture) { a.Exchange = "shove" },
		`Merge is "": must be mean or age`:                           func(a *Architecture) { a.Merge = "" },
		"Moved is NaN":                                               func(a *Architecture) { a.Moved = math.NaN() },
		"Moved is +Inf":                                              func(a *Architecture) { a.Moved = math.Inf(1) },
		"Lead is -2: must be 0 or more":                              func(a *Architecture) { a.Lead = -2 },
		`Choice.By is "age": must be random or latency`:              func(a *Architecture) { a.Choice.By = "age" },
		"Choice.Count is -1":                                         func(a *Architecture) { a.Choice.Count = -1 },
		"Choice.Share is 1.5: must be more than 0%, up to 100%":      func(a *Architecture) { a.Choice.Share = 1.5 },
		"Choice.Share is 0.5: must be left out where count is given": func(a *Architecture) { a.Choice.Count = 1 },
		"Choice.Share is 0: must be given where count is not":        func(a *Architecture) { a.Choice.Share = 0 },
		"Choice.Floor is 2: must be from 0 to 1": func(a *Architecture) {
			a.Choice.By, a.Choice.Floor = Latency, 2
		},
		"Choice.Floor is 0.1: must be left out without kind: latency": func(a *Architecture) { a.Choice.Floor = 0.1 },
	} {
		a := good
		spoil(&a)
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
