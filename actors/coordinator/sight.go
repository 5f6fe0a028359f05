package coordinator

import (
	"math"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// ConsensusDistance is the name under which the root mean square of the Euclidean distances
// of all models from their mean is recorded, whenever several are looked at at once.
const ConsensusDistance = "consensus distance"

// sight is a look at several models at one instant.
type sight struct {
	at       time.Duration
	missing  int // snapshots that have not arrived
	models   []*protos.Tensor
	distance float64
}

// newSight returns nil for fewer than two models.
func newSight(at time.Duration, models int) *sight {
	if models < 2 {
		return nil
	}
	return &sight{at: at, missing: models}
}

// see takes an answered evaluation into its sight, and has the distance computed when all
// are there.
func (c *coordinator) see(e *evaluation) {
	s := e.sight
	if s == nil {
		return
	}
	if !e.void {
		s.models = append(s.models, e.params.Retain())
	}
	if s.missing--; s.missing > 0 || len(s.models) < 2 {
		return
	}
	c.env.Compute(actors.Job{Lag: max(e.at+e.lag-c.env.Now(), 1), Do: func() any {
		s.distance = distance(s.models)
		return s
	}})
}

// measure records a distance.
func (c *coordinator) measure(s *sight) {
	for _, m := range s.models {
		m.Release()
	}
	c.env.Record(actors.Event{Kind: actors.Measured, Name: ConsensusDistance, At: s.at, Value: s.distance})
}

// distance is √(1/N · Σᵢ‖xᵢ − x̄‖²) of N models.
func distance(models []*protos.Tensor) float64 {
	sum := 0.0
	n := float64(len(models))
	for k := range models[0].Data {
		mean := 0.0
		for _, m := range models {
			mean += float64(m.Data[k])
		}
		mean /= n
		for _, m := range models {
			d := float64(m.Data[k]) - mean
			sum += float64(d * d)
		}
	}
	return math.Sqrt(sum / n)
}
