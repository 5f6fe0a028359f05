package collective_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/protos"
)

// intruder sends messages to a worker when it is started.
func intruder(messages int, message func() *protos.Message) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				for range messages {
					ctx.Send(env.View().Members[0].PID, message())
				}
			}
		}), nil
	}
}

// intrude returns the error of a run whose second worker is an intruder.
func intrude(t *testing.T, a collective.Architecture, task *train.Task, messages int,
	message func() *protos.Message) error {
	t.Helper()
	d := &world.Deployment{Nodes: []world.Node{
		{Name: "n0", Role: collective.RoleWorker, Profile: world.Unlimited,
			Kind: a.Kind(task, train.Place{Role: collective.RoleWorker})},
		{Name: "n1", Role: collective.RoleWorker, Profile: world.Unlimited, Kind: intruder(messages, message)},
	}}
	d.Coordinate = func(env actors.Env, _ world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				ctx.Send(env.View().Members[0].PID, protos.NewMessage(&protos.Start{View: 1}))
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"n0", "n1", actors.Coordinator})})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Run(context.Background())
	return err
}

func TestMessageThatNobodyWaitsForEndsTheRunAndSaysWhy(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(3, 2), []int{16, 16}, 16, sgd(0.1))
	tensor := func(n int) *protos.Tensor { return protos.NewTensor(make([]float32, n)) }
	a := collective.Architecture{Algorithm: collective.Tree, Every: 1, Reduce: collective.Gradients}
	for _, c := range []struct {
		head   proto.Message
		values []int // of the tensors
		times  int
		want   string
	}{
		{&protos.Push{}, nil, 1, "node n0: unexpected message *protos.Push"},
		{&protos.Start{View: 1}, nil, 1, "node n0: a second start"},
		{&protos.Chunk{View: 1, Rank: 1}, nil, 1,
			"node n0: nobody waits for the chunk of rank 1 in view 1, round 0, step 0, index 0: it has 0 tensors " +
				"instead of 1"},
		{&protos.Chunk{View: 1, Rank: 1, Round: 2}, []int{8}, 1, "this rank is in round 0"},
		{&protos.Chunk{View: 1, Rank: 1}, []int{7}, 1, "7 values instead of 8"},
		{&protos.Chunk{View: 1, Rank: 0}, []int{8}, 1, "this rank itself"},
		{&protos.Chunk{View: 1, Rank: -7, Step: 5}, []int{8}, 1, "no such chunk"},
		{&protos.Chunk{View: 7, Rank: 1}, []int{8}, 65, "node n0: more than 64 messages wait"},
		{&protos.Report{View: 1, Rank: 1}, nil, 1, "node n0: nobody waits for the report of rank 1 in view 1"},
		{&protos.Outcome{View: 1, Finished: 1}, []int{8}, 1,
			"node n0: the outcome of 1 rounds in view 1 with 1 tensors is of no use: this rank lacks nothing"},
	} {
		err := intrude(t, a, task, c.times, func() *protos.Message {
			m := protos.NewMessage(c.head)
			for _, n := range c.values {
				m.Tensors = append(m.Tensors, tensor(n))
			}
			return m
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.head, err, c.want)
		}
	}
}

func TestMessageOfAnOlderViewIsIgnored(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(3, 2), []int{16, 16}, 16, sgd(0.1))
	a := collective.Architecture{Algorithm: collective.Tree, Every: 1, Reduce: collective.Gradients}
	for _, head := range []proto.Message{&protos.Chunk{Rank: 9}, &protos.Report{Rank: 9},
		&protos.Outcome{Finished: 9}} {
		err := intrude(t, a, task, 100, func() *protos.Message { return protos.NewMessage(head) })
		if !errors.Is(err, world.ErrStandstill) {
			t.Errorf("%T: error %v, want %v", head, err, world.ErrStandstill)
		}
	}
}

// What a joining rank, and one that is behind, is told by an intruder.
// secondView is a coordinator that announces view 2 to node 0, which has begun in view 1 or joins.
func secondView(joins bool) func(actors.Env, world.Control) (actor.Actor, error) {
	return func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); !ok {
				return
			}
			worker := env.View().Members[0].PID
			if !joins {
				ctx.Send(worker, protos.NewMessage(&protos.Start{View: 1}))
			}
			control.Announce(&protos.View{Number: 2})
			ctx.Send(worker, protos.NewMessage(&protos.View{Number: 2}))
			if joins {
				ctx.Send(worker, protos.NewMessage(&protos.Start{View: 2, Joins: true}))
			}
		}), nil
	}
}

func TestOutcomeThatDoesNotFitEndsTheRunAndSaysWhy(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(3, 2), []int{16, 16}, 16, momentum(0.1))
	a := collective.Architecture{Algorithm: collective.Tree, Every: 1, Reduce: collective.Gradients}
	tensor := func(n int) *protos.Tensor { return protos.NewTensor(make([]float32, n)) }
	report := func(rounds uint64) *protos.Message {
		return protos.NewMessage(&protos.Report{View: 2, Rank: 1, Finished: rounds})
	}
	for _, c := range []struct {
		joins    bool
		messages []*protos.Message
		want     string
	}{
		{false, []*protos.Message{report(2)},
			"node n0: in view 2 rank 0 has finished 0 rounds and rank 1 has finished 2, which is more than one behind"},
		{false, []*protos.Message{report(0), report(0)}, "nobody waits for the report of rank 1 in view 2"},
		{false, []*protos.Message{report(1), protos.NewMessage(&protos.Outcome{View: 2, Finished: 1}, tensor(8))},
			"this rank has not yet put anything into that round"},
		{true, []*protos.Message{report(4), protos.NewMessage(&protos.Outcome{View: 2, Finished: 3}, tensor(8),
			tensor(8))}, "4 rounds were agreed on"},
		{true, []*protos.Message{report(4), protos.NewMessage(&protos.Outcome{View: 2, Finished: 4}, tensor(8))},
			"it is not a model of 8 parameters and 1 vectors of its optimiser"},
		{true, []*protos.Message{report(4), protos.NewMessage(&protos.Outcome{View: 2, Finished: 4}, tensor(8),
			tensor(7))}, "slot 0 has 7 elements for 8 parameters"},
		{true, []*protos.Message{report(4), protos.NewMessage(&protos.Outcome{View: 2, Finished: 4}, tensor(8),
			tensor(8), tensor(7))}, "the mean has 7 values instead of 8"},
	} {
		d := &world.Deployment{Coordinate: secondView(c.joins), Nodes: []world.Node{
			{Name: "n0", Role: collective.RoleWorker, Profile: world.Profile{Cores: 1, Speed: 1, Step: stepTime},
				Kind: a.Kind(task, train.Place{Role: collective.RoleWorker})},
			{Name: "n1", Role: collective.RoleWorker, Profile: world.Unlimited,
				Kind: func(env actors.Env) (actor.Actor, error) {
					return actor.ReceiveFunc(func(ctx actor.Context) {
						if _, ok := ctx.Message().(*actor.Started); ok {
							for _, m := range c.messages {
								ctx.Send(env.View().Members[0].PID, m)
							}
						}
					}), nil
				}},
		}}
		w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"n0", "n1", actors.Coordinator})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Run(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
