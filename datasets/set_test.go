package datasets

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValidateNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		want string
		harm func(*Set)
	}{
		{"inputs a sample", func(s *Set) { s.Inputs = 0 }},
		{"no samples", func(s *Set) { s.Y, s.X = nil, nil }},
		{"do not make", func(s *Set) { s.X = s.X[:7] }},
		{"do not make", func(s *Set) { s.Y = s.Y[:3] }},
		{"no class names", func(s *Set) { s.Classes = nil }},
		{"has no name", func(s *Set) { s.Classes[1] = "" }},
		{`both named "a"`, func(s *Set) { s.Classes[2] = "a" }},
		{"sample 2 has label 3", func(s *Set) { s.Y[2] = 3 }},
		{"sample 2 has label -1", func(s *Set) { s.Y[2] = -1 }},
		{"numeric column 2", func(s *Set) { s.Numeric[1] = 2 }},
		{"numeric column 0 after 0", func(s *Set) { s.Numeric[1] = 0 }},
		{"sample 1, input 1 is NaN", func(s *Set) { s.X[3] = float32(math.NaN()) }},
		{"sample 1, input 0 is +Inf", func(s *Set) { s.X[2] = float32(math.Inf(1)) }},
	} {
		s := counting(4)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		c.harm(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestSourceValidateComparesPoolAndTest(t *testing.T) {
	if err := (&Source{Pool: counting(3)}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (&Source{Pool: counting(3), Test: counting(2)}).Validate(); err != nil {
		t.Error(err)
	}
	other := counting(3)
	other.Classes = []string{"a", "b", "d"}
	for name, s := range map[string]*Source{
		"no pool": {}, "bad pool": {Pool: counting(0)}, "bad test": {Pool: counting(3), Test: counting(0)},
		"other classes": {Pool: counting(3), Test: other},
	} {
		if s.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSubsetCopies(t *testing.T) {
	s := counting(5)
	sub := s.Subset([]int32{4, 1, 4})
	if diff := cmp.Diff([]float32{4, -4, 1, -1, 4, -4}, sub.X); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int32{1, 1, 1}, sub.Y); diff != "" {
		t.Error(diff)
	}
	sub.X[0], sub.Y[0] = 9, 0
	if s.X[8] != 4 || s.Y[4] != 1 {
		t.Error("writing to the subset changed the set")
	}
	if diff := cmp.Diff([]int{2, 2, 1}, s.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestHoldoutPartsAreDisjointSortedAndOfTheRoundedShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 500).Draw(t, "n")
		share := rapid.Float64Range(0.001, 0.999).Draw(t, "share")
		seed := rapid.Uint64().Draw(t, "seed")
		train, test, err := Holdout(n, share, seed)
		tests := int(math.Round(share * float64(n)))
		if tests == 0 || tests == n {
			if err == nil {
				t.Fatal("an empty part was no error")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(test) != tests || !slices.IsSorted(train) || !slices.IsSorted(test) {
			t.Fatalf("%d test rows, want %d, both sorted", len(test), tests)
		}
		for i, row := range slices.Sorted(slices.Values(slices.Concat(train, test))) {
			if int(row) != i {
				t.Fatalf("rows %v and %v are not all of 0..%d once", train, test, n-1)
			}
		}
		_, again, _ := Holdout(n, share, seed)
		if !slices.Equal(again, test) {
			t.Fatal("the same arguments gave another split")
		}
	})
}

func TestHoldoutOfNSLKDDQuarter(t *testing.T) {
	train, test, err := Holdout(125973, 0.25, 1)
	if err != nil || len(train) != 94480 || len(test) != 31493 {
		t.Errorf("%d and %d rows, %v", len(train), len(test), err)
	}
	_, other, _ := Holdout(125973, 0.25, 2)
	if slices.Equal(other, test) {
		t.Error("another seed gave the same split")
	}
}

func TestValidationIsDrawnByAStreamOfItsOwn(t *testing.T) {
	train, validation, err := Validation(1000, 0.25, 7)
	if err != nil || len(train) != 750 || len(validation) != 250 {
		t.Fatalf("%d and %d rows, %v", len(train), len(validation), err)
	}
	_, test, _ := Holdout(1000, 0.25, 7)
	alike := 0
	for _, row := range validation {
		if _, found := slices.BinarySearch(test, row); found {
			alike++
		}
	}
	// Of two independent draws a quarter is alike: 62.5 ± 5 standard deviations of 6.
	if alike < 32 || alike > 93 {
		t.Errorf("%d of 250 rows for validation are in the same seed's test set too", alike)
	}
	if _, again, _ := Validation(1000, 0.25, 7); !slices.Equal(again, validation) {
		t.Error("drawn again, the rows differ")
	}
}

func TestHoldoutRefusesSillyShares(t *testing.T) {
	for _, share := range []float64{0, 1, -0.1, 1.5, math.NaN(), math.Inf(1), 1e-9, 1 - 1e-9} {
		if _, _, err := Holdout(100, share, 1); err == nil {
			t.Errorf("share %v: no error", share)
		}
	}
	for _, n := range []int{-1, 0, 1} {
		if _, _, err := Holdout(n, 0.5, 1); err == nil {
			t.Errorf("%d samples: no error", n)
		}
	}
}
