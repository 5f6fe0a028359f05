package compress

import "math"

// writer writes numbers of a few bits one after the other into words, from the lowest bit on.
type writer struct {
	words []float32
	low   uint64
	bits  uint
}

func (w *writer) put(v uint32, bits uint) {
	w.low |= uint64(v) << w.bits
	if w.bits += bits; w.bits >= 32 {
		w.words[0] = math.Float32frombits(uint32(w.low))
		w.words = w.words[1:]
		w.low >>= 32
		w.bits -= 32
	}
}

// end writes the last word.
func (w *writer) end() {
	if w.bits > 0 {
		w.words[0] = math.Float32frombits(uint32(w.low))
	}
}

// reader reads what a writer has written.
type reader struct {
	words []float32
	low   uint64
	bits  uint
}

func (r *reader) get(bits uint) uint32 {
	if r.bits < bits {
		r.low |= uint64(math.Float32bits(r.words[0])) << r.bits
		r.words = r.words[1:]
		r.bits += 32
	}
	v := uint32(r.low & (1<<bits - 1))
	r.low >>= bits
	r.bits -= bits
	return v
}

// wordsOf is how many words n numbers of some bits take.
func wordsOf(n int, bits uint) int { return (n*int(bits) + 31) / 32 }
