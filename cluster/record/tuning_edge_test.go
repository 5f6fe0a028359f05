package record

import (
	"slices"
	"strings"
	"testing"
)

func TestAChoiceAtTheEdgeOfItsCandidatesSaysSo(t *testing.T) {
	for _, c := range []struct {
		values string // candidates, in the order of trial
		chosen int
		want   string
	}{
		{"0.1 0.2 0.4", 2, "k 0.4 is the largest candidate: a larger one may be better"},
		{"0.1 0.2 0.4", 0, "k 0.1 is the smallest candidate: a smaller one may be better"},
		{"0.1 0.2 0.4", 1, ""}, {"0.4 0.1 0.2", 0, "k 0.4 is the largest candidate: a larger one may be better"},
		{"9 10", 1, "k 10 is the largest candidate: a larger one may be better"}, {"5", 0, ""}, {"a b", 1, ""},
	} {
		one := Tuning{Chosen: c.chosen}
		for _, v := range strings.Fields(c.values) {
			one.Candidates = append(one.Candidates, Candidate{Values: Point{{Key: "k", Value: v}}})
		}
		f, err := Create(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SaveTunings([]Tuning{one}); err != nil {
			t.Fatal(err)
		}
		read, err := ReadTunings(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" })
		if !slices.Equal(read[0].Edges, want) {
			t.Errorf("%q chosen %d: %q, want %q", c.values, c.chosen, read[0].Edges, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
