package driver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
)

// occupied is a cluster of one process that carries a submission out which only a stop ends.
func occupied(t *testing.T) (c *testCluster, operator *driver.Client, running string) {
	t.Helper()
	c, operator = gathered(t, "a")
	running = submit(t, operator, long)
	reach(t, operator, running, driver.Running)
	return c, operator, running
}

func submit(t *testing.T, c *driver.Client, text string, set ...string) (id string) {
	t.Helper()
	id, err := c.Submit(t.Context(), load(t, text, set...), driver.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// patience bounds a wait for an event that must happen, however busy the machine is.
const patience = 4 * time.Minute

// reach waits until a submission is in a state.
func reach(t *testing.T, c *driver.Client, id, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		s, err := c.Status(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if s.State == state {
			return
		}
		if s.State == driver.Degraded && state == driver.Done {
			dir := filepath.Join(t.TempDir(), "fetched")
			if err := c.Fetch(ctx, id, dir); err != nil {
				t.Fatal(err)
			}
			if summary, err := record.ReadSummary(dir); err != nil || recordtest.OnlyLate(summary) {
				return
			}
		}
		if s.Over() {
			t.Fatalf("%+v, which is not %s", s, state)
		}
		time.Sleep(5 * time.Millisecond) // each question makes a connection
	}
}

func stop(t *testing.T, c *driver.Client, id string) {
	t.Helper()
	if err := c.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestSubmissionThatWaitsIsStoppedAtOnceAndLeavesTheQueue(t *testing.T) {
	_, operator, running := occupied(t)
	second, third := submit(t, operator, long), submit(t, operator, long, "stop={steps: 20}")
	stop(t, operator, second)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := operator.Watch(ctx, second, func(driver.Submission) {}) // while the first one runs
	if err != nil || s.State != driver.Stopped || s.Error != "stopped by my-operator" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := operator.Stop(t.Context(), second); err == nil {
		t.Error("it was stopped twice")
	}
	dir := t.TempDir()
	if err := operator.Fetch(t.Context(), second, dir); err != nil {
		t.Error(err)
	}
	stop(t, operator, running)
	reach(t, operator, third, driver.Done)
	if s, err := operator.Status(t.Context(), second); err != nil || s.State != driver.Stopped || s.Done != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// heldMemory is how much memory is in use that no collection frees, in bytes.
func heldMemory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what weak pointers and pools let go in the first
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestSubmissionsThatWaitHoldTheirPlansAlone(t *testing.T) {
	_, operator, running := occupied(t)
	before := heldMemory()
	const waiting, samples = 12, 20_000
	for i := range waiting {
		submit(t, operator, long, fmt.Sprintf("data.samples=%d", samples+i))
	}
	const set = samples * 93 * 4 // bytes
	if more := int64(heldMemory()) - int64(before); more > 2*set {
		t.Errorf("%d that wait hold %d bytes, which are %.1f data sets", waiting, more, float64(more)/set)
	}
	stop(t, operator, running)
}
