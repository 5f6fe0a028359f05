package client

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFolderThatIsBeingFetchedDoesNotLookWholeUntilItIs(t *testing.T) {
	names := []string{"plan.yaml", "summary.json", "updates.csv"}
	cut := errors.New("the connection has broken")
	for _, there := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "copy")
		if there {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		files := func() (found int) {
			for _, name := range names {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					found++
				}
			}
			return found
		}
		write := func(end error) func(part string) error {
			return func(part string) error {
				for _, name := range names {
					if err := os.WriteFile(filepath.Join(part, name), nil, 0o600); err != nil {
						t.Fatal(err)
					}
					if files() > 0 { // what somebody would find who was killed here
						t.Errorf("%s has files of a record that is not whole", dir)
					}
				}
				return end
			}
		}
		if err := assemble(dir, write(cut)); !errors.Is(err, cut) || files() > 0 {
			t.Errorf("%v, and %d files", err, files())
		}
		if err := assemble(dir, write(nil)); err != nil || files() != len(names) {
			t.Errorf("%v, and %d files", err, files())
		}
		for _, folder := range []string{dir, filepath.Dir(dir)} {
			if left, _ := filepath.Glob(filepath.Join(folder, ".partial-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	}
}
