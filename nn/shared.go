package nn

import (
	"math"
	"sync/atomic"
)

// Shared is a vector of float32 that goroutines read and change at the same time without locks (F.
// Niu, B. Recht, C. Ré and S. Wright, "Hogwild!: A Lock-Free Approach to Parallelizing Stochastic
// Gradient Descent", NIPS 2011, section 2). Each pair of neighbouring values is one atomic word.
// Nothing that is added gets lost; a vector that is read while others add may have parts of their
// sums. All methods but NewShared are safe for concurrent use, and none allocates.
type Shared struct {
	n       int
	words   []atomic.Uint64 // values 2i, in the low half, and 2i+1
	updates atomic.Uint64
}

// NewShared returns n zeros.
func NewShared(n int) *Shared { return &Shared{n: n, words: make([]atomic.Uint64, (n+1)/2)} }

// Len is the number of values.
func (s *Shared) Len() int { return s.n }

// Store replaces all values, word by word. It panics unless there are as many.
func (s *Shared) Store(values []float32) {
	pairs := s.pairs(values)
	for i := range pairs {
		s.words[i].Store(word(values[2*i], values[2*i+1]))
	}
	if s.n&1 == 1 {
		s.words[pairs].Store(word(values[s.n-1], 0))
	}
}

// Load writes all values to a slice, word by word, and returns how many calls of AddScaled had
// ended when it began. It panics unless the slice has as many values.
func (s *Shared) Load(to []float32) (updates uint64) {
	updates = s.updates.Load()
	pairs := s.pairs(to)
	for i := range pairs {
		w := s.words[i].Load()
		to[2*i], to[2*i+1] = low(w), high(w)
	}
	if s.n&1 == 1 {
		to[s.n-1] = low(s.words[pairs].Load())
	}
	return updates
}

// AddScaled adds alpha·x, the product being rounded, and returns how many calls had ended before
// this one did. A word to whose values 0 is added is not touched. It panics unless x has as many
// values.
func (s *Shared) AddScaled(alpha float32, x []float32) (before uint64) {
	pairs := s.pairs(x)
	for i := range pairs {
		s.add(i, float32(alpha*x[2*i]), float32(alpha*x[2*i+1]))
	}
	if s.n&1 == 1 {
		s.add(pairs, float32(alpha*x[s.n-1]), 0)
	}
	return s.updates.Add(1) - 1
}

// add adds to the two values of a word.
func (s *Shared) add(i int, a, b float32) {
	if a == 0 && b == 0 {
		return
	}
	for w := &s.words[i]; ; {
		old := w.Load()
		if w.CompareAndSwap(old, word(low(old)+a, high(old)+b)) {
			return
		}
	}
}

// pairs is the number of whole words.
func (s *Shared) pairs(values []float32) int {
	if len(values) != s.n {
		panic(badVectors)
	}
	return s.n / 2
}

func word(low, high float32) uint64 {
	return uint64(math.Float32bits(high))<<32 | uint64(math.Float32bits(low))
}

func low(w uint64) float32  { return math.Float32frombits(uint32(w)) }
func high(w uint64) float32 { return math.Float32frombits(uint32(w >> 32)) }
