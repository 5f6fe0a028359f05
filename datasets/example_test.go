package datasets_test

import (
	"fmt"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/datasets/synthetic"
)

// From a data set to the batches of a worker. Every step is a function of its arguments.
func ExampleSampler() {
	set := synthetic.Traffic(1, 1000, 93)
	train, test, err := datasets.Holdout(set.Len(), 0.25, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	learn, judge := set.Subset(train), set.Subset(test)
	scaler := datasets.FitScaler(datasets.Standard, learn, nil)
	scaler.Apply(learn)
	scaler.Apply(judge)

	workers := []string{"fast", "slow"}
	shards, err := partition.Dirichlet{Alpha: 0.5}.Assign(learn, workers, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := datasets.NewSampler(learn, shards[0], 32, 7, workers[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := make([]float32, s.Batch()*learn.Inputs), make([]int32, s.Batch())
	seen := 0
	for step := range s.Steps() {
		seen += s.Fill(0, step, x, y)
	}
	fmt.Println(learn.Len(), judge.Len(), seen == len(shards[0]))
	// Output: 750 250 true
}
