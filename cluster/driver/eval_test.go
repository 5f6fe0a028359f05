package driver_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/datasets/synthetic"
)

// The confusion matrix is counted again from the file's tensors and metadata, raw samples and
// textbook formulas, the figures of a class from the matrix.
func TestASavedModelIsJudgedClassByClass(t *testing.T) {
	r := run(t, load(t, described93), driver.Options{})
	e, err := driver.Evaluate(runFolder(r.Dir, 0), "", driver.Options{Catalog: catalog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	if e.Test.Accuracy != r.Runs[0].FinalAccuracy {
		t.Errorf("accuracy %v, the run had %v", e.Test.Accuracy, r.Runs[0].FinalAccuracy)
	}
	d := describedIn(t, r.Dir)
	raw := synthetic.Traffic(1, 2000, 93)
	train, test, err := datasets.Holdout(raw.Len(), 0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	count := func(rows []int32) [][]int {
		counts := make([][]int, 5)
		for c := range counts {
			counts[c] = make([]int, 5)
		}
		for _, row := range rows {
			x := slices.Clone(raw.Row(int(row)))
			for i, c := range d.scaling.Columns {
				if x[c] = float32((float64(x[c]) - d.scaling.Offset[i]) / d.scaling.Width[i]); d.scaling.Width[i] == 0 {
					x[c] = 0
				}
			}
			counts[raw.Y[row]][d.predict(x)]++
		}
		return counts
	}
	compare(t, "the test samples", count(test), e.Test)
	shards, err := partition.IID{}.Assign(raw.Subset(train), []string{"w1", "w2"}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Workers) != 2 {
		t.Fatalf("%d workers", len(e.Workers))
	}
	for i, w := range e.Workers {
		var rows []int32
		for _, at := range shards[i] {
			rows = append(rows, train[at])
		}
		compare(t, w.Worker, count(rows), w.Judged)
	}
	if _, err := json.Marshal(e); err != nil {
		t.Error(err)
	}
}

func TestASavedNetworkIsJudgedAsItsRunWas(t *testing.T) {
	network := "model={kind: network, input: [1, 28, 28], layers: [flatten, {kind: dense, outputs: 10}]}"
	r := run(t, load(t, described93, "data={set: synthetic-digits, samples: 500}", network), driver.Options{})
	e, err := driver.Evaluate(runFolder(r.Dir, 0), "", driver.Options{Catalog: catalog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	if e.Test.Accuracy != r.Runs[0].FinalAccuracy || e.Test.Samples != 125 || len(e.Test.PerClass) != 10 {
		t.Errorf("%+v; the run had %v", e.Test, r.Runs[0].FinalAccuracy)
	}
}

func compare(t *testing.T, of string, want [][]int, got driver.Judged) {
	t.Helper()
	differ, n, right := 0, 0, 0
	for c, row := range want {
		samples, taken := 0, 0
		for other := range row {
			if differ += max(row[other]-got.Confusion[c][other], 0); c == other {
				right += got.Confusion[c][c]
			}
			samples += got.Confusion[c][other]
			taken += got.Confusion[other][c]
			n += row[other]
		}
		class := got.PerClass[c]
		near := func(a, part, of float64) bool { return math.Abs(a-part/of) < 1e-12 || of == 0 && math.IsNaN(a) }
		if class.Samples != samples || !near(float64(class.Recall), float64(got.Confusion[c][c]), float64(samples)) ||
			!near(float64(class.Precision), float64(got.Confusion[c][c]), float64(taken)) {
			t.Errorf("%s: %+v of %v", of, class, got.Confusion)
		}
	}
	// Logits may tie within rounding.
	if got.Samples != n || differ > n/200 || math.Abs(float64(got.Accuracy)-float64(right)/float64(n)) > 1e-12 {
		t.Errorf("%s: %v of %d, accuracy %v; want %v of %d", of, got.Confusion, got.Samples, got.Accuracy, want, n)
	}
}

func TestOnlyARunsFolderIsJudged(t *testing.T) {
	o := driver.Options{Catalog: catalog.Default()}
	r := run(t, load(t, described93, "evaluate.of=mean"), driver.Options{})
	for dir, want := range map[string]string{
		r.Dir:                                "is no folder of a run, such as " + runFolder(r.Dir, 0),
		filepath.Join(r.Dir, "runs", "0009"): "0009",
		runFolder(r.Dir, 0):                  "the run's figures are of several models, those of the nodes w1, w2",
	} {
		_, err := driver.Evaluate(dir, "", o)
		expectInput(t, err, want)
		if err != nil && !strings.Contains(err.Error(), r.Dir) {
			t.Errorf("%v does not name the folder", err)
		}
	}
}
