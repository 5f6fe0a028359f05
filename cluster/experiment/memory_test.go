package experiment

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/memory"
)

const crowded = `
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 1000, 5]}
architecture: {kind: gossip}
nodes: [{name: n, count: 4, compute: {step: 5ms}}]
stop: {epochs: 1}
sweep: {nodes.n.count: [2, 1000]}
`

func TestModelsThatDoNotFitIntoMemoryAreRefused(t *testing.T) {
	p, err := Parse("crowded.yaml", []byte(crowded))
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	// 93·1000 + 1000 + 1000·5 + 5 parameters of 4 bytes; 2001 vectors.
	const whole = 4 * 99_005 * 2001
	for bytes, want := range map[float64]string{
		0: "", whole: "",
		whole - 1: "crowded.yaml:3:8: model: 1000 nodes with models of 99005 parameters need 792 MB of memory or " +
			"more, and this machine has 792 MB; give the plan fewer nodes or a smaller model; at nodes.n.count = " +
			"1000 (crowded.yaml:7)",
		4 * 99_005:  "2 nodes with models of 99005 parameters need 1.98 MB",
		4 * 495_025: "this machine has 1.98 MB",
	} {
		err := affordable(points, memory.Bound{Bytes: bytes, By: "this machine has"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v bytes: got %v\nwant %s", bytes, err, want)
		}
	}
	for bytes, want := range map[float64]int{0: 8, whole - 1: 1, 2 * whole: 2, 9 * whole: 8} {
		if got := side(points, memory.Bound{Bytes: bytes}, 8); got != want {
			t.Errorf("%d runs side by side in %v bytes, want %d", got, bytes, want)
		}
	}
}

func TestModelThatNoMessageCarriesIsRefused(t *testing.T) {
	p, err := Parse("crowded.yaml", []byte(crowded), "sweep={}", "model.layers=[93, 20000, 20000, 5]")
	if err == nil {
		_, err = p.Points(nil)
	}
	if want := "crowded.yaml:3:8: model: the model has 402000005 parameters, 1.61 GB; a message carries at most " +
		"268435456, 1.07 GB"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
