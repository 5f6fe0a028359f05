// Package hostile tests the readers of data sets with files made to break them.
package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets/input"
)

// File is a row of a table: the name of a file of testdata/hostile, a sentence that says what is
// wrong with it, and what the error must say: the place, and what is accepted.
type File [3]string

const folder = "testdata/hostile"

// Check gives every file to read, which must refuse it with an error that begins with the
// file's name, in memory of input.Slack and input.Factor times the file at most. The folder must
// hold these files and no others.
func Check(t *testing.T, files []File, read func(file, name string, content []byte) error) {
	t.Helper()
	listed := map[string]bool{}
	for _, f := range files {
		file, wrong, want := f[0], f[1], f[2]
		listed[file] = true
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				t.Fatal(err)
			}
			cost, err := Cost(func() error { return read(file, "dir/file", content) })
			if err == nil || !strings.HasPrefix(err.Error(), "dir/file:") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s\ngot  %v\nwant dir/file: … %s", wrong, err, want)
			}
			if limit := input.Slack + input.Factor*uint64(len(content)); cost > limit {
				t.Errorf("%d bytes allocated for a file of %d; accepted are %d", cost, len(content), limit)
			}
		})
	}
	for _, name := range names(t) {
		if !listed[name] {
			t.Errorf("%s/%s is not in the table", folder, name)
		}
	}
}

// Cost returns the number of bytes that f allocates, also those that it lets go of.
func Cost(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// Seed adds the content of every file to a fuzz target.
func Seed(f *testing.F, also ...[]byte) {
	f.Helper()
	for _, name := range names(f) {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	for _, content := range also {
		f.Add(content)
	}
}

// Refused checks what a reader says to content made by a fuzzer: nothing, or an error that begins
// with the name.
func Refused(err error, name string) error {
	if err != nil && !strings.HasPrefix(err.Error(), name+":") {
		return fmt.Errorf("error %w does not begin with the name", err)
	}
	return nil
}

func names(t testing.TB) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
