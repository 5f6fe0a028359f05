package world

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
)

// Streams are the random streams of one actor, one for each purpose. The zero
// value is ready for use.
type Streams struct {
	streams []stream
}

type stream struct {
	purpose string
	rand    *rand.Rand
	source  *rand.PCG // of rand
}

// Get returns the stream of an actor for a purpose. A stream depends on seed, actor
// and purpose only, so that another actor or purpose moves none.
func (s *Streams) Get(seed uint64, actor, purpose string) *rand.Rand {
	i := slices.IndexFunc(s.streams, func(x stream) bool { return x.purpose == purpose })
	if i >= 0 {
		return s.streams[i].rand
	}
	source := actors.Source(seed, actor, purpose)
	r := rand.New(source)
	s.streams = append(s.streams, stream{purpose, r, source})
	return r
}

// Owner names an actor for its random streams: each of its lives has its own, counted from 0.
func Owner(id string, life int) string {
	if life == 0 {
		return id
	}
	return fmt.Sprintf("%s#%d", id, life)
}

// State declares the positions of all streams.
func (s *Streams) State(st *state.State, seed uint64, actor string) {
	all := make([]string, len(s.streams))
	for i := range s.streams {
		all[i] = s.streams[i].purpose
	}
	state.List(st, "streams", &all, func(st *state.State, purpose *string) {
		state.Text(st, "purpose", purpose)
		s.Get(seed, actor, *purpose)
		i := slices.IndexFunc(s.streams, func(x stream) bool { return x.purpose == *purpose })
		st.Random("position", s.streams[i].source)
	})
}
