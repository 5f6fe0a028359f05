package world

import (
	"iter"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Posts are the places that an actor has posted for values from other processes, see Env.Post. The
// reader of a connection takes them while the actor may be at work or have ended, so the world
// locks them.
type Posts struct {
	memory *protos.Tensor
	places map[protos.PlaceName]span
}

// span is values low to high−1.
type span struct{ low, high int }

// Put replaces all places, by none if memory is nil.
func (p *Posts) Put(memory *protos.Tensor, places iter.Seq[actors.Place]) {
	p.memory = memory
	clear(p.places)
	if memory == nil {
		return
	}
	if p.places == nil {
		p.places = map[protos.PlaceName]span{}
	}
	for place := range places {
		p.places[place.Name] = span{place.Low, place.High}
	}
}

// Remove withdraws a place, if it is there.
func (p *Posts) Remove(name protos.PlaceName) { delete(p.places, name) }

// Take returns the memory of a place with this number of values, with a reference for the message,
// and withdraws the place; nil if there is none.
func (p *Posts) Take(name protos.PlaceName, values int) *protos.Tensor {
	s, ok := p.places[name]
	if !ok || values != s.high-s.low {
		return nil
	}
	delete(p.places, name)
	return p.memory.View(s.low, s.high)
}
