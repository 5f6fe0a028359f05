package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/checkpoint"
)

func state(second int) checkpoint.State {
	return checkpoint.State{At: time.Duration(second) * time.Second, Events: int64(10 * second), Real: second%2 == 1,
		World: []byte{byte(second), 2, 3}}
}

// read returns the states that a folder has, the newest first.
func read(t *testing.T, f *checkpoint.Folder) (states []checkpoint.State) {
	t.Helper()
	names, err := f.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s, err := checkpoint.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
	}
	return states
}

func TestNewestStatesAreKept(t *testing.T) {
	run := t.TempDir()
	f := checkpoint.NewFolder(run, 2)
	if states := read(t, f); len(states) > 0 {
		t.Errorf("a folder that is not there has %v", states)
	}
	for second := range 12 {
		if err := f.Save(state(second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Wait(), f.Wait()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]checkpoint.State{state(11), state(10)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(run); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestFileThatIsStillBeingWrittenIsNoCheckpoint(t *testing.T) {
	run := t.TempDir()
	f := checkpoint.NewFolder(run, 2)
	if err := errors.Join(f.Save(state(1)), f.Wait()); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(run, checkpoint.Name, "0000000002000000000.state.partial")
	if err := os.WriteFile(unfinished, []byte("gradwire checkpoint 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]checkpoint.State{state(1)}, read(t, f)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryDamageIsNoticed(t *testing.T) {
	f := checkpoint.NewFolder(t.TempDir(), 1)
	if err := errors.Join(f.Save(state(7)), f.Wait()); err != nil {
		t.Fatal(err)
	}
	names, err := f.Names()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(what string, at int, b []byte) {
		t.Helper()
		if err := os.WriteFile(names[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := checkpoint.Read(names[0]); !errors.Is(err, checkpoint.ErrDamaged) {
			t.Errorf("%s at byte %d: read %v, %v", what, at, s, err)
		}
	}
	for i := range whole {
		spoil("cut off", i, whole[:i])
		other := append([]byte(nil), whole...)
		other[i] ^= 4
		spoil("a bit flipped", i, other)
	}
	spoil("appended", len(whole), append(whole, 0))
}

func TestErrorOfWritingIsTold(t *testing.T) {
	run := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(run, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := checkpoint.NewFolder(run, 1)
	if err := f.Save(state(1)); err != nil {
		t.Errorf("before it is tried: %v", err)
	}
	if err := f.Save(state(2)); err == nil {
		t.Error("the first was not written, and nobody says so")
	}
}
