package record

import (
	"cmp"
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
type span struct {
	bucket       uint16
	count, total uint64
}

// fineness is how many buckets there are to a factor of two, as a power of two: a bucket is at most
// 1/128 wide. A histogram of that fineness over all that can occur (HdrHistogram's) would take 50
// KB a node and cause; the waits for one cause are of few lengths.
const fineness = 7

// waits counts durations in buckets of nanoseconds: one for each value below 256, then 128 to a
// factor of two.
type waits struct {
	cause string
	// spans are those that are not empty, by bucket.
	spans []span
}

func (w *waits) add(d time.Duration) {
	ns := uint64(max(d, 0))
	bucket := bucketOf(ns)
	i, found := slices.BinarySearchFunc(w.spans, bucket,
		func(s span, bucket uint16) int { return cmp.Compare(s.bucket, bucket) })
	if !found {
		w.spans = slices.Insert(w.spans, i, span{bucket: bucket})
	}
	w.spans[i].count++
	w.spans[i].total += ns
}

// copyTo makes to equal, in the memory that it has where that is enough.
func (w *waits) copyTo(to *waits) {
	to.cause, to.spans = w.cause, append(to.spans[:0], w.spans...)
}

func bucketOf(ns uint64) uint16 {
	shift := max(bits.Len64(ns)-fineness-1, 0)
	return uint16(shift<<fineness + int(ns>>shift))
}

// bounds returns the first value of a bucket and the first one after it.
func bounds(bucket uint16) (low, high uint64) {
	shift := max(int(bucket)>>fineness-1, 0)
	low = (uint64(bucket) - uint64(shift)<<fineness) << shift
	return low, low + 1<<shift
}

// waiting summarises the counts.
func (w *waits) waiting() Waiting {
	sum := Waiting{Cause: w.cause, Buckets: []Bucket{}}
	total := uint64(0)
	for _, s := range w.spans {
		low, high := bounds(s.bucket)
		sum.Count += s.count
		total += s.total
		sum.Buckets = append(sum.Buckets, Bucket{Low: seconds(low), High: seconds(high), Count: s.count,
			Total: seconds(s.total)})
	}
	sum.Total = seconds(total)
	return sum
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }
