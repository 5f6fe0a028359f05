package gaia

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/protos"
)

// The filter chooses by the formula, in float64, and what it has given away is what was added, but
// for what it still holds: exactly, in whole numbers.
func TestFilterChoosesByTheFormula(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		n, v := 1+r.IntN(50), []float64{0, 0.01, 0.3, 1}[r.IntN(4)]
		f := newFilter(v, n)
		params, added, given := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range params {
			params[i] = float32(r.IntN(200) - 100)
		}
		listed := map[int32]bool{}
		for round := uint64(1); round < 12; round++ {
			before := slices.Clone(params)
			for i := range params {
				change := float32(r.IntN(7) - 3)
				params[i], added[i] = params[i]+change, added[i]+change
			}
			f.add(params, before)
			chosen := slices.Clone(f.significant(params, round))
			for i, w := range params {
				held := math.Abs(float64(added[i]) - float64(given[i]))
				least := v / math.Sqrt(float64(round)) * math.Abs(float64(w))
				want := held > 0 && held >= least && !listed[int32(i)]
				if near := math.Abs(held-least) < 1e-4*least; !near && slices.Contains(chosen, int32(i)) != want {
					t.Fatalf("seed %d, round %d: %v of %v is chosen: %v", seed, round, held, w, !want)
				}
			}
			if r.IntN(3) == 0 {
				f.list(chosen)
				for _, i := range chosen {
					listed[i] = true
				}
				continue
			}
			values := make([]float32, len(chosen))
			f.take(values, chosen)
			for k, i := range chosen {
				given[i] += values[k]
			}
		}
		ahead := f.changed(false)
		if want := slices.Sorted(maps.Keys(listed)); !slices.Equal(ahead, want) {
			t.Fatalf("seed %d: others get updates of %v, and wait for those of %v", seed, ahead, want)
		}
		for i := range params {
			if given[i]+f.held[i] != added[i] {
				t.Fatalf("seed %d: %v was added, %v given, %v is held", seed, added[i], given[i], f.held[i])
			}
		}
	}
}

// far is two sites with two workers each, near enough to make many rounds.
func far() *stage {
	s := newStage(sgd(0.05), 2, 2)
	s.time = time.Second
	return s
}

// A worker that is gone holds back neither its site nor the other one; nor does a site without any.
func TestWhoIsGoneHoldsNobodyBack(t *testing.T) {
	for name, gone := range map[string][]int{"a worker": {4}, "a site": {4, 5}} {
		for _, do := range []world.NodeEvent{world.Crash, world.Leave} {
			s := far()
			s.arch.Clock = 0
			for _, node := range gone {
				s.schedule = append(s.schedule, world.NodeChange{At: 100 * time.Millisecond, Node: node, Do: do})
			}
			s.run(t)
			// A round takes a step, two ways within a site and one between sites.
			if most := int(s.time / (80 * time.Millisecond)); s.taken[2] < most {
				t.Errorf("without %s: a worker has made %d rounds, want %d", name, s.taken[2], most)
			}
		}
	}
}

// Where nothing is significant sites go on all the same: they hear of each other's clocks.
func TestSitesHearOfClocksWhereNothingIsSignificant(t *testing.T) {
	s := far()
	s.task.Method = sgd(1e-6).Method
	s.arch.Clock, s.arch.Significance = 1, 1
	s.run(t)
	if s.taken[2] < 15 {
		t.Errorf("a worker has made %d rounds in %v", s.taken[2], s.time)
	}
}

// What is on its way of a life that is over, or to it, has no effect on the next one: the worker
// goes on, and the models have all that was taken in.
func TestFormerLivesAreForgotten(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := far()
		s.task.Method = sgd(1).Method
		s.task.Seed = seed
		s.count(r)
		s.near.Delay = link.Uniform{Min: 15 * time.Millisecond, Max: 40 * time.Millisecond}
		for at := 50; at < 700; at += 30 + r.IntN(60) {
			node := 2 + r.IntN(4)
			s.schedule = append(s.schedule,
				world.NodeChange{At: time.Duration(at) * time.Millisecond, Node: node, Do: world.Crash},
				world.NodeChange{At: time.Duration(at+2+r.IntN(15)) * time.Millisecond, Node: node, Do: world.Join})
		}
		var steps []int
		s.handled = func(site *server, _ *protos.Message) {
			if steps == nil && site.env.Now() > 760*time.Millisecond {
				steps = slices.Clone(s.stepped)
			}
		}
		s.run(t)
		for node := range 4 {
			if s.stepped[2+node]-steps[2+node] < 2 {
				t.Errorf("seed %d: worker %d has made %d steps since nobody comes or goes", seed, node,
					s.stepped[2+node]-steps[2+node])
			}
		}
		if want := s.total(); !slices.Equal(s.models[0], want) || !slices.Equal(s.models[1], want) {
			t.Errorf("seed %d: the models are not those of what was taken in", seed)
		}
	}
}

// A site whose workers come late, or come back, goes on with the clock of the others: they do not
// wait until it has made all their rounds.
func TestASiteThatComesBackGoesOnWithTheOthers(t *testing.T) {
	s := far()
	s.arch.Clock = 1
	s.absent = []int{4, 5}
	s.schedule = []world.NodeChange{{At: 700 * time.Millisecond, Node: 4, Do: world.Join}}
	s.run(t)
	if alone := s.taken[2]; alone < 45 {
		t.Errorf("the first site has made %d rounds", alone)
	}
	if s.taken[4] < 4 || s.taken[5] != 0 {
		t.Errorf("workers of the other site have made %d and %d rounds", s.taken[4], s.taken[5])
	}
	if a, b := s.servers[0].between.clock(), s.servers[1].between.clock(); max(a, b)-min(a, b) > 2 {
		t.Errorf("the clocks are %d and %d at the end", a, b)
	}
}

// A server that goes ends the run, and is named; so is one that comes.
func TestWithoutAServerTheRunEnds(t *testing.T) {
	for _, do := range []world.NodeEvent{world.Crash, world.Leave} {
		s := far()
		s.schedule = []world.NodeChange{{At: 100 * time.Millisecond, Node: 1, Do: do}}
		if err := s.try(t); err == nil || !strings.Contains(err.Error(),
			"s1 has gone, and with it the model of its site") {
			t.Errorf("got %v", err)
		}
	}
}

func TestSitesThatDoNotFitAreNamed(t *testing.T) {
	for want, sites := range map[string]string{
		"": "S0 S1 W0 W1 W1",
		"n2 is a worker at a site without a server": "S0 W0 W1",
		"n1 is a server at a site without workers":  "S0 S1 W0",
		"n0 and n2 are servers at one site":         "S0 W0 S0",
		"n0 is a server that is not there":          "-0 W0",
	} {
		var members []actors.Member
		for i, text := range strings.Fields(sites) {
			role := RoleServer
			if text[0] == 'W' {
				role = RoleWorker
			}
			members = append(members, actors.Member{Name: fmt.Sprintf("n%d", i), Role: role, Site: int32(text[1] - '0'),
				Present: text[0] != '-'})
		}
		err := Default().Fit(actors.NewView(1, members, nil, nil), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", sites, err, want)
		}
	}
}

// Messages that no server has sent end the run with an error.
func TestUpdatesThatDoNotFitEndTheRun(t *testing.T) {
	vector := func(values ...float32) *protos.Tensor { return protos.NewTensor(values) }
	for name, m := range map[string]*protos.Message{
		"a worker's":            protos.NewMessage(&protos.Mirror{Node: 2}),
		"a list of none":        protos.NewMessage(&protos.Mirror{Node: 1, Listed: 3}),
		"a list that is long":   protos.NewMessage(&protos.Mirror{Node: 1, Listed: 1 << 60}, vector(1)),
		"updates of no indices": protos.NewMessage(&protos.Mirror{Node: 1}, vector(1, 2)),
		"empty updates":         protos.NewMessage(&protos.Mirror{Node: 1}, vector(), vector()),
		"indices that go back":  protos.NewMessage(&protos.Mirror{Node: 1}, vector(1, 2), vector(0)),
		"no node":               protos.NewMessage(&protos.Mirror{Node: 77}),
	} {
		s := far()
		sent := false
		s.handled = func(site *server, _ *protos.Message) {
			if !sent && site.env.Node() == 0 {
				sent = true
				site.between.take(nil, m.Head.(*protos.Mirror), m)
			}
		}
		if err := s.try(t); err == nil || !strings.Contains(err.Error(), "s0") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Without an end that links let arrive nobody waits for it: a run over links that lose messages for
// good ends.
func TestLostUpdatesDoNotHoldTheEndBack(t *testing.T) {
	s := far()
	s.lossy, s.far.Loss.Drop, s.far.Loss.Probability = true, true, 1
	s.arch.Clock = 1
	s.run(t)
	if s.taken[2] != 2 || len(s.models[1]) == 0 {
		t.Errorf("%d rounds", s.taken[2])
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, change := range []func(a *Architecture){
		func(a *Architecture) { a.Significance = -0.1 },
		func(a *Architecture) { a.Clock = -1 },
		func(a *Architecture) { a.Rate = math.NaN() },
		func(a *Architecture) { a.Scale = "none" },
		func(a *Architecture) { a.Consistency = consistency.BoundedDelay{Tasks: 1} },
	} {
		a := Default()
		if change(&a); a.Validate() == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}
