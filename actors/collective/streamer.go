package collective

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// streamer is an averager whose rounds are of one part of the model each, while steps go on (A.
// Douillard et al., "Streaming DiLoCo with overlapping communication: Towards a Distributed Free
// Lunch", arXiv 2501.18512, 2025, algorithm 2). The parts are Fragments of consecutive parameters,
// each exchanged once in Every steps, in turn. Overlap steps before the end of a round what this
// rank contributes is fixed and begins to travel. The round ends with its steps, or later if the
// exchange does: the part of the joint model makes its step, and that of the rank's own becomes a
// mixture of both, with Mix of its own.
//
// With Sparse the part is a random one, drawn from the task's seed by all ranks alike: the
// parameters are cut into as many ranges of nearly equal length as it has values, and each has one
// of them (SPARTA: M. Beton et al., "Improving the efficiency of distributed training using sparse
// parameter averaging", 2025, draws each parameter by itself, so that their number varies).
//
// The joint model is thus made of parts of several rounds; it has the same bits on all ranks, as
// their outer optimizers have. A rank that joins starts from it, as models of others may differ.
// Random parts leave it with many parameters of the initial model for long, so there a rank's joint
// model is its own at the end of the last round, and a rank that joins starts from another's. A
// worker's weight is the number of samples of the steps of the round up to what it has fixed.
type streamer struct {
	averager
	parts int
	size  int            // of a part; the last ones may be shorter
	sends int            // steps of a round after which the contribution is fixed
	mix   float32        // share of the rank's own parameters
	fixed *protos.Tensor // the contribution; nil before

	seed    uint64  // of random parts
	indices []int32 // of the parameters of a random part; nil for fragments
}

// streams reports whether rounds are of a part of the model, or not over when its steps are.
func (a *Architecture) streams() bool {
	return a.Fragments > 1 || a.Overlap > 0 || a.Mix > 0 || a.Sparse > 0
}

// checkStream returns an error about parts that do not fit together.
func (a *Architecture) checkStream() error {
	switch {
	case a.Every%a.parts() != 0:
		return field.Errorf(*a, "Fragments", "a divisor of every, which is %d", a.Every)
	case a.Overlap >= a.round():
		return field.Errorf(*a, "Overlap", "below the %d steps between two exchanges", a.round())
	case a.Moved > 0 && a.streams():
		return field.Errorf(*a, "Moved", "left out with fragments, overlap, mix and sparse, by which models differ")
	case a.Sparse > 0 && (a.parts() > 1 || a.compresses() || a.outer() != nil):
		return field.Errorf(*a, "Sparse", "left out with fragments, compress and outer, which remember something of "+
			"parts that are the same again and again")
	}
	return nil
}

// parts is how many parts of the model are exchanged in turn.
func (a *Architecture) parts() int { return max(a.Fragments, 1) }

// round is the number of steps of a round.
func (a *Architecture) round() int { return a.Every / a.parts() }

// sends is the number of steps of a round after which its exchange begins.
func (a *Architecture) sends() int { return a.round() - a.Overlap }

// values is how many values a round exchanges of a number of parameters.
func (a *Architecture) values(params int) int {
	if a.Sparse > 0 {
		return max(int(math.Round(a.Sparse*float64(params))), 1)
	}
	return (params + a.parts() - 1) / a.parts()
}

func newStreamer(v *averager, a *Architecture, seed uint64) *streamer {
	s := &streamer{averager: *v, parts: a.parts(), size: a.values(len(v.shared.Data)), sends: a.sends(),
		mix: float32(a.Mix), seed: actors.Source(seed, RoleWorker, "sparse").Uint64()}
	if a.Sparse > 0 {
		s.indices = make([]int32, s.size)
	}
	return s
}

// draw draws the random part of the round under way.
func (s *streamer) draw() {
	var random rand.PCG
	random.Seed(s.seed, s.rounds)
	for i := range s.indices {
		low := boundary(len(s.shared.Data), len(s.indices), i)
		length := boundary(len(s.shared.Data), len(s.indices), i+1) - low
		offset, _ := bits.Mul64(random.Uint64(), uint64(length))
		s.indices[i] = int32(low + int(offset))
	}
}

// part bounds the parameters of the round under way.
func (s *streamer) part() (low, high int) {
	n := len(s.shared.Data)
	low = min(int(s.rounds%uint64(s.parts))*s.size, n)
	return low, min(low+s.size, n)
}

func (s *streamer) step(gradient *protos.Tensor, samples int) {
	if s.averager.step(gradient, samples); s.steps == s.sends {
		s.fix()
	}
}

func (s *streamer) round(team *train.Team, round *train.Round) error {
	err := s.averager.round(team, round)
	s.fix()
	return err
}

// fix makes the contribution, whose size is the same for all parts.
func (s *streamer) fix() {
	s.fixed = s.env.Tensors().Get(s.size)
	if s.indices != nil {
		s.draw()
		for i, k := range s.indices {
			s.fixed.Data[i] = s.replica.Params.Data[k]
		}
		s.multiply(s.fixed.Data, s.share())
		return
	}
	low, high := s.part()
	clear(s.fixed.Data[high-low:])
	s.contribute(s.fixed.Data[:high-low], s.shared.Data[low:high], s.replica.Params.Data[low:high], s.share())
}

func (s *streamer) contribution() *protos.Tensor { return s.fixed.Retain() }

func (s *streamer) weight(batches float64) float64 { return batches / float64(s.sends) }

func (s *streamer) settle(mean *protos.Tensor) {
	if s.indices != nil {
		s.scatter(mean.Data)
	} else {
		s.take(mean.Data)
	}
	s.fixed.Release()
	s.fixed = nil
	s.samples, s.steps = 0, 0
	s.rounds++
	s.keep(mean)
}

// scatter takes in the mean of a random part.
func (s *streamer) scatter(mean []float32) {
	theta := s.replica.Writable()
	for i, k := range s.indices {
		if s.mix == 0 {
			theta[k] = mean[i]
		} else {
			theta[k] = float32((1-s.mix)*mean[i]) + float32(s.mix*theta[k])
		}
	}
	s.shared.Release()
	s.shared = s.replica.Params.Retain()
}

// take takes in the mean of a fragment, or of its Δ.
func (s *streamer) take(mean []float32) {
	s.shared = s.env.Tensors().Writable(s.shared)
	low, high := s.part()
	phi, theta := s.shared.Data[low:high], s.replica.Writable()[low:high]
	if s.outer == nil {
		copy(phi, mean)
	} else {
		s.outer.Step(phi, phi, mean[:high-low], low, int(s.rounds)/s.parts)
		s.env.Charge(s.outer.Work(high - low))
	}
	if s.mix == 0 {
		copy(theta, phi)
	} else {
		nn.WeightedSum(theta, 1-s.mix, phi, s.mix, theta)
		s.env.Charge(3 * float64(high-low))
	}
}
