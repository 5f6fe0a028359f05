package csv

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gradwire/gradwire/datasets/input"
)

// split cuts a line into t.fields, without blanks around them and without quotes.
func (t *table) split(line []byte) error {
	t.fields = t.fields[:0]
	if n := bytes.Count(line, []byte{t.separator}); n >= MaxColumns {
		return fmt.Errorf("%d separators; at most %d columns are accepted", n, MaxColumns)
	}
	if bytes.IndexByte(line, '"') < 0 {
		for {
			end := bytes.IndexByte(line, t.separator)
			if end < 0 {
				t.fields = append(t.fields, trim(line))
				return nil
			}
			t.fields, line = append(t.fields, trim(line[:end])), line[end+1:]
		}
	}
	t.scratch = append(t.scratch[:0], line...)
	line = t.scratch
	for {
		field, rest, more, err := t.field(line)
		if err != nil {
			return fmt.Errorf("field %d: %w", len(t.fields)+1, err)
		}
		t.fields = append(t.fields, field)
		if !more {
			return nil
		}
		line = rest
	}
}

// field cuts the first field off a line, and moves its bytes together where quotes are doubled.
func (t *table) field(line []byte) (field, rest []byte, more bool, err error) {
	start := bytes.TrimLeft(line, " ")
	if len(start) == 0 || start[0] != '"' {
		end := bytes.IndexByte(line, t.separator)
		if more = end >= 0; more {
			line, rest = line[:end], line[end+1:]
		}
		if bytes.IndexByte(line, '"') >= 0 {
			return nil, nil, false,
				fmt.Errorf("%s has a quote in it; a field with quotes stands in quotes, with its own doubled",
					input.Quote(line))
		}
		return trim(line), rest, more, nil
	}
	start = start[1:]
	n := 0
	for i := 0; i < len(start); i++ {
		if start[i] != '"' {
			if start[n] = start[i]; start[n] == '\r' {
				start[n] = ' ' // line breaks in names and words become blanks
			}
			n++
			continue
		}
		if i+1 < len(start) && start[i+1] == '"' {
			start[n] = '"'
			n++
			i++
			continue
		}
		rest = bytes.TrimLeft(start[i+1:], " ")
		switch {
		case len(rest) == 0:
			return start[:n], nil, false, nil
		case rest[0] == t.separator:
			return start[:n], rest[1:], true, nil
		}
		return nil, nil, false,
			fmt.Errorf("%s follows the closing quote; a separator or the end of the line is expected",
				input.Quote(rest))
	}
	return nil, nil, false, errors.New("the closing quote is missing")
}

func trim(field []byte) []byte { return bytes.Trim(field, " \t") }

// closes reports whether a line ends outside of quotes, given whether it begins within them. A line
// whose quotes are not as they should be does: split says what is wrong with it.
func (t *table) closes(line []byte, quoted bool) bool {
	if bytes.IndexByte(line, '"') < 0 {
		return !quoted
	}
	for {
		if quoted {
			end := bytes.IndexByte(line, '"')
			if end < 0 {
				return false
			}
			if line = line[end+1:]; len(line) > 0 && line[0] == '"' {
				line = line[1:]
				continue
			}
			quoted = false
		} else if start := bytes.TrimLeft(line, " "); len(start) > 0 && start[0] == '"' {
			line, quoted = start[1:], true
			continue
		}
		end := bytes.IndexByte(line, t.separator)
		if end < 0 {
			return true
		}
		line = line[end+1:]
	}
}
