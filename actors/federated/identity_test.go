package federated_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/nn/optim"
)

func equal(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// Settings that make no difference give FedAvg's models bit for bit: as long as controls are zero,
// which is the first round; and FedNova where all clients make as many steps.
func TestSettingsWithoutEffectAreFedAvg(t *testing.T) {
	even := func() *stage { return &stage{task: newTask(24, 24, 20, 17), arch: federated.Default(), rounds: 4} }
	want := even().run(t)
	for _, c := range []struct {
		name   string
		rounds int
		change func(a *federated.Architecture)
	}{
		{"FedNova with equal steps", 4, func(a *federated.Architecture) { a.Weights = periodic.Normalised }},
		{"SCAFFOLD before controls are known", 1, func(a *federated.Architecture) { a.Controls = true }},
		{"a momentum of 0 at the server", 4, func(a *federated.Architecture) {
			a.Outer = optim.Momentum{Rate: constant(1)}
		}},
	} {
		s := even()
		c.change(&s.arch)
		got := s.run(t)
		for r := range c.rounds {
			if !equal(got[r], want[r]) {
				t.Errorf("%s: the model of round %d is not FedAvg's", c.name, r+1)
			}
		}
	}
}

// The other way round: the settings have an effect where they should.
func TestSettingsWithEffectAreNotFedAvg(t *testing.T) {
	uneven := func() *stage { return &stage{task: newTask(24, 9, 60, 17), arch: federated.Default(), rounds: 2} }
	want := uneven().run(t)
	for name, change := range map[string]func(s *stage){
		"proximal": func(s *stage) { s.arch.Proximal = 0.1 },
		"controls": func(s *stage) { s.arch.Controls = true },
		"weights":  func(s *stage) { s.arch.Weights = periodic.Equal },
		"nova":     func(s *stage) { s.arch.Weights = periodic.Normalised },
		"count":    func(s *stage) { s.arch.Share, s.arch.Count = 0, 2 },
		"inner":    func(s *stage) { s.task.Method = optim.Momentum{Rate: constant(0.1), Momentum: 0.9} },
		"outer":    func(s *stage) { s.arch.Outer = optim.SGD{Rate: constant(0.5)} },
	} {
		s := uneven()
		change(s)
		if equal(s.run(t)[1], want[1]) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// A momentum that is kept is that of a client which makes all steps of two rounds in one, as long
// as nobody else takes part.
func TestKeptStateGoesOnFromRoundToRound(t *testing.T) {
	models := func(steps int, state periodic.State, rounds int) [][]float32 {
		s := &stage{task: newTask(40), arch: federated.Default(), rounds: rounds}
		s.task.Method = optim.Momentum{Rate: constant(0.05), Momentum: 0.9}
		s.arch.Local, s.arch.State = periodic.Work{Steps: steps}, state
		return s.run(t)
	}
	once, kept := models(6, periodic.Fresh, 1)[0], models(3, periodic.Kept, 2)[1]
	for i, v := range once {
		if math.Abs(float64(v-kept[i])) > 1e-6 {
			t.Fatalf("parameter %d is %v after 6 steps and %v after twice 3", i, v, kept[i])
		}
	}
	if equal(models(3, periodic.Fresh, 2)[1], kept) {
		t.Error("a fresh state is a kept one")
	}
}

// With all clients and one local step of plain descent, FedAvg is synchronous SGD.
func TestOneLocalStepOfAllIsSynchronousDescent(t *testing.T) {
	s := &stage{task: newTask(40, 40, 40), arch: federated.Default(), rounds: 6}
	s.arch.Local = periodic.Work{Steps: 1}
	models := s.run(t)
	o := newOracle(t, s.task)
	for r, model := range models {
		mean := make([]float64, len(o.phi))
		for i := range s.task.Workers {
			for k, g := range o.gradient(i, o.phi) {
				mean[k] += g / float64(len(s.task.Workers))
			}
		}
		for k, g := range mean {
			o.phi[k] -= 0.1 * g
		}
		if d := distance(model, o.phi); !(d < 1e-6) {
			t.Fatalf("round %d: the model is %v away from that of synchronous descent", r+1, d)
		}
	}
}

func TestRunsRepeatWhateverComputesThem(t *testing.T) {
	var want *stage
	for _, c := range []struct{ processors, threads int }{{1, 0}, {2, 0}, {2, 2}} {
		before := runtime.GOMAXPROCS(c.processors)
		s := &stage{task: newTask(40, 9, 17, 64, 25), arch: federated.Default(), rounds: 5, threads: c.threads}
		s.arch.Share, s.arch.Spare, s.arch.Controls = 0.6, 0.5, true
		s.run(t)
		runtime.GOMAXPROCS(before)
		if want == nil {
			want = s
		}
		if s.digest != want.digest || !equal(s.models[4], want.models[4]) {
			t.Errorf("%+v: the run is another one", c)
		}
	}
}
