package driver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/synthetic"
)

// described is what somebody reads who has the model's file and nothing else.
type described struct {
	model struct {
		Kind, Activation string
		Layers           []any
	}
	data           struct{ Set string }
	classes, names []string
	shape          []int
	scaling        struct {
		Kind          string
		Columns       []int
		Offset, Width []float64
	}
	params  []float32
	tensors []safetensors.Tensor
}

func describedIn(t *testing.T, dir string) (d described) {
	t.Helper()
	file := read(t, filepath.Join(dir, "runs", "0000"), "model.safetensors")
	params, tensors, metadata, err := safetensors.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	d.params, d.tensors = params, tensors
	for key, into := range map[string]any{
		"model": &d.model, "data": &d.data, "classes": &d.classes, "inputs": &d.names, "input_shape": &d.shape,
		"scaling": &d.scaling,
	} {
		if err := json.Unmarshal([]byte(metadata[key]), into); err != nil && metadata[key] != "" {
			t.Errorf("%s is %q: %v", key, metadata[key], err)
		}
	}
	if metadata["seed"] != "7" {
		t.Errorf("the seed is %q", metadata["seed"])
	}
	return d
}

const described93 = `
name: described
seed: 7
data: {set: synthetic-traffic, samples: 2000, encoding: 93, test: 25%}
model: {kind: mlp, layers: [93, 8, 5], activation: tanh}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce}
nodes: [{name: w, count: 2, compute: {step: 5ms}}]
evaluate: {every: 20 steps, of: average-model}
stop: {steps: 100}
`

// The accuracy is computed again from the file's tensors and metadata, raw samples and textbook
// formulas alone.
func TestModelsFileIsEnoughToUseTheModelElsewhere(t *testing.T) {
	r := run(t, load(t, described93), driver.Options{})
	d := describedIn(t, r.Dir)
	if d.model.Kind != "mlp" || fmt.Sprint(d.model.Layers) != "[93 8 5]" || d.model.Activation != "tanh" {
		t.Errorf("the model is %+v", d.model)
	}
	if d.data.Set != "synthetic-traffic" || len(d.names) != 93 || d.names[9] != "protocol_type=icmp" ||
		!slices.Equal(d.shape, []int{93}) {
		t.Errorf("data %+v, %d inputs %q, shape %v", d.data, len(d.names), d.names, d.shape)
	}
	raw := synthetic.Traffic(1, 2000, 93)
	if !slices.Equal(d.classes, raw.Classes) || d.scaling.Kind != "min-max" || len(d.scaling.Columns) != 9 {
		t.Errorf("classes %q, scaling %+v", d.classes, d.scaling)
	}
	_, test, err := datasets.Holdout(raw.Len(), 0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	correct := 0
	for _, row := range test {
		x := slices.Clone(raw.Row(int(row)))
		for i, c := range d.scaling.Columns {
			if x[c] = float32((float64(x[c]) - d.scaling.Offset[i]) / d.scaling.Width[i]); d.scaling.Width[i] == 0 {
				x[c] = 0
			}
		}
		if d.predict(x) == int(raw.Y[row]) {
			correct++
		}
	}
	got, want := float64(correct)/float64(len(test)), float64(r.Runs[0].FinalAccuracy)
	if math.Abs(got-want) > 0.005 { // logits may tie within rounding
		t.Errorf("the file's model has an accuracy of %v, the record says %v", got, want)
	}
}

// predict computes y = W·x + b layer by layer, W being out×in.
func (d *described) predict(x []float32) int {
	for i := 0; i < len(d.tensors); i += 2 {
		w, bias := d.tensors[i], d.tensors[i+1]
		y := make([]float32, w.Shape[0])
		for o := range y {
			sum := float64(d.params[bias.Offset+o])
			for j, v := range x {
				sum += float64(d.params[w.Offset+o*w.Shape[1]+j]) * float64(v)
			}
			if y[o] = float32(sum); i+2 < len(d.tensors) {
				y[o] = float32(math.Tanh(sum))
			}
		}
		x = y
	}
	return slices.Index(x, slices.Max(x))
}

func TestModelOfImagesHasTheirShapeAndNoScaling(t *testing.T) {
	network := "model={kind: network, input: [1, 28, 28], layers: [flatten, {kind: dense, outputs: 10}]}"
	r := run(t, load(t, described93, "data={set: synthetic-digits, samples: 500}", network), driver.Options{})
	d := describedIn(t, r.Dir)
	if !slices.Equal(d.shape, []int{28, 28}) || d.names != nil || d.scaling.Kind != "none" || len(d.classes) != 10 {
		t.Errorf("shape %v, inputs %q, scaling %+v, classes %q", d.shape, d.names, d.scaling, d.classes)
	}
}

// The mean and the deviation are computed again from the raw pixels of the training samples.
func TestModelOfScaledImagesHasTheConstantsOfAllPixels(t *testing.T) {
	r := run(t, load(t, described93, "data={set: synthetic-digits, samples: 500, scale: standard}",
		"model={kind: mlp, layers: [784, 10]}"), driver.Options{})
	d := describedIn(t, r.Dir)
	raw := synthetic.Digits(1, 500)
	train, _, err := datasets.Holdout(raw.Len(), 0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	var n, sum, squares float64
	for _, row := range train {
		for _, x := range raw.Row(int(row)) {
			n, sum, squares = n+1, sum+float64(x), squares+float64(x)*float64(x)
		}
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if s := d.scaling; s.Kind != "standard" || s.Columns != nil || len(s.Offset) != 1 || len(s.Width) != 1 ||
		math.Abs(s.Offset[0]-mean) > 1e-9 || math.Abs(s.Width[0]-deviation) > 1e-9 {
		t.Errorf("scaling %+v, want offset %v and width %v", s, mean, deviation)
	}
}
