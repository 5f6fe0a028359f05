package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/driver/drivertest"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
)

// spied is the architecture of a test that sees the task.
type spied struct {
	logistic
	task **train.Task
}

func (s spied) Kind(task *train.Task, place train.Place) actors.Kind {
	*s.task = task
	return s.logistic.Kind(task, place)
}

const small = `
name: small
seed: 4
data: {set: clicks, samples: 800, inputs: 60, occur: 8, relevant: 12}
model: {kind: mlp, layers: [60, 2]}
train: {batch: 50, optimizer: {kind: sgd, rate: 0.7}}
architecture: {kind: spied, penalty: 0.01, keys: 10000000, delay: 0}
nodes:
  - {name: server, role: server, count: 2}
  - {name: judge, role: judge}
  - {name: worker, role: worker, count: 1, compute: {step: 5ms}}
network: # what is judged is asked for when the last push has arrived and before the next
  default: {delay: 5ms, rate: 10 Mbit/s}
  links: [{between: [server, judge], delay: 10ms}]
evaluate: {every: 1 epochs}
stop: {epochs: 4}
`

// run runs the small plan with assignments.
func run(t *testing.T, set ...string) (*driver.Report, *train.Task) {
	t.Helper()
	p, err := driver.Parse("small.yaml", []byte(small), set...)
	if err != nil {
		t.Fatal(err)
	}
	c := withRegression()
	var task *train.Task
	c.Architectures.Declare("spied", spied{logistic{Shards: 5, Filters: filters{KeyCaching: true}}, &task}, "a test's")
	report, err := driver.Run(t.Context(), p, driver.Options{Catalog: c, Out: t.TempDir() + "/out", Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return report, task
}

// dense minimises the objective with one vector of float64, and without lists of keys. It returns the
// final objective, and the weights after each step.
func dense(task *train.Task, rate, penalty float64, passes int) (value float64, steps [][]float64) {
	n, rows := task.Train.Inputs, task.Shards[0]
	w := make([]float64, n)
	walk := func(from, to int, visit func(x []float32, sign, margin float64)) {
		for _, row := range rows[from:to] {
			margin := 0.0
			for j, x := range task.Train.Row(int(row)) {
				margin += w[j] * float64(x)
			}
			visit(task.Train.Row(int(row)), 2*float64(task.Train.Y[row])-1, margin)
		}
	}
	share, blocks := make([]float64, n), 0.0
	for pass := range passes {
		for from := 0; from < len(rows); from += task.Batch {
			to := min(from+task.Batch, len(rows))
			g, occurs := make([]float64, n), make([]bool, n)
			walk(from, to, func(x []float32, sign, margin float64) {
				for j := range x {
					g[j] -= sign * float64(x[j]) / (1 + math.Exp(sign*margin)) / float64(to-from)
					occurs[j] = occurs[j] || x[j] != 0
				}
			})
			for j := range w {
				if occurs[j] {
					v := w[j] - rate*g[j]
					w[j] = math.Copysign(max(math.Abs(v)-rate*penalty, 0), v)
				}
				if pass == 0 && occurs[j] {
					share[j]++
				}
			}
			if steps = append(steps, slices.Clone(w)); pass == 0 {
				blocks++
			}
		}
	}
	walk(0, len(rows), func(_ []float32, sign, margin float64) {
		value += math.Log(1+math.Exp(-sign*margin)) / float64(len(rows))
	})
	for j := range w {
		value += penalty * math.Abs(w[j]) * share[j] / blocks
	}
	return value, steps
}

func TestOneWorkerMinimisesAsADenseProgramDoes(t *testing.T) {
	report, task := run(t) // of whose end nothing is measured any more
	got := last(report.Traces[0].Measured, objective)
	want, _ := dense(task, 0.7, 0.01, 3)
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("objective %v, want %v", got, want)
	}
	if keyed, plain := report.Runs[0].Bytes, last(report.Traces[0].Measured, byCaching); plain == 0 || keyed == 0 {
		t.Errorf("%d bytes, %v saved", keyed, plain)
	}
}

// Whatever of the table is on servers that crash, nothing of it is lost and nothing counts twice.
func TestOneWorkerMinimisesAsADenseProgramDoesWhenServersCrash(t *testing.T) {
	report, task := run(t, "architecture.servers={replicas: 1}", "detect=20ms", "nodes.server.count=3",
		"schedule=[{at: 70ms, node: server2, do: restart, for: 100ms}, {at: 500ms, node: server1, do: crash}]")
	got := last(report.Traces[0].Measured, objective)
	want, _ := dense(task, 0.7, 0.01, 3)
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("objective %v, want %v, %+v", got, want, report.Runs[0].Incidents)
	}
}

func TestServersThatCrashInRealTimeLoseNoWeights(t *testing.T) {
	p, err := driver.Parse("small.yaml", []byte(small), "architecture.kind=sparse-logistic",
		"architecture.servers={replicas: 1}", "detect=20ms", "nodes.server.count=3", "stop={time: 1s}",
		"evaluate={every: 100ms}",
		"schedule=[{at: 200ms, node: server2, do: restart, for: 300ms}, {at: 700ms, node: server1, do: crash}]")
	if err != nil {
		t.Fatal(err)
	}
	report, err := driver.Run(t.Context(), p, driver.Options{Catalog: withRegression(), Out: t.TempDir() + "/out",
		Clock: driver.Real})
	if err != nil {
		t.Fatal(err)
	}
	if r := report.Runs[0]; r.Outcome == record.Failed || r.Steps < 10 || r.BestAccuracy < 0.6 {
		t.Errorf("%s after %d steps with an accuracy of %v, %+v", r.Outcome, r.Steps, r.BestAccuracy, r.Incidents)
	}
}

// A resumed run ends with the weights of a dense program, even if a server left before the checkpoint.
func TestInterruptedRunGoesOnWithItsWeights(t *testing.T) {
	_, task := run(t, "stop={steps: 1}")
	const steps = 100
	p, err := driver.Parse("small.yaml", []byte(small), "architecture.kind=sparse-logistic",
		"architecture.filters.kkt=true", "architecture.servers={replicas: 1}", "nodes.server.count=3",
		"nodes.worker.compute={step: 20ms}", "stop={steps: 100}", "evaluate={every: 20 steps}",
		"checkpoint={every: 300ms}", "schedule=[{at: 100ms, node: server2, do: leave}]")
	if err != nil {
		t.Fatal(err)
	}
	report := drivertest.Resumed(t, p, driver.Options{Catalog: withRegression()})
	f, err := os.Open(filepath.Join(report.Dir, "runs", "0000", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	params, _, _, err := safetensors.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	_, want := dense(task, 0.7, 0.01, 1+steps*task.Batch/len(task.Shards[0]))
	distance := func(step int) (far float64) {
		for j, w := range want[step-1] {
			far = max(far, math.Abs(w-float64(params[task.Train.Inputs+j])))
		}
		return far
	}
	if far := min(distance(steps-1), distance(steps), distance(steps+1)); far > 1e-5 {
		t.Errorf("the weights differ by %v from those after %d steps, by %v from those after half", far, steps,
			distance(steps/2))
	}
}

// What the KKT filter of a lonely worker leaves out changes nothing.
func TestKKTFilterOfOneWorkerChangesNoWeight(t *testing.T) {
	with, _ := run(t, "architecture.filters.kkt=true")
	without, _ := run(t)
	if a, b := last(with.Traces[0].Measured, objective), last(without.Traces[0].Measured, objective); a != b {
		t.Errorf("objective %v with the filter, %v without", a, b)
	}
	if last(with.Traces[0].Measured, byKKT) == 0 {
		t.Error("it leaves nothing out")
	}
}

func TestFiltersKeepWhatTheyLeaveOutOrItsMean(t *testing.T) {
	b := &batch{columns: []int32{2, 0}}
	f := filter{filters: filters{Significance: 1}, kept: make([]float32, 3)}
	sum, places := [2]float64{}, make([]int32, 2)
	for range 100 {
		g := []float32{0.3, -0.5}
		for i := range f.apply(b, []float32{1, 1}, g, places) {
			sum[places[i]] += float64(g[i])
		}
	}
	if got := [2]float64{sum[0] + float64(f.kept[2]), sum[1] + float64(f.kept[0])}; math.Abs(got[0]-30) > 1e-4 ||
		math.Abs(got[1]+50) > 1e-4 {
		t.Errorf("pushed and kept: %v, want 30 and -50", got)
	}
	if f.saved.significance == 0 {
		t.Error("nothing was kept back")
	}
	f = filter{filters: filters{Skip: 0.75}, random: rand.New(rand.NewPCG(1, 2))}
	sum = [2]float64{}
	for range 40_000 {
		g := []float32{1, -2}
		for i := range f.apply(b, []float32{1, 1}, g, places) {
			sum[places[i]] += float64(g[i])
		}
	}
	if math.Abs(sum[0]/40_000-1) > 0.05 || math.Abs(sum[1]/40_000+2) > 0.1 {
		t.Errorf("means %v and %v, want 1 and -2", sum[0]/40_000, sum[1]/40_000)
	}
}

func TestKeysOfInputsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for column := range 100_000 {
		key := keyOf(column, 100_000, 10_000_000)
		if seen[key] || key >= 10_000_000 {
			t.Fatalf("input %d has key %d", column, key)
		}
		seen[key] = true
	}
}

func TestProgramPrintsATableForEachSetWithoutRealData(t *testing.T) {
	tables := func(seeds ...string) string {
		var out bytes.Buffer
		if err := compare(&out, "", seeds...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := tables()
	for _, want := range []string{"as a9a is not there", "10 million possible keys", "KKT filter", "random skips"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	const short = "stop.epochs=5"
	a, b, both := objectives(tables(short)), objectives(tables(short, "seed=2")), objectives(tables(short, "repeats=2"))
	if len(a) != 12 || len(b) != 12 || len(both) != 12 {
		t.Fatalf("%v, %v and %v, want 12 objectives each", a, b, both)
	}
	for i, median := range both {
		if mean := (a[i] + b[i]) / 2; math.Abs(median-mean) > 2e-5 {
			t.Errorf("row %d: %v, want the median of %v and %v", i, median, a[i], b[i])
		}
	}
}

// objectives are the second columns of the program's tables.
func objectives(tables string) (all []float64) {
	for line := range strings.Lines(tables) {
		fields := regexp.MustCompile(`\s{2,}`).Split(line, 3)
		if len(fields) == 3 {
			if v, err := strconv.ParseFloat(fields[1], 64); err == nil {
				all = append(all, v)
			}
		}
	}
	return all
}
