package driver_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/turns"
)

// begins waits until a submission has begun on both processes.
func begins(t *testing.T, operator *driver.Client, id string) {
	t.Helper()
	await(t, "beginning", func() error {
		began := false
		err := operator.Logs(t.Context(), id, false,
			func(line string) { began = began || strings.Contains(line, "began on a, b") })
		if err == nil && !began {
			err = errors.New("it has not begun")
		}
		return err
	})
}

func TestRunsOfAProcessThatIsAwayAreKnownWithWhereTheyWereAndSinceWhen(t *testing.T) {
	turns.Take(t, 2, 3)
	t.Parallel()
	c := newCluster(t)
	leave := c.serve("a")
	var at string
	defer c.serve("b", func(n *driver.NodeConfig) { n.Ready = hears(&at, n.Ready) })()
	operator := c.client(identity.Operator)
	c.gather(operator, 2)
	id := submit(t, operator, long, "stop={steps: 20}")
	reach(t, operator, id, driver.Done)
	over, err := operator.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	gone := submit(t, operator, long, "stop={steps: 20}")
	reach(t, operator, gone, driver.Done)
	if _, err := operator.Remove(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	running := submit(t, operator, long)
	begins(t, operator, running)
	before := time.Now()
	leave()
	c.seed = at
	operator = c.client(identity.Operator)
	var s driver.Submission
	await(t, "news of the absence", func() (err error) {
		s, err = operator.Status(t.Context(), running)
		if err == nil && s.Away.IsZero() {
			err = errors.New("it is there")
		}
		return err
	})
	if s.Process != "a" || s.State != driver.Running || s.Away.Before(before) || s.Why == "" || s.By != "my-operator" {
		t.Errorf("%+v", s)
	}
	says := "run " + running + " is kept by process a, which is away since "
	expectAgain(t, operator.Stop(t.Context(), running[:5]), says)
	expectAgain(t, operator.Logs(t.Context(), running, false, func(string) {}), says)
	err = operator.Fetch(t.Context(), id, filepath.Join(t.TempDir(), "x"))
	expectAgain(t, err, "it was "+over.State+", with 1 of 1 runs, when last heard of")
	_, err = operator.Remove(t.Context(), id)
	expectAgain(t, err, "which is away since")
	_, err = operator.Status(t.Context(), gone)
	expectInput(t, err, "the cluster knows no submission")
	if runs, err := operator.Submissions(t.Context()); err != nil || len(runs) != 2 || runs[0].ID != id ||
		runs[1].ID != running {
		t.Errorf("%+v, %v", runs, err)
	}
	defer c.serve("a")() // it is back, and knows better
	await(t, "return", func() error {
		s, err := operator.Status(t.Context(), running)
		if err == nil && s.State != driver.Interrupted {
			err = errors.New("it is " + s.State)
		}
		return err
	})
	knowsItsEarlierLife(t, operator, running, before)
}

// knowsItsEarlierLife expects the log of a submission that an earlier life of its process has
// begun.
func knowsItsEarlierLife(t *testing.T, operator *driver.Client, id string, submitted time.Time) {
	t.Helper()
	var log []string
	if err := operator.Logs(t.Context(), id, true, func(line string) { log = append(log, line) }); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(log, "\n")
	for _, part := range []string{"submitted by my-operator", "began on a, b", "in an earlier life of the process"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in the log of the earlier life:\n%s", part, text)
		}
	}
	for _, line := range log {
		at, _, _ := strings.Cut(line, " ")
		if when, err := time.Parse(time.RFC3339, at); err != nil || when.Before(submitted.Add(-time.Hour)) {
			t.Errorf("no date: %s, %v", line, err)
		}
	}
}

// hears takes note of a process's address.
func hears(at *string, ready func(string)) func(string) {
	return func(address string) {
		*at = address
		ready(address)
	}
}

// await waits until something succeeds.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no %s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestRunThatIsRemovedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c, operator, running := occupied(t)
	guest := c.client(identity.Client)
	_, err := operator.Remove(t.Context(), running)
	expectInput(t, err, "run "+running+" is running; it can be removed when it has ended")
	stop(t, operator, running)
	reach(t, operator, running, driver.Stopped)
	_, err = guest.Remove(t.Context(), running)
	expectInput(t, err, "may not remove runs, which takes role operator")
	records := filepath.Join(c.dir, "records")
	if whole, err := operator.Remove(t.Context(), running[:4]); err != nil || whole != running {
		t.Fatalf("%s, %v", whole, err)
	}
	left, err := filepath.Glob(filepath.Join(records, "*"+running+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if runs, err := operator.Submissions(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("%+v, %v", runs, err)
	}
	if ledger := string(read(t, records, "submissions-a.jsonl")); !strings.Contains(ledger, `"state":"removed"`) {
		t.Errorf("the ledger is\n%s", ledger)
	}
}
