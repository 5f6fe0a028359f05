// Package partition decides which worker trains on which samples.
//
// Every split is a function of the set, the workers' names in order, and the seed. The workers'
// rows are disjoint, but for those of Drawn, and each worker's rows ascend; a datasets.Sampler
// shuffles them in each pass. If a worker would have no samples, the split fails with an error that
// names it.
package partition

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/datasets"
)

// Split assigns the samples of a set to workers.
type Split interface {
	// Assign returns the rows of each worker, in the order of workers. It is
	// an error if there are no workers, one is named twice, or one is left
	// without samples.
	Assign(set *datasets.Set, workers []string, seed uint64) ([][]int32, error)
}

var (
	_ Split = IID{}
	_ Split = Classes{}
	_ Split = Shards{}
	_ Split = Dirichlet{}
	_ Split = Column{}
	_ Split = File{}
	_ Split = Drawn{}
)

// Streams keep the draws of the splits apart where they use the same seed.
const (
	iidStream = iota + 0x73706c6974000000
	classesStream
	shardsStream
	dirichletStream
	drawnStream
)

// IID deals all samples at random in equal shares; sizes differ by at most one.
type IID struct{}

// Assign implements Split.
func (IID) Assign(set *datasets.Set, workers []string, seed uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	rows := permuted(set.Len(), rand.New(rand.NewPCG(seed, iidStream)))
	assigned := make([][]int32, len(workers))
	for w, b := range evenCuts(len(rows), len(workers)) {
		assigned[w] = rows[b.from:b.to]
	}
	return finish("iid", assigned, workers)
}

// Shards sorts the samples by label, cuts them into PerWorker shards for each
// worker, of sizes that differ by at most one, and deals the shards at random:
// the pathological non-IID split of McMahan et al., "Communication-Efficient
// Learning of Deep Networks from Decentralized Data", AISTATS 2017, section 3
// (there, 2 shards a worker).
type Shards struct {
	// PerWorker is the number of shards a worker gets, at least 1; a plan gives at most 1,000.
	PerWorker int `plan:"per-worker" range:"1..1000" doc:"shards that a worker is dealt"`
}

// Assign implements Split. A PerWorker below 1, or more shards than samples,
// is an error too.
func (s Shards) Assign(set *datasets.Set, workers []string, seed uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	if s.PerWorker < 1 {
		return nil, fmt.Errorf("split shards: %d shards a worker; at least 1 is needed", s.PerWorker)
	}
	if s.PerWorker > set.Len()/len(workers) {
		return nil, fmt.Errorf("split shards: %d shards for each of %d workers are more than the %d samples of data "+
			"set %q",
			s.PerWorker, len(workers), set.Len(), set.Name)
	}
	byLabel := slices.Concat(rowsByClass(set)...)
	cuts := evenCuts(len(byLabel), len(workers)*s.PerWorker)
	deal := permuted(len(cuts), rand.New(rand.NewPCG(seed, shardsStream)))
	assigned := make([][]int32, len(workers))
	for i, shard := range deal {
		w := i / s.PerWorker
		assigned[w] = append(assigned[w], byLabel[cuts[shard].from:cuts[shard].to]...)
	}
	return finish("shards", assigned, workers)
}

type cut struct{ from, to int }

// evenCuts divides [0, n) into parts whose sizes differ by at most one.
func evenCuts(n, parts int) []cut {
	cuts := make([]cut, parts)
	at := 0
	for i := range cuts {
		size := n / parts
		if i < n%parts {
			size++
		}
		cuts[i] = cut{at, at + size}
		at += size
	}
	return cuts
}

func permuted(n int, rng *rand.Rand) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	shuffle(rows, rng)
	return rows
}

func shuffle(rows []int32, rng *rand.Rand) {
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
}

// rowsByClass returns the rows of every class in ascending order.
func rowsByClass(set *datasets.Set) [][]int32 {
	rows := make([][]int32, len(set.Classes))
	for class, count := range set.Counts() {
		rows[class] = make([]int32, 0, count)
	}
	for i, y := range set.Y {
		rows[y] = append(rows[y], int32(i))
	}
	return rows
}

func checkWorkers(workers []string) error {
	if len(workers) == 0 {
		return errors.New("split: no workers to assign samples to")
	}
	seen := make(map[string]bool, len(workers))
	for _, name := range workers {
		if seen[name] {
			return fmt.Errorf("split: worker %q is named twice", name)
		}
		seen[name] = true
	}
	return nil
}

// finish sorts each worker's rows and refuses workers without any.
func finish(kind string, assigned [][]int32, workers []string) ([][]int32, error) {
	for w, rows := range assigned {
		if len(rows) == 0 {
			return nil, fmt.Errorf("split %s leaves worker %q without samples", kind, workers[w])
		}
		slices.Sort(rows)
		assigned[w] = slices.Clip(rows)
	}
	return assigned, nil
}
