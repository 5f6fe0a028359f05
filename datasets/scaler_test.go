package datasets

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// columns returns a set of four inputs of which 0, 1 and 3 are numeric.
func columns(rows ...[4]float32) *Set {
	s := &Set{Inputs: 4, Classes: []string{"a"}, Numeric: []int{0, 1, 3}, Y: make([]int32, len(rows))}
	for _, r := range rows {
		s.X = append(s.X, r[:]...)
	}
	return s
}

func TestScalersMatchTheirFormulas(t *testing.T) {
	e := float32(math.E)
	for _, c := range []struct {
		scaling Scaling
		want    []float32
	}{
		{NoScaling, []float32{1, 0, 7, 5, 2, e - 1, 8, 5, 4, e*e - 1, 9, 5}},
		{MinMax, []float32{0, 0, 7, 0, 1. / 3, 1 / (e + 1), 8, 0, 1, 1, 9, 0}},
		{Standard, []float32{-1.069045, -1.001069, 7, 0, -0.267261, -0.364565, 8, 0, 1.336306, 1.365633, 9, 0}},
		{LogMinMax, []float32{0, 0, 7, 0, 0.442507, 0.5, 8, 0, 1, 1, 9, 0}},
	} {
		set := columns([4]float32{1, 0, 7, 5}, [4]float32{2, e - 1, 8, 5}, [4]float32{4, e*e - 1, 9, 5})
		FitScaler(c.scaling, set, nil).Apply(set)
		if diff := cmp.Diff(c.want, set.X, cmpopts.EquateApprox(0, 2e-6)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.scaling, diff)
		}
	}
}

func TestScalerLeavesValuesOutsideTheFittedRangeOutside(t *testing.T) {
	set := columns([4]float32{0, 1, 0, 3}, [4]float32{10, 2, 0, 3}, [4]float32{20, 0, 0, 9})
	FitScaler(MinMax, set, []int32{0, 1}).Apply(set)
	if diff := cmp.Diff([]float32{2, -1, 0, 0}, set.Row(2)); diff != "" {
		t.Errorf("unfitted row (-want +got):\n%s", diff)
	}
}

func TestStandardMakesAConstantColumnZeroWhateverTheMeanRoundsTo(t *testing.T) {
	rows := make([][4]float32, 1000)
	for i := range rows {
		rows[i] = [4]float32{0.1, float32(i), 0, 1e30}
	}
	set := columns(rows...)
	FitScaler(Standard, set, nil).Apply(set)
	for i := range set.Len() {
		if x := set.Row(i); x[0] != 0 || x[3] != 0 {
			t.Fatalf("row %d is %v", i, x)
		}
	}
}

func TestLogScalingIsSymmetric(t *testing.T) {
	set := columns([4]float32{-1e6}, [4]float32{0}, [4]float32{1e6})
	FitScaler(LogMinMax, set, nil).Apply(set)
	if set.X[0] != 0 || set.X[4] != 0.5 || set.X[8] != 1 {
		t.Errorf("scaled to %v, %v, %v", set.X[0], set.X[4], set.X[8])
	}
}

func TestScalerPanicsOnProgrammerMistakes(t *testing.T) {
	set := columns([4]float32{1})
	for name, call := range map[string]func(){
		"no rows":       func() { FitScaler(MinMax, set, []int32{}) },
		"empty set":     func() { FitScaler(MinMax, columns(), nil) },
		"unknown":       func() { FitScaler(Scaling("minmax"), set, nil) },
		"other columns": func() { FitScaler(MinMax, set, nil).Apply(counting(3)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestInputsWithoutAListOfColumnsAreScaledAlike(t *testing.T) {
	images := func() *Set {
		return &Set{Name: "images", Inputs: 2, Classes: []string{"a"}, X: []float32{0, 1, 2, 3, 4, 8},
			Y: []int32{0, 0, 0}}
	}
	for scaling, want := range map[Scaling][]float64{
		NoScaling: {0, 1, 2, 3, 4, 8},
		// Of the first two rows: from 0 to 3; mean 1.5 and deviation √1.25.
		MinMax: {0, 1. / 3, 2. / 3, 1, 4. / 3, 8. / 3},
		Standard: {-1.5 / math.Sqrt(1.25), -0.5 / math.Sqrt(1.25), 0.5 / math.Sqrt(1.25), 1.5 / math.Sqrt(1.25),
			2.5 / math.Sqrt(1.25), 6.5 / math.Sqrt(1.25)},
		LogMinMax: {0, math.Log(2) / math.Log(4), math.Log(3) / math.Log(4), 1, math.Log(5) / math.Log(4),
			math.Log(9) / math.Log(4)},
	} {
		set := images()
		FitScaler(scaling, set, []int32{0, 1}).Apply(set)
		for i, x := range set.X {
			if math.Abs(float64(x)-want[i]) > 1e-6 {
				t.Errorf("%v: input %d is %v, want %v", scaling, i, x, want[i])
			}
		}
	}
	constant := images()
	clear(constant.X)
	FitScaler(Standard, constant, nil).Apply(constant)
	if constant.X[0] != 0 {
		t.Errorf("a constant image becomes %v", constant.X)
	}
}
