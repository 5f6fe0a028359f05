package ps_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

func newStage(tb testing.TB) *stage {
	return &stage{
		task: newTask(tb, 1, []int{4, 3, 2}, 5, 40, "near", "far"), arch: ps.Architecture{Scale: ps.Sum},
		server: world.Unlimited,
		steps:  []time.Duration{time.Millisecond, time.Millisecond},
		delays: []time.Duration{100 * time.Microsecond, 7 * time.Millisecond},
	}
}

func TestSnapshotThatSomebodyHoldsNeverChanges(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := newStage(t)
		s.strict = strict
		type held struct{ tensor, copy []float32 }
		var snapshots []held
		s.coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					for i := range env.View().Members {
						ctx.Send(env.View().Members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
					}
					env.After(0, "look")
				case string:
					ctx.Send(env.View().Members[0].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: 1}))
					if env.Now() > 50*time.Millisecond {
						control.Finish()
					}
					env.After(700*time.Microsecond, "look")
				case *protos.Message:
					if _, ok := m.Head.(*protos.Snapshot); ok {
						data := m.Tensors[0].Retain().Data
						snapshots = append(snapshots, held{data, append([]float32(nil), data...)})
					}
					m.Release()
				}
			}), nil
		}
		if _, err := s.world(t).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(snapshots) < 50 {
			t.Fatalf("only %d snapshots", len(snapshots))
		}
		for _, h := range snapshots {
			sameBits(t, "snapshot", h.tensor, h.copy)
		}
		if first, last := snapshots[0].copy, snapshots[len(snapshots)-1].copy; first[0] == last[0] {
			t.Error("the model did not move at all")
		}
	}
}

func TestMeanIsTheSumAtTheRateDividedByTheWorkers(t *testing.T) {
	// 0.5 is exact, so that halving gradients and halving the rate are the same bits.
	sum, mean := newStage(t), newStage(t)
	mean.arch.Scale = ps.Mean
	sum.task.Method = rated(0.25)
	mean.task.Method = rated(0.5)
	a, _ := sum.run(t, 40*time.Millisecond)
	b, _ := mean.run(t, 40*time.Millisecond)
	sameBits(t, "model", b, a)
}

func TestWorkerRecordsHowLongItWaitsForParameters(t *testing.T) {
	s := newStage(t)
	log := &events{kind: actors.Waited}
	s.observer = log
	s.run(t, 50*time.Millisecond)
	want := map[time.Duration]bool{200 * time.Microsecond: true, 14 * time.Millisecond: true}
	seen := map[time.Duration]bool{}
	for _, e := range log.list {
		if !want[e.Duration] || e.Cause != "parameters" {
			t.Fatalf("waited %v for %s; a round trip takes 200µs or 14ms", e.Duration, e.Cause)
		}
		seen[e.Duration] = true
	}
	if len(seen) != 2 {
		t.Errorf("waits: %v", seen)
	}
}

// pusher is a worker that sends one message as soon as it has parameters.
func pusher(head proto.Message, values int) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*protos.Message); ok {
				if _, ok := m.Head.(*protos.Parameters); ok {
					ctx.Send(env.View().Members[0].PID, protos.NewMessage(head, env.Tensors().Get(values)))
				}
			}
		}), nil
	}
}

func TestMessageThatDoesNotFitEndsTheRun(t *testing.T) {
	const params = 4*3 + 3 + 3*2 + 2
	for _, c := range []struct {
		name   string
		head   proto.Message
		values int
		want   string
	}{
		{"negative node", &protos.Push{Node: -1}, params,
			"node hub: a push of node -1 at version 0 does not fit a run of 3 nodes, 23 values and version 0"},
		{"node too high", &protos.Push{Node: 3}, params, "push of node 3"},
		{"not a worker's", &protos.Push{Node: 0}, params, "push of node 0"},
		{"version of the future", &protos.Push{Node: 1, Version: 7, Life: 1}, params, "at version 7"},
		{"gradient too short", &protos.Push{Node: 1}, params - 1, "does not fit"},
		{"not of this protocol", &protos.Chunk{}, params, "node hub: unexpected message *protos.Chunk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.worker = pusher(c.head, c.values)
			s.coordinate = starter(time.Second)
			_, err := s.world(t).Run(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// starter is a coordinator that only starts the members and ends the run.
func starter(end time.Duration) func(env actors.Env, control world.Control) (actor.Actor, error) {
	return func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				for i := range env.View().Members {
					ctx.Send(env.View().Members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
				}
				env.After(end, "end")
			case string:
				control.Finish()
			}
		}), nil
	}
}

func TestParametersOfAnotherLengthEndTheRun(t *testing.T) {
	s := newStage(t)
	s.coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				to := env.View().Members[1].PID
				ctx.Send(to, protos.NewMessage(&protos.Start{View: 1}))
				ctx.Send(to, protos.NewMessage(&protos.Parameters{Life: 1}, env.Tensors().Get(3)))
			}
		}), nil
	}
	_, err := s.world(t).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "node near: parameters of shard 0 that are not one vector of 23") {
		t.Errorf("got %v", err)
	}
}

func TestWorkerWithoutSamplesCannotBePlaced(t *testing.T) {
	task := newTask(t, 1, []int{4, 3, 2}, 5, 40, "near", "far")
	task.Shards[1] = []int32{}
	if err := task.Validate(); err == nil ||
		!strings.Contains(err.Error(), `worker "far" has no samples of data set clouds`) {
		t.Errorf("got %v", err)
	}
}

func TestTaskThatDoesNotFitTogetherIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(*train.Task){
		"takes 4 inputs, data set clouds has 5":      func(t *train.Task) { t.Train = clouds(1, 40, 5, 2) },
		"tells 2 classes apart, data set clouds has": func(t *train.Task) { t.Train = clouds(1, 40, 4, 3) },
		"1 shards for 2 workers":                     func(t *train.Task) { t.Shards = t.Shards[:1] },
		"a batch of 0 samples":                       func(t *train.Task) { t.Batch = 0 },
		"no samples to train on or to judge by":      func(t *train.Task) { t.Test = clouds(1, 0, 4, 2) },
	} {
		task := newTask(t, 1, []int{4, 3, 2}, 5, 40, "near", "far")
		spoil(task)
		if err := task.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestScaleThatDoesNotExistIsRefused(t *testing.T) {
	for _, s := range []ps.Scale{ps.Sum, ps.Mean} {
		if err := (ps.Architecture{Scale: s, StalenessRate: ps.None}).Validate(); err != nil {
			t.Error(err)
		}
	}
	if err := (ps.Architecture{Scale: "median"}).Validate(); err == nil ||
		!strings.Contains(err.Error(), `Scale is "median": must be sum or mean`) {
		t.Errorf("got %v", err)
	}
}

func TestEvaluatorCountsAsAPlainLoopDoes(t *testing.T) {
	task := newTask(t, 5, []int{4, 2}, 5, 40, "only")
	task.Test = clouds(9, 300, 4, 2)
	params := task.Initial()
	got := task.NewEvaluator(task.TestSamples(), 1).Evaluate(params)
	correct, loss := 0, 0.0
	for i := range task.Test.Len() {
		var z [2]float64
		for c := range z {
			z[c] = float64(params[8+c])
			for j := range 4 {
				z[c] += float64(params[4*c+j]) * float64(task.Test.X[4*i+j])
			}
		}
		y := task.Test.Y[i]
		if z[y] > z[1-y] || (z[y] == z[1-y] && y == 0) {
			correct++
		}
		loss += math.Log(math.Exp(z[0])+math.Exp(z[1])) - z[y]
	}
	if want := float64(correct) / 300; got.Accuracy != want {
		t.Errorf("accuracy %v, want %v", got.Accuracy, want)
	}
	if want := loss / 300; math.Abs(got.Loss-want) > 1e-6 {
		t.Errorf("loss %v, want %v", got.Loss, want)
	}
}
