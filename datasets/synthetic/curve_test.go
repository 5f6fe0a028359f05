package synthetic_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/nslkdd"
	"github.com/gradwire/gradwire/datasets/synthetic"
	"github.com/gradwire/gradwire/nn"
)

func curve(t *testing.T, label string, pool *datasets.Set, layers []int, rate float32, epochs float64, seed uint64, batch int) {
	tr, te, err := datasets.Holdout(pool.Len(), .25, seed)
	if err != nil {
		t.Fatal(err)
	}
	train, test := pool.Subset(tr), pool.Subset(te)
	sc := datasets.FitScaler(datasets.MinMax, train, nil)
	sc.Apply(train)
	sc.Apply(test)
	m, err := nn.NewMLP(layers, nn.ReLU)
	if err != nil {
		t.Fatal(err)
	}
	p, g := make([]float32, m.Params()), make([]float32, m.Params())
	m.Init(p, rand.New(rand.NewPCG(seed, 1)))
	w := m.NewWorkspace(batch)
	s, _ := datasets.NewSampler(train, nil, batch, seed, "w")
	x, y := make([]float32, batch*train.Inputs), make([]int32, batch)
	steps := int(epochs * float64(s.Steps()))
	marks := []float64{.05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7, 10, 20}
	line := ""
	mi := 0
	for i := 0; i <= steps; i++ {
		if mi < len(marks) && i >= int(marks[mi]*float64(s.Steps())) {
			_, c := w.Evaluate(p, nn.Batch{X: test.X, Y: test.Y})
			line += fmt.Sprintf(" %g:%.2f", marks[mi], 100*float64(c)/float64(test.Len()))
			mi++
		}
		n := s.Fill(i/s.Steps(), i%s.Steps(), x, y)
		w.Gradient(p, g, nn.Batch{X: x[:n*train.Inputs], Y: y[:n]})
		for j := range p {
			p[j] -= rate * g[j]
		}
	}
	// per class
	per := ""
	for c := range test.Classes {
		var rows []int32
		for i, yy := range test.Y {
			if int(yy) == c {
				rows = append(rows, int32(i))
			}
		}
		sub := test.Subset(rows)
		_, k := w.Evaluate(p, nn.Batch{X: sub.X, Y: sub.Y})
		per += fmt.Sprintf(" %s %d/%d", test.Classes[c], k, len(rows))
	}
	fmt.Println(label, line, "|", per)
}

func TestCurveReal(t *testing.T) {
	s, err := nslkdd.Load(os.Getenv("GRADWIRE_DATA"), nslkdd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	curve(t, "real mlp", s.Pool, []int{93, 21, 5}, .05, 5, 1, 32)
	curve(t, "real lin", s.Pool, []int{93, 5}, .05, 5, 1, 32)
}
func TestCurveSyn(t *testing.T) {
	s := synthetic.Traffic(1, 125973, 93)
	curve(t, "syn mlp", s, []int{93, 21, 5}, .05, 10, 1, 32)
	curve(t, "syn mlp2", s, []int{93, 21, 5}, .05, 3, 2, 32)
	curve(t, "syn lin", s, []int{93, 5}, .05, 5, 1, 32)
	curve(t, "syn big", s, []int{93, 64, 5}, .2, 10, 1, 32)
}
func TestCurveMore(t *testing.T) {
	for seed := uint64(3); seed < 7; seed++ {
	s := synthetic.Traffic(seed, 125973, 93)
	curve(t, "syn mlp", s, []int{93, 21, 5}, .05, 10, seed, 32)
	}
	s := synthetic.Traffic(1, 20000, 93)
	curve(t, "syn 20k mlp", s, []int{93, 21, 5}, .05, 20, 1, 32)
	curve(t, "syn 20k mlp r.2", s, []int{93, 21, 5}, .2, 20, 1, 32)
	curve(t, "syn 20k lin r.2", s, []int{93, 5}, .2, 20, 1, 32)
	s = synthetic.Traffic(1, 125973, 122)
	curve(t, "syn 122 mlp", s, []int{122, 21, 5}, .05, 5, 1, 32)
}
