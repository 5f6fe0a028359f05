package local_test

import (
	"path/filepath"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

const plan = `
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: local}
nodes: [{name: n, count: 3, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: 5ms, loss: {probability: 50%, kind: drop}}}
evaluate: {every: 2 steps}
stop: {steps: 10}
`

func TestNoMessageIsSent(t *testing.T) {
	p, err := driver.Parse("plan.yaml", []byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	report, err := driver.Run(t.Context(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out"), Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := report.Runs[0]; r.Messages != 0 || r.Bytes != 0 || r.Steps < 28 {
		t.Errorf("%d messages of %d bytes in %d steps, want none in about 30", r.Messages, r.Bytes, r.Steps)
	}
}
