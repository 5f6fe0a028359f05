package coordinator_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/protos"
)

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// server and worker: one holds, the other trains.
func serverAndWorker(steps []time.Duration, models ...float32) []player {
	return []player{{holds: true, models: models}, {steps: steps}}
}

func TestEvaluationIsDueAtTheFirstStepPastAMultipleOfTheEpochs(t *testing.T) {
	// Ten steps an epoch: 0.25, 0.5, 0.75, 1 are passed by steps 3, 5, 8, 10.
	s := &script{players: serverAndWorker(every(ms, 20), 0.1), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Epochs: 0.25}, Epochs: 1, Lag: ms}}
	s.run(t)
	equal(t, "instants", []time.Duration{0, 3 * ms, 5 * ms, 8 * ms, 10 * ms}, s.instants())
	var epochs []float64
	for _, e := range s.evaluated() {
		epochs = append(epochs, e.Epoch)
	}
	equal(t, "epochs", []float64{0, 0.3, 0.5, 0.8, 1}, epochs)
}

// Every third round, and with the eighth, which ends the run. Another worker's steps are no rounds.
func TestEvaluationsByRoundsAreThoseThatAMemberTells(t *testing.T) {
	s := &script{players: append(serverAndWorker(every(10*ms, 20), 0.1), player{steps: every(3*ms, 90)}), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Rounds: 3}, Rounds: 8, Lag: ms}}
	s.players[1].rounds = true
	s.run(t)
	equal(t, "instants", []time.Duration{0, 30 * ms, 60 * ms, 80 * ms}, s.instants())
}

func TestEvaluationsByStepsOfHoldersThatTrainComeAfterSoManyOfEachOnAverage(t *testing.T) {
	s := &script{players: []player{
		{steps: every(10*ms, 9), models: []float32{0.1}, holds: true},
		{steps: every(4*ms+1, 20), models: []float32{0.2}, holds: true},
	}, samples: 100, policy: coordinator.Policy{Every: coordinator.Interval{Steps: 2}, Steps: 8, Lag: ms}}
	s.run(t)
	type look struct {
		At     time.Duration
		Origin int
		Step   uint64
	}
	var got []look
	for _, e := range s.evaluated() {
		got = append(got, look{e.At.Round(ms), e.Origin, e.Step})
	}
	// Both are looked at after every fourth step of the two, and when the second one reaches its
	// eighth step.
	want := []look{{0, 0, 0}, {0, 1, 0}, {12 * ms, 0, 1}, {12 * ms, 1, 3}, {24 * ms, 0, 2}, {24 * ms, 1, 6},
		{32 * ms, 0, 3}, {32 * ms, 1, 8}}
	equal(t, "looks", want, got)
}

func TestStepsOfAHolderThatDoesNotTrainAreThoseOfAll(t *testing.T) {
	s := &script{players: []player{{holds: true, models: []float32{0.1}}, {steps: every(10*ms, 9)},
		{steps: every(10*ms, 9)}},
		samples: 100, policy: coordinator.Policy{Every: coordinator.Interval{Steps: 3}, Steps: 8, Lag: ms}}
	s.run(t)
	equal(t, "instants", []time.Duration{0, 20 * ms, 30 * ms, 40 * ms}, s.instants())
	if last := s.evaluated()[3]; last.Step != 8 {
		t.Errorf("the run ended after %d steps, want 8", last.Step)
	}
}

func TestEvaluationsByTimeComeAtItsMultiples(t *testing.T) {
	s := &script{players: serverAndWorker(every(3*ms, 100), 0.1), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Time: 10 * ms}, Time: 30 * ms}}
	s.run(t)
	// The end of the run is its last evaluation, not one of two at that instant.
	equal(t, "instants", []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}, s.instants())
}

func TestBoundByTimeEndsBetweenTwoEvaluations(t *testing.T) {
	s := &script{players: serverAndWorker(every(3*ms, 100), 0.1, 0.2), samples: 1000,
		policy: coordinator.Policy{Every: coordinator.Interval{Epochs: 10}, Time: 34 * ms, Lag: 5 * ms}}
	r := s.run(t)
	equal(t, "instants", []time.Duration{0, 34 * ms}, s.instants())
	if r.Now != 39*ms || s.result.Last != 2 || s.result.Reached {
		t.Errorf("ended at %v with %+v", r.Now, s.result)
	}
	equal(t, "final model", []float32{0.2}, s.params())
}

func TestFirstBoundThatIsMetEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		policy coordinator.Policy
		end    time.Duration
	}{
		"epochs": {coordinator.Policy{Epochs: 0.5, Steps: 9, Time: 90 * ms}, 50 * ms},
		"steps":  {coordinator.Policy{Epochs: 0.9, Steps: 4, Time: 90 * ms}, 40 * ms},
		"time":   {coordinator.Policy{Epochs: 0.9, Steps: 9, Time: 33 * ms}, 33 * ms},
	} {
		s := &script{players: serverAndWorker(every(10*ms, 10), 0.1), samples: 100, policy: c.policy}
		s.policy.Every.Epochs = 100
		s.run(t)
		equal(t, name, []time.Duration{0, c.end}, s.instants())
	}
}

func TestTimeToTargetIsInterpolatedBetweenTheLastTwoEvaluations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		models := rapid.SliceOfN(rapid.Float32Range(0, 0.99), 5, 5).Draw(r, "accuracies")
		target := rapid.Float64Range(0.01, 1).Draw(r, "target")
		step := time.Duration(rapid.IntRange(1, 1000).Draw(r, "step")) * time.Microsecond
		s := &script{players: serverAndWorker(every(step, 10), models...), samples: 20,
			policy: coordinator.Policy{Every: coordinator.Interval{Steps: 1}, Steps: 8, Target: target, Lag: 1}}
		s.run(t)
		first := slices.IndexFunc(models, func(a float32) bool { return float64(a) >= target })
		if s.result.Reached != (first >= 0) {
			r.Fatalf("reached: %v, but the first of %v at %v is number %d", s.result.Reached, models, target, first)
		}
		if first < 0 {
			return
		}
		at := 0.0 // in steps
		if first > 0 {
			a, b := float64(models[first-1]), float64(models[first])
			at = float64(first-1) + (target-a)/(b-a)
		}
		if got := float64(s.result.TimeToTarget); math.Abs(got-at*float64(step)) > 1 {
			r.Errorf("time to target %v, want %v", s.result.TimeToTarget, time.Duration(at*float64(step)))
		}
		if got := s.result.EpochsToTarget; math.Abs(got-at/2) > 1e-9 {
			r.Errorf("epochs to target %v, want %v", got, at/2)
		}
		if s.params()[0] != models[first] || s.result.Last != uint64(first+1) {
			r.Errorf("ended with model %v at evaluation %d, want %v at %d", s.params(), s.result.Last, models[first],
				first+1)
		}
	})
}

func TestRunThatBeginsAtTheTargetEndsAtOnce(t *testing.T) {
	s := &script{players: serverAndWorker(every(10*ms, 100), 0.9), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Epochs: 1}, Epochs: 10, Target: 0.9 - 1e-6}}
	r := s.run(t)
	if !s.result.Reached || s.result.TimeToTarget != 0 || s.result.Last != 1 || s.result.Evaluations != 1 ||
		s.result.Computed != 1 || s.params()[0] != 0.9 {
		t.Errorf("got %+v", s.result)
	}
	if r.Now != ms {
		t.Errorf("ended at %v", r.Now)
	}
}

func TestRunThatGoesOnReportsItsFirstArrivalAndEndsAtItsBound(t *testing.T) {
	s := &script{players: serverAndWorker(every(10*ms, 100), 0.1, 0.3, 0.5, 0.2, 0.9, 0.4), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Steps: 1}, Steps: 6, Target: 0.4, GoOn: true, Lag: ms}}
	r := s.run(t)
	if !s.result.Reached || s.result.TimeToTarget.Round(time.Microsecond) != 15*ms || s.result.Evaluations != 7 ||
		s.result.Last != 7 {
		t.Errorf("got %+v", s.result)
	}
	equal(t, "final model", []float32{0.4}, s.params())
	if r.Now != 61*ms {
		t.Errorf("ended at %v, want 61ms", r.Now)
	}
}

// The figures of every evaluation and the times to the target, by a second implementation of a few
// lines.
// figure is what the models of a round come to, where the accuracy of a model is its square.
func (s *script) figure(of actors.Of, round int) float64 {
	sum, params, low, high := 0.0, 0.0, 1.0, 0.0
	for _, p := range s.players {
		v := float64(p.models[round])
		sum, params, low, high = sum+v*v, params+v, min(low, v*v), max(high, v*v)
	}
	nodes := float64(len(s.players))
	average := float64(float32(params / nodes))
	return map[actors.Of]float64{
		actors.AverageModel: average * average, actors.Mean: sum / nodes, actors.All: low, actors.Any: high,
	}[of]
}

// crossing is the first round in which a figure has reached the target, and when it did, in
// intervals, between the two rounds.
func (s *script) crossing(of actors.Of, rounds int) (at float64, round int) {
	target := s.policy.Target
	for round := range rounds {
		if now := s.figure(of, round); now >= target && round == 0 {
			return 0, 0
		} else if now >= target {
			before := s.figure(of, round-1)
			return float64(round-1) + (target-before)/(now-before), round
		}
	}
	return -1, rounds
}

func TestTimeToTargetUnderEachFigureIsThatOfTheRecordedModels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		nodes, rounds := rapid.IntRange(1, 4).Draw(r, "nodes"), 6
		of := rapid.SampledFrom([]actors.Of{actors.AverageModel, actors.Mean, actors.All, actors.Any}).Draw(r, "of")
		target := rapid.Float64Range(0.01, 1).Draw(r, "target")
		s := &script{samples: 1000, accuracy: func(p float64) float64 { return p * p }, policy: coordinator.Policy{
			Every: coordinator.Interval{Time: 10 * ms}, Time: 50 * ms, Target: target, Of: of, Lag: ms,
			GoOn: rapid.Bool().Draw(r, "goes on"),
		}}
		for range nodes {
			models := rapid.SliceOfN(rapid.Float32Range(0, 1), rounds, rounds).Draw(r, "models")
			s.players = append(s.players, player{steps: every(9*ms, 9), models: models, holds: true})
		}
		s.run(t)
		_, last := s.crossing(of, rounds)
		for _, each := range []actors.Of{actors.AverageModel, actors.Mean, actors.All, actors.Any} {
			at, round := s.crossing(each, rounds)
			got, has := s.result.Crossings[each]
			if wanted := round < rounds && (s.policy.GoOn || round <= last); has != wanted {
				r.Fatalf("%s arrived: %v, want %v", each, has, wanted)
			} else if has && math.Abs(float64(got)-at*float64(10*ms)) > 10 {
				r.Errorf("%s arrived at %v, want %v intervals", each, got, at)
			}
		}
		if at, round := s.crossing(of, rounds); s.result.Reached != (round < rounds) {
			r.Errorf("reached: %v at %v", s.result.Reached, at)
		}
		for i, e := range s.summarized() {
			if f := e.Figures; f.Models != nodes || math.Abs(f.Score(of).Accuracy-s.figure(of, i)) > 1e-9 ||
				e.Accuracy != f.Score(of).Accuracy {
				r.Errorf("evaluation %d: %+v, judged %v; want %v of %d models",
					i, f, e.Accuracy, s.figure(of, i), nodes)
			}
		}
		// The run ends with the models that the figure was judged on.
		ended := min(last, rounds-1)
		if s.policy.GoOn {
			ended = rounds - 1
		}
		for i, p := range s.players {
			if got := s.result.Models[i]; got.Node != i || got.Params[0] != p.models[ended] {
				r.Errorf("node %d ended with %+v, want %v", i, got, p.models[ended])
			}
		}
	})
}

func TestVerdictsAreSettledInTheOrderOfTheirSnapshots(t *testing.T) {
	// The lag is the time since the snapshot before: the verdict on the one at 100 ms
	// is ready at 200 ms, those on the two after it at 120 ms and 131 ms.
	s := &script{players: serverAndWorker([]time.Duration{100 * ms, 110 * ms, 120*ms + ms/2}, 0.1, 0.2, 0.9, 0.3),
		samples: 100,
		policy:  coordinator.Policy{Every: coordinator.Interval{Steps: 1}, Time: 150 * ms}}
	s.run(t)
	type verdict struct {
		Seen, At time.Duration
		Number   uint64
	}
	var got []verdict
	for _, e := range s.evaluated() {
		got = append(got, verdict{e.Seen, e.At, e.Evaluation})
	}
	want := []verdict{
		{ms, 0, 1}, {200 * ms, 100 * ms, 2}, {200 * ms, 110 * ms, 3}, {200 * ms, 120*ms + ms/2, 4},
		{200 * ms, 150 * ms, 5},
	}
	equal(t, "verdicts", want, got)
}

func TestTargetMetByALaterVerdictThatIsReadyFirstDoesNotHideAnEarlierOne(t *testing.T) {
	s := &script{players: serverAndWorker([]time.Duration{100 * ms, 110 * ms}, 0.1, 0.5, 0.9), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Steps: 1}, Time: 150 * ms, Target: 0.5}}
	s.run(t)
	if s.result.TimeToTarget != 100*ms || s.result.Last != 2 {
		t.Errorf("got %+v", s.result)
	}
}

func TestVerdictIsInOneLagAfterTheInstantHoweverBusyTheHolder(t *testing.T) {
	s := &script{players: serverAndWorker(every(10*ms, 9), 0.1, 0.2, 0.3, 0.4), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Steps: 1}, Steps: 3, Lag: 4 * ms}}
	s.players[0].charge = 3 * ms
	s.run(t)
	for _, e := range s.evaluated() {
		if e.Seen != e.At+4*ms {
			t.Errorf("the verdict on %v is in at %v, want %v", e.At, e.Seen, e.At+4*ms)
		}
	}
	// A holder that answers after the lag is waited for.
	s = &script{players: s.players, samples: 100, policy: s.policy}
	s.players[0].charge = 7 * ms
	s.run(t)
	for _, e := range s.evaluated() {
		if e.Seen < e.At+7*ms {
			t.Errorf("the verdict on %v is in at %v, before the holder answered", e.At, e.Seen)
		}
	}
}

func TestEqualModelsAreJudgedOnce(t *testing.T) {
	for _, threads := range []int{0, 2} {
		s := &script{players: []player{
			{steps: every(10*ms, 9), models: []float32{0.1, 0.2, 0.1}, holds: true},
			{steps: every(10*ms, 9), models: []float32{0.1, 0.2, 0.3}, holds: true},
		}, samples: 1000, threads: threads,
			policy: coordinator.Policy{Every: coordinator.Interval{Time: 10*ms - 1}, Time: 35 * ms}}
		s.run(t)
		// And the average of 0.1 and 0.3 at two instants, which is computed each time.
		if s.result.Evaluations != 10 || s.result.Computed != 5 || s.calls.Load() != 5 {
			t.Errorf("%d evaluations, %d computed, %d calls; want 10, 5, 5", s.result.Evaluations, s.result.Computed,
				s.calls.Load())
		}
		for _, e := range s.evaluated() {
			if e.Loss != 1-e.Accuracy {
				t.Errorf("a verdict of %v", e)
			}
		}
	}
}

func TestRecordCanEndAtTheLastEvaluationOfEveryRun(t *testing.T) {
	s := &script{players: serverAndWorker(every(10*ms, 9), 0.1), samples: 100,
		policy: coordinator.Policy{Every: coordinator.Interval{Steps: 2}, Steps: 4, Lag: ms}}
	s.run(t)
	taken := map[uint64]bool{}
	for _, e := range s.log {
		taken[e.Evaluation] = true
	}
	if !taken[s.result.Last] || s.result.Last != 3 {
		t.Errorf("the record ends at evaluation %d of %v", s.result.Last, taken)
	}
}

func TestRunWithoutAModelToEvaluateIsRefused(t *testing.T) {
	s := &script{players: []player{{steps: every(ms, 3)}}, samples: 100}
	if _, err := s.try(); err == nil || !strings.Contains(err.Error(), "no node holds a model") {
		t.Errorf("got %v", err)
	}
}

func TestAnswerThatNobodyAskedForEndsTheRun(t *testing.T) {
	for want, reply := range map[string]func(*protos.TakeSnapshot) *protos.Message{
		"a snapshot of 1 tensors for evaluation 77 of node 0": func(*protos.TakeSnapshot) *protos.Message {
			return protos.NewMessage(&protos.Snapshot{Evaluation: 77}, protos.NewTensor([]float32{1}))
		},
		"a snapshot of 0 tensors for evaluation 1 of node 0": func(r *protos.TakeSnapshot) *protos.Message {
			return protos.NewMessage(&protos.Snapshot{Evaluation: r.Evaluation})
		},
		"coordinator: unexpected message *protos.Chunk": func(*protos.TakeSnapshot) *protos.Message {
			return protos.NewMessage(&protos.Chunk{})
		},
	} {
		s := &script{players: []player{{holds: true, reply: reply}}, samples: 100,
			policy: coordinator.Policy{Time: time.Second, Every: coordinator.Interval{Steps: 1}}}
		if _, err := s.try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestModelsOfANodeThatVoteAreJudgedTogether(t *testing.T) {
	votes := func(params ...float32) func(*protos.TakeSnapshot) *protos.Message {
		return func(request *protos.TakeSnapshot) *protos.Message {
			var tensors []*protos.Tensor
			for _, v := range params {
				tensors = append(tensors, protos.NewTensor([]float32{v}))
			}
			return protos.NewMessage(&protos.Snapshot{Evaluation: request.Evaluation}, tensors...)
		}
	}
	for _, early := range []bool{false, true} {
		for _, c := range []struct {
			params []float32
			want   float64
		}{{[]float32{0.5, 0.25}, 0.75}, {[]float32{0.5, 0.125}, 0.625}, {[]float32{0.5}, 0.5}} {
			if early && len(c.params) == 1 {
				continue // judged only as far as it takes
			}
			s := &script{players: []player{{steps: every(10*ms, 5), holds: true, reply: votes(c.params...)}},
				samples: 100, early: early, policy: coordinator.Policy{Every: coordinator.Interval{Steps: 2}, Steps: 4,
					Lag: ms, Target: 0.9}}
			s.run(t)
			for _, e := range s.evaluated() {
				if e.Accuracy != c.want {
					t.Errorf("early %v: models %v are judged to have %v, want %v", early, c.params, e.Accuracy, c.want)
				}
			}
			equal(t, "final model", []float32{0.5}, s.params())
		}
	}
}
