package checkpoint_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
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
		s, err := f.Read(name)
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
	if err := os.WriteFile(unfinished, []byte("gradwire checkpoint 3\n"), 0o600); err != nil {
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
		if s, err := f.Read(names[0]); !errors.Is(err, checkpoint.ErrDamaged) {
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

// resum makes the checksum of a file right again.
func resum(b []byte) []byte {
	n := len(b) - 8
	return binary.LittleEndian.AppendUint64(b[:n:n], xxhash.Sum64(b[:n]))
}

// Whoever changes a state can make its checksum right as well, but cannot sign it.
func TestStateThatSomebodyElseHasWrittenIsRefused(t *testing.T) {
	run := t.TempDir()
	path := filepath.Join(run, "key")
	key, err := checkpoint.ReadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	f := checkpoint.NewFolder(run, 1)
	f.Key = key.For("run 1")
	if err := errors.Join(f.Save(state(7)), f.Wait()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(f.Newest())
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, b []byte, want error) {
		t.Helper()
		if err := os.WriteFile(f.Newest(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := f.Read(f.Newest()); !errors.Is(err, want) {
			t.Errorf("%s: read %v, %v", what, s, err)
		}
	}
	magic := len("gradwire checkpoint 3\n")
	for bit := 8 * magic; bit < 8*(len(whole)-8); bit++ {
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprintf("bit %d flipped", bit), resum(b), checkpoint.ErrForeign)
	}
	for n := magic + 17 + 40; n < len(whole); n++ {
		try(fmt.Sprintf("cut off at %d", n), resum(slices.Clone(whole[:n])), checkpoint.ErrForeign)
	}
	if again, err := checkpoint.ReadKey(path); err != nil || !slices.Equal(again, key) {
		t.Errorf("another key at the next start, %v", err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info, err)
	}
	other, err := checkpoint.ReadKey(filepath.Join(run, "other"))
	if err != nil {
		t.Fatal(err)
	}
	for what, k := range map[string]checkpoint.Key{"another user": other.For("run 1"), "another run": key.For("run 2")} {
		f.Key = k
		try(what, whole, checkpoint.ErrForeign)
	}
}
