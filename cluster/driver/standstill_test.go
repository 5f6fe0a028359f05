package driver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// lossy loses every tenth message for good, and its workers wait for all others.
const lossy = `name: lossy
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: all-reduce, algorithm: ring, delivery: as-is}
nodes: [{name: w, count: 3, compute: {step: 5ms}}]
network: {default: {delay: 2ms, loss: {probability: 10%, kind: drop}}}
evaluate: {every: 100ms}
stop: {epochs: 1000}
`

// failed waits until a run has failed, and returns why.
func (c *testCluster) failed(client *driver.Client, id string) string {
	c.t.Helper()
	s, err := client.Watch(c.t.Context(), id, func(driver.Submission) {})
	if err != nil || s.State != driver.Failed {
		c.t.Fatalf("%+v, %v", s, err)
	}
	return s.Error
}

func (c *testCluster) submit(client *driver.Client, text string, place []string, set ...string) string {
	c.t.Helper()
	id, err := client.Submit(c.t.Context(), load(c.t, text, set...), driver.SubmitOptions{Place: place})
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

func TestRunOfSeveralProcessesThatStandsStillEndsAndTellsWhoWaits(t *testing.T) {
	turns.Take(t, 2, 3)
	if testing.Short() {
		t.Skip("takes the time in which a standstill is noticed")
	}
	t.Parallel()
	c, client := gathered(t, "a", "b", "c")
	began := time.Now()
	why := c.failed(client, c.submit(client, lossy, []string{"w1=a", "w2=b", "w3=c"},
		"architecture={kind: d-psgd, delivery: as-is}"))
	t.Logf("after %v: %s", time.Since(began), why)
	for _, part := range []string{"the run came to a standstill", " waits for the model of step ", "; lost from w"} {
		if !strings.Contains(why, part) {
			t.Errorf("%q is missing in %q", part, why)
		}
	}
}

// Nothing is lost; each step takes longer than a standstill takes to be noticed, as does each
// message.
func TestSlowRunIsNoStandstill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the time in which a standstill is noticed, several times")
	}
	t.Parallel()
	rows := []struct {
		slow string
		set  []string
	}{
		{"steps", []string{"nodes=[{name: w, count: 2, compute: {step: 6s}}]", "network={default: {delay: 1ms}}"}},
		{"messages", []string{"nodes=[{name: w, count: 2, compute: {step: 5ms}}]", "network={default: {delay: 6s}}",
			"architecture.algorithm=all-to-all"}}, // one message for each step
	}
	for i, x := range rows {
		t.Run(x.slow, func(t *testing.T) {
			turns.Row(t, i, len(rows), 2)
			t.Parallel()
			c, client := gathered(t, "a", "b")
			s, _ := c.result(client, lossy, append(x.set, "stop={steps: 2}", "evaluate={every: 1 steps}")...)
			if s.Runs[0].Steps < 2 {
				t.Errorf("%+v", s.Runs[0])
			}
		})
	}
}

func TestRunThatAllWorkersHaveLeftEndsAndNamesThem(t *testing.T) {
	turns.Take(t, 2, 3)
	if testing.Short() {
		t.Skip("waits for those who are gone")
	}
	t.Parallel()
	c := newCluster(t)
	const absence = 4 * time.Second
	defer c.serve("a", func(n *driver.NodeConfig) { n.Absence = absence })()
	leave := c.serve("b")
	client := c.client(identity.Operator)
	c.gather(client, 2)
	id := c.submit(client, long, []string{"server=a", "worker=b"}, "stop={epochs: 100000}")
	c.running(client, id)
	began := time.Now()
	leave()
	why := c.failed(client, id)
	if took := time.Since(began); took < absence-time.Second || !strings.Contains(why, "standstill") ||
		!strings.Contains(why, "without process b: it is gone") {
		t.Errorf("after %v: %s", took, why)
	}
}

// Half of the run nobody was there to train: it is not done.
func TestBoundedRunThatAllWorkersHaveLeftIsDegraded(t *testing.T) {
	turns.Take(t, 1, 3)
	if testing.Short() {
		t.Skip("takes the time in which a standstill is noticed")
	}
	t.Parallel()
	c := newCluster(t)
	defer c.serve("a")()
	leave := c.serve("b")
	client := c.client(identity.Operator)
	c.gather(client, 2)
	id := c.submit(client, long, []string{"server=a", "worker=b"}, "stop={time: 12s}")
	c.running(client, id)
	leave()
	s, _ := c.ends(client, id, driver.Degraded)
	gone, idle := 0.0, -1.0
	for _, i := range s.Runs[0].Incidents {
		switch {
		case strings.Contains(i.What, "was gone from"):
			gone = max(gone, i.At)
		case strings.Contains(i.What, "no update changed a judged model"),
			strings.Contains(i.What, "nobody did anything from here to the end"): // within the first tenth
			idle = i.At
		}
	}
	if at := float64(s.Runs[0].Stalled); gone == 0 || idle < 0 || max(at, idle) > gone+0.01 {
		t.Errorf("gone from %v s on, stalled from %v s on, told from %v s on: %+v", gone, at, idle, s.Runs[0])
	}
}

// running waits until a run makes progress.
func (c *testCluster) running(client *driver.Client, id string) {
	c.t.Helper()
	for c.t.Context().Err() == nil {
		if s, err := client.Status(c.t.Context(), id); err != nil || s.State == driver.Running && s.Share > 0 {
			if err != nil {
				c.t.Fatal(err)
			}
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A run that its time bounds goes on to its end, and tells from when on its nodes stood still.
func TestBoundedRunOfSeveralProcessesTellsThatItStoodStill(t *testing.T) {
	turns.Take(t, 0, 3)
	if testing.Short() {
		t.Skip("takes the time in which a standstill is noticed")
	}
	t.Parallel()
	c, client := gathered(t, "a", "b", "c")
	var s record.Summary
	for range 3 { // a busy machine takes a process for gone, or pauses the one that conducts the run
		s, _ = c.ends(client, c.submit(client, lossy, []string{"w1=a", "w2=b", "w3=c"}, "stop={time: 12s}"),
			driver.Degraded)
		if !slices.ContainsFunc(s.Runs[0].Incidents, func(i record.Incident) bool {
			return strings.Contains(i.What, " was gone from ") || strings.Contains(i.What, " was paused for ")
		}) {
			break
		}
	}
	latest := 0.0
	for _, i := range s.Runs[0].Incidents {
		if strings.Contains(i.What, "stalled from") {
			latest = max(latest, i.At)
		}
	}
	if at := float64(s.Runs[0].Stalled); latest == 0 || at != latest {
		t.Errorf("stood still from %v s on, want from %v s on: %s", at, latest, fmt.Sprint(s.Runs[0]))
	}
}
