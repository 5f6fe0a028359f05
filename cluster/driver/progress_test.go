package driver_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// halves is a plan whose four nodes live on two processes.
const halves = `name: halves
data: {set: synthetic-traffic, samples: 400}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 10, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: local}
nodes: [{name: w, count: 4, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: 1ms}}
evaluate: {every: 100ms}
stop: {time: 1.5s}
detect: 0.1s
`

// The record of a run without progress names a node, wherever the node lives.
func TestNoClusterRunWithoutProgressIsDone(t *testing.T) {
	if testing.Short() {
		t.Skip("runs in real time")
	}
	t.Parallel()
	kinds := map[string]struct{ settings, hub, trainer string }{ // roles, if the architecture has a server or switch
		"all-reduce": {}, "gossip": {}, "d-psgd": {}, "ad-psgd": {}, "local": {},
		"noloco": {settings: ", every: 4"}, "gossip-learning": {settings: ", period: 10ms"},
		"parameter-server": {"", "server", "worker"}, "gaia": {"", "server", "worker"},
		"federated": {"", "server", "client"}, "in-network": {", slots: 2, values: 100", "switch", "worker"},
	}
	conditions := []struct {
		name string
		set  []string
	}{
		{"rate 0", []string{"train.optimizer={kind: sgd, rate: 0}"}},
		{"all slow", []string{"schedule=[{at: 1ms, node: w, do: slow, factor: 1000000, for: 1000h}]"}},
		{"links of 1 bit/s", []string{"network.default.rate=1 bit/s"}},
		{"all paused", []string{"schedule=[{at: 1ms, node: w, do: pause, for: 1000h}]"}},
		{"server of 1 FLOP/s", nil}, // see compute below
	}
	for i, k := range catalog.Default().Architectures.All() {
		kind, known := kinds[k.Name]
		if !known {
			t.Fatalf("architecture %s is not tried", k.Name)
		}
		for c, x := range conditions {
			server := kind.hub != ""
			if k.Name == "local" && x.name == "links of 1 bit/s" || !server && x.set == nil {
				continue
			}
			t.Run(k.Name+", "+x.name, func(t *testing.T) {
				turns.Row(t, i+c, len(conditions), 3)
				t.Parallel()
				place := []string{"w1=a", "w2=a", "w3=b", "w4=b"}
				set := append([]string{"architecture={kind: " + k.Name + kind.settings + "}"}, x.set...)
				if server {
					compute := ""
					if x.set == nil {
						compute = ", compute: {speed: 1 FLOP/s}"
					}
					place = append(place, "s=b")
					set = append(set, fmt.Sprintf("nodes=[{name: s, role: %s%s}, "+
						"{name: w, count: 4, role: %s, compute: {step: 5ms}}]", kind.hub, compute, kind.trainer))
				}
				cluster, client := gathered(t, "a", "b")
				s, summary, _ := cluster.ended(client, cluster.submit(client, halves, place, set...))
				names := slices.ContainsFunc(summary.Runs[0].Incidents, func(i record.Incident) bool {
					return i.Harm == record.ToAll && i.Node != "coordinator" && i.Node != ""
				})
				if s.State != driver.Degraded && s.State != driver.Failed || !names {
					t.Errorf("%s, %s: %+v", s.State, s.Error, summary.Runs[0].Incidents)
				}
			})
		}
	}
}
