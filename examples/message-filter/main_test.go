package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/driver/drivertest"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: clipped, norm: 0.5, of: {kind: all-reduce}}
nodes: [{name: first, compute: {step: 2ms}}, {name: peer, count: 3, compute: {step: 200ms}}]
network: {topology: ring, default: {delay: 5ms}}
evaluate: {every: 40 steps}
stop: {steps: 40}
`

// alone has one worker, so that its server is at the same version when it is looked at, whatever a
// filter costs.
var alone = []string{
	"architecture.of={kind: parameter-server}",
	"nodes=[{name: server, role: server}, {name: worker, role: worker, compute: {step: 2ms}}]",
}

// seen is the filter's architecture that shows the task of the run.
type seen struct {
	train.Architecture
	task **train.Task
}

func (s seen) Kind(task *train.Task, place train.Place) actors.Kind {
	*s.task = task
	return s.Architecture.Kind(task, place)
}

// run runs a plan and returns the final parameters, the lines of its measurements and the task.
func run(t *testing.T, set ...string) (params []float32, measured []string, task *train.Task) {
	t.Helper()
	c := withClipping()
	c.Architectures.Add(catalog.Define("seen", "", func() settings { return settings{} },
		func(c *catalog.Catalog, s *settings) (train.Architecture, error) {
			a, _, err := c.Architectures.Read(c, s.Of)
			return seen{a, &task}, err
		}))
	p, err := driver.Parse("small.yaml", []byte(small), set...)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := driver.Run(context.Background(), p, driver.Options{Catalog: c, Out: out, Strict: true}); err != nil {
		t.Fatal(err)
	}
	params = model(t, out)
	text, err := os.ReadFile(filepath.Join(out, "measured.csv"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "norm clipped") {
			measured = append(measured, line)
		}
	}
	return params, measured, task
}

// model reads the final parameters of a record's first run.
func model(t *testing.T, out string) []float32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(out, "runs", "0000", "model.safetensors"))
	if os.IsNotExist(err) { // several nodes hold one
		b, err = os.ReadFile(filepath.Join(out, "runs", "0000", "models.safetensors"))
	}
	if err != nil {
		t.Fatal(err)
	}
	params, _, _, err := safetensors.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// A resumed run ends with the model of an uninterrupted run.
func TestInterruptedClippedWorkerGoesOnWhereItWas(t *testing.T) {
	set := []string{"architecture.of={kind: parameter-server}", "checkpoint={every: 200ms}",
		"nodes=[{name: server, role: server}, {name: worker, role: worker, compute: {step: 20ms}}]"}
	want, _, _ := run(t, set...)
	p, err := driver.Parse("small.yaml", []byte(small), set...)
	if err != nil {
		t.Fatal(err)
	}
	report := drivertest.Resumed(t, p, driver.Options{Catalog: withClipping()})
	if got := model(t, report.Dir); !slices.Equal(got, want) {
		t.Error("the parameters are not those of the uninterrupted run")
	}
}

func TestFilterThatClipsNothingChangesNoBitOfAnyArchitecture(t *testing.T) {
	for _, of := range [][]string{{"architecture.of={kind: all-reduce}"}, {"architecture.of={kind: d-psgd}"},
		{"architecture.of={kind: gossip}"}, alone} {
		bare := slices.Clone(of)
		bare[0] = strings.Replace(of[0], "architecture.of", "architecture", 1)
		want, _, _ := run(t, bare...)
		for norm, same := range map[string]bool{"1000": true, "0.1": false} {
			got, clipped, _ := run(t, append(slices.Clone(of), "architecture.norm="+norm)...)
			if slices.Equal(got, want) != same || (len(clipped) == 0) != same {
				t.Errorf("%s, norm %s: %d gradients clipped, the model unchanged: %v", of[0], norm, len(clipped),
					slices.Equal(got, want))
			}
		}
	}
}

func TestClippedStepsAreThoseOfAPlainLoop(t *testing.T) {
	got, measured, task := run(t,
		append([]string{"architecture={kind: seen, of: {kind: clipped, norm: 0.5, of: {kind: parameter-server}}}"},
			alone[1])...)
	sampler, err := datasets.NewSampler(task.Train, task.Shards[0], 16, task.Seed, "worker")
	if err != nil {
		t.Fatal(err)
	}
	want, clipped := task.Initial(), 0
	workspace, gradient := task.Model.NewWorkspace(16), make([]float32, len(want))
	x, y := make([]float32, 16*93), make([]int32, 16)
	for step := range 39 { // the run ends when the 40th gradient is there
		n := sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x, y)
		workspace.Gradient(want, gradient, nn.Batch{X: x[:n*93], Y: y[:n]})
		norm := 0.0
		for _, v := range gradient {
			norm = math.Hypot(norm, float64(v))
		}
		scale := 0.2
		if norm > 0.5 {
			scale *= 0.5 / norm
			clipped++
		}
		for i := range want {
			want[i] -= float32(scale * float64(gradient[i]))
		}
	}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Fatalf("parameter %d is %g, a plain loop makes it %g", i, got[i], want[i])
		}
	}
	if n := len(measured); n != clipped && n != clipped+1 || clipped == 0 || clipped == 39 {
		t.Errorf("%d norms recorded, a plain loop clips %d of 39", n, clipped)
	}
}

func TestErrorsSayWhereAndWhy(t *testing.T) {
	for set, want := range map[string]string{
		"{kind: clipped, norm: 0, of: {kind: all-reduce}}": "small.yaml:6:37: architecture.norm: 0 is out of " +
			"range; accepted is more than 0",
		"{kind: clipped, norm: 1}":                         "small.yaml:6:15: architecture: missing: of",
		"{kind: clipped, nrom: 1, of: {kind: all-reduce}}": `small.yaml:6:31: architecture.nrom: unknown key "nrom"`,
		"{kind: clipped, of: {kind: all-reduce, every: 0}}": "small.yaml:6:61: architecture.of.every: 0 is out of " +
			"range",
		"{kind: clipped, of: {kind: all-reduce, evry: 2}}": `architecture.of.evry: unknown key "evry"`,
		"{kind: clipped, of: {kind: none}}":                "small.yaml:6:42: architecture.of.kind",
		// by its Fit
		"{kind: clipped, of: {kind: d-psgd, matrix: [[1]]}}": "small.yaml:6:15: architecture: the mixing matrix",
	} {
		text := strings.Replace(small, "{kind: clipped, norm: 0.5, of: {kind: all-reduce}}", set, 1)
		p, err := driver.Parse("small.yaml", []byte(text))
		if err == nil {
			_, err = driver.Run(context.Background(), p,
				driver.Options{Catalog: withClipping(), Out: filepath.Join(t.TempDir(), "out")})
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) &&
			(want[0] == 's' || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", set, err, want)
		}
	}
}

func TestPlanOfThisFolderRuns(t *testing.T) {
	p, err := driver.Load("plan.yaml", "stop.epochs=0.2", "repeats=1")
	if err == nil {
		_, err = driver.Run(context.Background(), p, driver.Options{Catalog: withClipping(),
			Out: filepath.Join(t.TempDir(), "out")})
	}
	if err != nil {
		t.Error(err)
	}
}
