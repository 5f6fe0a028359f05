package experiment_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/experiment"
)

// One error lists all mistakes of a plan, whatever their sections.
func TestMistakesOfAPlanAreToldTogether(t *testing.T) {
	const whole = `data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: local}
nodes: [{name: a}, {name: b}]
`
	for text, wrong := range map[string][]string{
		"train: {batch: -3, optimizer: {kind: adma}}\nstop: {epochs: 1}\n": {"-3", "adma"},
		"network: {default: {delay: 5}, links: [{from: a, to: b, rte: 1}]}\n" +
			"schedule: [{at: 1s, when: 2, node: a, do: explode}]\nstop: {time: 5}\nevaluate: {every: 1x}\n": {`"5" has no unit`,
			"rte", "when", "explode", "stop.time", "1x"},
		"train: {bacth: 3}\nstop: {epochs: 1}\nsweep: {nodes.x.count: [1], version: [1]}\n": {"bacth", "nodes", "version"},
		"train: {batch: 3}\nevaluate: {every: 1x}\n":                                        {"1x", "a run must end"},
	} {
		p, err := experiment.Parse("p.yaml", []byte(whole+text))
		if err == nil {
			_, err = p.Points(nil)
		}
		for _, part := range wrong {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in\n%v", text, part, err)
			}
		}
	}
}
