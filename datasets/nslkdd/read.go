package nslkdd

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/datasets"
)

const (
	// MaxLine bounds a line's length in bytes, line end included; the longest
	// published one has under 200.
	MaxLine = 4096
	// MaxRows bounds the number of records, eight times that of KDDTrain+.
	MaxRows = 1_000_000
)

// record is one line before one-hot columns are written out, a tenth of the
// size of its row.
type record struct {
	protocol, service, flag uint8
	class                   uint8
}

// reader turns lines into records and checks each field.
type reader struct {
	name    string
	line    int
	numeric []int
	kept    [fields]bool
	values  []float32 // len(numeric) for each record
	records []record
}

// Read reads records from r, uncompressed or gzip, in an encoding of 93 or 122
// inputs; 0 means 93. Errors begin with name and the line number and name the
// column and the offending text. Lines end with LF or CRLF; there is no header
// line. Every line has exactly 43 fields; numbers are finite and lie within
// the range that their column's definition implies; words are those of the
// published files.
func Read(r io.Reader, name string, encoding int) (*datasets.Set, error) {
	if encoding == 0 {
		encoding = Encoding93
	}
	numeric, err := numericFields(encoding)
	if err != nil {
		return nil, err
	}
	d := &reader{name: name, numeric: numeric}
	for _, i := range numeric {
		d.kept[i] = true
	}
	if err := d.readAll(r); err != nil {
		return nil, err
	}
	return d.set(encoding), nil
}

func (d *reader) readAll(r io.Reader) error {
	lines := bufio.NewReaderSize(r, MaxLine)
	if magic, err := lines.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(lines)
		if err != nil {
			return fmt.Errorf("%s: gzip: %w", d.name, err)
		}
		lines = bufio.NewReaderSize(z, MaxLine)
	}
	for {
		line, err := lines.ReadSlice('\n')
		d.line++
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s:%d: line longer than %d bytes, beginning %s", d.name, d.line, MaxLine, quote(string(line)))
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("%s:%d: %w", d.name, d.line, err)
		case len(line) > 0:
			if err := d.parse(line); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if len(d.records) == 0 {
		return fmt.Errorf("%s: no records", d.name)
	}
	return nil
}

func (d *reader) parse(line []byte) error {
	if len(d.records) == MaxRows {
		return fmt.Errorf("%s:%d: more than %d records", d.name, d.line, MaxRows)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if n := bytes.Count(line, []byte(",")) + 1; n != fields {
		return fmt.Errorf("%s:%d: %d comma-separated fields in %s; exactly %d are expected", d.name, d.line, n, quote(string(line)), fields)
	}
	var rec record
	for i := range fields {
		text := line
		if comma := bytes.IndexByte(line, ','); comma >= 0 {
			text, line = line[:comma], line[comma+1:]
		}
		if err := d.parseField(i, text, &rec); err != nil {
			return fmt.Errorf("%s:%d: column %d (%s): %w", d.name, d.line, i+1, fieldTable[i].name, err)
		}
	}
	d.records = append(d.records, rec)
	return nil
}

func (d *reader) parseField(i int, text []byte, rec *record) (err error) {
	switch i {
	case fieldProtocol:
		rec.protocol, err = parseWord(protocols, text)
	case fieldService:
		rec.service, err = parseWord(services, text)
	case fieldFlag:
		rec.flag, err = parseWord(flags, text)
	case fieldAttack:
		var class Class
		class, err = ParseClass(string(text))
		rec.class = uint8(class)
	default:
		var v float64
		v, err = parseNumber(text, fieldTable[i].max)
		if err == nil && d.kept[i] {
			d.values = append(d.values, float32(v))
		}
	}
	return err
}

// parseWord returns the index of text in a sorted vocabulary.
func parseWord(words []string, text []byte) (uint8, error) {
	for low, high := 0, len(words); low < high; {
		middle := (low + high) / 2
		switch word := words[middle]; {
		case word == string(text):
			return uint8(middle), nil
		case word < string(text):
			low = middle + 1
		default:
			high = middle
		}
	}
	return 0, fmt.Errorf("unknown value %s; there are %s", quote(string(text)), strings.Join(words, ", "))
}

// powers are the powers of ten by which a decimal fraction of up to 15 digits
// is divided without a second rounding (Clinger, PLDI 1990).
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseNumber returns a number in [0, limit]. Plain decimals, which is all
// that the published files contain, take the short way.
func parseNumber(text []byte, limit float64) (float64, error) {
	v, ok := parseDecimal(text)
	if !ok {
		var err error
		if v, err = strconv.ParseFloat(string(text), 64); err != nil {
			v = math.NaN()
		}
	}
	if !(v >= 0 && v <= limit) {
		return 0, fmt.Errorf("%s is not a number from 0 to %v", quote(string(text)), limit)
	}
	return v, nil
}

// parseDecimal reads up to 15 digits with at most one point among them.
func parseDecimal(text []byte) (v float64, ok bool) {
	var mantissa uint64
	digits, point := 0, -1
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + uint64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
		if digits >= len(powers) {
			return 0, false
		}
	}
	if digits == 0 {
		return 0, false
	}
	if point < 0 {
		return float64(mantissa), true
	}
	return float64(mantissa) / powers[len(text)-1-point], true
}

// set writes the records out, one-hot columns behind the numeric ones.
func (d *reader) set(encoding int) *datasets.Set {
	n, k := len(d.records), len(d.numeric)
	set := &datasets.Set{
		Name:    d.name,
		X:       make([]float32, n*encoding),
		Y:       make([]int32, n),
		Inputs:  encoding,
		Classes: slices.Clone(classNames),
		Numeric: make([]int, k),
	}
	for j := range set.Numeric {
		set.Numeric[j] = j
	}
	protocol := k
	service := protocol + len(protocols)
	flag := service + len(services)
	for i, rec := range d.records {
		x := set.X[i*encoding : (i+1)*encoding]
		copy(x, d.values[i*k:(i+1)*k])
		x[protocol+int(rec.protocol)] = 1
		x[service+int(rec.service)] = 1
		x[flag+int(rec.flag)] = 1
		set.Y[i] = int32(rec.class)
	}
	return set
}

// quote quotes text from a file, shortened, for an error.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		return strconv.Quote(text[:longest]) + "…"
	}
	return strconv.Quote(text)
}
