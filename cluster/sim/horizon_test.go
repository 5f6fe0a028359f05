package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
)

// A node that waits beyond the end of virtual time, or longer than a time.Duration holds, ends the
// run, in the place of a timer that rings at once.
func TestVirtualTimeEndsRatherThanOverflows(t *testing.T) {
	for _, wait := range []time.Duration{link.Horizon, link.Forever} {
		rung := 0
		h := handler(func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(time.Hour, "ring")
			case string:
				rung++
				env.After(wait, "ring")
			}
		})
		d := &world.Deployment{Nodes: []world.Node{{Name: "a", Role: "peer", Profile: world.Unlimited, Kind: h.kind}}}
		d.Coordinate = func(actors.Env, world.Control) (actor.Actor, error) {
			return actor.ReceiveFunc(func(actor.Context) {}), nil
		}
		w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"a", actors.Coordinator})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		result, err := w.Run(ctx)
		cancel()
		const want = "at 1h0m0s: virtual time ends 876000h0m0s after its beginning"
		if err == nil || !strings.Contains(err.Error(), want) || rung != 1 ||
			result.Now != time.Hour {
			t.Errorf("after %v: %d rings until %v, %v", wait, rung, result.Now, err)
		}
	}
}
