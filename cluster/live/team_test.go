package live_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
)

func TestTeamMakesEveryStepOnceAndIsPadded(t *testing.T) {
	for _, threads := range []int{1, 2, 4, 9} { // also more than steps
		const steps = 8
		var begun, ended [steps]atomic.Int64
		s := &stage{threads: 2, profile: world.Profile{Cores: 4, Speed: 1e9}}
		s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.ComputeTeam(actors.Team{
					Threads: threads, Steps: steps, Work: steps * 5e6, Cores: 1,
					Begin: func(_, step int) { begun[step].Add(1) },
					End: func(_, step int) {
						if begun[step].Load() == 1 {
							ended[step].Add(1)
						}
					},
					Result: func() any { return "done" },
				})
			case string:
				notBefore(t, "done", env.Now(), 5*ms*steps/4)
				s.finish()
			}
		}}
		s.run(t)
		for i := range ended {
			if begun[i].Load() != 1 || ended[i].Load() != 1 {
				t.Errorf("%d threads: step %d began %d times", threads, i, begun[i].Load())
			}
		}
	}
}

func TestPanicOfAThreadEndsTheRun(t *testing.T) {
	s := &stage{threads: 2}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			env.ComputeTeam(actors.Team{
				Threads: 2, Steps: 100, Cores: 1, End: func(_, _ int) {}, Result: func() any { return nil },
				Begin: func(_, step int) {
					if step == 7 {
						panic(errFire)
					}
				},
			})
		}
	}}
	_, err := s.world(t).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), errFire.Error()) || !strings.Contains(err.Error(), "n0") {
		t.Errorf("the run ended with %v", err)
	}
}

const (
	integerInputs = 7
	integerPasses = 40 // of a round
)

// integers is a task of threads whose gradients and rate are integers, so that all sums are exact,
// and the sum of the inputs of all samples.
func integers(threads int) (task *train.Task, pass []float32) {
	random := rand.New(rand.NewPCG(1, 2))
	task = simtest.Task(simtest.Fixed{Model: simtest.Perceptron(integerInputs, 2)}, []int{60}, 1,
		optim.SGD{Rate: optim.Constant(1)})
	task.Threads, task.Cores = []int{threads}, []int{threads}
	pass = make([]float32, integerInputs)
	for i := range task.Train.X {
		x := float32(random.IntN(9) - 4)
		task.Train.X[i] = x
		pass[i%integerInputs] += x
	}
	return task, pass
}

// The copy has taken in every update, and the team's sum every gradient.
func TestThreadsSideBySideLoseNoUpdate(t *testing.T) {
	const rounds, threads, steps = 3, 4, 60 * integerPasses
	task, pass := integers(threads)
	var team *train.Team
	done, params := 0, make([]float32, task.Model.Params())
	check := func(r *train.Round) {
		model, sum := team.Model().Data, team.Sum().Data
		for i := range model {
			want := integerPasses * pass[i%integerInputs]
			if sum[i] != want || params[i]-model[i] != want {
				t.Errorf("value %d: the sum of gradients is %v and the model moved by %v, want %v", i, sum[i],
					params[i]-model[i], want)
			}
		}
		if len(r.Steps) != steps || r.Samples != steps || r.Steps[0].Step != uint64(done*steps+1) {
			t.Errorf("round %d has %d steps of %d samples, from step %d on", done, len(r.Steps), r.Samples,
				r.Steps[0].Step)
		}
		params = model
	}
	s := &stage{threads: threads, profile: world.Unlimited}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			local, err := task.NewLocal(env)
			if err == nil {
				team, err = task.NewTeam(env, local, true)
			}
			if err != nil {
				env.Fail(err)
				return
			}
			team.Begin(env.Tensors().Copy(params), steps)
		case *train.Round:
			team.Done(m)
			check(m)
			if done++; done == rounds {
				s.finish()
				return
			}
			team.Begin(team.Model(), steps)
		}
	}}
	s.run(t)
}
