package kernel

import (
	"math/rand/v2"
	"testing"
)

// FuzzGemm compares products of fuzzed shapes and operands with the triple loop, with every set of
// instructions.
func FuzzGemm(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(32), uint16(21), uint16(93), uint8(0), float32(1), float32(0))
	f.Add(uint64(2), uint8(1), uint16(93), uint16(21), uint16(32), uint8(3), float32(0.5), float32(1))
	f.Add(uint64(3), uint8(2), uint16(32), uint16(93), uint16(21), uint8(1), float32(-1), float32(2))
	f.Add(uint64(4), uint8(3), uint16(1), uint16(50), uint16(385), uint8(0), float32(1), float32(1))
	f.Fuzz(func(t *testing.T, seed uint64, trans uint8, m, n, k uint16, padding uint8, alpha, beta float32) {
		if size := alpha*alpha + beta*beta; !(size > 1e-6 && size < 1e6) {
			alpha, beta = 1, 0
		}
		r := rand.New(rand.NewPCG(seed, 0))
		p := sample(r, trans&1 == 1, trans&2 == 2, int(m%200), int(n%200), int(k%800), int(padding), alpha, beta)
		best := active
		defer func() { active = best }()
		for _, active = range offered() {
			expectProduct(t, &p, result(t, &p))
		}
	})
}
