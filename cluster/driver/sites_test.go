package driver_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// apart is Gaia in two sites, over links that lose messages, with a worker that comes and goes.
const apart = `name: apart
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: gaia, significance: 50%, clock: 3, rate: 100 kbit/s, roles: {server: [hub, far]}}
nodes:
  - {name: hub}
  - {name: far}
  - {name: near, count: 2, compute: {step: 5ms}}
  - {name: w, count: 2, compute: {step: 7ms}}
network:
  preset: regions-aws-2024
  sites: {hub: fra, near: fra, "*": lhr}
  default: {rate: 100 kbit/s, loss: {probability: 5%, kind: drop}}
  links: [{between: [hub, near], rate: 10 Mbit/s}, {between: [far, w], rate: 10 Mbit/s}]
schedule: [{at: 150ms, node: w2, do: crash}, {at: 300ms, node: w2, do: join}]
detect: 10ms
evaluate: {every: 200ms}
stop: {time: 1s}
`

// agree fails the test if the final models of two sites differ by more than rounding, or the run is
// not as it should be.
func agree(t *testing.T, world, dir string) {
	t.Helper()
	summary, err := record.ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := &summary.Runs[0]; r.Outcome != record.Done {
		t.Errorf("%s: the run is %s: %+v", world, r.Outcome, r.Incidents)
	}
	saved := tensorsOf(t, filepath.Join(dir, "runs", "0000", "models.safetensors"))
	if len(saved) != 2 {
		t.Fatalf("%s: %d models are saved", world, len(saved))
	}
	for i, of := range saved["hub"] {
		for k := range of.shape[0] {
			if a, b := of.data[k], saved["far"][i].data[k]; math.Abs(float64(a-b)) > 1e-5 {
				t.Fatalf("%s: a parameter is %v at one site and %v at the other", world, a, b)
			}
		}
	}
}

// The sites of Gaia end with one model, whatever clock they go by.
func TestSitesEndWithOneModelInEveryWorld(t *testing.T) {
	turns.Take(t, 1, 3)
	agree(t, "virtual time", run(t, load(t, apart), driver.Options{Strict: true}).Dir)
	agree(t, "real time", run(t, load(t, apart), driver.Options{Clock: driver.Real}).Dir)
	c, client := gathered(t, "a", "b", "c")
	_, dir := c.result(client, apart)
	agree(t, "a cluster", dir)
}

func TestASiteWithoutAServerIsNamedByItsWorker(t *testing.T) {
	_, err := try(t, load(t, apart, "architecture.roles={server: hub}"), driver.Options{})
	if want := "far is a worker at a site without a server"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
