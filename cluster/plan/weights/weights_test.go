package weights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/weights"
)

// read reads the weights of a plan.
func read(t *testing.T, text string) *weights.Classes {
	t.Helper()
	n, err := syntax.Parse("plan", []byte("class-weights: "+text))
	if err != nil {
		t.Fatal(err)
	}
	c := &weights.Classes{}
	if err := c.UnmarshalPlan(n.At("class-weights")); err != nil {
		t.Fatal(err)
	}
	return c
}

// The figures are those of compute_class_weight("balanced") of scikit-learn for 1, 1, 1, 2, 2, 4.
func TestBalancedWeightsAreScikitLearns(t *testing.T) {
	got, err := read(t, "balanced").For([]string{"1", "2", "3", "4"}, []int{3, 2, 0, 1})
	if want := []float32{6. / 9, 1, 1, 2}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestWeightsAreInTheOrderOfTheClasses(t *testing.T) {
	given := read(t, "{c: 3, a: 0.5}")
	table, err := weights.Read(strings.NewReader("class,weight\n\"c\",3\na,.5\n"), "f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*weights.Classes{given, {Of: table, Source: given.Source}} {
		got, err := c.For([]string{"a", "b", "c"}, []int{1, 1, 1})
		if err != nil || !slices.Equal(got, []float32{0.5, 1, 3}) {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	for _, text := range []string{"balanced", "weights.csv", "{a: 0.5, c: 3}"} {
		n, err := read(t, text).MarshalPlan()
		if err != nil || n.Flow() != text {
			t.Errorf("%s is written as %s, %v", text, n.Flow(), err)
		}
	}
}
