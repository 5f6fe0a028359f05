// Package lines reads small text files line by line, within bounds, for networks that were
// measured. Errors begin with the file's name and the line ("delays.csv:17: …") and quote what was
// found; an error of the reader is wrapped.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Each calls take for each line of a file, without its end, and returns how many there are. A line
// of more than width bytes with its end, and a file of more than most lines, are errors.
func Each(r io.Reader, name string, width, most int, take func(text []byte, line int) error) (lines int, err error) {
	b := bufio.NewReaderSize(r, width)
	for line := 1; ; line++ {
		text, err := next(b)
		switch {
		case errors.Is(err, io.EOF):
			return line - 1, nil
		case err == nil && line > most:
			err = fmt.Errorf("more than %d lines", most)
		case err == nil:
			err = take(text, line)
		}
		if err != nil {
			return 0, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

// next returns the next line without its end, or io.EOF after the last one.
func next(r *bufio.Reader) ([]byte, error) {
	text, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("line %q… is longer than %d bytes", text[:32], r.Size())
	case err != nil && (len(text) == 0 || !errors.Is(err, io.EOF)):
		return nil, err
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

// Plain returns a line without its comment, which begins with a #, and the blanks before it.
func Plain(text []byte) []byte {
	plain, _, commented := bytes.Cut(text, []byte("#"))
	if commented {
		plain = bytes.TrimRight(plain, " \t")
	}
	return plain
}
