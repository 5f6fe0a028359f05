package datasets

import "math/bits"

// Rounds of the Feistel network. Four make a pseudorandom permutation from
// ideal round functions on a large domain (Luby & Rackoff, SIAM J. Comput.
// 17(2), 1988); six leave a margin for round functions that are merely good
// hashes. On a tiny domain a round moves so little that it takes many until
// all orders are about equally likely.
const (
	rounds     = 6
	tinyRounds = 18
	tiny       = 256
)

// domain is [0, n) enclosed in the rectangle [0, a) × [0, b), with a·b ≥ n and
// a·b − n < a: at most one value in about √n lies outside.
type domain struct {
	n, a, b uint32
	inverse uint64 // ⌈2^64 / b⌉, 0 for b = 1: divides 32-bit numbers exactly
	rounds  int    // even
}

func newDomain(n int) domain {
	a := uint32(1)
	for uint64(a)*uint64(a) < uint64(n) {
		a++
	}
	b := (uint32(n) + a - 1) / a
	d := domain{n: uint32(n), a: a, b: b, rounds: rounds}
	if n <= tiny {
		d.rounds = tinyRounds
	}
	if b > 1 {
		d.inverse = ^uint64(0)/uint64(b) + 1
	}
	return d
}

// keys are the round keys of one permutation, as many as the domain's rounds.
type keys [tinyRounds]uint64

func (d *domain) newKeys(key uint64) (k keys) {
	for i := range d.rounds {
		key += 0x9e3779b97f4a7c15
		k[i] = mix(key)
	}
	return k
}

// at returns the image of i under the permutation of [0, n) that k names: a
// generalised Feistel network on the rectangle, applied again while it leads
// outside [0, n) (cycle walking), which makes it a bijection of [0, n) itself.
// Black & Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002,
// sections 3 (cycle walking) and 4 (generalised Feistel).
func (d *domain) at(k *keys, i uint32) uint32 {
	for {
		i = d.encrypt(k, i)
		if i < d.n {
			return i
		}
	}
}

func (d *domain) encrypt(k *keys, i uint32) uint32 {
	left, _ := bits.Mul64(d.inverse, uint64(i))
	if d.inverse == 0 {
		left = uint64(i)
	}
	l := uint32(left)
	r := i - l*d.b
	for j := 0; j < d.rounds; j += 2 {
		l = add(l, r, k[j], d.a)
		r = add(r, l, k[j+1], d.b)
	}
	return l*d.b + r
}

// add returns x plus a number in [0, m) hashed from (y, key), modulo m.
func add(x, y uint32, key uint64, m uint32) uint32 {
	h := (uint64(y) ^ key) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>32) * 0x94d049bb133111eb
	s := uint64(x) + (h>>32)*uint64(m)>>32
	if s >= uint64(m) {
		s -= uint64(m)
	}
	return uint32(s)
}

// mix is the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
