package driver_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
)

// unequal is a plan on a table in which one class is rare; a batch is the whole training set.
const unequal = `
name: unequal
seed: 3
data: {set: csv, file: %s, test-file: %s, scale: none}
model: {kind: mlp, layers: [2, 2]}
train: {batch: 1000, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce}
nodes: [{name: w, compute: {step: 5ms}}]
evaluate: {every: 5 steps, of: average-model}
stop: {steps: 20}
`

// rare writes a table with 9 samples of class a and 36 of class b, those of class a each some times
// over.
func rare(t *testing.T, dir, name string, times int) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("x,y,label\n")
	for i := range 45 {
		line := fmt.Sprintf("%.3f,%.3f,", math.Sin(float64(7*i)), math.Cos(float64(5*i)))
		if i%5 > 0 {
			text.WriteString(line + "b\n")
			continue
		}
		text.WriteString(strings.Repeat(line+"a\n", times))
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// paramsOf are the parameters of the model of a record's first run.
func paramsOf(t *testing.T, dir string) []float32 {
	t.Helper()
	params, _, _, err := safetensors.Read(bytes.NewReader(read(t, runFolder(dir, 0), "model.safetensors")))
	if err != nil {
		t.Fatal(err)
	}
	return params
}

func TestAClassOfWeightThreeTrainsAsItsSamplesThreeTimes(t *testing.T) {
	dir := t.TempDir()
	once, thrice := rare(t, dir, "once.csv", 1), rare(t, dir, "thrice.csv", 3)
	train := func(file string, set ...string) *driver.Report {
		return run(t, load(t, fmt.Sprintf(unequal, file, once), set...), driver.Options{})
	}
	want := paramsOf(t, train(thrice).Dir)
	weighted := train(once, "train.class-weights={a: 3}")
	got, plain := paramsOf(t, weighted.Dir), paramsOf(t, train(once).Dir)
	far := 0.0
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Errorf("parameter %d is %v, with samples three times %v", i, got[i], want[i])
		}
		far = max(far, math.Abs(float64(plain[i]-want[i])))
	}
	if far < 1e-2 {
		t.Errorf("the weights make a difference of %v", far)
	}
	// 45 samples, 2 classes: a has 45 ÷ (2 × 9), b 45 ÷ (2 × 36).
	table := filepath.Join(dir, "weights.csv")
	if err := os.WriteFile(table, []byte("class,weight\na, 2.5\nb,0.625\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	balanced := sortedDigests(digests(train(once, "train.class-weights=balanced")))
	for _, weights := range []string{"{a: 2.5, b: 0.625}", table} {
		if same := sortedDigests(digests(train(once, "train.class-weights="+weights))); !slices.Equal(same, balanced) {
			t.Errorf("%s: digests %v, balanced %v", weights, same, balanced)
		}
	}
}

func TestWeightsThatMeanNothingAreRefused(t *testing.T) {
	dir := t.TempDir()
	once := rare(t, dir, "once.csv", 1)
	table := func(text string) string {
		path := filepath.Join(dir, "weights.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ weights, table, want string }{
		{"{a: 2, c: 3}", "", `there is no class "c" to weight; accepted are ["a" "b"]`},
		{"{a: 0}", "", "weight 0; accepted are numbers from 1e-06 to 1e+06"},
		{"{a: -1}", "", "weight -1; accepted are numbers"},
		{"{a: .inf}", "", "a: "},
		{"{a: x}", "", "a: "},
		{"{}", "", "accepted are the word balanced, a map as in {spam: 2, ham: 0.5}, and a table"},
		{"[2, 1]", "", "accepted are the word balanced"},
		{"balancd", "", "balancd is no weights; accepted are the word balanced"},
		{"nowhere.csv", "", "the table of weights cannot be read: open nowhere.csv"},
		{"", "a,2\nb,x\n", `weights.csv:2: "x" is not a number`},
		{"", "a,2\nb,NaN\n", `weights.csv:2: weight NaN; accepted are numbers`},
		{"", "a,2\na,3\n", `weights.csv:2: the class "a" has a weight already`},
		{"", "a,2\nb\n", `weights.csv:2: columns separated by commas: found 1, accepted are 2; accepted are a class`},
		{"", "class,weight\n", "weights.csv: no weights"},
		{"", "a,2\nc,3\n", `there is no class "c" to weight`},
		{"", strings.Repeat("\n", 1<<20) + "a,2\n", "weights.csv: "},
	} {
		if c.table != "" {
			c.weights = table(c.table)
		}
		p, err := driver.Parse("unequal.yaml", fmt.Appendf(nil, unequal, once, once), "train.class-weights="+c.weights)
		if err == nil {
			_, err = try(t, p, driver.Options{})
		}
		expectInput(t, err, c.want)
		expectInput(t, err, "class-weights")
	}
	p := load(t, described93, "train.class-weights={dos: 2}")
	_, err := p.Points(nil)
	expectInput(t, err, `--set train.class-weights={dos: 2}: train.class-weights.dos: there is no class "dos" to `+
		"weight")
}

func TestClassesThatATableOfWeightsLacksAreNoted(t *testing.T) {
	dir := t.TempDir()
	once := rare(t, dir, "once.csv", 1)
	for table, want := range map[string]string{
		"a,2\n":       `the table has no line for 1 of 2 classes, "b"; their weight is 1`,
		"a,2\nb,1\n":  "",
		"{a: 2}":      "",
		"{b: 2,a: 1}": "",
	} {
		weights := table
		if !strings.HasPrefix(table, "{") {
			weights = filepath.Join(dir, "weights.csv")
			if err := os.WriteFile(weights, []byte(table), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := driver.Parse("unequal.yaml", fmt.Appendf(nil, unequal, once, once), "train.class-weights="+weights)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Examine(nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := e.Forecast(t.Context(), driver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(f.Notes, "\n")
		if !strings.Contains(told, want) || strings.Contains(told, "table") != (want != "") {
			t.Errorf("%q: want %q: %s", table, want, told)
		}
	}
}
