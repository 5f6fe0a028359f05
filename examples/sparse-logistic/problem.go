package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/datasets"
)

// batch is some samples of a worker, without inputs that are 0. It never changes: its list of keys
// is the same in every pass.
type batch struct {
	keys    []uint64  // of all inputs that occur, ascending
	columns []int32   // of the keys
	ends    []int     // of each sample among the entries
	places  []int32   // of each entry: which of the keys
	values  []float32 // of each entry
	signs   []float64 // −1 or 1: the class of each sample
}

// keyOf is the key of an input: the input itself, or where there are more keys than inputs, one for
// each that lies anywhere among them. The factor has no divisor in common with the keys.
func keyOf(column int, inputs int, keys uint64) uint64 {
	if keys == uint64(inputs) {
		return uint64(column)
	}
	factor := uint64(6_180_339)
	for gcd(factor, keys) != 1 {
		factor++
	}
	return (uint64(column) + 1) * (factor % keys) % keys
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// newBatch takes samples out of a set.
func newBatch(set *datasets.Set, rows []int32, keys uint64) *batch {
	b := &batch{}
	place := make([]int32, set.Inputs)
	for _, row := range rows {
		for column, x := range set.Row(int(row)) {
			if x != 0 && place[column] == 0 {
				place[column] = 1
				b.columns = append(b.columns, int32(column))
			}
		}
	}
	slices.SortFunc(b.columns, func(c, d int32) int {
		return cmp.Compare(keyOf(int(c), set.Inputs, keys), keyOf(int(d), set.Inputs, keys))
	})
	for i, column := range b.columns {
		place[column] = int32(i)
		b.keys = append(b.keys, keyOf(int(column), set.Inputs, keys))
	}
	for _, row := range rows {
		for column, x := range set.Row(int(row)) {
			if x != 0 {
				b.places, b.values = append(b.places, place[column]), append(b.values, x)
			}
		}
		b.ends = append(b.ends, len(b.places))
		b.signs = append(b.signs, 2*float64(set.Y[row])-1)
	}
	return b
}

// batches are those of a worker: its samples in the order in which it has them.
func batches(t *train.Task, worker int, keys uint64) (all []*batch) {
	for rows := range slices.Chunk(t.Shards[worker], t.Batch) {
		all = append(all, newBatch(t.Train, rows, keys))
	}
	return all
}

// gradient writes the gradient of the mean logistic loss of the samples by the weights of the keys,
// and returns the mean.
func (b *batch) gradient(weights, gradient []float32) (loss float64) {
	clear(gradient)
	from, n := 0, float64(len(b.signs))
	for i, end := range b.ends {
		margin := 0.0
		for e := from; e < end; e++ {
			margin += float64(weights[b.places[e]]) * float64(b.values[e])
		}
		loss += softplus(-b.signs[i] * margin)
		factor := float32(-b.signs[i] / (1 + math.Exp(b.signs[i]*margin)) / n)
		for e := from; e < end; e++ {
			gradient[b.places[e]] += float32(factor * b.values[e])
		}
		from = end
	}
	return loss / n
}

// softplus is log(1 + eˣ), for any x.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// work is the cost of a gradient in FLOPs.
func (b *batch) work() float64 { return 4*float64(len(b.places)) + 20*float64(len(b.signs)) }

// problem is what all workers minimise together.
type problem struct {
	batches []*batch
	samples int
	penalty float64
}

func newProblem(t *train.Task, keys uint64, penalty float64) *problem {
	p := &problem{penalty: penalty}
	for worker := range t.Shards {
		p.batches = append(p.batches, batches(t, worker, keys)...)
		p.samples += len(t.Shards[worker])
	}
	return p
}

// objective is the mean logistic loss of all samples, plus the penalty times the sum of the
// weights' absolute values, each counted by the share of the batches that it occurs in: a step
// shrinks the weights of its batch.
func (p *problem) objective(weight func(key uint64) float32) float64 {
	loss, norm := 0.0, 0.0
	for _, b := range p.batches {
		weights := make([]float32, len(b.keys))
		for i, key := range b.keys {
			weights[i] = weight(key)
			norm += math.Abs(float64(weights[i]))
		}
		loss += b.gradient(weights, make([]float32, len(weights))) * float64(len(b.signs))
	}
	return loss/float64(p.samples) + p.penalty*norm/float64(len(p.batches))
}
