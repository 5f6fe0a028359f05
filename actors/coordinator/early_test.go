package coordinator_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// exam is a test set, of which a model of one parameter gets about that share right: which samples
// these are is drawn for each parameter.
type exam struct {
	nn.Model // of two classes
	task     *train.Task
	judged   atomic.Int64 // samples in all
}

func newExam(t interface{ Fatal(args ...any) }, samples int, seed uint64) *exam {
	m, err := nn.NewMLP([]int{1, 2}, nn.ReLU)
	if err != nil {
		t.Fatal(err)
	}
	e := &exam{Model: m}
	e.task = &train.Task{Model: e, Seed: seed,
		Test: &datasets.Set{X: make([]float32, samples), Y: make([]int32, samples), Inputs: 1}}
	return e
}

func (e *exam) Params() int                   { return 1 }
func (e *exam) NewWorkspace(int) nn.Workspace { return examiner{exam: e} }

// right says which samples a model gets right.
func (e *exam) right(param float32) []bool {
	r := rand.New(rand.NewPCG(uint64(math.Float32bits(param)), e.task.Seed))
	right := make([]bool, e.task.Test.Len())
	for i := range right {
		right[i] = r.Float64() < float64(param)
	}
	return right
}

func (e *exam) evaluate(params []float32) train.Verdict {
	return e.task.NewEvaluator(e.task.TestSamples(), 1).Evaluate(params)
}

func (e *exam) evaluateBelow(params []float32, target float64) train.Verdict {
	return e.task.NewEvaluator(e.task.ShuffledTestSamples(), 1).EvaluateBelow(params, target)
}

// examiner writes the logits of all samples, whichever are wanted.
type examiner struct {
	nn.Workspace
	*exam
}

func (e examiner) Logits(params []float32, _ *nn.Samples, _, n int, to []float32) {
	e.judged.Add(int64(n))
	for i, right := range e.right(params[0]) {
		to[2*i], to[2*i+1] = 0, 1
		if right {
			to[2*i] = 2
		}
	}
}

// walks are the models of a node, whose accuracies go up and down about a target.
func walks(r *rapid.T, rounds int, target float64) (models []float32) {
	at := rapid.Float64Range(0, 1).Draw(r, "first")
	for range rounds {
		models = append(models, float32(at))
		step := rapid.Float64Range(-0.15, 0.25).Draw(r, "step")
		if rapid.IntRange(0, 3).Draw(r, "near") == 0 {
			at, step = target, step/10
		}
		at = min(max(at+step, 0), 1)
	}
	return models
}

// drawExam draws a run whose models are judged by a test set.
func drawExam(r *rapid.T) *script {
	const rounds = 8
	all := []actors.Of{actors.AverageModel, actors.Mean, actors.All, actors.Any}
	s := &script{samples: 1000, policy: coordinator.Policy{
		Every: coordinator.Interval{Time: 10 * ms}, Time: (rounds - 1) * 10 * ms, Lag: ms,
		Target: rapid.Float64Range(0.3, 1).Draw(r, "target"), Of: rapid.SampledFrom(all).Draw(r, "of"),
		GoOn: rapid.Bool().Draw(r, "goes on"),
	}}
	if rapid.Bool().Draw(r, "slow verdicts") { // some are in while later models are judged
		s.policy.Lag = 25 * ms
	}
	for range rapid.IntRange(1, 4).Draw(r, "nodes") {
		s.players = append(s.players, player{steps: every(9*ms, 9), holds: true,
			models: walks(r, rounds, s.policy.Target)})
	}
	s.exam = newExam(r, rapid.IntRange(1, 2000).Draw(r, "test samples"), rapid.Uint64().Draw(r, "seed"))
	return s
}

func TestArrivalsOfEarlyEvaluationsAreThoseOfTheWholeSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		plain := drawExam(r)
		early := &script{players: plain.players, samples: plain.samples, policy: plain.policy, early: true,
			threads: rapid.IntRange(0, 2).Draw(r, "threads")}
		early.exam = newExam(r, plain.exam.task.Test.Len(), plain.exam.task.Seed)
		want, got := plain.run(t), early.run(t)
		if late := got.Now - want.Now; late < 0 || late > time.Microsecond {
			r.Fatalf("the run ends at %v, want %v or some nanoseconds later", got.Now, want.Now)
		}
		a, b := plain.result, early.result
		b.Computed = a.Computed // a model that was judged again counts once
		equalRapid(r, "result", a, b)
		whole := plain.final()
		for i, e := range early.final() {
			checkPartial(r, early, i, whole[i], e)
		}
	})
}

// By Hoeffding's inequality 300 samples show an accuracy to within 0.25, surely enough.
func TestEarlyEvaluationsOfModelsFarBelowTheTargetLookAtFewSamples(t *testing.T) {
	t.Parallel()
	const rounds, samples = 8, 2000
	for _, of := range []actors.Of{actors.AverageModel, actors.Mean, actors.All, actors.Any} {
		judged := map[bool]int64{}
		for _, early := range []bool{false, true} {
			s := &script{samples: 1000, early: early, policy: coordinator.Policy{Lag: ms, Target: 0.9, Of: of,
				Every: coordinator.Interval{Time: 10 * ms}, Time: (rounds - 1) * 10 * ms}}
			for i := range 3 {
				p := player{steps: every(9*ms, 9), holds: true}
				for round := range rounds {
					p.models = append(p.models, 0.5+float32(i*rounds+round)/1000) // all different
				}
				s.players = append(s.players, p)
			}
			s.exam = newExam(t, samples, 1)
			s.run(t)
			judged[early] = s.exam.judged.Load()
		}
		// The models of the last evaluation are judged by all samples.
		if most := judged[false]/rounds + judged[false]*300/samples; judged[false] == 0 || judged[true] > most {
			t.Errorf("%s: of %d samples %d were looked at, want %d at most", of, judged[false], judged[true], most)
		}
	}
}

// final are the evaluations as they were told of last.
func (s *script) final() (list []entry) {
	for _, e := range s.summarized() {
		i := slices.IndexFunc(list, func(o entry) bool { return o.Evaluation == e.Evaluation })
		if i < 0 {
			list = append(list, e)
			continue
		}
		list[i] = e
	}
	return list
}

// checkPartial checks what is said of an evaluation against what the whole set says.
func checkPartial(r *rapid.T, s *script, i int, whole, e entry) {
	last := i == len(s.final())-1
	for _, of := range []actors.Of{actors.AverageModel, actors.Mean, actors.All, actors.Any} {
		want, got := whole.Figures.Score(of), e.Figures.Score(of)
		switch {
		case got.Samples == 0 && want != got:
			r.Fatalf("evaluation %d: %s %+v, want %+v", i, of, got, want)
		case got.Samples > 0 && (last || !math.IsNaN(got.Loss) || got.Samples >= s.exam.task.Test.Len()):
			r.Fatalf("evaluation %d: %s is %+v", i, of, got)
		case got.Samples > 0 && want.Accuracy >= s.policy.Target && of != actors.Mean:
			r.Fatalf("evaluation %d: %s was not completed: %+v, %+v", i, of, got, want)
		}
		crossing, has := s.result.Crossings[of]
		if has && e.At <= crossing && crossing < e.At+10*ms && got.Samples > 0 {
			r.Fatalf("evaluation %d: %s arrives at %v, and is not completed before: %+v", i, of, crossing, got)
		}
	}
	if s := e.Figures.Score(s.policy.Of); e.Accuracy != s.Accuracy || e.Samples != s.Samples {
		r.Fatalf("evaluation %d: %+v is judged %v by %d", i, s, e.Accuracy, e.Samples)
	}
}

// equalRapid is equal within a property.
func equalRapid(r *rapid.T, what string, want, got any) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func TestVerdictThatWasTakenToBeBelowTheTargetAndIsNotIsTold(t *testing.T) {
	s := &script{players: serverAndWorker(every(10*ms, 9), 0.1, 0.6, 0.9), samples: 100, early: true,
		policy: coordinator.Policy{Every: coordinator.Interval{Steps: 1}, Steps: 3, Target: 0.5, Lag: ms}}
	s.wrong = 0.6
	s.run(t)
	if len(s.result.Incidents) != 1 || !strings.Contains(s.result.Incidents[0].What, "evaluation 2: an accuracy "+
		"taken to be surely below 0.5 is 0.6") {
		t.Errorf("incidents %v", s.result.Incidents)
	}
	if s.result.TimeToTarget != 10*ms {
		t.Errorf("time to target %v", s.result.TimeToTarget)
	}
}
