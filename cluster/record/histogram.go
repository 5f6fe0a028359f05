package record

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"
)

// exactStaleness is the first staleness that is not counted exactly; from here on
// values are rounded down to their 8 leading bits, which bounds the memory.
const exactStaleness = 1 << 16

// ages counts updates by staleness.
type ages struct {
	count, sum, max uint64
	near            []uint64 // by staleness
	far             map[uint64]uint64
}

func (a *ages) add(staleness uint64) {
	a.count++
	a.sum += staleness
	a.max = max(a.max, staleness)
	if staleness >= exactStaleness {
		if a.far == nil {
			a.far = map[uint64]uint64{}
		}
		shift := bits.Len64(staleness) - 8
		a.far[staleness>>shift<<shift]++
		return
	}
	if staleness >= uint64(len(a.near)) {
		a.near = slices.Grow(a.near, int(staleness)+1-len(a.near))
		a.near = a.near[:staleness+1]
	}
	a.near[staleness]++
}

// copyTo makes to equal, in the memory that it has where that is enough.
func (a *ages) copyTo(to *ages) {
	near, far := to.near, to.far
	*to = *a
	near = append(near[:0], a.near...)
	to.near, to.far = near, nil
	if len(a.far) == 0 {
		return
	}
	if far == nil {
		far = make(map[uint64]uint64, len(a.far))
	}
	clear(far)
	maps.Copy(far, a.far)
	to.far = far
}

// staleness summarises the counts.
func (a *ages) staleness() Staleness {
	s := Staleness{Max: a.max, Counts: []Count{}}
	if a.count == 0 {
		return s
	}
	s.Mean = float64(a.sum) / float64(a.count)
	for value, n := range a.near {
		if n > 0 {
			s.Counts = append(s.Counts, Count{Value: uint64(value), Count: n})
		}
	}
	for _, value := range slices.Sorted(maps.Keys(a.far)) {
		s.Counts = append(s.Counts, Count{Value: value, Count: a.far[value]})
	}
	s.P50, s.P99 = quantile(s.Counts, a.count, 0.50), quantile(s.Counts, a.count, 0.99)
	return s
}

// quantile returns the smallest value at or below which lies the share q of n counts.
func quantile(counts []Count, n uint64, q float64) uint64 {
	rank := uint64(math.Ceil(q * float64(n)))
	seen := uint64(0)
	for _, c := range counts {
		if seen += c.Count; seen >= rank {
			return c.Value
		}
	}
	return counts[len(counts)-1].Value
}

// span counts the waits of one bucket and adds them up.
type span struct{ count, total uint64 }

// waits counts durations in buckets of nanoseconds: one for each value below 16,
// then 8 to a factor of two, so that a bucket is at most 12.5 % wide.
type waits struct {
	cause string
	// first is the bucket of spans[0]: the waits for one cause are of a few magnitudes.
	first int
	spans []span
}

func (w *waits) add(d time.Duration) {
	ns := uint64(max(d, 0))
	bucket := bucketOf(ns)
	if len(w.spans) == 0 {
		w.first = bucket
	}
	if missing := w.first - bucket; missing > 0 {
		w.spans = slices.Insert(w.spans, 0, make([]span, missing)...)
		w.first = bucket
	}
	i := bucket - w.first
	if i >= len(w.spans) {
		w.spans = slices.Grow(w.spans, i+1-len(w.spans))
		w.spans = w.spans[:i+1]
	}
	w.spans[i].count++
	w.spans[i].total += ns
}

// copyTo makes to equal, in the memory that it has where that is enough.
func (w *waits) copyTo(to *waits) {
	to.cause, to.first, to.spans = w.cause, w.first, append(to.spans[:0], w.spans...)
}

func bucketOf(ns uint64) int {
	if ns < 16 {
		return int(ns)
	}
	exponent := bits.Len64(ns) - 1
	return 16 + (exponent-4)*8 + int(ns>>(exponent-3)&7)
}

// bounds returns the first value of a bucket and the first one after it.
func bounds(bucket int) (low, high uint64) {
	if bucket < 16 {
		return uint64(bucket), uint64(bucket) + 1
	}
	shift := (bucket-16)/8 + 1
	low = uint64(8+(bucket-16)%8) << shift
	return low, low + 1<<shift
}

// waiting summarises the counts.
func (w *waits) waiting() Waiting {
	sum := Waiting{Cause: w.cause, Buckets: []Bucket{}}
	total := uint64(0)
	for i, s := range w.spans {
		if s.count == 0 {
			continue
		}
		low, high := bounds(w.first + i)
		sum.Count += s.count
		total += s.total
		sum.Buckets = append(sum.Buckets, Bucket{Low: seconds(low), High: seconds(high), Count: s.count, Total: seconds(s.total)})
	}
	sum.Total = seconds(total)
	return sum
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }
