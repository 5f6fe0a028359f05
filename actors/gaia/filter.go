package gaia

import "math"

// filter is the significance filter of a site. It knows by how much each parameter has changed here
// since other sites were told.
type filter struct {
	threshold float64   // v
	held      []float32 // the change, by parameter
	listed    []bool    // by parameter: its index has gone ahead
	chosen    []int32   // what was chosen last, ascending
}

func newFilter(threshold float64, params int) *filter {
	return &filter{threshold: threshold, held: make([]float32, params), listed: make([]bool, params)}
}

// add accumulates what has become of parameters here.
func (f *filter) add(after, before []float32) {
	for i, v := range after {
		f.held[i] += v - before[i]
	}
}

// significant chooses the parameters that have changed by at least v/√t of what they are, in round
// t, and are not listed.
func (f *filter) significant(params []float32, t uint64) []int32 {
	threshold := float32(f.threshold / math.Sqrt(float64(max(t, 1))))
	f.chosen = f.chosen[:0]
	for i, held := range f.held {
		if held != 0 && !f.listed[i] && magnitude(held) >= threshold*magnitude(params[i]) {
			f.chosen = append(f.chosen, int32(i))
		}
	}
	return f.chosen
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// changed chooses the parameters that other sites do not know as they are, or those that are
// listed, of which others wait for an update even if nothing is left of it.
func (f *filter) changed(all bool) []int32 {
	f.chosen = f.chosen[:0]
	for i, held := range f.held {
		if f.listed[i] || all && held != 0 {
			f.chosen = append(f.chosen, int32(i))
		}
	}
	return f.chosen
}

// list notes that the indices of some parameters have gone ahead.
func (f *filter) list(indices []int32) {
	for _, i := range indices {
		f.listed[i] = true
	}
}

// take writes the changes of some parameters, of which nothing is held from now on.
func (f *filter) take(values []float32, indices []int32) {
	for n, i := range indices {
		values[n], f.held[i], f.listed[i] = f.held[i], 0, false
	}
}
