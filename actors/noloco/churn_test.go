package noloco_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/noloco"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/protos"
)

// Nodes come and go at random over slow links: whoever is there goes on.
func TestNobodyStandsStillWhenNodesComeAndGo(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if simtest.Brief() {
		seeds = 40
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 4))
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(3+int(seed%5), 20, 0.1), Detect: 100 * ms, Reorder: seed%2 == 0,
			Observer: r, Strict: seed%8 == 0}
		a := arch(2 + random.IntN(3))
		a.Every = 1 + random.IntN(4)
		s.Kind, s.Task.Seed = a, seed
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(300)) * ms}
		if seed%3 == 0 {
			s.Loss, s.Reliable = link.Loss{Probability: 0.1, Drop: true}, true
		}
		s.Shake(random, 14, 4*time.Second)
		s.Looks = []time.Duration{20 * time.Second}
		look := s.Run(t)[0]
		if lagging := r.Lagging(look, 10*time.Second, 8); lagging != nil {
			t.Errorf("seed %d, %+v: in the last 10 s nodes %v have made fewer than 8 steps", seed, a, lagging)
		}
	}
}

// The one of a pair goes on when the other has crashed, with its own model; the other joins with
// the φ of the first, and the two are a pair again.
func TestWhoJoinsBeginsWithANeighboursShared(t *testing.T) {
	t.Parallel()
	r := &simtest.Recorder{}
	// Rounds end at 300, 600, … The looks are in the first step of node 0's fifth round, and in its
	// second one, when node 1 has just come back.
	s := &simtest.Stage{Task: newTask(2), Kind: arch(2), Strict: true, Observer: r, Detect: 50 * ms,
		Looks: []time.Duration{1260 * ms, 1360 * ms, 3 * time.Second},
		Schedule: []world.NodeChange{{At: 1050 * ms, Node: 1, Do: world.Crash},
			{At: 1350 * ms, Node: 1, Do: world.Join}}}
	looks := s.Run(t)
	if got := r.StepsAfter(2, 1100*ms); got[0] < 15 || got[1] < 12 {
		t.Errorf("steps after the crash: %v", got)
	}
	if slices.Equal(looks[0][0].Params, looks[1][0].Params) {
		t.Fatal("the looks are not where they are meant to be")
	}
	if !slices.Equal(looks[1][1].Params, looks[0][0].Params) {
		t.Error("node 1 does not begin with the model that node 0 had at the beginning of its round")
	}
	merged := 0
	for i, e := range r.Events {
		if e.Kind == actors.Merged && r.At[i] > 1360*ms {
			merged++
		}
	}
	if merged < 6 {
		t.Errorf("the two have merged %d models after node 1 has come back", merged)
	}
}

// forger is an architecture whose second node sends the others a message that does not fit.
type forger struct {
	noloco.Architecture
	head   func() *protos.Model
	values int
	times  int // that it is sent for each message
}

func (f forger) Kind(task *train.Task, place train.Place) actors.Kind {
	if place.Node != 1 {
		return f.Architecture.Kind(task, place)
	}
	return func(env actors.Env) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*protos.Message); !ok {
				return
			}
			for range f.times {
				ctx.Send(env.View().Members[0].PID, protos.NewMessage(f.head(), env.Tensors().Get(f.values)))
			}
		}), nil
	}
}

func TestModelsThatDoNotFitEndTheRun(t *testing.T) {
	for _, c := range []struct {
		head          *protos.Model
		values, times int
		want          string
	}{
		{&protos.Model{Node: 1, Step: every}, 3, 1, "a model of node 1 that is not one vector of 43 values"},
		{&protos.Model{Node: 1, Step: every + 1}, 43, 1, "a model of node 1 after step 4, and rounds have 3"},
		{&protos.Model{Node: 1}, 43, 1, "a model of node 1 after step 0, and rounds have 3"},
		{&protos.Model{Node: 7, Step: every}, 43, 1, "a message from node 7, of 2 nodes"},
		{&protos.Model{Node: 1, Step: 1000 * every}, 43, 100, "more than 64 models of node 1 are ahead"},
	} {
		s := simtest.Stage{Task: newTask(2), Looks: []time.Duration{time.Second},
			Kind: forger{arch(2), func() *protos.Model { return c.head }, c.values, c.times}}
		if _, err := s.Try(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestThreadsChangeNothing(t *testing.T) {
	var results []string
	for _, threads := range []int{0, 2} {
		s := simtest.Stage{Task: newTask(7), Kind: arch(3), Edge: link.Uniform{Max: 300 * ms}, Threads: threads,
			Looks: []time.Duration{4 * time.Second}}
		models := s.Run(t)
		results = append(results, fmt.Sprint(s.Result.Digest, models))
	}
	if results[0] != results[1] {
		t.Error("digests or models differ between 0 and 2 threads")
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	a := noloco.Default()
	a.Every = 1
	simtest.ExpectNoAllocations(t, 3000, 3000, func(watch *simtest.Stopwatch) {
		(&simtest.Stage{Task: simtest.NewTask(6, 200, 0.1), Kind: a}).Pace(t, watch)
	})
}
