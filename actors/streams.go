package actors

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// Streams are the random streams of one actor, one for each purpose. The zero
// value is ready for use.
type Streams struct {
	streams []stream
}

type stream struct {
	purpose string
	rand    *rand.Rand
}

// Get returns the stream of an actor for a purpose. A stream depends on seed, actor
// and purpose only, so that another actor or purpose moves none.
func (s *Streams) Get(seed uint64, actor, purpose string) *rand.Rand {
	i := slices.IndexFunc(s.streams, func(x stream) bool { return x.purpose == purpose })
	if i >= 0 {
		return s.streams[i].rand
	}
	r := rand.New(Source(seed, actor, purpose))
	s.streams = append(s.streams, stream{purpose, r})
	return r
}

// Owner names an actor for its random streams: each of its lives has its own, counted from 0.
func Owner(id string, life int) string {
	if life == 0 {
		return id
	}
	return fmt.Sprintf("%s#%d", id, life)
}

// Source returns the random source of a seed for an owner and a purpose (PCG-DXSM,
// seeded by FNV-1a over the names and mixed as in SplitMix64).
func Source(seed uint64, owner, purpose string) *rand.PCG {
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(purpose))
	return rand.NewPCG(mix(seed^h.Sum64()), mix(seed+0x9e3779b97f4a7c15+h.Sum64()))
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
