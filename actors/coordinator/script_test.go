package coordinator_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

// player is a node that plays a part: it finishes steps at given instants, and after
// k of them, or k steps of all if it makes none, its model is a single number, the
// accuracy that it will be judged to have.
type player struct {
	steps  []time.Duration
	models []float32 // after 0, 1, … steps; the last one holds on
	holds  bool
	rounds bool          // a round of training ends with each of its steps
	charge time.Duration // what answering a snapshot costs, before the answer
	// reply, if not nil, stands for the answer to a request for a snapshot.
	reply func(request *protos.TakeSnapshot) *protos.Message
}

// script is a run of players under a real coordinator.
type script struct {
	players []player
	policy  coordinator.Policy
	samples int // of an epoch; each step has ten
	threads int
	seed    uint64
	// what happens to the players, and to their topologies
	schedule   []world.NodeChange
	topologies []actors.Graph
	changes    []coordinator.TopologyChange
	absent     []int
	late       time.Duration // as in sim.Config

	accuracy func(param float64) float64 // of a model; nil for the parameter itself
	exam     *exam                       // by which models are judged, if not nil
	early    bool                        // only as far as it takes
	wrong    float32                     // a model that is taken to be below the target, without an exam

	heard  []string // by the members: views and starts
	result coordinator.Result
	total  int          // steps of all players
	calls  atomic.Int64 // of Evaluate
	log    []entry
}

// entry is an event of the coordinator.
type entry struct {
	Seen time.Duration
	actors.Event
}

func (s *script) Observe(at time.Duration, _ int, event actors.Event) {
	if event.Kind == actors.Evaluated || event.Kind == actors.SnapshotTaken || event.Kind == actors.Measured ||
		event.Kind == actors.Summarized {
		s.log = append(s.log, entry{at, event})
	}
}

// evaluated are the verdicts in the order in which they were settled.
func (s *script) evaluated() (list []entry) {
	for _, e := range s.log {
		if e.Kind == actors.Evaluated {
			list = append(list, e)
		}
	}
	return list
}

// summarized are the evaluations in the order in which they were settled.
func (s *script) summarized() (list []entry) {
	for _, e := range s.log {
		if e.Kind == actors.Summarized {
			list = append(list, e)
		}
	}
	return list
}

// params returns the parameters of the models that the run ended with.
func (s *script) params() (list []float32) {
	for _, m := range s.result.Models {
		list = append(list, m.Params...)
	}
	return list
}

// instants returns the instants of the judged snapshots.
func (s *script) instants() (list []time.Duration) {
	for _, e := range s.evaluated() {
		list = append(list, e.At)
	}
	return list
}

func (s *script) run(t *testing.T) sim.Result {
	t.Helper()
	r, err := s.try()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *script) try() (sim.Result, error) {
	d := &world.Deployment{Seed: s.seed, Observer: s, Schedule: s.schedule, Topologies: s.topologies, Detect: 2 * ms,
		Bounded: s.policy.Time > 0}
	run := coordinator.Run{Policy: s.policy, Samples: s.samples, Topologies: s.changes, Result: &s.result,
		Evaluate: func(params []float32) train.Verdict {
			s.calls.Add(1)
			accuracy := float64(params[0])
			if s.accuracy != nil {
				accuracy = s.accuracy(accuracy)
			}
			return train.Verdict{Accuracy: accuracy, Loss: 1 - accuracy}
		}, Vote: func(models [][]float32) train.Verdict {
			v := train.Verdict{}
			for _, params := range models {
				v.Accuracy += float64(params[0]) // of two that vote, the sum
			}
			return v
		}}
	switch {
	case s.exam != nil && s.early:
		run.Evaluate, run.EvaluateBelow = s.exam.evaluate, s.exam.evaluateBelow
	case s.exam != nil:
		run.Evaluate = s.exam.evaluate
	case s.early:
		run.EvaluateBelow = func(params []float32, target float64) train.Verdict {
			v := run.Evaluate(params)
			if v.Accuracy < target || params[0] == s.wrong {
				v = train.Verdict{Accuracy: target / 2, Loss: math.NaN(), Samples: 1, Below: target}
			}
			return v
		}
	}
	names := []string{}
	for i := range s.players {
		p := &s.players[i]
		name := fmt.Sprintf("n%d", i)
		names = append(names, name)
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: "player", Profile: world.Profile{Cores: 1, Speed: 1e9},
			Kind: s.kind(p), Absent: slices.Contains(s.absent, i)})
		if p.holds {
			run.Holders = append(run.Holders, i)
		}
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, append(names, actors.Coordinator)),
		Threads: s.threads, Late: s.late})
	if err != nil {
		return sim.Result{}, err
	}
	return w.Run(context.Background())
}

func (s *script) kind(p *player) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		done := 0
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case string:
				done++
				s.total++
				env.Record(actors.Event{Kind: actors.StepDone, Step: uint64(done), Samples: 10})
				if p.rounds {
					ctx.Send(actors.CoordinatorPID(), protos.NewMessage(&protos.RoundDone{Round: uint64(done)}))
				}
			case *protos.Message:
				switch head := m.Head.(type) {
				case *protos.View:
					v := env.View()
					s.heard = append(s.heard, fmt.Sprint(env.Now(), " n", env.Node(), " view ", v.Number, " ",
						v.Role("player"), " near ", v.Neighbours(env.Node())))
				case *protos.Start:
					if head.Joins {
						s.heard = append(s.heard, fmt.Sprint(env.Now(), " n", env.Node(), " joins view ", head.View))
					}
					for _, at := range p.steps {
						env.After(at, "step")
					}
				case *protos.TakeSnapshot:
					env.Charge(p.charge.Seconds() * 1e9)
					ctx.Send(actors.CoordinatorPID(), p.answer(env, head, done, s.total))
				}
				m.Release()
			}
		}), nil
	}
}

func (p *player) answer(env actors.Env, request *protos.TakeSnapshot, own, total int) *protos.Message {
	if p.reply != nil {
		return p.reply(request)
	}
	steps := own
	if len(p.steps) == 0 {
		steps = total
	}
	model := protos.NewTensor([]float32{p.models[min(steps, len(p.models)-1)]})
	return protos.NewMessage(&protos.Snapshot{Evaluation: request.Evaluation, Node: int32(env.Node()),
		Version: uint64(steps)}, model)
}

// every is n instants at a fixed distance.
func every(d time.Duration, n int) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = time.Duration(i+1) * d
	}
	return list
}
