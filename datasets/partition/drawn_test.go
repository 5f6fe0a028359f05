package partition

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/datasets"
)

// How many of a client's n samples are of a class has the Dirichlet-multinomial distribution: of K
// classes, its mean is n/K and its variance n·1/K·(1−1/K)·(n+Kα)/(1+Kα), however many samples the
// classes have. Within a class each sample is as likely as any other.
func TestDrawnSamplesHaveTheMomentsOfTheirDistribution(t *testing.T) {
	const clients, n, alpha, k = 20_000, 20, 0.5, 4
	set := labelled(300, 50, 0, 50, 1000)
	drawn, err := Over(Drawn{Samples: n, Alpha: alpha}, set, clients, 7)
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares [5]float64
	times := make([]float64, set.Len())
	for c := range clients {
		var counts [5]float64
		for _, row := range drawn.Rows(c) {
			counts[set.Y[row]]++
			times[row]++
		}
		for class, count := range counts {
			sum[class] += count
			squares[class] += (count - n/k) * (count - n/k)
		}
	}
	const variance = n * (1. / k) * (1 - 1./k) * (n + k*alpha) / (1 + k*alpha)
	for class, of := range set.Counts() {
		if of == 0 {
			continue
		}
		mean, spread := sum[class]/clients, squares[class]/clients
		if math.Abs(mean-n/k) > 5*math.Sqrt(variance/clients) || math.Abs(spread/variance-1) > 0.05 {
			t.Errorf("class %d: mean %.3f, variance %.2f; want %v, %.2f", class, mean, spread, n/k, variance)
		}
	}
	for row, got := range times {
		class := set.Y[row]
		want := sum[class] / float64(set.Counts()[class])
		if math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("sample %d of class %d was drawn %v times, %.0f are expected", row, class, got, want)
		}
	}
}

func TestDrawnClientsDoNotDependOnEachOther(t *testing.T) {
	set := labelled(30, 20, 10)
	split := Drawn{Samples: 12, Alpha: 1}
	few, err := split.Assign(set, workerNames(3), 5)
	if err != nil {
		t.Fatal(err)
	}
	many, err := Over(split, set, 1<<30, 5)
	if err != nil {
		t.Fatal(err)
	}
	for c, rows := range few {
		if diff := cmp.Diff(rows, many.Rows(c)); diff != "" {
			t.Errorf("client %d of 3 and of 2³⁰:\n%s", c, diff)
		}
	}
	if cmp.Equal(few[0], few[1]) || cmp.Equal(many.Rows(1<<29), many.Rows(1<<30-1)) {
		t.Error("two clients have the same samples")
	}
	if other, _ := split.Assign(set, workerNames(3), 6); cmp.Equal(few, other) {
		t.Error("another seed gave the same split")
	}
}

func TestClientsAreSplitAsWorkersAre(t *testing.T) {
	set := labelled(60, 60, 60)
	for _, split := range []Split{IID{}, Shards{2}, Dirichlet{Alpha: 5}} {
		want, err := split.Assign(set, workerNames(20), 3)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Over(split, set, 20, 3)
		if err != nil {
			t.Fatal(err)
		}
		for c := range want {
			if !cmp.Equal(got.Rows(c), want[c]) {
				t.Errorf("%T: client %d has %v, as a worker %v", split, c, got.Rows(c), want[c])
			}
		}
	}
}

func TestSplitsThatDoNotSuitAPopulationSayWhy(t *testing.T) {
	set := labelled(20, 20)
	over := func(s Split, clients int) func() error {
		return func() error { _, err := Over(s, set, clients, 1); return err }
	}
	infinite := math.Inf(1)
	for want, do := range map[string]func() error{
		`data set "labelled" has 40 samples for 41 clients; drawn splits`: over(IID{}, 41),
		"3 shards for each of 20 workers are more than the 40 samples":    over(Shards{3}, 20),
		"names workers, which a population of 3 clients does not have":    over(Classes{}, 3),
		"accepted are iid, shards, dirichlet and drawn":                   over(File{}, 3),
		"split drawn: 0 samples a worker":                                 over(Drawn{Alpha: 1}, 3),
		"split drawn: alpha 0":                                            over(Drawn{Samples: 1}, 3),
		"split drawn: alpha +Inf":                                         over(Drawn{Samples: 1, Alpha: infinite}, 3),
		"no workers": func() error {
			_, err := Drawn{Samples: 1, Alpha: 1}.Assign(&datasets.Set{}, nil, 1)
			return err
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
