package ps_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// replicated is an architecture whose small shards have replicas.
func replicated(a ps.Architecture, replicas int) ps.Architecture {
	a = sharded(a)
	a.Servers.Replicas = replicas
	return a
}

// With rounds, the model is made of each gradient once, whatever becomes of servers: one that is
// lost or counts twice changes its bits. The record has each once, too.
func TestServersThatCrashLoseNothingThatTheirReplicasHave(t *testing.T) {
	momentum := optim.Momentum{Rate: optim.Constant(0.05), Momentum: 0.9}
	for name, a := range map[string]ps.Architecture{
		"bsp":      {Consistency: consistency.BSP{}, Scale: ps.Mean},
		"one step": {Consistency: consistency.SSP{}, Scale: ps.Sum},
		"epochs":   {Consistency: consistency.BSP{}, Scale: ps.Mean, EpochShare: 0.75},
		"every":    {Consistency: consistency.BSP{}, Scale: ps.Mean, Every: 3},
		"ef21": {Consistency: consistency.BSP{}, Scale: ps.Mean,
			Compress: compress.Both{Up: compress.Chain{compress.TopK{Share: 0.3}}, Feedback: compress.EF21}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			once := &events{kind: actors.UpdateApplied}
			still := &site{arch: sharded(a), method: momentum, servers: 1, workers: 3, delay: ms, steps: 90,
				observer: once}
			want, apart := still.must(t).model(), 700*time.Microsecond
			if testing.Short() {
				apart = 5 * ms
			}
			for at, number := 5*ms, 0; at < 60*ms; at, number = at+apart, number+1 {
				log := &events{kind: actors.UpdateApplied}
				s := &site{arch: replicated(a, 1), method: momentum, servers: 3, workers: 3, delay: ms, steps: 90,
					lax: number%4 > 0, observer: log, schedule: []world.NodeChange{{At: at, Node: 1, Do: world.Crash},
						{At: at + 40*ms, Node: 1, Do: world.Join}, {At: at + 80*ms, Node: 0, Do: world.Crash}}}
				sameBits(t, fmt.Sprint("model with a crash at ", at), s.must(t).model(), want)
				if n := len(log.list); n != len(once.list) {
					t.Errorf("%d updates are recorded with a crash at %v, %d without", n, at, len(once.list))
				}
			}
		})
	}
}
