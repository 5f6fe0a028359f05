package datasets

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Gaps get the mean of the rows that are trained on, computed a second time column by column; what
// the others hold does not matter.
func TestGapsGetTheMeanOfTheTrainingRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		n, inputs := 2+rng.IntN(30), 1+rng.IntN(5)
		s := &Set{Name: "s", Inputs: inputs, Classes: []string{"c"}, Y: make([]int32, n), Gaps: true}
		for range n * inputs {
			v := float32(rng.NormFloat64() * 100)
			if rng.IntN(4) == 0 {
				v = float32(math.NaN())
			}
			s.X = append(s.X, v)
		}
		for c := range inputs {
			if rng.IntN(3) > 0 {
				s.Numeric = append(s.Numeric, c)
				s.X[c] = 5 // the first row, which is trained on, has one
			} else {
				for i := range n {
					s.X[i*inputs+c] = 1
				}
			}
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		rows := []int32{0}
		for i := 1; i < n; i += 1 + rng.IntN(3) {
			rows = append(rows, int32(i))
		}
		f, err := FitFiller(s, rows)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(s.X)
		for j, c := range s.Numeric {
			sum, count := 0.0, 0.0
			for _, row := range rows {
				if v := s.X[int(row)*inputs+c]; v == v {
					sum, count = sum+float64(v), count+1
				}
			}
			if got := f.Columns()[j]; got != (FilledColumn{c, sum / count}) {
				t.Fatalf("column %d: %+v, want %v", c, got, sum/count)
			}
			for i := range n {
				if p := &want[i*inputs+c]; *p != *p {
					*p = float32(sum / count)
				}
			}
		}
		f.Apply(s)
		if !slices.Equal(s.X, want) || s.Gaps || s.Validate() != nil {
			t.Fatalf("%v, want %v", s.X, want)
		}
	}
}

func TestAColumnWithoutAnyValueHasNoMean(t *testing.T) {
	nan := float32(math.NaN())
	s := &Set{Name: "s", Inputs: 2, X: []float32{1, nan, 2, 3}, Y: []int32{0, 0}, Classes: []string{"c"},
		Numeric: []int{0, 1}, Columns: []string{"a", "b"}, Gaps: true}
	if _, err := FitFiller(s, []int32{0}); err == nil || !strings.Contains(err.Error(),
		`no training sample has a value of input "b"`) {
		t.Error(err)
	}
	if _, err := FitFiller(s, nil); err != nil {
		t.Error(err)
	}
}

func TestNaNIsAnErrorBesideGaps(t *testing.T) {
	s := &Set{Name: "s", Inputs: 1, X: []float32{float32(math.NaN())}, Y: []int32{0}, Classes: []string{"c"}}
	for _, s.Gaps = range []bool{false, true} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "inputs must be finite") {
			t.Error(err)
		}
	}
}
