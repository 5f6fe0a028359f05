package datasets

import (
	"fmt"
	"hash/fnv"
)

// Sampler names the batches of one worker's shard. It remembers nothing: which
// samples make batch (pass, step) is a function of the seed, the worker's name,
// the number of rows, the batch size, the pass and the step. A pass visits
// every row exactly once, each pass in another order. A Sampler is immutable
// and may be used by many goroutines.
type Sampler struct {
	set   *Set
	rows  []int32 // nil: all rows of set
	batch int
	key   uint64
	domain
}

// NewSampler returns the sampler of the worker's rows of set, nil meaning all
// of them; rows is copied. No rows, a row outside the set or a batch below 1
// is an error. A batch larger than the shard makes one batch a pass.
func NewSampler(set *Set, rows []int32, batch int, seed uint64, worker string) (*Sampler, error) {
	n := len(rows)
	if rows == nil {
		n = set.Len()
	}
	switch {
	case n == 0:
		return nil, fmt.Errorf("worker %q has no samples of data set %q", worker, set.Name)
	case n > MaxSamples:
		return nil, fmt.Errorf("worker %q has %d samples; at most %d can be numbered", worker, n, MaxSamples)
	case batch < 1:
		return nil, fmt.Errorf("worker %q: batch of %d samples; at least 1 is needed", worker, batch)
	}
	for _, row := range rows {
		if row < 0 || int(row) >= set.Len() {
			return nil, fmt.Errorf("worker %q: row %d is not in data set %q of %d samples", worker, row, set.Name,
				set.Len())
		}
	}
	if rows != nil {
		rows = append([]int32(nil), rows...)
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(worker)) // a hash never fails to write
	return &Sampler{
		set:    set,
		rows:   rows,
		batch:  min(batch, n),
		key:    mix(mix(seed+0x9e3779b97f4a7c15) ^ name.Sum64()),
		domain: newDomain(n),
	}, nil
}

// Len returns the number of samples of the shard, that is, of a pass.
func (s *Sampler) Len() int { return int(s.n) }

// Batch returns the number of samples of a full batch.
func (s *Sampler) Batch() int { return s.batch }

// Steps returns the number of batches a pass. The last may be smaller.
func (s *Sampler) Steps() int { return (int(s.n) + s.batch - 1) / s.batch }

// Fill copies the samples of batch (pass, step) into the front of x
// (row-major, Inputs columns) and y and returns their number. It does not
// allocate. It panics if pass is negative, step is not in [0, Steps()), or x
// or y is too short for the batch.
func (s *Sampler) Fill(pass, step int, x []float32, y []int32) int {
	first, count := s.span(pass, step)
	inputs := s.set.Inputs
	if len(x) < count*inputs || len(y) < count {
		panic("datasets: batch buffer too short")
	}
	k := s.newKeys(s.key ^ mix(uint64(pass)))
	for done := 0; done < count; done += together {
		var room [together]int
		rows := room[:min(together, count-done)]
		for i := range rows {
			rows[i] = s.row(&k, first+done+i)
		}
		for i, row := range rows {
			y[done+i] = s.set.Y[row]
		}
		s.set.copy(x[done*inputs:(done+len(rows))*inputs], rows)
	}
	return count
}

// Rows puts the rows of the set that make batch (pass, step) into the front of rows, and their
// labels into that of y, and returns their number. It does not allocate, and panics like Fill.
func (s *Sampler) Rows(pass, step int, rows, y []int32) int {
	first, count := s.span(pass, step)
	if len(rows) < count || len(y) < count {
		panic("datasets: batch buffer too short")
	}
	k := s.newKeys(s.key ^ mix(uint64(pass)))
	for i := range count {
		rows[i] = int32(s.row(&k, first+i))
	}
	for i, row := range rows[:count] {
		y[i] = s.set.Y[row]
	}
	return count
}

// together is how many rows are copied at a time. They lie anywhere, and the memory brings what
// several of them begin with in the time that it takes for one.
const together = 32

// copy copies the inputs of rows to x.
func (s *Set) copy(x []float32, rows []int) {
	for i, row := range rows {
		x[i*s.Inputs] = s.X[row*s.Inputs]
	}
	for i, row := range rows {
		copy(x[i*s.Inputs:(i+1)*s.Inputs], s.X[row*s.Inputs:])
	}
}

func (s *Sampler) span(pass, step int) (first, count int) {
	if pass < 0 {
		panic("datasets: negative pass")
	}
	if step < 0 || step >= s.Steps() {
		panic("datasets: step outside the pass")
	}
	first = step * s.batch
	return first, min(s.batch, int(s.n)-first)
}

func (s *Sampler) row(k *keys, i int) int {
	p := s.at(k, uint32(i))
	if s.rows == nil {
		return int(p)
	}
	return int(s.rows[p])
}
