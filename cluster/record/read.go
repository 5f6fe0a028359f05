package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
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
	if err := decodeJSON(text, into); err != nil {
		return fmt.Errorf("%s:%w", filepath.Join(dir, name), err)
	}
	return nil
}

// decodeJSON decodes one value and nothing after it. Errors begin with the line, where it is known.
func decodeJSON(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if d.More() {
			return fmt.Errorf("%d: there is text after the end", lineOf(text, d.InputOffset()))
		}
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%d: no JSON: %w", lineOf(text, syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("%d: key %q is a %s; %s is accepted",
			lineOf(text, kind.Offset), keyOf(kind.Field), kind.Value, kind.Type)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%d: the file ends too early", lineOf(text, int64(len(text))))
	}
	return fmt.Errorf(" %w", err)
}

// keyOf drops from a path the names of embedded structs, which no key stands for.
func keyOf(field string) string {
	keys := slices.DeleteFunc(strings.Split(field, "."),
		func(s string) bool { return s != "" && unicode.IsUpper(rune(s[0])) })
	return strings.Join(keys, ".")
}

func lineOf(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte{'\n'})
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
