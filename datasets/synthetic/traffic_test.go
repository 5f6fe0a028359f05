package synthetic_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/nslkdd"
	"github.com/gradwire/gradwire/datasets/synthetic"
	"github.com/gradwire/gradwire/nn"
)

// digest returns the first 16 hexadecimal digits of a hash of all bits.
func digest(s *datasets.Set) string {
	h := sha256.New()
	var word [4]byte
	for _, x := range s.X {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
		h.Write(word[:])
	}
	for _, y := range s.Y {
		binary.LittleEndian.PutUint32(word[:], uint32(y))
		h.Write(word[:])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// The generated bits are part of what makes old runs repeatable.
func TestSameSeedSameBits(t *testing.T) {
	for name, c := range map[string]struct {
		want     string
		generate func(seed uint64) *datasets.Set
	}{
		"traffic 93": {"087a2cc2b91d7f63", func(seed uint64) *datasets.Set {
			return synthetic.Traffic(seed, 2000,
				93)
		}},
		"traffic 122": {"caa9807aa9471fc9", func(seed uint64) *datasets.Set {
			return synthetic.Traffic(seed, 2000,
				122)
		}},
		"digits": {"edd572f24eb3e07f", func(seed uint64) *datasets.Set { return synthetic.Digits(seed, 500) }},
	} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		got := digest(c.generate(1))
		if got != c.want {
			t.Errorf("%s: digest %s, want %s", name, got, c.want)
		}
		runtime.GOMAXPROCS(2)
		if again := digest(c.generate(1)); again != got {
			t.Errorf("%s: digest %s with two processors", name, again)
		}
		if digest(c.generate(2)) == got {
			t.Errorf("%s: another seed gives the same bits", name)
		}
	}
}

func TestTrafficHasTheClassesOfKDDTrain(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{
		125973:               {67343, 45927, 11656, 995, 52},
		20000:                {10691, 7292, 1851, 158, 8},
		400:                  {201, 146, 37, 8, 8}, // at least 8 of the rare ones
		100:                  {51, 36, 9, 2, 2},
		synthetic.MinTraffic: {3, 4, 1, 1, 1},
	} {
		s := synthetic.Traffic(3, n, 93)
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, s.Counts()); diff != "" {
			t.Errorf("%d records: samples per class (-want +got):\n%s", n, diff)
		}
	}
}

func TestTrafficOf93InputsIsPartOfThatOf122(t *testing.T) {
	narrow, wide := synthetic.Traffic(5, 300, 93), synthetic.Traffic(5, 300, 122)
	few, _ := nslkdd.Columns(93)
	all, _ := nslkdd.Columns(122)
	for j, name := range few {
		k := slices.Index(all, name)
		for i := range narrow.Len() {
			if narrow.Row(i)[j] != wide.Row(i)[k] {
				t.Fatalf("record %d: %s is %v with 93 inputs, %v with 122", i, name, narrow.Row(i)[j], wide.Row(i)[k])
			}
		}
	}
	if !slices.Equal(narrow.Y, wide.Y) {
		t.Error("labels differ")
	}
}

// Written in the original's format, generated records pass its reader's checks
// and come back bit for bit.
func TestTrafficIsAcceptedByTheReaderOfTheOriginal(t *testing.T) {
	want := synthetic.Traffic(9, 5000, 122)
	names, err := nslkdd.Columns(122)
	if err != nil {
		t.Fatal(err)
	}
	attacks := []string{"normal", "neptune", "satan", "warezclient", "rootkit"}
	var text strings.Builder
	for i := range want.Len() {
		x := want.Row(i)
		fmt.Fprintf(&text, "%v", x[0])
		for j := 38; j < 122; j++ {
			if x[j] == 1 {
				_, word, _ := strings.Cut(names[j], "=")
				text.WriteString("," + word)
			}
		}
		for _, v := range x[1:38] {
			fmt.Fprintf(&text, ",%.8g", v)
		}
		fmt.Fprintf(&text, ",%s,0\n", attacks[want.Y[i]])
	}
	got, err := nslkdd.Read(strings.NewReader(text.String()), want.Name, 122)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.X, want.X) || !slices.Equal(got.Y, want.Y) || !cmp.Equal(got.Numeric, want.Numeric) ||
		!cmp.Equal(got.Classes, want.Classes) {
		t.Error("another set came back")
	}
}

func TestGeneratorsPanicOnProgrammerMistakes(t *testing.T) {
	for name, call := range map[string]func(){
		"few records":   func() { synthetic.Traffic(1, synthetic.MinTraffic-1, 93) },
		"many records":  func() { synthetic.Traffic(1, synthetic.MaxSamples+1, 93) },
		"41 inputs":     func() { synthetic.Traffic(1, 100, 41) },
		"no images":     func() { synthetic.Digits(1, 0) },
		"many images":   func() { synthetic.Digits(1, synthetic.MaxSamples+1) },
		"negative size": func() { synthetic.Digits(1, -1) },
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

// skipSlow skips a test that trains networks, which takes most of a minute
// under the race detector.
func skipSlow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("trains networks, which -short leaves out")
	}
}

// trained returns the parameters of a ReLU network after some epochs of SGD
// with batch 32.
func trained(t *testing.T, train *datasets.Set, rate float32, epochs int, layers ...int) (nn.Model, []float32) {
	t.Helper()
	m, err := nn.NewMLP(layers, nn.ReLU)
	if err != nil {
		t.Fatal(err)
	}
	const batch = 32
	params, grad := make([]float32, m.Params()), make([]float32, m.Params())
	m.Init(params, rand.New(rand.NewPCG(1, 1)))
	w := m.NewWorkspace(batch)
	s, err := datasets.NewSampler(train, nil, batch, 1, "w")
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, batch*train.Inputs), make([]int32, batch)
	for pass := range epochs {
		for step := range s.Steps() {
			n := s.Fill(pass, step, x, y)
			w.Gradient(params, grad, nn.Batch{X: x[:n*train.Inputs], Y: y[:n]})
			for i, g := range grad {
				params[i] -= rate * g
			}
		}
	}
	return m, params
}

func accuracy(m nn.Model, params []float32, s *datasets.Set) float64 {
	_, correct := m.NewWorkspace(256).Evaluate(params, nn.Batch{X: s.X, Y: s.Y})
	return float64(correct) / float64(s.Len())
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("%s: %.4f", what, got)
	if !(got >= low && got <= high) {
		t.Errorf("%s: accuracy %.4f, want %v to %v", what, got, low, high)
	}
}

// scaledTraffic returns a training and a test set, scaled by min-max.
func scaledTraffic(t *testing.T, n int) (train, test *datasets.Set) {
	t.Helper()
	set := synthetic.Traffic(1, n, 93)
	trainRows, testRows, err := datasets.Holdout(n, 0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	train, test = set.Subset(trainRows), set.Subset(testRows)
	scaler := datasets.FitScaler(datasets.MinMax, train, nil)
	scaler.Apply(train)
	scaler.Apply(test)
	return train, test
}

func TestTrafficTakesANetworkToLearn(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	train, test := scaledTraffic(t, 125973)
	m, params := trained(t, train, 0.05, 1, 93, 21, 5)
	within(t, "93-21-5 after 1 epoch", accuracy(m, params, test), 0.90, 0.945)
	m, params = trained(t, train, 0.05, 4, 93, 21, 5)
	after4 := accuracy(m, params, test)
	within(t, "93-21-5 after 4 epochs", after4, 0.935, 0.975)
	m, params = trained(t, train, 0.05, 4, 93, 5)
	within(t, "linear after 4 epochs", accuracy(m, params, test), 0.90, after4-0.01)
	m, params = trained(t, train, 0.2, 4, 93, 64, 5)
	within(t, "93-64-5, rate 0.2, after 4 epochs", accuracy(m, params, test), 0.965, 0.99)
}

func TestEachTrafficClassIsLearnable(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	train, test := scaledTraffic(t, 100_000)
	// As many of each class as the largest balanced sample with repeats gives.
	const each = 2000
	byClass := make([][]int32, len(train.Classes))
	for i, y := range train.Y {
		byClass[y] = append(byClass[y], int32(i))
	}
	var rows []int32
	for _, of := range byClass {
		for i := range each {
			rows = append(rows, of[i%len(of)])
		}
	}
	m, params := trained(t, train.Subset(rows), 0.1, 5, 93, 21, 5)
	for class, name := range test.Classes {
		var of []int32
		for i, y := range test.Y {
			if int(y) == class {
				of = append(of, int32(i))
			}
		}
		within(t, name+" among equals", accuracy(m, params, test.Subset(of)), 0.5, 1)
	}
}

func TestDigitsAreImagesInEqualNumbers(t *testing.T) {
	s := synthetic.Digits(1, 1003)
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	for digit, count := range s.Counts() {
		if count != 100 && count != 101 {
			t.Errorf("%d images of digit %d", count, digit)
		}
	}
	for i := range s.Len() {
		var ink float32
		for _, v := range s.Row(i) {
			if v < 0 || v > 1 {
				t.Fatalf("image %d has a pixel of %v", i, v)
			}
			ink += v
		}
		// MNIST's images have 17 to 400.
		if ink < 10 || ink > 400 {
			t.Errorf("image %d (a %d) has ink %v", i, s.Y[i], ink)
		}
	}
}

func TestDigitsTakeANetworkToLearn(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	train, test := synthetic.Digits(1, 2000), synthetic.Digits(2, 2000)
	m, params := trained(t, train, 0.05, 15, 784, 10)
	within(t, "linear on 2,000 images", accuracy(m, params, test), 0.60, 0.90)
	m, params = trained(t, synthetic.Digits(3, 10_000), 0.1, 8, 784, 32, 10)
	within(t, "784-32-10 on 10,000 images", accuracy(m, params, test), 0.91, 0.99)
}

func BenchmarkTraffic(b *testing.B) {
	for _, encoding := range []int{93, 122} {
		b.Run(fmt.Sprint(encoding), func(b *testing.B) {
			const n = 10_000
			b.ReportAllocs()
			for b.Loop() {
				synthetic.Traffic(1, n, encoding)
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkDigits(b *testing.B) {
	const n = 1000
	b.ReportAllocs()
	for b.Loop() {
		synthetic.Digits(1, n)
	}
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "images/s")
}
