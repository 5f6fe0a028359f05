package nslkdd

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxLine bounds a line's length in bytes, line end included; the longest
	// published one has under 200.
	MaxLine = 4096
	// MaxRows bounds the number of records; KDDTrain+ has an eighth of it.
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
	text    *input.Reader
	row     int64 // bytes that a record becomes
	numeric []int
	kept    [fields]bool
	bare    bool                  // attack and difficulty are not looked at, and need not be there
	foreign bool                  // words that the published files have not are none of their column's
	unknown []datasets.Unknown    // such words
	number  int                   // of the line
	values  input.Chunks[float32] // len(numeric) for each record
	records input.Chunks[record]
}

// Read reads records from r, uncompressed or gzip, in an encoding of 93 or 122
// inputs; 0 means 93. Errors begin with name and the line number and name the
// column and the offending text. Lines end with LF or CRLF; empty ones and those that begin with #
// are passed over; there is no header line. Every other line has exactly 43 fields; numbers are
// finite and lie within the range that their column's definition implies; only the words of the
// published files are accepted.
func Read(r io.Reader, name string, encoding int) (*datasets.Set, error) {
	set, _, err := (&reader{}).read(r, name, encoding)
	return set, err
}

// ReadOther reads other samples in the same format, for a model of an encoding. Where labels are
// not asked for, a line may end before the attack's name or before the difficulty. Where a word is
// none of the published files', all inputs of its column are 0.
func ReadOther(o datasets.Other, encoding int) (*datasets.Others, error) {
	var unknown []datasets.Unknown
	set, err := datasets.ReadOther(o, func(r io.Reader, name string) (set *datasets.Set, err error) {
		set, unknown, err = (&reader{bare: !o.Labelled, foreign: true}).read(r, name, encoding)
		return set, err
	})
	if err != nil {
		return nil, err
	}
	others := datasets.WholeOthers(set)
	others.Unknown = unknown
	return others, nil
}

func (d *reader) read(r io.Reader, name string, encoding int) (set *datasets.Set, unknown []datasets.Unknown,
	err error) {
	if encoding == 0 {
		encoding = Encoding93
	}
	if d.numeric, err = numericFields(encoding); err != nil {
		return nil, nil, err
	}
	for _, i := range d.numeric {
		d.kept[i] = true
	}
	if d.text, err = input.New(r, name, nil); err != nil {
		return nil, nil, err
	}
	d.row = int64(4*encoding) + 8
	if err := d.text.Lines("text in the format of NSL-KDD", MaxLine, d.parse); err != nil {
		return nil, nil, err
	}
	if d.records.Len() == 0 {
		return nil, nil, fmt.Errorf("%s: no records; lines of %d comma-separated fields are expected", name, fields)
	}
	set = d.set(encoding)
	set.Name = name
	return set, d.unknown, nil
}

func (d *reader) parse(number int, line []byte) error {
	d.number = number
	if line = bytes.TrimRight(line, " \t"); len(line) == 0 || line[0] == '#' {
		return nil
	}
	if d.records.Len() == MaxRows {
		return fmt.Errorf("more than %d records", MaxRows)
	}
	n := bytes.Count(line, []byte(",")) + 1
	switch {
	case n == fields:
	case d.bare && n >= fieldAttack && n < fields:
	case d.bare:
		return fmt.Errorf("%d comma-separated fields in %s; %d to %d are expected", n, input.Quote(line), fieldAttack,
			fields)
	default:
		return fmt.Errorf("%d comma-separated fields in %s; exactly %d are expected", n, input.Quote(line), fields)
	}
	var rec record
	for i := range n {
		text := line
		if comma := bytes.IndexByte(line, ','); comma >= 0 {
			text, line = line[:comma], line[comma+1:]
		}
		if err := d.parseField(i, text, &rec); err != nil {
			return fmt.Errorf("column %d (%s): %w", i+1, fieldTable[i].name, err)
		}
	}
	d.records.Append(rec)
	if need := int64(d.records.Len())*d.row + d.records.Bytes() + d.values.Bytes(); need > d.text.Budget() {
		return fmt.Errorf("%d records take %d bytes; accepted are %d and %d for each of the %d bytes of text",
			d.records.Len(), need, input.Slack, input.Factor, d.text.Offset())
	}
	return nil
}

func (d *reader) parseField(i int, text []byte, rec *record) (err error) {
	if d.bare && i >= fieldAttack {
		return nil
	}
	switch i {
	case fieldProtocol:
		rec.protocol, err = d.word(i, protocols, text)
	case fieldService:
		rec.service, err = d.word(i, services, text)
	case fieldFlag:
		rec.flag, err = d.word(i, flags, text)
	case fieldAttack:
		var class Class
		class, err = ParseClass(string(text))
		rec.class = uint8(class)
	default:
		var v float64
		v, err = parseNumber(text, fieldTable[i].max)
		if err == nil && d.kept[i] {
			d.values.Append(float32(v))
		}
	}
	return err
}

// noWord stands for a word that is none of a vocabulary.
const noWord = math.MaxUint8

// word returns the index of a column's word in its vocabulary, or noWord where that is accepted.
func (d *reader) word(column int, words []string, text []byte) (uint8, error) {
	i, err := parseWord(words, text)
	if err == nil || !d.foreign || len(text) == 0 {
		return i, err
	}
	d.unknown = datasets.CountUnknown(d.unknown, fieldTable[column].name, text, d.number)
	return noWord, nil
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
	return 0, fmt.Errorf("unknown value %s; there are %s", input.Quote(text), strings.Join(words, ", "))
}

// powers are the powers of ten by which a decimal fraction of up to 15 digits
// is divided without a second rounding (Clinger, PLDI 1990).
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseNumber returns a number in [0, limit]. Plain decimals, which is all
// that the published files contain, take the short way.
func parseNumber(text []byte, limit float64) (float64, error) {
	v, ok := parseDecimal(text)
	if !ok {
		v, ok = input.Decimal(text, 64)
	}
	if !ok || v < 0 || v > limit {
		return 0, fmt.Errorf("%s is not a number from 0 to %v", input.Quote(text), limit)
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
	n, k := d.records.Len(), len(d.numeric)
	set := &datasets.Set{
		X:       make([]float32, n*encoding),
		Y:       make([]int32, n),
		Inputs:  encoding,
		Classes: slices.Clone(classNames),
		Numeric: make([]int, k),
	}
	set.Columns, _ = Columns(encoding) // the encoding has been checked
	for j := range set.Numeric {
		set.Numeric[j] = j
	}
	protocol := k
	service := protocol + len(protocols)
	flag := service + len(services)
	i := 0
	d.values.Each(func(part []float32) {
		for _, v := range part {
			set.X[i/k*encoding+i%k] = v
			i++
		}
	})
	i = 0
	d.records.Each(func(part []record) {
		for _, rec := range part {
			x := set.X[i*encoding : (i+1)*encoding]
			for _, one := range [...]struct {
				first int
				word  uint8
			}{{protocol, rec.protocol}, {service, rec.service}, {flag, rec.flag}} {
				if one.word != noWord {
					x[one.first+int(one.word)] = 1
				}
			}
			set.Y[i] = int32(rec.class)
			i++
		}
	})
	return set
}
