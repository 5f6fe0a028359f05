package gossip_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// A node may have asked for a model and crashed. The answer can come in its next life, before that
// has started; then it is of no use, and no mistake. Nobody starts here, so nothing else happens.
func TestAnswerToAnEarlierLifeComesBeforeThePresentOneStarts(t *testing.T) {
	s := &stage{task: countingTask(1, 1), rules: all(gossip.Pull, false), edge: constant(time.Millisecond),
		steps: []time.Duration{time.Millisecond}}
	w := s.world(t, func(env actors.Env, _ world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				answer := &protos.Model{Node: 1, Exchange: 5<<32 | 1, Answer: true}
				ctx.Send(env.View().Members[0].PID,
					protos.NewMessage(answer, protos.NewTensor(make([]float32, s.task.Model.Params()))))
			}
		}), nil
	})
	if _, err := w.Run(context.Background()); !errors.Is(err, world.ErrStandstill) {
		t.Errorf("error %v, want %v", err, world.ErrStandstill)
	}
}
