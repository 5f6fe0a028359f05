package driver_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/turns"
)

// The server lives in one process and its workers in another. No run without an update that changes
// its model is done.
func TestRunsOfSeveralProcessesWithoutProgressAreDegraded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the time of its runs")
	}
	t.Parallel()
	rows := [][]string{
		{"train={optimizer: {kind: sgd, rate: 0}}"},
		{"train={optimizer: {kind: sgd, rate: {kind: step, first: 0.1, factor: 1e-30, every: 3}}}"},
		{"network={default: {rate: 1 bit/s}}"},
		{"network={default: {delay: 8760h}}"},
		{"network={default: {loss: {probability: 100%, kind: drop}}}", "architecture.delivery=as-is"},
		{"network={default: {outages: [{from: 0s, for: 1000h}]}}"},
		{"nodes=[{name: server, role: server, compute: {speed: 1 FLOP/s}}, " +
			"{name: w, role: worker, count: 2, compute: {step: 5ms}}]"},
		{"nodes=[{name: server, role: server}, {name: w, role: worker, count: 2, compute: {step: 1h}}]"},
		{"schedule=[{at: 100ms, node: w, do: slow, factor: 1000000, for: 1000h}]"},
		{"schedule=[{at: 100ms, node: w, do: pause, for: 1000h}]"},
		{"schedule=[{at: 100ms, node: w, do: crash}]"},
		{"schedule=[{at: 100ms, node: server, do: pause, for: 1000h}]"},
		{"schedule=[{at: 100ms, node: coordinator, do: pause, for: 1000h}]"},
	}
	_, client := gathered(t, "a", "b")
	for i, set := range rows {
		t.Run(set[0], func(t *testing.T) {
			turns.Row(t, i, len(rows), 3)
			on := testCluster{t: t} // reports failures in the row's test
			end := "stop={time: 2s}"
			if strings.HasPrefix(set[0], "schedule") { // on a busy machine the last step before a fault takes long
				end = "stop={time: 6s}"
			}
			id := on.submit(client, long, []string{"server=a", "worker=b"}, append(set, end)...)
			s, _ := on.ends(client, id, driver.Degraded)
			if len(s.Runs) != 1 || len(s.Runs[0].Incidents) == 0 {
				t.Errorf("%+v", s.Runs)
			}
		})
	}
}
