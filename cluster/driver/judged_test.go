package driver_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/turns"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/synthetic"
)

// tensorsOf reads a file of models: the tensors of each node, or of the one model under the name
// "".
func tensorsOf(t *testing.T, path string) map[string][]values {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	params, tensors, _, err := safetensors.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	models := map[string][]values{}
	for _, tensor := range tensors {
		node, _, several := strings.Cut(tensor.Name, "/")
		if !several {
			node = ""
		}
		models[node] = append(models[node], values{tensor.Shape, params[tensor.Offset:]})
	}
	return models
}

type values struct {
	shape []int
	data  []float32
}

// forward is what a model makes of an image of 28 × 28, by textbook loops: a convolution with its
// max-pooling by 2 and ReLU for each weight of four dimensions, then dense layers with ReLU between
// them. Weights and biases alternate.
func forward(model []values, x []float64) []float64 {
	channels, size := 1, 28
	for i := 0; i < len(model); i += 2 {
		w, bias := model[i], model[i+1]
		if len(w.shape) == 4 {
			x, channels, size = convolved(w, bias, x, channels, size)
			continue
		}
		y := make([]float64, w.shape[0])
		for o := range y {
			y[o] = float64(bias.data[o])
			for j, v := range x {
				y[o] += float64(w.data[o*w.shape[1]+j]) * v
			}
			if i+2 < len(model) {
				y[o] = max(y[o], 0)
			}
		}
		x = y
	}
	return x
}

func convolved(w, bias values, x []float64, channels, size int) (y []float64, out, half int) {
	out, kernel := w.shape[0], w.shape[2]
	half = (size - kernel + 1) / 2
	for o := range out {
		for row := range half {
			for column := range half {
				highest := math.Inf(-1)
				for _, at := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
					sum := float64(bias.data[o])
					for c := range channels {
						for i := range kernel {
							for j := range kernel {
								weight := float64(w.data[((o*channels+c)*kernel+i)*kernel+j])
								sum += weight * x[(c*size+2*row+at[0]+i)*size+2*column+at[1]+j]
							}
						}
					}
					highest = max(highest, sum)
				}
				y = append(y, max(highest, 0))
			}
		}
	}
	return y, out, half
}

// judgedPlan returns a plan of four nodes that judges the models of some of them.
func judgedPlan(kind, model string, of record.Of) string {
	return `
seed: 7
data: {set: synthetic-digits, samples: 400, test: 25%, split: {kind: shards, per-worker: 3}}
model: ` + model + `
train: {batch: 20, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: ` + kind + `}
nodes: [{name: n, count: 4, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: {kind: uniform, range: 1ms..9ms}}}
evaluate: {every: 50ms, of: ` + string(of) + `}
stop: {time: 130ms}
sweep: {architecture: [{kind: ` + kind + `}]}
`
}

// judged are the ways to judge a run's models; with -short one, as one goroutine works for long.
func judged() []record.Of {
	if testing.Short() {
		return []record.Of{record.Mean}
	}
	return []record.Of{record.AverageModel, record.Mean, record.All, record.Any}
}

// A second implementation, a few loops, judges the saved models. It finds the final accuracy of the
// record for each architecture and figure, for a perceptron and for a convolutional network.
func TestFinalAccuracyIsThatOfTheSavedModels(t *testing.T) {
	raw := synthetic.Digits(1, 400)
	_, test, err := datasets.Holdout(raw.Len(), 0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	accuracy := func(model []values) float64 {
		correct := 0
		for _, row := range test {
			var x []float64
			for _, v := range raw.Row(int(row)) {
				x = append(x, float64(v))
			}
			if y := forward(model, x); slices.Index(y, slices.Max(y)) == int(raw.Y[row]) {
				correct++
			}
		}
		return float64(correct) / float64(len(test))
	}
	models := map[string]string{
		"mlp": "{kind: mlp, layers: [784, 12, 10]}",
		"cnn": "{kind: network, input: [1, 28, 28], layers: [{kind: conv2d, channels: 2, kernel: 5}, max-pool, relu, " +
			"flatten, {kind: dense, outputs: 10}]}",
	}
	kinds := []string{"parameter-server", "all-reduce", "gossip", "d-psgd", "ad-psgd", "gossip-learning, period: 20ms",
		"noloco, every: 3", "in-network", "local", "federated", "gaia"}
	for i, kind := range kinds {
		for name, model := range models {
			for k, of := range judged() {
				t.Run(kind+" "+name+" "+string(of), func(t *testing.T) {
					turns.Row(t, i+k, len(kinds), 3)
					t.Parallel()
					dir := run(t, load(t, judgedPlan(kind, model, of)), driver.Options{}).Dir
					summary, err := record.ReadSummary(dir)
					if err != nil {
						t.Fatal(err)
					}
					path := filepath.Join(dir, "runs", "0000", "model.safetensors")
					if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
						path = filepath.Join(dir, "runs", "0000", "models.safetensors")
					}
					mean, low, high, saved := 0.0, 1.0, 0.0, tensorsOf(t, path)
					for _, model := range saved {
						a := accuracy(model)
						mean, low, high = mean+a/float64(len(saved)), min(low, a), max(high, a)
					}
					want := map[record.Of]float64{record.Mean: mean, record.All: low, record.Any: high,
						record.AverageModel: mean}[of]
					if got := float64(summary.Runs[0].FinalAccuracy); math.Abs(got-want) > 1e-4 {
						t.Errorf("the saved models of %d nodes have %.4f, the record says %.4f", len(saved), want, got)
					}
					server := kind == "parameter-server" || kind == "federated" || kind == "gaia"
					if several := !server && of != record.AverageModel; (len(saved) > 1) != several {
						t.Errorf("%d models are saved", len(saved))
					}
				})
			}
		}
	}
}
