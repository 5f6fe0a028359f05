package live

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// lateness counts how much later than asked things happened, in buckets of 1/8 of
// an octave.
type lateness struct {
	buckets [8 * 40]atomic.Int64
	count   atomic.Int64
	max     atomic.Int64
}

func (l *lateness) add(d time.Duration) {
	d = max(d, 0)
	l.buckets[bucket(d)].Add(1)
	l.count.Add(1)
	for {
		old := l.max.Load()
		if int64(d) <= old || l.max.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

func bucket(d time.Duration) int {
	n := max(uint64(d), 8)
	octave := bits.Len64(n) - 4
	return min(8*octave+int(n>>octave)-8, 8*40-1)
}

// upper is the largest duration of a bucket, at most an eighth above the smallest.
func upper(b int) time.Duration {
	octave, eighth := b/8, b%8
	return time.Duration((uint64(8+eighth+1) << octave) - 1)
}

// computed counts how late a step is that should be done at an instant.
func (l *life) computed(asked time.Duration) {
	if l.over() {
		return
	}
	w := l.node.world
	w.late.steps.add(w.clock.Now() - asked)
	w.Locked(func() {
		if i := slices.Index(l.owed, asked); i >= 0 {
			l.owed = slices.Delete(l.owed, i, i+1)
		}
	})
}

// overdue counts the steps that should be done at the end of the run, and are not: a machine that
// hardly computes is late, however few of its steps come to an end.
func (w *World) overdue() {
	w.Locked(func() {
		for _, n := range w.nodes {
			l := n.life.Load()
			if l == nil { // it lives elsewhere
				continue
			}
			for _, asked := range l.owed {
				if late := w.instant - asked; late > 0 {
					w.late.steps.add(late)
				}
			}
		}
	})
}

// Lateness says how far a run in real time fell behind what its plan asked.
type Lateness struct {
	Count         int64
	P50, P99, Max time.Duration
}

func (l *lateness) summary() Lateness {
	s := Lateness{Count: l.count.Load(), Max: time.Duration(l.max.Load())}
	s.P50, s.P99 = min(l.quantile(0.5), s.Max), min(l.quantile(0.99), s.Max)
	return s
}

func (l *lateness) quantile(q float64) time.Duration {
	left := int64(math.Ceil(q * float64(l.count.Load())))
	for b := range l.buckets {
		if left -= l.buckets[b].Load(); left <= 0 {
			return upper(b)
		}
	}
	return 0
}
