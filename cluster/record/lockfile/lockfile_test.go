package lockfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gradwire/gradwire/cluster/record/lockfile"
)

func TestFileHasOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		release, err := lockfile.Hold(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := lockfile.Holder(path), fmt.Sprintf("process %d", os.Getpid()); got != want {
			t.Errorf("held by %s, want %s", got, want)
		}
		if _, err := lockfile.Hold(path); !errors.Is(err, lockfile.ErrHeld) {
			t.Errorf("held twice: %v", err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
		if got := lockfile.Holder(path); got != "another process" {
			t.Errorf("held by %s after its release", got)
		}
	}
}
