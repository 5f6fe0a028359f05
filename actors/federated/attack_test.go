package federated_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/periodic/robust"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets/synthetic"
	"github.com/gradwire/gradwire/nn/optim"
)

// A server that takes the median, with a client that flips signs, is plain loops.
func TestRoundsWithAMedianAndAnAttackerAreThoseOfPlainLoops(t *testing.T) {
	s := &stage{task: newTask(40, 9, 17, 64, 25), arch: federated.Default(), rounds: 6}
	s.arch.Mean = robust.Rule{Kind: robust.Median, Attackers: 1}
	s.arch.Attack = &federated.Attack{Kind: federated.SignFlip, Nodes: []string{"n3"}, Scale: 5}
	models, o := s.run(t), newOracle(t, s.task)
	for r, model := range models {
		var deltas [][]float64
		for i := range s.task.Workers {
			deltas = append(deltas, o.client(i, o.samplers[i].Steps(), 0.1, 0, false).delta)
		}
		for k := range o.phi {
			var column []float64
			for i, delta := range deltas {
				if i == 3 {
					delta[k] *= -5
				}
				column = append(column, delta[k])
			}
			slices.Sort(column)
			o.phi[k] -= column[2]
		}
		if d := distance(model, o.phi); !(d < 1e-6) {
			t.Fatalf("round %d: the model is %v away from that of plain loops", r+1, d)
		}
	}
	if got := fmt.Sprint(s.told[federated.Falsified]); got != "map[4:6]" {
		t.Errorf("falsified are told as %s, want 6 by the node of n3", got)
	}
}

// Labels that are flipped are those of a data set in which they are.
func TestLabelFlipIsTrainingOnFlippedLabels(t *testing.T) {
	attacked := &stage{task: newTask(24, 9, 40), arch: federated.Default(), rounds: 4}
	attacked.arch.Attack = &federated.Attack{Kind: federated.LabelFlip, Nodes: []string{"n1", "n2"}}
	flipped := &stage{task: newTask(24, 9, 40), arch: federated.Default(), rounds: 4}
	for _, shard := range flipped.task.Shards[1:] {
		for _, row := range shard {
			flipped.task.Train.Y[row] = 2 - flipped.task.Train.Y[row]
		}
	}
	for r, model := range flipped.run(t) {
		if r == 0 {
			attacked.run(t)
		}
		if !equal(attacked.models[r], model) {
			t.Fatalf("round %d: the model is another one", r+1)
		}
	}
}

func TestNoiseHasTheSizeOfTheUpdate(t *testing.T) {
	honest := &stage{task: newTask(60), arch: federated.Default(), rounds: 1}
	before, after := honest.task.Initial(), honest.run(t)[0]
	noisy := &stage{task: newTask(60), arch: federated.Default(), rounds: 1}
	noisy.arch.Attack = &federated.Attack{Kind: federated.Noise, Share: 1, Scale: 3}
	moved, noise, product := 0.0, 0.0, 0.0
	for k, v := range noisy.run(t)[0] {
		a, b := float64(after[k]-before[k]), float64(v-before[k])
		moved, noise, product = moved+a*a, noise+b*b, product+a*b
	}
	n := float64(len(before))
	if ratio := noise / moved / 9; math.Abs(ratio-1) > 5*math.Sqrt(2/n) {
		t.Errorf("noise of scale 3 has %v times the square that it should have", ratio)
	}
	if cosine := product / math.Sqrt(noise*moved); math.Abs(cosine) > 5/math.Sqrt(n) {
		t.Errorf("the cosine of noise and the update is %v", cosine)
	}
}

// One client alone makes the model, from steps that the oracle makes too.
func TestALittleDeviatesByTheSpreadOfSteps(t *testing.T) {
	s := &stage{task: newTask(64), arch: federated.Default(), rounds: 1}
	s.arch.Attack = &federated.Attack{Kind: federated.Little, Share: 1, Scale: 1.5}
	s.arch.Local = periodic.Work{Steps: 6}
	o := newOracle(t, s.task)
	theta, steps := slices.Clone(o.phi), make([][]float64, len(o.phi))
	for range 6 {
		for k, g := range o.gradient(0, slices.Clone(theta)) {
			theta[k] -= 0.1 * g
			steps[k] = append(steps[k], 0.1*g)
		}
	}
	for k, all := range steps {
		mean, square := (o.phi[k]-theta[k])/6, 0.0
		for _, d := range all {
			square += (d - mean) * (d - mean)
		}
		o.phi[k] -= 6*mean - 1.5*math.Sqrt(6*square/5)
	}
	if d := distance(s.run(t)[0], o.phi); !(d < 1e-5) {
		t.Errorf("the model is %v away from that of plain loops", d)
	}
	// Of a single step nothing is known.
	single := func(attack *federated.Attack) []float32 {
		s.arch.Local, s.arch.Attack = periodic.Work{Steps: 1}, attack
		return s.run(t)[0]
	}
	if !equal(single(s.arch.Attack), single(nil)) {
		t.Error("an update of one step is not the honest one")
	}
}

// Below z are (n − m − s) ÷ (n − m) of a normal distribution; 1.43 is that of 24 among 50.
func TestALittleIsAsMuchAsThePaperSays(t *testing.T) {
	little := &federated.Attack{Kind: federated.Little}
	for _, c := range []struct {
		clients, attackers int
		below              float64
	}{{50, 24, 24. / 26}, {20, 4, 9. / 16}, {51, 12, 25. / 39}} {
		z := little.ScaleOf(c.clients, c.attackers)
		if below := math.Erfc(-z/math.Sqrt2) / 2; math.Abs(below-c.below) > 1e-12 {
			t.Errorf("%+v: z is %v, below which are %v", c, z, below)
		}
	}
	if z := little.ScaleOf(50, 24); math.Abs(z-1.426) > 1e-3 {
		t.Errorf("z of 24 among 50 is %v", z)
	}
	for attackers := range 9 {
		if z := little.ScaleOf(8, attackers); !(z >= 0 && z < 10) {
			t.Errorf("z of %d among 8 is %v", attackers, z)
		}
	}
}

func TestAttackersAreDrawnOrNamed(t *testing.T) {
	var clients []string
	for i := range 20 {
		clients = append(clients, fmt.Sprintf("c%d", i+1))
	}
	clients = append(clients, "odd", "odd1")
	drawn := map[string]bool{}
	for seed := range uint64(30) {
		who := (&federated.Attack{Share: 0.2}).Who(seed, clients)
		if len(who) != 4 || len(slices.Compact(slices.Clone(who))) != 4 {
			t.Fatalf("seed %d: a fifth of 22 are %v", seed, who)
		}
		for _, name := range who {
			drawn[name] = true
		}
	}
	if len(drawn) < 20 {
		t.Errorf("30 seeds draw %d of 22 clients", len(drawn))
	}
	for names, want := range map[string]string{"c2": "c2", "odd": "odd", "odd1 c20": "c20 odd1", "c": "20 of them"} {
		who := (&federated.Attack{Nodes: strings.Fields(names)}).Who(1, clients)
		if got := strings.Join(who, " "); got != want && (names != "c" || len(who) != 20) {
			t.Errorf("%s means %s, want %s", names, got, want)
		}
	}
}

// With a mean that needs more updates than a round gets, the round counts and the model stays.
func TestRoundsOfTooFewUpdatesLeaveTheModel(t *testing.T) {
	s := slow(4)
	s.arch.Deadline = 100 * ms
	for _, c := range []struct {
		attackers int
		few       float64
	}{{1, 0}, {2, 4}} {
		s.arch.Mean = robust.Rule{Kind: robust.TrimmedMean, Attackers: c.attackers}
		models := s.run(t)
		if moved := !equal(models[3], s.task.Initial()); moved != (c.few == 0) || len(s.updates) != 4-int(c.few) {
			t.Errorf("%+v: the model has moved: %v, with %d versions", c, moved, len(s.updates))
		}
		if got := s.told[federated.TooFew][0]; got != c.few {
			t.Errorf("%+v: %v rounds of too few updates are told", c, got)
		}
	}
}

func TestMeansAndAttacksThatMakeNoSenseAreRefused(t *testing.T) {
	median := robust.Rule{Kind: robust.Median}
	for want, change := range map[string]func(a *federated.Architecture){
		"": func(a *federated.Architecture) { a.Mean = median },
		"Controls is true: must be false with mean: median": func(a *federated.Architecture) {
			a.Mean, a.Controls = median, true
		},
		"Weights is \"steps-normalised\": must be samples or equal": func(a *federated.Architecture) {
			a.Mean, a.Weights = median, periodic.Normalised
		},
		"Mean.Attackers is 0: must be 1 or more with kind: krum": func(a *federated.Architecture) {
			a.Mean.Kind = robust.Krum
		},
		"Mean.Attackers is 2: must be fewer, for as many updates as a round of hub wants: a krum with 2 " +
			"attackers is of 7 updates at least, and there are 4": func(a *federated.Architecture) {
			a.Mean = robust.Rule{Kind: robust.Krum, Attackers: 2}
		},
		"Attack.Share is 0: must be given where nodes is not": func(a *federated.Architecture) {
			a.Attack = &federated.Attack{Kind: federated.Noise}
		},
		"Attack.Share is 0.1: must be more; of 4 clients it is none": func(a *federated.Architecture) {
			a.Attack = &federated.Attack{Kind: federated.Noise, Share: 0.1}
		},
		"Attack.Nodes is []: must be one name at least": func(a *federated.Architecture) {
			a.Attack = &federated.Attack{Kind: federated.Noise, Nodes: []string{}}
		},
		`Attack.Nodes is [hub]: must be names of clients or of their groups; "hub" is none`: func(
			a *federated.Architecture) {
			a.Attack = &federated.Attack{Kind: federated.Noise, Nodes: []string{"hub"}}
		},
	} {
		a := federated.Default()
		change(&a)
		err := a.Validate()
		if err == nil {
			members := []actors.Member{{Name: "hub", Role: federated.RoleServer}}
			for i := range 4 {
				members = append(members, actors.Member{Name: fmt.Sprintf("n%d", i), Role: federated.RoleClient})
			}
			view := actors.NewView(1, members, nil, nil)
			err = a.Fit(view, view)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// With four attackers of twenty the mean fails, and means that resist attackers stay within three
// points of what is learned without them.
func TestRobustMeansBearAFifthOfAttackers(t *testing.T) {
	const clients, samples = 20, 80
	train := synthetic.Digits(1, clients*samples)
	s := &stage{task: simtest.Task(simtest.Perceptron(784, 10), slices.Repeat([]int{samples}, clients), 20,
		optim.SGD{Rate: optim.Constant(0.1)}), arch: federated.Default(), rounds: 10}
	s.task.Train, s.task.Test = train, synthetic.Digits(2, 600)
	accuracy := func(attack *federated.Attack, rule robust.Rule) float64 {
		s.arch.Attack, s.arch.Mean = attack, rule
		return s.task.NewEvaluator(s.task.TestSamples(), 1).Evaluate(s.run(t)[s.rounds-1]).Accuracy
	}
	attack := &federated.Attack{Kind: federated.SignFlip, Share: 0.2, Scale: 4}
	honest := accuracy(nil, robust.Rule{Kind: robust.Mean})
	if failed := accuracy(attack, robust.Rule{Kind: robust.Mean}); failed > honest-0.3 {
		t.Errorf("the mean has %v with attackers, %v without", failed, honest)
	}
	for _, kind := range []robust.Kind{robust.Median, robust.Bulyan} {
		if got := accuracy(attack, robust.Rule{Kind: kind, Attackers: 4}); !(got >= honest-0.03) {
			t.Errorf("%s has %v with attackers, the mean without them %v", kind, got, honest)
		}
	}
}
