package main

import (
	"math"
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/datasets"
)

// clicks is a generated set of binary inputs, few of which are 1 in a sample: some inputs often,
// most hardly ever (Zipf's law). Some of the inputs, of random weights, decide about the class.
type clicks struct {
	Samples  int    `plan:"samples" range:"100..1000000" doc:"how many are generated"`
	Inputs   int    `plan:"inputs" range:"10..100000" doc:"inputs that occur"`
	Occur    int    `plan:"occur" range:"1..1000" doc:"inputs of a sample that are 1, at most"`
	Relevant int    `plan:"relevant" range:"1..100000" doc:"inputs that the class depends on"`
	Seed     uint64 `plan:"seed" doc:"of the samples, whatever the seed of the run"`
}

func (c *clicks) generate() *datasets.Set {
	random := rand.New(rand.NewPCG(c.Seed, 1))
	set := &datasets.Set{Name: "clicks", Inputs: c.Inputs, Classes: []string{"no", "yes"},
		X: make([]float32, c.Samples*c.Inputs), Y: make([]int32, c.Samples)}
	weights := make([]float64, c.Inputs)
	for range c.Relevant {
		weights[c.draw(random)] = 3 * random.NormFloat64()
	}
	for i := range c.Samples {
		row, margin := set.Row(i), 0.0
		for range c.Occur {
			column := c.draw(random)
			if row[column] == 0 {
				row[column] = 1
				margin += weights[column]
			}
		}
		if random.Float64() < 1/(1+math.Exp(-margin)) {
			set.Y[i] = 1
		}
	}
	return set
}

// draw draws an input: the n-th one with a probability of about 1/n.
func (c *clicks) draw(random *rand.Rand) int {
	return min(int(math.Exp(random.Float64()*math.Log(float64(c.Inputs+1))))-1, c.Inputs-1)
}

// withRegression is everything that comes with Gradwire, the generated set and the architecture of
// this program.
func withRegression() *catalog.Catalog {
	c := catalog.Default()
	c.Datasets.Add(catalog.Define("clicks", "binary inputs of which few are 1, generated",
		func() clicks { return clicks{Samples: 4000, Inputs: 4000, Occur: 30, Relevant: 60, Seed: 1} },
		func(_ *catalog.Catalog, s *clicks) (catalog.Loader, error) {
			return catalog.Loader{Test: 0.25, Inputs: s.Inputs, Classes: 2, ClassNames: []string{"no", "yes"},
				Load: func(string, bool) (*datasets.Source, error) {
					return &datasets.Source{Pool: s.generate()}, nil
				}}, nil
		}))
	c.Architectures.Declare("sparse-logistic",
		logistic{Penalty: 1e-3, Shards: 4, Delay: 1, Filters: filters{KeyCaching: true}},
		"logistic regression with an l1 penalty, by proximal steps on a table of weights")
	return c
}
