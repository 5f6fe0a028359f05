package link

import "math/bits"

// purpose tells apart what an edge draws for one message.
type purpose uint64

const (
	firstDelays purpose = iota // the state that a process begins in
	delays
	losses
	rates
	uplinks
	downlinks
	accesses // the delay of a node's access that is drawn once
	leaving  // what the sender's access adds
	reaching // what the receiver's does
	repeats  // losses of tries after the first, where rates are shared
	copies   // whether a message arrives twice
	seconds  // the delay of its second copy
)

// counter is a counter-based generator: what it draws is a function of the edge, the number of the
// message, the purpose and how much was drawn before for these. It remembers nothing of other
// messages, so that an edge that has nothing in flight need not be remembered either. It implements
// rand.Source.
type counter struct {
	key    uint64 // of the edge
	number uint64 // of the message
	block  uint64 // the purpose in the upper 8 bits, and how many blocks were drawn
	spare  uint64 // the second half of the latest block
	halved bool   // the spare half is not used yet
}

// seek goes to the beginning of what a message of an edge draws for a purpose.
func (c *counter) seek(key, number uint64, p purpose) {
	c.key, c.number, c.block, c.halved = key, number, uint64(p)<<56, false
}

// Uint64 returns 64 random bits.
func (c *counter) Uint64() uint64 {
	if c.halved {
		c.halved = false
		return c.spare
	}
	first, second := philox(c.key, c.number, c.block)
	c.block++
	c.spare, c.halved = second, true
	return first
}

// golden is 2⁶⁴ divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// philox is Philox2x64-10, a bijection of the counter (x, y) that the key chooses (Salmon, Moraes,
// Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.3).
func philox(key, x, y uint64) (uint64, uint64) {
	const multiplier = 0xd2b74407b1ce6e93
	for range 10 {
		high, low := bits.Mul64(multiplier, x)
		x, y = high^key^y, low
		key += golden
	}
	return x, y
}

// nodeKey hashes a node's name with the seed: FNV-1a, finished by SplitMix64.
func nodeKey(seed uint64, name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range 8 {
		h = hashByte(h, byte(seed>>(8*i)))
	}
	for i := range len(name) {
		h = hashByte(h, name[i])
	}
	return splitMix(h)
}

// edgeKey is the key of the edge between two nodes of these keys.
func edgeKey(source, destination uint64) uint64 {
	return splitMix(splitMix(source+golden) + destination)
}

func hashByte(h uint64, b byte) uint64 { return (h ^ uint64(b)) * 0x100000001b3 }

// splitMix is the finisher of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
// number generators", figure 14).
func splitMix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
