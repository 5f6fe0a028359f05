package driver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/datasets"
)

const holed = `
name: holed
seed: 7
data: {set: csv, file: holes.csv, missing: mean, test: 25%}
model: {kind: mlp, layers: [2, 2]}
train: {batch: 8, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce}
nodes: [{name: w, count: 2, compute: {step: 5ms}}]
evaluate: {every: 5 steps, of: average-model}
stop: {steps: 10}
`

// The mean that fills a gap, and the scaling after it, are of the samples that are trained on: they
// are computed again here from the table and the hold-out alone.
func TestMissingValuesAreFilledFromTheTrainingPartAndRecorded(t *testing.T) {
	dir := t.TempDir()
	const n = 80
	a, gaps := holes(t, filepath.Join(dir, "holes.csv"), n)
	p, err := driver.Parse(filepath.Join(dir, "holed.yaml"), []byte(holed))
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, p, driver.Options{})
	if got, want := r.Data[0].Missing, (record.Missing{Values: gaps, Samples: gaps, Done: "mean"}); got != want {
		t.Errorf("the record has %+v, want %+v", got, want)
	}

	train, _, err := datasets.Holdout(n, 0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	sum, known := 0.0, 0.0
	for _, row := range train {
		if !math.IsNaN(a[row]) {
			sum, known = sum+a[row], known+1
		}
	}
	mean, square := sum/known, 0.0
	for _, row := range train {
		if !math.IsNaN(a[row]) {
			square += (a[row] - mean) * (a[row] - mean)
		}
	}
	_, _, metadata, err := safetensors.Read(bytes.NewReader(read(t, runFolder(r.Dir, 0), "model.safetensors")))
	if err != nil {
		t.Fatal(err)
	}
	var filled struct{ Values []float64 }
	var scaled struct{ Offset, Width []float64 }
	if err := json.Unmarshal([]byte(metadata["missing"]), &filled); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(metadata["scaling"]), &scaled); err != nil {
		t.Fatal(err)
	}
	width := math.Sqrt(square / float64(len(train))) // a gap lies at the mean
	if len(filled.Values) != 2 || filled.Values[0] != mean || math.Abs(scaled.Offset[0]-mean) > 1e-5 ||
		math.Abs(scaled.Width[0]-width) > 1e-5 {
		t.Errorf("filled with %v, scaled by %+v; want mean %v, deviation %v", filled.Values, scaled, mean, width)
	}
}

// holes writes a table of n samples with gaps in its first column, of which it returns the values,
// NaN where missing, and the number that are.
func holes(t *testing.T, file string, n int) (a []float64, gaps int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	text.WriteString("a,b,label\n")
	for i := range n {
		v, field := float64(i), fmt.Sprint(i)
		if rng.IntN(3) == 0 {
			v, field = math.NaN(), []string{"", "NA", "?"}[i%3]
			gaps++
		}
		a = append(a, v)
		fmt.Fprintf(&text, "%s,%d,%d\n", field, i%7, i%2)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return a, gaps
}
