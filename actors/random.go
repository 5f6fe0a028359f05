package actors

import (
	"hash/fnv"
	"math/rand/v2"
)

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
