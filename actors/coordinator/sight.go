package coordinator

import (
	"math"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// ConsensusDistance is the name under which the root mean square of the Euclidean distances
// of all models from their mean is recorded, whenever all of several have been looked at.
const ConsensusDistance = "consensus distance"

// sight is a look at the models of all nodes that are looked at: at one instant where
// evaluations come by time or epochs, at each node's own where they come by its steps.
type sight struct {
	at       time.Duration // of the latest model
	models   []*protos.Tensor
	places   map[int]int // of each node's model
	distance float64
}

// see takes an answered evaluation into the sight in the making, in the place of an older
// one of its node.
func (c *coordinator) see(e *evaluation) {
	if c.sight == nil {
		c.sight = &sight{places: map[int]int{}}
	}
	s := c.sight
	s.at = max(s.at, e.at)
	if i, ok := s.places[e.node]; ok {
		s.models[i].Release()
		s.models[i] = e.params.Retain()
		return
	}
	s.places[e.node] = len(s.models)
	s.models = append(s.models, e.params.Retain())
	c.measureWhole(e.at + e.lag)
}

// forget takes the model of a node that has gone out of the sight in the making.
func (c *coordinator) forget(node int) {
	s := c.sight
	if s == nil {
		return
	}
	if i, ok := s.places[node]; ok {
		s.models[i].Release()
		s.models[i] = nil
		delete(s.places, node)
	}
	c.measureWhole(c.env.Now())
}

// measureWhole has the distance of a sight computed by the given instant if the sight is
// complete, and begins another.
func (c *coordinator) measureWhole(due time.Duration) {
	s := c.sight
	if len(s.places) < c.looking {
		return
	}
	c.sight = nil
	s.models = slices.DeleteFunc(s.models, func(m *protos.Tensor) bool { return m == nil })
	if len(s.models) < 2 {
		c.drop(s)
		return
	}
	c.env.Compute(actors.Job{Lag: max(due-c.env.Now(), 1), Do: func() any {
		s.distance = distance(s.models)
		return s
	}})
}

func (c *coordinator) drop(s *sight) {
	for _, m := range s.models {
		m.Release()
	}
}

// measure records a distance.
func (c *coordinator) measure(s *sight) {
	c.drop(s)
	c.env.Record(actors.Event{Kind: actors.Measured, Name: ConsensusDistance, At: s.at, Dated: true, Value: s.distance})
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
