package dpsgd

import (
	"errors"
	"fmt"
	"math"

	"github.com/gradwire/gradwire/actors"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// stage says how far a pair has come.
type stage uint8

const (
	absent stage = iota // the neighbour is not there, or no neighbour at present
	apart               // it is there, and they have not agreed yet
	asked               // apart, and this peer's wish is under way
	joined              // they average from step first on
)

// pair is what a peer knows of a neighbour. Since a peer needs its neighbour's model of a
// step to end it, neither is more than one step ahead of the other, and two slots are enough.
type pair struct {
	node   int
	name   string
	weight float32 // W_ij, a multiple of 2⁻²⁴
	stage  stage
	// since is the view in which the neighbour appeared, or became one; models of a former life of
	// either, or from before, bear an older number.
	since   uint64
	there   bool   // present, a neighbour at present or not
	met     bool   // it was there before it became a neighbour, and does not greet by itself
	mine    uint64 // the first step that this peer wishes, while it has asked
	first   uint64 // step
	greeted uint64 // the token of the neighbour's wish to be answered, 0 for none
	wish    uint64 // the first step that it wishes
	told    bool   // the neighbour knows x̂ of this peer
	known   *protos.Tensor
	decoder *compress.Decoder // whose memory is known, where models are compressed
	slots   [2]slot           // of even and of odd steps
}

// slot holds a neighbour's model of one step; no tensor says that it is the one known.
type slot struct {
	here    bool
	code    bool // params are the words of one
	params  *protos.Tensor
	tracks  uint64 // see Model
	tracker *protos.Tensor
}

func (s *slot) clear() {
	if s.params != nil {
		s.params.Release()
	}
	if s.tracker != nil {
		s.tracker.Release()
	}
	*s = slot{}
}

// newPairs pairs a node with all its neighbours in any topology of the run, in the order of
// the plan.
func newPairs(view *actors.View, node int, matrix [][]float64) []pair {
	var pairs []pair
	ever := view.Ever()
	for _, j := range ever.Potential(node) {
		var w float64
		if matrix == nil {
			w = peers.MetropolisWeight(ever, node, int(j))
		} else if w = matrix[node][j]; w == 0 {
			continue
		}
		pairs = append(pairs, pair{node: int(j), name: view.Members[j].Name, weight: grain(w)})
	}
	return pairs
}

// grain rounds a weight to a multiple of 2⁻²⁴. A sum of such weights and 1 minus it are
// float32 without rounding, so that rows sum to 1 exactly and the mean of the models does
// not drift over many steps.
func grain(w float64) float32 { return float32(math.RoundToEven(w*(1<<24)) / (1 << 24)) }

// counts reports whether the pair averages in a step.
func (p *pair) counts(step uint64) bool { return p.stage == joined && step >= p.first }

// missing reports whether the neighbour's model of a step is awaited.
func (p *pair) missing(step uint64) bool {
	return p.counts(step) && !p.slots[step&1].here
}

// accept keeps a neighbour's model of its step; this peer is at step now. It takes its own
// reference.
func (p *pair) accept(head *protos.Model, m *protos.Message, now uint64, params, code int) error {
	s := &p.slots[head.Step&1]
	switch {
	case p.stage == joined && head.Step-max(p.first, now) > 1:
		return fmt.Errorf("this peer is at step %d and averages with it from step %d", now, p.first)
	case s.here:
		return errors.New("it has come before")
	case len(m.Tensors) > 0 && !actors.IsVector(m.Tensors[:1], size(head, params, code)) ||
		len(m.Tensors) == 2 && (head.Tracks == 0 || !actors.IsVector(m.Tensors[1:], params)) || len(m.Tensors) > 2:
		return fmt.Errorf("it has %d tensors, wanted is one of %d values or none", len(m.Tensors),
			size(head, params, code))
	}
	s.here, s.code, s.tracks = true, head.Code, head.Tracks
	if len(m.Tensors) > 0 {
		s.params = m.Tensors[0].Retain()
	}
	if len(m.Tensors) == 2 {
		s.tracker = m.Tensors[1].Retain()
	}
	return nil
}

// size is how many values a message has to have for the parameters.
func size(head *protos.Model, params, code int) int {
	if head.Code {
		return code
	}
	return params
}

var errUnknown = errors.New("it says how its model has changed, and has not sent one")

// take makes the model of a step the one that is known.
func (p *pair) take(step uint64, c *choco) error {
	switch s := &p.slots[step&1]; {
	case s.params != nil && c != nil:
		if err := c.take(p, s); err != nil {
			return err
		}
	case s.params != nil:
		p.releaseKnown()
		p.known = s.params.Retain()
	}
	if p.known == nil {
		return errUnknown
	}
	return nil
}

// releaseKnown gives the known model back.
func (p *pair) releaseKnown() {
	if p.known != nil {
		p.known.Release()
		p.known = nil
	}
}

// empty gives up the models that have come.
func (p *pair) empty() {
	for i := range p.slots {
		p.slots[i].clear()
	}
}

// part ends the pair: the neighbour has gone.
func (p *pair) part() {
	p.releaseKnown()
	p.empty()
	p.stage, p.told, p.decoder = absent, false, nil
}
