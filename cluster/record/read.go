package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gradwire/gradwire/cluster/record/strict"
)

// openFile opens a regular file in a record's folder. Links are followed as long as they
// stay in the folder: a record that somebody hands over opens nothing else. Its errors
// name the file.
func openFile(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	named := func(err error) error {
		var cause *fs.PathError
		if errors.As(err, &cause) {
			return &fs.PathError{Op: "open", Path: path, Err: cause.Err}
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	info, err := root.Stat(name)
	if err != nil {
		return nil, named(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: this is no regular file", path) // a pipe would never end
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, named(err)
	}
	return f, nil
}

// readFile reads a file of at most MaxFile bytes in a record's folder; its errors name it.
func readFile(dir, name string) ([]byte, error) {
	f, err := openFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	path := filepath.Join(dir, name)
	if info, err := f.Stat(); err == nil && info.Size() > MaxFile {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d that are accepted", path, info.Size(), MaxFile)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%s: this file grows beyond the %d bytes that are accepted", path, MaxFile)
	}
	return text, nil
}

// readJSON reads a file into a value; its errors name the file, the line and the key.
func readJSON(dir, name string, into any) error {
	text, err := readFile(dir, name)
	if err != nil {
		return err
	}
	if err := strict.Decode(text, into); err != nil {
		return fmt.Errorf("%s:%w", filepath.Join(dir, name), err)
	}
	return nil
}

// firstDifference returns the number of the first line in which two texts differ, and both lines; 0
// if they are equal.
func firstDifference(a, b string) (number int, lineA, lineB string) {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(linesA), len(linesB)) {
		lineA, lineB = "", ""
		if i < len(linesA) {
			lineA = linesA[i]
		}
		if i < len(linesB) {
			lineB = linesB[i]
		}
		if lineA != lineB || i >= len(linesA) || i >= len(linesB) {
			return i + 1, lineA, lineB
		}
	}
	return 0, "", ""
}
