package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
)

const homes = `
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
stop: {epochs: 1}
nodes:
  - {name: s, role: server}
  - {name: w, role: worker, count: 2, delay: DELAY}
`

func TestDelayOfANodeIsTheModelThatItNames(t *testing.T) {
	for written, want := range map[string]link.Delay{
		"30ms": link.Constant{Delay: 30 * time.Millisecond},
		"{kind: log-normal, median: 40ms, sigma: 0.5, draw: node}": link.Once{
			Of: link.LogNormal{Median: 40 * time.Millisecond, Sigma: 0.5}, PerNode: true},
	} {
		s, err := specOf(t, t.TempDir(), strings.Replace(homes, "DELAY", written, 1))
		if err != nil {
			t.Fatal(err)
		}
		if s.Access[0].Delay != nil || s.Access[1].Delay != want || s.Access[2].Delay != want {
			t.Errorf("%s: %+v", written, s.Access)
		}
		if !s.held() {
			t.Errorf("%s: steps wait for nothing", written)
		}
	}
}

func TestDelayThatCannotBeANodesIsRefusedWhereItIsWritten(t *testing.T) {
	for written, want := range map[string]string{
		"-1ms": "8:46", "{kind: random-walk, first: 1s..2s, step: 1ms}": "depends on earlier messages",
		"{kind: uniform, range: 1ms..2ms, draw: link}": "once for the node",
		"{kind: uniform, range: 2ms..1ms}":             "8:",
		"{kind: unifrom, range: 1ms..2ms}":             "uniform",
	} {
		_, err := specOf(t, t.TempDir(), strings.Replace(homes, "DELAY", written, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", written, err, want)
		}
	}
}
