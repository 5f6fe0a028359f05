package collective_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// Where gradients do not depend on the model, rounds by threads make what rounds by one make, up to
// rounding: the oracle of all churn knows nothing of threads.
func TestRoundsOfThreadsAreBySomeViewAloneWhenNodesComeAndGo(t *testing.T) {
	runs := 60
	if simtest.Brief() {
		runs = 20
	}
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 5))
		n := 2 + random.IntN(4)
		c := churn{
			task: churnTask(n, sgd(0.2)), schedule: shuffle(random, n), end: 700 * time.Millisecond, strict: run%3 == 0,
			architecture: collective.Architecture{Algorithm: algorithms[run%len(algorithms)], Every: 2 + run%3,
				Reduce: collective.Models},
		}
		c.task.Model = simtest.Fixed{Model: c.task.Model}
		for range n {
			c.task.Threads = append(c.task.Threads, 1+random.IntN(4)) // also one beside others
		}
		if run%2 == 0 {
			c.absent = []int{1 + random.IntN(n-1)}
		}
		c.run(t)
		c.explain(t)
	}
}

func TestThreadsChangeTheModelThatDependsOnTheirOrder(t *testing.T) {
	models := func(threads, processors int) [][]float32 {
		s := trial{task: simtest.NewTask(2, 64, 0.5), rounds: 4, threads: processors,
			architecture: collective.Architecture{Algorithm: collective.Ring, Every: 6, Reduce: collective.Models}}
		s.task.Threads = []int{threads, threads}
		return s.run(t)
	}
	one, three := models(1, 0), models(3, 0)
	if slices.Equal(one[0], three[0]) {
		t.Error("three threads make the bits that one makes")
	}
	if !slices.Equal(three[0], three[1]) || !slices.Equal(three[0], models(3, 2)[0]) {
		t.Error("ranks, or two runs of a seed, have different models")
	}
	bare := trial{task: simtest.NewTask(2, 64, 0.5), rounds: 4,
		architecture: collective.Architecture{Algorithm: collective.Ring, Every: 6, Reduce: collective.Models}}
	if !slices.Equal(one[0], bare.run(t)[0]) {
		t.Error("threads: 1 makes other bits than no threads")
	}
}

func TestThreadsNeedStepsBetweenExchangesOfModels(t *testing.T) {
	for _, a := range []collective.Architecture{
		{Algorithm: collective.Ring, Every: 1, Reduce: collective.Models},
		{Algorithm: collective.Ring, Every: 4, Reduce: collective.Gradients},
		{Algorithm: collective.Ring, Every: 4, Reduce: collective.Models, Fragments: 4},
		{Algorithm: collective.Ring, Every: 4, Reduce: collective.Models, Overlap: 1},
	} {
		if a.CheckThreads() == nil {
			t.Errorf("%+v has something to share", a)
		}
	}
}
