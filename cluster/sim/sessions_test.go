package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// Peers that wait for each other go on, whoever crashes, leaves and joins while links lose, repeat
// and reorder; strict mode watches that each tensor is what was sent, and given back once.
func TestSessionsSurviveComingAndGoing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		for _, kind := range []train.Architecture{gossip.Default(), dpsgd.Default()} {
			s := simtest.Stage{Task: simtest.NewTask(5, 40, 0.1), Kind: kind, Strict: true,
				Edge: link.Uniform{Min: time.Millisecond, Max: 20 * time.Millisecond}, Reorder: true,
				Loss: link.Loss{Probability: 0.3, Drop: true}, Repeat: 0.2, Reliable: true,
				Detect: 50 * time.Millisecond, Looks: []time.Duration{30 * time.Second}}
			recorder := &simtest.Recorder{}
			s.Observer = recorder
			s.Shake(rand.New(rand.NewPCG(seed, 1)), 10, 20*time.Second)
			first := s.Run(t)
			digest := s.Result.Digest
			if lagging := recorder.Lagging(first[0], 25*time.Second, 5); lagging != nil {
				t.Errorf("seed %d, %T: nodes %v stand still", seed, kind, lagging)
			}
			s.Observer = nil
			if s.Run(t); s.Result.Digest != digest {
				t.Errorf("seed %d, %T: another digest", seed, kind)
			}
		}
	}
}
