package shelf

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/datasets"
)

func TestSamplesForValidationAreNeitherTrainedOnNorTestedOn(t *testing.T) {
	for _, test := range []float64{0, 0.25} {
		d := &catalog.Data{Test: test, Validation: 0.2}
		rows, tests, held, err := parts(d, 1000, 3)
		if err != nil {
			t.Fatal(err)
		}
		if want := int(math.Round(0.2 * (1 - test) * 1000)); len(held) != want {
			t.Errorf("%d samples are held out, want %d", len(held), want)
		}
		for i, row := range slices.Sorted(slices.Values(slices.Concat(rows, tests, held))) {
			if int(row) != i {
				t.Fatalf("test %v: not each row once: %v, %v, %v", test, rows, tests, held)
			}
		}
		d.Validation = 0
		if _, before, _, _ := parts(d, 1000, 3); !slices.Equal(before, tests) {
			t.Errorf("test %v: what is tested on depends on the share for validation", test)
		}
	}
}

// A column may have values only outside the training part. The error names the parts that have them.
func TestValuesOutsideOfTheTrainingPartAreNamed(t *testing.T) {
	const n = 20
	d := &catalog.Data{Test: 0.25, Validation: 0.25}
	rows, tests, held, err := parts(d, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	testSet := valuesAt(n, []int32{0, 1})
	for want, c := range map[string]struct {
		values      []int32
		tests, held []int32
		test        *datasets.Set
	}{
		"1 in the hold-out part (data.test)":          {tests[:1], tests, held, nil},
		"2 in the validation part (data.validation)":  {held[:2], tests, held, nil},
		"part (data.test) and 1 in the validation":    {[]int32{tests[0], held[0]}, tests, held, nil},
		"no sample has one":                           {nil, tests, held, nil},
		"all of its values are elsewhere, 2 in the t": {nil, nil, nil, testSet},
	} {
		source := &datasets.Source{Pool: valuesAt(n, c.values), Test: c.test}
		_, err := (&Samples{}).filled(d, source, rows, c.tests, c.held)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), `no training sample has a value of input "y"`) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// valuesAt returns a set of n samples of which only some have a value of input y.
func valuesAt(n int, rows []int32) *datasets.Set {
	s := &datasets.Set{Name: "s", Inputs: 1, Numeric: []int{0}, Columns: []string{"y"}, Gaps: true,
		Classes: []string{"c"}, X: make([]float32, n), Y: make([]int32, n)}
	for i := range s.X {
		if !slices.Contains(rows, int32(i)) {
			s.X[i] = float32(math.NaN())
		}
	}
	return s
}
