package federated_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/periodic/robust"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// rows are the samples of each client of a population.
type rows [][]int32

func (r rows) Rows(client int) []int32 { return r[client] }

// clients is a stage on which each of some clients is a node.
func clients(samples ...int) *stage {
	s := &stage{task: newTask(samples...), arch: federated.Default(), rounds: 4}
	for i := range s.task.Workers {
		s.task.Workers[i] = "client" + strconv.Itoa(i+1)
	}
	return s
}

// hosted is the same stage, but for the nodes, which are hosts of the clients.
func (s *stage) hosted(hosts int) *stage {
	with, task := *s, *s.task
	with.task, with.arch.Population = &task, len(task.Shards)
	task.Clients, task.Shards, task.Workers = rows(task.Shards), nil, nil
	for i := range hosts {
		task.Workers = append(task.Workers, fmt.Sprintf("host%d", i+1))
		task.Shards = append(task.Shards, task.Train.Rows())
	}
	return &with
}

// Clients that take turns on hosts, however many, learn what as many nodes do: where all are drawn
// each time, bit for bit.
func TestHostsLearnWhatTheirClientsWouldLearn(t *testing.T) {
	dropping, err := nn.NewNetwork(nn.Shape{Channels: 12, Height: 1, Width: 1},
		[]nn.Layer{nn.Dropout{Rate: 0.3}, nn.Dense{Outputs: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(s *stage){
		"fedavg":   func(*stage) {},
		"epochs":   func(s *stage) { s.arch.Local.Epochs = 3 },
		"steps":    func(s *stage) { s.arch.Local = periodic.Work{Steps: 5} },
		"fedprox":  func(s *stage) { s.arch.Proximal = 0.1 },
		"median":   func(s *stage) { s.arch.Mean.Kind = robust.Median },
		"models":   func(s *stage) { s.arch.Exchange = federated.Parameters },
		"fednova":  func(s *stage) { s.arch.Weights = periodic.Normalised },
		"momentum": func(s *stage) { s.task.Method = optim.Momentum{Rate: constant(0.1), Momentum: 0.9} },
		"dropout":  func(s *stage) { s.task.Model = dropping },
		"time":     func(s *stage) { s.arch.Local = periodic.Work{Steps: 3, Time: 15 * ms} },
		"no need":  func(s *stage) { s.arch.Local = periodic.Work{Steps: 3, Time: 40 * ms} },
	} {
		t.Run(name, func(t *testing.T) {
			s := clients(40, 9, 17, 64, 25, 8, 31)
			change(s)
			if name == "time" {
				s.rounds = 1 // a client that is made anew goes on as if no time had ended its work
			}
			want := s.run(t)
			for _, hosts := range []int{1, 4, 9} {
				h := s.hosted(hosts)
				for r, model := range h.run(t) {
					if !equal(model, want[r]) {
						t.Fatalf("%d hosts: the model of round %d is not that of the clients", hosts, r+1)
					}
				}
			}
		})
	}
}

// Where some are drawn, it does not matter either who is host of whom, nor who computes.
func TestModelDoesNotDependOnHosts(t *testing.T) {
	var want []float32
	for _, hosts := range []int{1, 2, 5} {
		s := clients(40, 9, 17, 64, 25, 8, 31).hosted(hosts)
		s.arch.Share, s.arch.Count = 0, 3
		s.run(t)
		digest := s.digest
		if want == nil {
			want = s.models[3]
		}
		before := runtime.GOMAXPROCS(2)
		s.threads = 2
		s.run(t)
		runtime.GOMAXPROCS(before)
		if !equal(s.models[3], want) || s.digest != digest {
			t.Errorf("%d hosts: the run is another one", hosts)
		}
	}
}

func TestSampleIsEvenAndHasNobodyTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sets := map[string]int{}
	for range 6000 {
		s := federated.Sample(random, 6, 3)
		if !slices.IsSorted(s) || len(slices.Compact(slices.Clone(s))) != 3 || s[2] > 5 {
			t.Fatalf("the sample is %v", s)
		}
		sets[fmt.Sprint(s)]++
	}
	// Each of the 20 sets is expected 300 times, with a deviation of 17.
	if len(sets) != 20 {
		t.Errorf("%d sets of 20", len(sets))
	}
	for set, n := range sets {
		if n < 300-85 || n > 300+85 {
			t.Errorf("the set %s was drawn %d times of 6000, 300 are expected", set, n)
		}
	}
	if all := federated.Sample(random, 5, 5); !slices.Equal(all, []uint32{0, 1, 2, 3, 4}) {
		t.Errorf("all of 5 are %v", all)
	}
}

// With a deadline, a round has what hosts have done of their clients by then, and the next round
// takes the place of the rest.
func TestHostsThatAreLateSendWhatTheyHave(t *testing.T) {
	s := clients(24, 24, 24, 24, 24, 24).hosted(2)
	s.steps, s.link.Delay = []time.Duration{10 * ms, 20 * ms}, link.Constant{Delay: ms}
	s.arch.Deadline = 95 * ms // three clients of the first host take 90, two of the second 120
	s.run(t)
	for r, nodes := range s.updates {
		if !slices.Equal(nodes, []int{1, 2, 1, 1}) {
			t.Errorf("round %d has the updates of clients on %v", r+1, nodes)
		}
	}
	if s.missed != 8 {
		t.Errorf("%v updates were missed in 4 rounds, want 2 in each", s.missed)
	}
	s.arch.Deadline, s.arch.Share, s.arch.Count, s.arch.Spare = 0, 0, 4, 0.5
	s.run(t)
	for r, nodes := range s.updates {
		if !slices.Equal(nodes, []int{1, 2, 1, 1}) {
			t.Errorf("round %d has the first updates of clients on %v", r+1, nodes)
		}
	}
}

// Clients of a host that goes are not waited for; the next round's are on the hosts that are there.
func TestHostsComeAndGo(t *testing.T) {
	for _, how := range []world.NodeEvent{world.Crash, world.Leave} {
		s := clients(24, 24, 24, 24, 24, 24).hosted(3)
		s.absent, s.rounds, s.link.Delay = []int{3}, 5, link.Constant{Delay: ms}
		s.schedule = []world.NodeChange{{At: 50 * ms, Node: 2, Do: how}, {At: 120 * ms, Node: 3, Do: world.Join}}
		s.run(t)
		if want := []int{1, 2, 1, 1}; !slices.Equal(s.updates[0], want) {
			t.Errorf("%v: round 1 has the updates of clients on %v, want %v", how, s.updates[0], want)
		}
		if want := []int{1, 1, 1, 1, 1, 1}; !slices.Equal(s.updates[1], want) {
			t.Errorf("%v: round 2 has the updates of clients on %v, want %v", how, s.updates[1], want)
		}
		if want := []int{1, 3, 1, 3, 1, 3}; !slices.Equal(s.updates[2], want) {
			t.Errorf("%v: round 3 has the updates of clients on %v, want %v", how, s.updates[2], want)
		}
	}
}

// Loss, repeats and other orders stop nothing where rounds have a deadline.
func TestHostsSurviveLoss(t *testing.T) {
	s := clients(24, 9, 40, 17, 24, 8).hosted(3)
	s.link = link.Config{Delay: link.Uniform{Min: ms, Max: 30 * ms}, Reorder: true, Repeat: 0.3,
		Loss: link.Loss{Probability: 0.2, Drop: true}}
	s.rounds, s.arch.Deadline = 30, 150*ms
	s.run(t)
	if s.missed == 0 {
		t.Error("nothing was lost")
	}
	for r, nodes := range s.updates {
		if len(nodes) > 6 {
			t.Errorf("version %d has %d updates of 6 clients", r+1, len(nodes))
		}
	}
}

// A round costs what its clients cost, however many there are beside them.
func TestRoundCostsNothingForThoseWhoAreNotDrawn(t *testing.T) {
	cost := func(population int) (bytes, mallocs uint64) {
		s := clients(400, 400).hosted(2)
		s.arch.Population, s.arch.Share, s.arch.Count, s.rounds = population, 0, 50, 6
		var err error
		s.task.Clients, err = partition.Over(partition.Drawn{Samples: 10, Alpha: 0.5}, s.task.Train, population, 1)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.run(t)
		runtime.ReadMemStats(&after)
		if len(s.updates[5]) != 50 {
			t.Fatalf("a round has %d updates", len(s.updates[5]))
		}
		return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
	}
	cost(1e3) // fills pools of the program
	bytes, mallocs := cost(1e3)
	if b, m := cost(2e9); float64(b) > 1.1*float64(bytes) || float64(m) > 1.1*float64(mallocs) {
		t.Errorf("6 rounds of 50 of 2,000,000,000 clients allocate %d bytes in %d pieces, of 1,000 clients %d in %d",
			b, m, bytes, mallocs)
	}
}

func TestPopulationsThatKeepSomethingAreRefused(t *testing.T) {
	for want, change := range map[string]func(a *federated.Architecture){
		"Controls is true: must be false with a population": func(a *federated.Architecture) { a.Controls = true },
		`State is "kept": must be fresh with a population`: func(a *federated.Architecture) {
			a.State = periodic.Kept
		},
		"Buffer is 2: must be left out with a population": func(a *federated.Architecture) { a.Buffer = 2 },
		"Population is 10: must be left out with attack": func(a *federated.Architecture) {
			a.Attack = &federated.Attack{Kind: "sign-flip", Share: 0.2}
		},
		"Population is -1": func(a *federated.Architecture) { a.Population = -1 },
	} {
		a := federated.Default()
		a.Population = 10
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&a)
		if err := a.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// stranger sends a host work that no server sends.
type stranger struct {
	env    actors.Env
	work   *protos.ClientWork
	values int // of its tensor
}

func (s *stranger) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*protos.Message); ok {
		if _, starts := m.Head.(*protos.Start); starts {
			ctx.Send(s.env.View().Members[1].PID, protos.NewMessage(s.work, s.env.Tensors().Get(s.values)))
		}
		m.Release()
	}
}

func TestWorkThatNoServerSendsIsAnError(t *testing.T) {
	for _, c := range []struct {
		clients    []uint32
		population int
		want       string
	}{
		{nil, 0, "work of round 1 has not 1 tensors of 83 values"},
		{nil, 2, "work of round 1 is for the clients [], of a population of 2"},
		{[]uint32{1, 2}, 2, "work of round 1 is for the clients [1 2], of a population of 2"},
		{[]uint32{0}, 0, "work of round 1 is for the clients [0], of a population of 0"},
	} {
		s := clients(24, 24).hosted(1)
		s.arch.Population, s.rounds, s.time = c.population, 0, time.Second
		s.server = func(env actors.Env) actor.Actor {
			values := s.task.Model.Params()
			if c.clients == nil && c.population == 0 {
				values--
			}
			return &stranger{env, &protos.ClientWork{Round: 1, View: 1, Clients: c.clients}, values}
		}
		if err := s.try(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
