package shelf

import (
	"math"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
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
