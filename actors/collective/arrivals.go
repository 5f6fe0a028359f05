package collective

import "github.com/gradwire/gradwire/protos"

// arrivals are chunks by number, each in the place that is the remainder of its number. Where two
// would share a place there are twice as many, so that numbers close to each other take little
// memory. The zero value is empty.
type arrivals struct {
	places []arrival // a power of two of them, or none
}

type arrival struct {
	number uint64
	chunk  *protos.Tensor // nil if the place is vacant
}

// place is where a number belongs; there must be places.
func (a *arrivals) place(number uint64) *arrival { return &a.places[number&uint64(len(a.places)-1)] }

// has reports whether the chunk of a number is there.
func (a *arrivals) has(number uint64) bool {
	if len(a.places) == 0 {
		return false
	}
	p := a.place(number)
	return p.chunk != nil && p.number == number
}

// put keeps the chunk of a number that is not there.
func (a *arrivals) put(number uint64, chunk *protos.Tensor) {
	for len(a.places) == 0 || a.place(number).chunk != nil {
		a.grow()
	}
	*a.place(number) = arrival{number, chunk}
}

func (a *arrivals) grow() {
	before := a.places
	a.places = make([]arrival, max(1, 2*len(before)))
	for _, p := range before {
		if p.chunk != nil {
			*a.place(p.number) = p
		}
	}
}

// take takes out the chunk of a number that is there.
func (a *arrivals) take(number uint64) *protos.Tensor {
	p := a.place(number)
	chunk := p.chunk
	p.chunk = nil
	return chunk
}

// drop gives back all chunks.
func (a *arrivals) drop() {
	for i := range a.places {
		if chunk := a.places[i].chunk; chunk != nil {
			chunk.Release()
		}
	}
	a.places = nil
}
