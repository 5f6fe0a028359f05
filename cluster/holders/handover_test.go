package holders_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A record is lost under its process, and again under each that goes on: a copy takes its place,
// with all that had finished. A holder whose own record was lost gets a copy.
func TestAnotherHolderGoesOnWhenARecordIsLostUnderItsProcess(t *testing.T) {
	for what, lose := range map[string]func(dir string) error{
		"deleted":  os.RemoveAll,
		"renamed":  func(dir string) error { return os.Rename(dir, fmt.Sprint(dir, time.Now().UnixNano())) },
		"a file":   func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"in parts": func(dir string) error { return os.Remove(filepath.Join(dir, "plan.yaml")) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) { loseRecords(t, lose) })
		})
	}
}

func loseRecords(t *testing.T, lose func(dir string) error) {
	c := newCluster(t, 1, "a", "b", "c")
	defer c.close()
	owner := c.at("a")
	owner.submit("1")
	want := map[int]string{}
	for range 5 {
		run, err := owner.make(t.Context(), "1")
		if err != nil {
			t.Fatal(err)
		}
		want[run] = owner.text("1", run)
		before := owner
		folder := filepath.Join(owner.out(), owner.folder("1"))
		if err := lose(folder); err != nil {
			t.Fatal(err)
		}
		owner.Advanced("1")
		owner.Saved("1") // which must not replace the copies by what is left
		time.Sleep(5 * time.Second)
		if !owner.HandOver("1") {
			t.Fatalf("process %s cannot hand it over", owner.name)
		}
		owner = c.successor("1", before.name)
		for run, text := range want {
			if got := owner.text("1", run); got != text {
				t.Errorf("process %s has of run %d %s, want %s", owner.name, run, got, text)
			}
		}
		time.Sleep(5 * time.Second)
		if before.folder("1") != "" {
			t.Errorf("process %s still carries it out", before.name)
		}
		if dead := owner.Deaths("1"); len(dead) != 1 || !dead[0].Unrecorded || dead[0].Process != before.name {
			t.Errorf("attempts %v, want one of %s without a record", dead, before.name)
		}
		if copies := c.copies(before.name); len(copies) != 1 {
			t.Errorf("process %s has copies %v", before.name, copies)
		}
	}
	before := owner.name
	c.kill(before)
	owner = c.successor("1", before)
	for run, text := range want {
		if got := owner.text("1", run); got != text {
			t.Errorf("process %s has of run %d %s, want %s", owner.name, run, got, text)
		}
	}
}

// Where no copy is known, nobody can go on.
func TestRecordWithoutACopyIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		c.at("a").submit("1")
		c.kill("b")
		c.kill("c")
		if c.at("a").HandOver("1") {
			t.Error("it is handed over to nobody")
		}
	})
}

// The attempts at a record that cannot be kept anywhere add up until one succeeds.
func TestHandOversAreCountedUntilARunHasFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 1, "a", "b", "c")
		defer c.close()
		owner := c.at("a")
		owner.submit("1")
		for n := range 4 {
			if dead := owner.Deaths("1"); len(dead) != n {
				t.Errorf("%d attempts are known, want %d: %v", len(dead), n, dead)
			}
			if err := owner.Attempt(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			before := owner.name
			if !owner.HandOver("1") {
				t.Fatalf("process %s cannot hand it over", before)
			}
			owner = c.successor("1", before)
			time.Sleep(5 * time.Second)
		}
		if _, err := owner.make(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if dead := owner.Deaths("1"); len(dead) > 0 {
			t.Errorf("after a run %v is left", dead)
		}
	})
}
