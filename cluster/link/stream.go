package link

import (
	"encoding/binary"
	"math/rand/v2"
)

// stream returns the edge's stream for a purpose. It makes the stream at the first call.
func (n *Network) stream(e *Edge, stream **rand.Rand, purpose string) *rand.Rand {
	if *stream == nil {
		source := rand.NewPCG(streamSeed(n.seed, n.names[e.source], n.names[e.destination], purpose))
		*stream = rand.New(source)
	}
	return *stream
}

// streamSeed hashes what a stream is for: FNV-1a over the parts, each with its length, finished by
// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", figure
// 14).
func streamSeed(seed uint64, src, dst, purpose string) (uint64, uint64) {
	h := uint64(0xcbf29ce484222325)
	h = hashWord(h, seed)
	for _, part := range [...]string{src, dst, purpose} {
		h = hashWord(h, uint64(len(part)))
		for i := range len(part) {
			h = hashByte(h, part[i])
		}
	}
	const golden = 0x9e3779b97f4a7c15
	first := h + golden
	return splitMix(first), splitMix(first + golden)
}

func hashByte(h uint64, b byte) uint64 { return (h ^ uint64(b)) * 0x100000001b3 }

func hashWord(h, w uint64) uint64 {
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], w)
	for _, b := range bytes {
		h = hashByte(h, b)
	}
	return h
}

func splitMix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
