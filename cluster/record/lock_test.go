package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record/lockfile"
)

func TestOneProcessAtATimeWritesARecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	other := exec.Command(os.Args[0]) // see TestMain
	other.Env = append(os.Environ(), "GRADWIRE_SAVE_FOR_EVER="+dir)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // it has saved a run
		t.Fatal(err)
	}
	if _, err := OpenToWrite(dir); !errors.Is(err, ErrLocked) ||
		!strings.Contains(err.Error(), fmt.Sprintf("by process %d", other.Process.Pid)) {
		t.Errorf("while process %d writes: %v", other.Process.Pid, err)
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	f, err := OpenToWrite(dir)
	if err != nil {
		t.Fatalf("after the writer was killed: %v", err)
	}
	if _, err := OpenToWrite(dir); !errors.Is(err, ErrLocked) ||
		!strings.Contains(err.Error(), fmt.Sprintf("by process %d", os.Getpid())) {
		t.Errorf("opened twice in one process: %v", err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, lockfile.Name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
	if f, err = OpenToWrite(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
