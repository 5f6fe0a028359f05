package federated_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/optim"
)

// With a buffer of all clients the server's steps are FedAvg's bit for bit, and so are rounds whose
// clients send their models.
func TestABufferOfAllClientsIsFedAvg(t *testing.T) {
	uneven := func() *stage {
		return &stage{task: newTask(24, 9, 60, 17), arch: federated.Default(), rounds: 5}
	}
	want := uneven().run(t)
	for name, change := range map[string]func(a *federated.Architecture){
		"buffer of all":   func(a *federated.Architecture) { a.Buffer = 4 },
		"larger buffer":   func(a *federated.Architecture) { a.Buffer = 9 },
		"models are sent": func(a *federated.Architecture) { a.Exchange = federated.Parameters },
		"nothing is late": func(a *federated.Architecture) {
			a.Buffer, a.Staleness = 4, periodic.Staleness{Kind: periodic.Polynomial}
		},
	} {
		s := uneven()
		change(&s.arch)
		for r, model := range s.run(t) {
			if !equal(model, want[r]) {
				t.Errorf("%s: the model of round %d is not FedAvg's", name, r+1)
			}
		}
	}
}

// job is the work of a client of an event loop.
type job struct {
	at     time.Duration // when its update is there
	since  int           // the steps of the server when it was drawn
	sample float64
	delta  []float64
	theta  []float64
}

// loop is asynchronous learning as an event loop in float64 in which all clients are always at
// work, or have an update in the buffer.
type loop struct {
	*oracle
	stage *stage
	steps int
	jobs  []job // by client
}

func (l *loop) begin(client int, now time.Duration) {
	k := l.samplers[client].Steps()
	learned := l.client(client, k, 0.1, l.stage.arch.Proximal, false)
	j := job{at: now + 2*ms + time.Duration(k)*l.stage.steps[client], since: l.steps,
		sample: float64(l.samplers[client].Len()), delta: learned.delta, theta: make([]float64, len(l.phi))}
	for i, d := range learned.delta {
		j.theta[i] = l.phi[i] - d
	}
	l.jobs[client] = j
}

// step waits for the next updates and makes a step with them: who has sent them, and how late.
func (l *loop) step(rate float64, worth func(d float64) float64) (clients []int, late []uint64) {
	now := time.Duration(0)
	for range l.stage.arch.Buffer {
		first := -1
		for i := range l.jobs {
			if !slices.Contains(clients, i) && (first < 0 || l.jobs[i].at < l.jobs[first].at) {
				first = i
			}
		}
		clients, now = append(clients, first), l.jobs[first].at
	}
	slices.Sort(clients)
	sum := 0.0
	for _, i := range clients {
		sum += l.jobs[i].sample
	}
	next := slices.Clone(l.phi)
	for _, i := range clients {
		d := l.steps - l.jobs[i].since
		late = append(late, uint64(d))
		alpha := rate * worth(float64(d)) * l.jobs[i].sample / sum
		if l.stage.arch.Weights == periodic.Equal {
			alpha = rate * worth(float64(d)) / float64(len(clients))
		}
		for k := range next {
			if l.stage.arch.Exchange == federated.Parameters {
				next[k] += alpha * (l.jobs[i].theta[k] - l.phi[k])
			} else {
				next[k] -= alpha * l.jobs[i].delta[k]
			}
		}
	}
	l.phi, l.steps = next, l.steps+1
	for _, i := range clients {
		l.begin(i, now)
	}
	return clients, late
}

func TestAsynchronousStepsAreThoseOfAnEventLoop(t *testing.T) {
	half := func(d float64) float64 { return 1 / math.Sqrt(1+d) }
	for name, c := range map[string]struct {
		set   func(a *federated.Architecture)
		rate  float64
		worth func(d float64) float64
	}{
		"fedasync": {func(a *federated.Architecture) {
			a.Buffer, a.Exchange, a.Outer = 1, federated.Parameters, optim.SGD{Rate: constant(0.6)}
			a.Staleness = periodic.Staleness{Kind: periodic.Polynomial}
		}, 0.6, half},
		"fedasync, hinge, regularized": {func(a *federated.Architecture) {
			a.Buffer, a.Exchange, a.Outer, a.Proximal = 1, federated.Parameters, optim.SGD{Rate: constant(0.9)}, 0.1
			a.Staleness = periodic.Staleness{Kind: periodic.Hinge, Slope: 2, After: 3}
		}, 0.9, func(d float64) float64 {
			if d <= 3 {
				return 1
			}
			return 1 / (2*(d-3) + 1)
		}},
		"fedbuff": {func(a *federated.Architecture) {
			a.Buffer, a.Weights, a.Staleness = 3, periodic.Equal, periodic.Staleness{Kind: periodic.Polynomial}
		}, 1, half},
		"weighted by samples": {func(a *federated.Architecture) { a.Buffer = 2 }, 1,
			func(float64) float64 { return 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{task: newTask(40, 9, 17, 64, 25), arch: federated.Default(), rounds: 40,
				steps: []time.Duration{7013 * time.Microsecond, 11290 * time.Microsecond, 9457 * time.Microsecond,
					5171 * time.Microsecond, 13739 * time.Microsecond}}
			s.link.Delay = link.Constant{Delay: ms}
			c.set(&s.arch)
			models := s.run(t)
			l := &loop{oracle: newOracle(t, s.task), stage: s, jobs: make([]job, 5)}
			for i := range l.jobs {
				l.begin(i, 0)
			}
			most := uint64(0)
			for r, model := range models {
				clients, late := l.step(c.rate, c.worth)
				for i := range clients {
					clients[i]++
				}
				if !slices.Equal(s.updates[r], clients) || !slices.Equal(s.stale[r], late) {
					t.Fatalf("step %d has the updates of %v, %v late; want %v, %v", r+1, s.updates[r], s.stale[r],
						clients, late)
				}
				if d := distance(model, l.phi); !(d < 1e-6) {
					t.Fatalf("step %d: the model is %v away from that of an event loop", r+1, d)
				}
				most = max(most, slices.Max(late))
			}
			if most < 2 {
				t.Error("no update is more than a step late")
			}
		})
	}
}

// Two of six clients are at work at any time, and each as often as the others: of 600 steps 100
// are expected of each, with a deviation of 9.
func TestClientsThatReplaceOthersAreDrawnEvenly(t *testing.T) {
	s := &stage{task: newTask(8, 8, 8, 8, 8, 8), arch: federated.Default(), rounds: 600}
	s.arch.Share, s.arch.Count, s.arch.Buffer = 0, 2, 1
	s.run(t)
	of := make([]int, 7)
	for r, nodes := range s.updates {
		if of[nodes[0]]++; len(nodes) != 1 {
			t.Fatalf("step %d has the updates of %v", r+1, nodes)
		}
	}
	for node, n := range of[1:] {
		if n < 60 || n > 140 {
			t.Errorf("client %d has sent %d of 600 updates, 100 are expected", node+1, n)
		}
	}
	// With two at work the mean of the staleness is 1, as each update meets those of the other.
	sum := 0.0
	for _, late := range s.stale {
		sum += float64(late[0])
	}
	if mean := sum / 600; math.Abs(mean-1) > 0.02 {
		t.Errorf("updates are %v steps late in the mean, want 1 with two clients at work", mean)
	}
}

// Whoever leaves or crashes is replaced, a run without clients waits for one, and nothing hangs.
func TestAsynchronousRunsSurviveWhoComesAndGoes(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := &stage{task: newTask(24, 9, 40, 17, 24), arch: federated.Default(), rounds: 60}
		s.arch.Share, s.arch.Buffer = 0.6, 1+r.IntN(4)
		s.link = link.Config{Delay: link.Uniform{Min: ms, Max: 20 * ms}, Reorder: true, Repeat: 0.2}
		there := make([]bool, 6)
		for at := time.Duration(0); at < 900*ms; at += time.Duration(1+r.IntN(30)) * ms {
			node := 1 + r.IntN(5)
			do := []world.NodeEvent{world.Crash, world.Leave}[r.IntN(2)]
			if there[node] = !there[node]; !there[node] {
				do = world.Join
			}
			s.schedule = append(s.schedule, world.NodeChange{At: at + ms, Node: node, Do: do})
		}
		for node := 1; node < 6; node++ { // for a while nobody is there
			if !there[node] {
				s.schedule = append(s.schedule, world.NodeChange{At: 950 * ms, Node: node, Do: world.Crash})
			}
		}
		s.schedule = append(s.schedule, world.NodeChange{At: 1000 * ms, Node: 3, Do: world.Join})
		s.run(t)
		for v, nodes := range s.updates {
			if len(nodes) > s.arch.Buffer || !slices.IsSorted(nodes) ||
				len(slices.Compact(slices.Clone(nodes))) != len(nodes) {
				t.Errorf("seed %d: step %d has the updates of %v, of a buffer of %d", seed, v+1, nodes, s.arch.Buffer)
			}
		}
		if s.missed == 0 || s.unanswered != 0 {
			t.Errorf("seed %d: %v updates are missed, and %v steps have none", seed, s.missed, s.unanswered)
		}
	}
}

func TestWhatMakesNoSenseBesideABufferIsRefused(t *testing.T) {
	for key, change := range map[string]func(a *federated.Architecture){
		"spare":     func(a *federated.Architecture) { a.Spare = 0.5 },
		"deadline":  func(a *federated.Architecture) { a.Deadline = time.Second },
		"grace":     func(a *federated.Architecture) { a.Grace = &federated.Grace{Quorum: 0.5} },
		"controls":  func(a *federated.Architecture) { a.Controls = true },
		"staleness": func(a *federated.Architecture) { a.Staleness.Kind, a.Buffer = periodic.Hinge, 0 },
	} {
		a := federated.Default()
		a.Buffer = 3
		change(&a)
		var wrong *field.Error
		if err := a.Validate(); !errors.As(err, &wrong) || wrong.Keys[0] != key ||
			!strings.Contains(wrong.Accepted, "buffer") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
