package dpsgd_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: d-psgd}
nodes: [{name: peer, count: 2, compute: {step: 5ms}}]
network: {default: {delay: 5ms}}
evaluate: {every: 2 steps}
stop: {steps: 4}
`

func TestPlansAreReadAndTheirErrorsExplained(t *testing.T) {
	for _, c := range []struct{ kind, want string }{
		{"d-psgd, matrix: metropolis, moved: 0.1, lead: 0", ""},
		{"d-psgd, matrix: [[0.25, 0.75], [0.75, 0.25]]", ""},
		{"d-psgd, matrix: [[0.25, 0.75], [0.5, 0.5]]", "must be symmetric"},
		{"d-psgd, matrix: [[1]]", "1 rows for 2 nodes"},
		{"d-psgd, matrix: ring", `found "ring" where metropolis is expected, or a list such as [a, b]`},
		{"d-psgd, lead: -1", "lead: -1 is out of range; accepted is 0 or more"},
		{"d-psgd, moved: -1", "moved: -1 is out of range; accepted is 0 or more"},
		{"ad-psgd, graph: exponential, moved: 0.1, lead: 1", ""},
		{"ad-psgd, graph: ring", `unknown graph "ring" (accepted: topology, exponential)`},
	} {
		p, err := driver.Parse("small.yaml", []byte(small), "architecture={kind: "+c.kind+"}")
		if err == nil {
			_, err = driver.Run(context.Background(), p,
				driver.Options{Out: filepath.Join(t.TempDir(), "out"), Strict: true})
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.kind, err, c.want)
		}
	}
}
