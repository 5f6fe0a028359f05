package world

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/actors"
)

// Streams are the random streams of one actor, one for each purpose. The zero
// value is ready for use.
type Streams struct {
	streams []stream
}

type stream struct {
	purpose string
	source  *rand.PCG
	rand    *rand.Rand
}

// Get returns the stream of an actor for a purpose. A stream depends on seed, actor
// and purpose only, so that another actor or purpose moves none.
func (s *Streams) Get(seed uint64, actor, purpose string) *rand.Rand {
	if i := s.find(purpose); i >= 0 {
		return s.streams[i].rand
	}
	source := actors.Source(seed, actor, purpose)
	r := rand.New(source)
	s.streams = append(s.streams, stream{purpose, source, r})
	return r
}

func (s *Streams) find(purpose string) int {
	return slices.IndexFunc(s.streams, func(x stream) bool { return x.purpose == purpose })
}

// Save returns the state of every stream in use, by purpose.
func (s *Streams) Save() (map[string][]byte, error) {
	states := make(map[string][]byte, len(s.streams))
	for _, x := range s.streams {
		state, err := x.source.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("random stream %q: %w", x.purpose, err)
		}
		states[x.purpose] = state
	}
	return states, nil
}

// Restore replaces all streams by those of a Save.
func (s *Streams) Restore(states map[string][]byte) error {
	s.streams = nil
	for _, purpose := range slices.Sorted(maps.Keys(states)) {
		source := &rand.PCG{}
		if err := source.UnmarshalBinary(states[purpose]); err != nil {
			return fmt.Errorf("random stream %q: %w", purpose, err)
		}
		s.streams = append(s.streams, stream{purpose, source, rand.New(source)})
	}
	return nil
}

// Owner names an actor for its random streams: each of its lives has its own, counted from 0.
func Owner(id string, life int) string {
	if life == 0 {
		return id
	}
	return fmt.Sprintf("%s#%d", id, life)
}
