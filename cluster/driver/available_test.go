package driver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
)

// Nodes train while their devices of a trace are there, and at no other time: the first one always,
// the second for the first 200 ms, the third from 300 ms to 450, and the fourth never.
func TestNodesTrainWhileTheyAreThere(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace.csv")
	write := func(text string) {
		if err := os.WriteFile(trace, []byte("device,on_s,off_s\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("p,0,3600\nq,0,0.2\nr,0.3,0.45\ns,3600,3601\n")
	plan := func() *driver.Plan {
		return load(t, inRounds, fmt.Sprintf("nodes=[{name: server}, {name: c, count: 4, compute: {step: 5ms}, "+
			"available: {file: %s}}]", trace), "stop={time: 600ms}", "evaluate={every: 300ms}",
			"architecture={kind: federated, preset: fedbuff, buffer: 2, local: {steps: 2}}")
	}
	for _, clock := range []driver.Clock{driver.Virtual, driver.Real} {
		updates := dataOf(t, run(t, plan(), driver.Options{Clock: clock}).Dir).Updates
		last := map[string]float64{}
		for _, u := range updates {
			last[u.Node] = u.LastStep
		}
		if last["c4"] > 0 || last["c1"] == 0 {
			t.Errorf("%v: the last step of c1 is at %v s, that of c4, which has not been there, at %v", clock,
				last["c1"], last["c4"])
		}
		if clock == driver.Real {
			continue // a busy machine is late
		}
		for node, within := range map[string][2]float64{"c1": {0.5, 0.6}, "c2": {0.15, 0.2}, "c3": {0.4, 0.45}} {
			if last[node] < within[0] || last[node] > within[1] {
				t.Errorf("%v: the last step of %s is at %v s, want %v", clock, node, last[node], within)
			}
		}
	}
	for text, want := range map[string]string{
		"p,0,3600\np,4,5\n": `trace.csv:3: "p,4,5" begins before`,
		"":                  `trace.csv:2: no devices`,
	} {
		write(text)
		if _, err := plan().Points(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
