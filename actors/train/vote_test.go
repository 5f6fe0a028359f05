package train_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// The class of each sample is asked of each model by its label alone, and counted.
func TestAVoteIsForTheClassThatMostModelsPredict(t *testing.T) {
	const samples, inputs, classes = 90, 4, 3
	task, r := &train.Task{Model: simtest.Perceptron(inputs, classes)}, rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, samples*inputs), make([]int32, samples)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range y {
		y[i] = int32(r.IntN(classes))
	}
	task.Test = &datasets.Set{X: x, Y: y, Inputs: inputs}
	for _, n := range []int{1, 2, 5, 8} {
		models, loss, w := make([][]float32, n), 0.0, task.Model.NewWorkspace(samples)
		for i := range models {
			models[i] = make([]float32, task.Model.Params())
			task.Model.Init(models[i], r)
			sum, _ := w.Evaluate(models[i], nn.Batch{X: x, Y: y})
			loss += sum / samples / float64(n)
		}
		if n == 8 {
			models[3][0], loss = float32(math.NaN()), math.NaN() // has no vote
		}
		correct := 0
		for s := range samples {
			votes := make([]int, classes)
			for _, params := range models {
				for class := range votes {
					_, is := w.Evaluate(params, nn.Batch{X: x[s*inputs : (s+1)*inputs], Y: []int32{int32(class)}})
					votes[class] += is
				}
			}
			if slices.Index(votes, slices.Max(votes)) == int(y[s]) {
				correct++
			}
		}
		got := task.NewEvaluator(task.TestSamples(), 1).Vote(models)
		if math.Abs(got.Accuracy-float64(correct)/samples) > 1e-12 {
			t.Errorf("%d models: accuracy %v, want %v", n, got.Accuracy, float64(correct)/samples)
		}
		if math.Abs(got.Loss-loss) > 1e-6 || (got.Loss == got.Loss) != (loss == loss) {
			t.Errorf("%d models: loss %v, want %v", n, got.Loss, loss)
		}
	}
}
