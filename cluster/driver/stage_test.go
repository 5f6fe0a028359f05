package driver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/driver"
)

// small is a plan of two points and two repeats that takes a fraction of a second.
const small = `name: small
repeats: 2
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: parameter-server}
nodes:
  - {name: server, role: server}
  - {name: near, role: worker, compute: {step: 5ms}}
  - {name: far, role: worker, compute: {step: 5ms}}
network:
  links:
    - {between: [server, near], delay: 1ms}
    - {between: [server, far], delay: {kind: normal, mean: 50ms, std: 10ms}}
evaluate: {every: 0.5 epochs}
stop: {epochs: 2}
sweep:
  data.split:
    - {label: iid, kind: iid}
    - label: by class
      kind: classes
      workers: {near: {Normal: 50%, DoS: 100%, R2L: 100%}, far: {Normal: 50%, Probe: 100%, U2R: 100%}}
`

func load(t testing.TB, text string, set ...string) *driver.Plan {
	t.Helper()
	p, err := driver.Parse("small.yaml", []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p *driver.Plan, o driver.Options) *driver.Report {
	t.Helper()
	r, err := try(t, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func try(t testing.TB, p *driver.Plan, o driver.Options) (*driver.Report, error) {
	t.Helper()
	if o.Out == "" {
		o.Out = filepath.Join(t.TempDir(), "out")
	}
	return driver.Run(context.Background(), p, o)
}

// digests returns the digests of the runs, by point and seed.
func digests(r *driver.Report) map[string]string {
	d := map[string]string{}
	for _, run := range r.Runs {
		d[run.Point.String()+" "+string(rune('0'+run.Seed))] = run.Digest
	}
	return d
}

// files are the tables of a record, and the models of its runs.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.csv", "runs/*/model*.safetensors"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s in %s: %v", pattern, dir, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(path, dir)] = string(text)
		}
	}
	return texts
}

func equal(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		if len(diff) > 3000 {
			diff = diff[:3000] + "…"
		}
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
