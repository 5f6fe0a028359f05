package main

import (
	"math"
	"math/rand/v2"
)

// filters say which entries of a gradient a worker does not push, and how lists of keys travel (M.
// Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, sections
// 3.4 and 5.1).
type filters struct {
	// KeyCaching names lists of keys by their hashes that a server was sent before.
	KeyCaching bool `plan:"key-caching" doc:"whether a list of keys that a server was sent before is named by its hash"`
	// KKT leaves out what the step leaves at 0: a weight is 0, and the gradient within the penalty.
	KKT bool `plan:"kkt" doc:"whether entries are left out whose weights are 0 and would stay so"`
	// Significance keeps back what is smaller, and adds it to the next gradient.
	Significance float64 `plan:"significance" range:"0.." doc:"entries below this are kept back until they have added up to it"`
	// Skip leaves entries out at random, and divides others by the probability to stay.
	Skip float64 `plan:"skip" unit:"fraction" range:"0%..99%" doc:"share of the entries that is left out at random"`
}

// saved counts what each filter has left out, in bytes of values.
type saved struct{ kkt, significance, skip int64 }

const valueBytes = 4

// filter is the filters of a worker at work.
type filter struct {
	filters
	penalty float64
	random  *rand.Rand
	kept    []float32 // by input: what was not significant yet
	saved   saved
}

// apply writes what is to be pushed of a gradient to the fronts of places and gradient: entries and
// which of the batch's keys they are of. It returns how many they are.
func (f *filter) apply(b *batch, weights, gradient []float32, places []int32) (n int) {
	for i, g := range gradient {
		if f.Significance > 0 {
			g += f.kept[b.columns[i]]
			f.kept[b.columns[i]] = 0
		}
		switch size := math.Abs(float64(g)); {
		case f.KKT && weights[i] == 0 && size <= f.penalty:
			f.saved.kkt += valueBytes
		case size < f.Significance:
			f.kept[b.columns[i]] = g
			f.saved.significance += valueBytes
		case f.Skip > 0 && f.random.Float64() < f.Skip:
			f.saved.skip += valueBytes
		default:
			if f.Skip > 0 {
				g /= float32(1 - f.Skip)
			}
			gradient[n], places[n] = g, int32(i)
			n++
		}
	}
	return n
}
