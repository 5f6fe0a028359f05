// Package csv reads tables of text that follow RFC 4180, in UTF-8 or Windows-1252, plain or
// compressed with gzip. It treats them as hostile: every length is bounded.
//
// One column holds the label. Every other column holds numbers or, if the options name it,
// words; each distinct word becomes one input. A field may stand in double quotes, where a
// quote is written twice and a line may end. Missing values are refused unless the options say what
// becomes of them. Empty lines, and lines that repeat the header, are passed over; so is a line that
// begins with # and has another number of fields than the table. The second of two columns of one
// name, as NAME, is called NAME.1, a third one NAME.2.
package csv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxRows bounds the number of samples.
	MaxRows = 10_000_000
	// MaxColumns bounds the number of columns.
	MaxColumns = 1 << 16
	// MaxClasses bounds the number of different labels, so that real-valued targets are not
	// taken for classes.
	MaxClasses = 1000
	// MaxWords bounds the number of different words of a column.
	MaxWords = 1000
	// MaxGroups bounds the number of different values of the column that a table is split by.
	MaxGroups = 10_000
)

// Header says whether the first line names the columns.
type Header string

const (
	// Detect takes the first line for a header if a column is a number on the second line only, and
	// for a sample if both are alike; where that says nothing, or the options name a column, it
	// is a header or an error. A line of numbers that count the columns, as pandas writes for a table
	// without names, is an error. So is a sample whose label no other line has, where most labels occur
	// again: column names such as 2019,2020,label look like that.
	Detect Header = "detect"
	// Present says that there is a header.
	Present Header = "present"
	// Absent says that there is none.
	Absent Header = "absent"
)

// Options says what the columns are. A column is named as in the header, or else numbered from 1.
type Options struct {
	// Label is the column of the label; the word last stands for the last one.
	Label string `plan:"label" doc:"the column that is predicted: its name, or else its number from 1, or last"`
	// Header says whether the first line is one. Default: Detect.
	Header Header `plan:"header" words:"detect|present|absent" doc:"whether the first line names the columns; detect refuses a doubtful one, such as 0,1,2"`
	// Separator stands between the fields. Default: a comma.
	Separator string `plan:"separator" words:"comma|semicolon|tab|bar" doc:"what stands between two fields"`
	// Encoding of the text. Default: UTF8.
	Encoding Encoding `plan:"encoding" words:"utf-8|windows-1252" doc:"how the text's characters are written"`
	// Words are columns of words, each written out as one input for each word, in their order.
	Words []string `plan:"words" doc:"columns of words, each word of which becomes an input"`
	// Ignore are columns that are left out.
	Ignore []string `plan:"ignore" doc:"columns that are left out"`
	// Missing says what becomes of missing values. Default: Refuse.
	Missing Missing `plan:"missing" words:"refuse|drop|mean|constant" doc:"missing values: an error, the sample is left out, or filled with the column's mean over the training samples or with a constant; a word that is missing is none of the column's"`
	// Constant is what Missing: Constant fills columns of numbers with.
	Constant float64 `plan:"constant,omitzero" with:"missing=constant" doc:"what missing numbers are filled with, before columns are scaled; default: 0"`
	// Marks are the fields that mark a missing value, beside the empty one, unless Missing is
	// Refuse. A label that is one of them is an error unless Missing is Drop. Under the default,
	// [Marks], so is a label that is a common mark.
	Marks []string `plan:"marks" doc:"fields that mark a missing value, beside the empty one, unless missing is refuse; a label that is one of them is an error, and by default so is any common mark, such as NULL: state marks without it if it is a class"`
	// By is a column whose values become the set's groups. It is no input unless it is one of
	// Words. Default: none.
	By string

	origins []float64 // of columns of numbers, what they are held as differences from; nil for none
}

// separators are the bytes that words of Options.Separator stand for.
var separators = map[string]byte{"": ',', "comma": ',', "semicolon": ';', "tab": '\t', "bar": '|'}

// Last is the word for the last column.
const Last = "last"

// column is what a column of the table is for.
type column struct {
	name  string // of the header, or its number
	at    int    // its place in the training file
	role  role
	words *vocabulary // of a column of words and of the label
	// precision is of a column of numbers. Tables that are parts of one share it.
	precision *datasets.Precision
}

type role uint8

const (
	number role = iota
	word
	label
	ignored
)

// vocabulary numbers words as they come.
type vocabulary struct {
	words []string
	index map[string]int32
	alike map[string]string // labels by numeric value or trimmed text, to find two spellings; nil for words
	fixed bool              // new words are errors
	uses  []int             // samples per label
}

// table turns lines into samples.
type table struct {
	options   Options
	separator byte
	name      string // file name, for errors
	text      *input.Reader
	columns   []column
	fields    [][]byte
	scratch   []byte   // the line, with quotes taken off
	first     [][]byte // fields of a first line that may be a header; nil once that is known
	decoded   []byte   // the line, in UTF-8
	unclosed  []byte   // lines of which a quote is not closed
	remark    [][]byte // fields of a line before the first that begins with #
	names     []string // of the header, as its fields are
	renamed   []string // new names of columns whose names were used before
	twice     []string // names shared by several columns
	repeated  int      // lines that repeat the header
	repeat    int      // the first of them
	// values holds, sample by sample, each column of numbers or words; a word is its position.
	values  input.Chunks[float32]
	labels  input.Chunks[int32]
	origins []float64 // by column of the training file, what its numbers are differences from; nil for none
	kept    int       // number of columns of numbers and words
	number  int       // of the line
	headed  bool      // by a header
	like    *table    // the training file's, for a test file or another one
	joint   bool      // tables that are like this one are parts of the same
	other   *other    // what is asked of another file than these two; else nil
	words   []datasets.Unknown
	found   input.Missing
	by      int // the number from 1 of the column of the groups; 0 for none
	groups  input.Chunks[int32]
	group   *vocabulary
	doubts  []doubt    // labels that may mark a missing value
	detects bool       // the plan leaves open whether the first line is a header
	opening *firstLine // the first line if it is a sample that may be a header, else nil
}

// read returns a function that reads a table, of the columns of another one unless that is nil.
// Errors begin with name and, where they are about one, the number of the line, and say what is
// accepted there.
func (o Options) read(like *table) func(r io.Reader, name string) (*table, error) {
	return func(r io.Reader, name string) (*table, error) {
		text, err := input.New(r, name, nil)
		if err != nil {
			return nil, err
		}
		if o.Header == "" {
			o.Header = Detect
		}
		if err := o.checkMissing(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		detects := o.Header == Detect && (like == nil || like.other == nil)
		switch {
		case like != nil && like.headed:
			o.Header = Present
		case like != nil:
			o.Header = Absent
		}
		t := &table{options: o, separator: separators[o.Separator], name: name, text: text, like: like,
			origins: o.origins, detects: detects}
		t.group = &vocabulary{index: map[string]int32{}}
		if like != nil {
			t.other, t.origins = like.other, like.origins
		}
		if like != nil && like.joint {
			t.group = like.group
		}
		if err := text.Lines(accepted, input.MaxLine, t.line); err != nil {
			return nil, err
		}
		switch {
		case t.unclosed != nil:
			return nil, fmt.Errorf("%s:%d: the closing quote of a field is missing", name, t.number)
		case t.first != nil:
			return nil, fmt.Errorf("%s: a single line, of which it cannot be told whether it is a header; say so "+
				"with header: present or absent", name)
		case t.labels.Len() == 0 && t.found.Samples > 0:
			return nil, fmt.Errorf("%s: no samples are left: a value is missing in each of %d%s", name, t.found.Samples,
				t.trailing())
		case t.labels.Len() == 0:
			return nil, fmt.Errorf("%s: no samples; accepted are lines of fields with a label", name)
		case t.kept == 0:
			return nil, fmt.Errorf("%s: no column is left beside the label; at least one is needed", name)
		case t.inputs() == 0:
			return nil, fmt.Errorf("%s: the only columns beside the label are of words, and every word is missing; "+
				"at least one value is needed", name)
		}
		if err := t.checkDoubts(name); err != nil {
			return nil, err
		}
		return t, t.checkClasses(name)
	}
}

// accepted is what other formats are told.
const accepted = "a table of text (CSV), plain or compressed with gzip"

// line takes one line, and with it those before that end within a quoted field.
func (t *table) line(n int, line []byte) error {
	if t.unclosed == nil {
		t.number = n
	}
	if t.options.Encoding == Windows1252 {
		line = t.decode(line)
	}
	if t.unclosed != nil {
		t.unclosed = append(append(t.unclosed, ' '), line...) // line breaks in names and words become blanks
		if len(t.unclosed) > input.MaxLine {
			return fmt.Errorf("the closing quote of a field is missing in the %d bytes from line %d on", input.MaxLine,
				t.number)
		}
		if t.closes(line, true) {
			line, t.unclosed = t.unclosed, nil
			return t.record(line)
		}
		return nil
	}
	if !t.closes(line, false) {
		t.unclosed = append([]byte{}, line...)
		return nil
	}
	return t.record(line)
}

// record takes the line, or the lines, of a sample.
func (t *table) record(line []byte) error {
	if t.blank(line) {
		return nil
	}
	if is, err := t.separatorLine(line); is || err != nil {
		return err
	}
	if err := t.split(line); err != nil {
		return err
	}
	if line[0] == '#' && (t.columns == nil && t.first == nil || len(t.fields) != max(len(t.columns), len(t.first))) {
		if t.columns == nil && t.first == nil {
			t.remark = cloned(t.fields)
		}
		return nil
	}
	if remark := t.remark; remark != nil {
		t.remark = nil
		if fields := cloned(t.fields); len(remark) == len(fields) {
			t.fields = remark
			if err := t.entry(); err != nil {
				return err
			}
			t.fields = fields
		}
	}
	return t.entry()
}

// blank reports whether a line consists of blanks and tabs only. In a table separated by tabs, a line
// with as many tabs as a sample has is a sample whose values are all missing, and is not blank.
func (t *table) blank(line []byte) bool {
	return len(bytes.TrimLeft(line, " \t")) == 0 &&
		(t.separator != '\t' || bytes.Count(line, []byte("\t"))+1 != max(len(t.columns), len(t.first)))
}

// separatorLine reports whether a line is the first one and names the separator, as Excel's sep=; does.
func (t *table) separatorLine(line []byte) (bool, error) {
	line = bytes.Trim(line, ` "`)
	if t.number > 1 || len(line) != len("sep=,") || !bytes.EqualFold(line[:4], []byte("sep=")) {
		return false, nil
	}
	if line[4] != t.separator {
		return true, fmt.Errorf(
			"the line says that the separator is %q, and the plan %q; accepted are separator: comma, "+
				"semicolon, tab and bar",
			line[4],
			t.separator,
		)
	}
	return true, nil
}

func cloned(fields [][]byte) (copies [][]byte) {
	for _, f := range fields {
		copies = append(copies, bytes.Clone(f))
	}
	return copies
}

// entry takes the fields of a header or a sample.
func (t *table) entry() error {
	switch {
	case t.columns != nil:
		return t.sample()
	case t.first != nil:
		return t.second()
	}
	return t.begin()
}

// begin takes the first line that is not empty.
func (t *table) begin() error {
	if len(t.fields) == 1 && t.other == nil {
		if sparse.Match(t.fields[0]) {
			return fmt.Errorf("%s is a line in LIBSVM's format; set: libsvm reads it", input.Quote(t.fields[0]))
		}
		return fmt.Errorf("a single field, %s; a label and at least one input are needed, with %q between them, or "+
			"another separator that the plan names, as in separator: semicolon",
			input.Quote(t.fields[0]), t.separator)
	}
	switch {
	case t.options.Header == Present, t.options.Header == Detect && t.options.byName():
		return t.named(t.fields)
	case t.options.Header == Absent && t.detects && t.countsColumns(t.fields) && !t.mayName(t.fields):
		return fmt.Errorf("%s has no header, and it cannot be told whether this line is one: %s; say so with header: "+
			"absent, or remove the line", t.called(), counting)
	case t.options.Header == Absent:
		if err := t.header(make([][]byte, len(t.fields))); err != nil {
			return err
		}
		return t.firstSample(t.fields, "this line")
	}
	t.first = cloned(t.fields)
	return nil
}

// sparse matches a line in LIBSVM's format.
var sparse = regexp.MustCompile(`^\S+( +(\d+|qid):[^\s:]+)+$`)

// byName reports whether a column is named, which takes a header.
func (o Options) byName() bool {
	isName := func(c string) bool {
		_, err := strconv.Atoi(c)
		return err != nil && c != Last
	}
	return isName(o.Label) || o.By != "" && isName(o.By) || slices.ContainsFunc(o.Words, isName) ||
		slices.ContainsFunc(o.Ignore, isName)
}

// second finds out, with the second line, whether the first is a header.
func (t *table) second() error {
	first, fields := t.first, t.fields
	if len(first) != len(fields) {
		return fmt.Errorf("%d fields; the first line has %d", len(fields), len(first))
	}
	numbers, onlyHere := 0, 0
	for i := range fields {
		switch {
		case t.gap(first[i]): // says nothing
		case isNumber(first[i]):
			numbers++
		case isNumber(fields[i]):
			onlyHere++
		}
	}
	t.first = nil
	switch {
	case numbers == 0 && onlyHere > 0:
		if err := t.named(first); err != nil {
			return fmt.Errorf("the line before: %w", err)
		}
		return t.sample()
	case t.countsColumns(first) && (onlyHere > 0 || !t.mayName(first)):
		return fmt.Errorf("it cannot be told whether the line before is a header: %s; say so with header: present or "+
			"absent", counting)
	case numbers > 0 && onlyHere == 0:
		if err := t.header(make([][]byte, len(fields))); err != nil {
			return err
		}
		if err := t.firstSample(first, "the line before"); err != nil {
			return fmt.Errorf("the line before: %w", err)
		}
		t.fields = fields
		return t.sample()
	}
	return errors.New("it cannot be told whether the line before is a header; say so with header: present or absent")
}

// counting is the reason why a line of numbers may be a header.
const counting = "its numbers count the columns, as in the header that pandas writes for a table without names"

// countsColumns reports whether a line may be the header of a table without column names: its numbers,
// or its numbers without the label, count up from 0 or 1. A few numbers beside words prove little.
func (t *table) countsColumns(fields [][]byte) bool {
	const many = 3
	label := t.options.labelAt(len(fields))
	if _, n := counted(slices.Concat(fields[:label], fields[label+1:])); n >= many {
		return true
	}
	from, n := counted(fields)
	words := slices.ContainsFunc(fields, func(f []byte) bool { return len(f) > 0 && !isNumber(f) })
	return n >= many || n == many-1 && (from == 0 || !words)
}

// counted returns the first number of a line and the count of its numbers. The count is 0 unless they
// count up from 0 or 1.
func counted(fields [][]byte) (from float64, n int) {
	for _, f := range fields {
		v, err := parse(f)
		switch {
		case err != nil:
			continue
		case n == 0:
			from = v.high
		}
		if v.high != from+float64(n) || from != 0 && from != 1 {
			return from, 0
		}
		n++
	}
	return from, n
}

// isNumber reports whether a field is a number, even in a notation that is not accepted.
func isNumber(field []byte) bool {
	_, err := parse(field)
	return err == nil || input.NumberHint(field) != ""
}

// named takes a line as the header.
func (t *table) named(names [][]byte) error {
	t.headed = true
	for _, name := range names {
		t.names = append(t.names, string(name))
	}
	return t.header(names)
}

// repeats reports whether the fields are those of the header once more, as where tables were put
// behind each other.
func (t *table) repeats() bool {
	if !t.headed || !slices.EqualFunc(t.fields, t.names, func(f []byte, name string) bool {
		return string(f) == name
	}) {
		return false
	}
	if t.repeated++; t.repeated == 1 {
		t.repeat = t.number
	}
	return true
}

// header makes the columns of their names; an empty name is replaced by the column's number.
func (t *table) header(names [][]byte) error {
	columns, seen, err := t.title(names)
	if err != nil {
		return err
	}
	switch {
	case t.other != nil:
		return t.match(columns)
	case t.like != nil:
		return t.sameAs(columns)
	}
	if slices.Contains(t.twice, t.options.Label) {
		err := fmt.Errorf("the label's column is named %s, and several columns are; accepted is its number, as in "+
			"label: %d", input.Quote(t.options.Label), seen[t.options.Label])
		return &datasets.SettingError{Key: "label", Err: err}
	}
	for _, roles := range []struct {
		key   string
		names []string
		role  role
	}{{"label", []string{t.options.Label}, label}, {"words", t.options.Words, word}, {"ignore", t.options.Ignore, ignored}} {
		for _, name := range roles.names {
			if err := assign(columns, seen, name, roles.role); err != nil {
				return &datasets.SettingError{Key: roles.key, Err: err}
			}
		}
	}
	if t.options.By != "" {
		n, err := find(columns, seen, t.options.By)
		if err != nil {
			return err
		}
		if t.by = n; columns[n-1].role == number {
			columns[n-1].role = ignored
		}
	}
	for _, c := range columns {
		if c.role == number || c.role == word {
			t.kept++
		}
	}
	t.columns = columns
	return nil
}

// title gives the columns their names, and returns also the number from 1 of the column of each.
func (t *table) title(names [][]byte) (columns []column, seen map[string]int, err error) {
	seen, columns = make(map[string]int, len(names)), make([]column, len(names))
	var twice, unnamed []int
	for i, name := range names {
		columns[i] = column{name: strconv.Itoa(i + 1), at: i, precision: &datasets.Precision{}}
		if len(name) == 0 {
			unnamed = append(unnamed, i)
			continue
		}
		if err := t.checkPrintable(name); err != nil {
			return nil, nil, fmt.Errorf("name of column %d: %w", i+1, err)
		}
		columns[i].name = string(name)
		if seen[columns[i].name] > 0 {
			twice = append(twice, i)
			continue
		}
		seen[columns[i].name] = i + 1
	}
	suffix := map[string]int{}
	for _, i := range twice {
		name := columns[i].name
		for seen[columns[i].name] > 0 {
			suffix[name]++
			columns[i].name = fmt.Sprintf("%s.%d", name, suffix[name])
		}
		t.renamed, t.twice = append(t.renamed, columns[i].name), append(t.twice, name)
		seen[columns[i].name] = i + 1
	}
	for _, i := range unnamed {
		for seen[columns[i].name] > 0 { // a header of numbers
			columns[i].name = "column " + columns[i].name
		}
	}
	return columns, seen, nil
}

// sameAs takes the columns of the table that this one is like.
func (t *table) sameAs(columns []column) error {
	if len(columns) != len(t.like.columns) {
		return fmt.Errorf("%d columns; %s has %d", len(columns), t.like.called(), len(t.like.columns))
	}
	for i, c := range t.like.columns {
		if c.name != columns[i].name {
			return fmt.Errorf("column %d is named %s; %s names it %s", i+1, input.Quote(columns[i].name),
				t.like.called(), input.Quote(c.name))
		}
		if c.words != nil && !t.like.joint {
			c.words = &vocabulary{words: c.words.words, index: c.words.index, fixed: true}
		}
		columns[i] = c
	}
	t.columns, t.kept, t.by = columns, t.like.kept, t.like.by
	return nil
}

// called is what errors of a table that is like this one call it.
func (t *table) called() string {
	if t.joint {
		return "the first file"
	}
	return "the training file"
}

// find returns the number from 1 of the column that is named so, or numbered.
func find(columns []column, names map[string]int, name string) (int, error) {
	n := names[name]
	if n == 0 {
		n, _ = strconv.Atoi(name)
	}
	if n == 0 && name == Last {
		n = len(columns)
	}
	if n < 1 || n > len(columns) {
		hint := ""
		if len(names) > 0 {
			var all []string
			for _, c := range columns {
				all = append(all, c.name)
			}
			hint = "; the columns are " + input.List(all)
		}
		return 0, fmt.Errorf("there is no column %s; accepted are names of a header, numbers from 1 to %d, "+
			"and the word %s%s", input.Quote(name), len(columns), Last, hint)
	}
	return n, nil
}

// assign gives a role to the column that is named so, or numbered.
func assign(columns []column, names map[string]int, name string, r role) error {
	n, err := find(columns, names, name)
	if err != nil {
		return err
	}
	c := &columns[n-1]
	if c.role != number {
		return fmt.Errorf("column %d (%s) is given two roles; a column is the label, one of words, or ignored", n,
			input.Quote(c.name))
	}
	if c.role = r; r == word || r == label {
		c.words = &vocabulary{index: map[string]int32{}}
	}
	if r == label {
		c.words.alike = map[string]string{}
	}
	return nil
}

// sample takes a line as one.
func (t *table) sample() error {
	if len(t.fields) != len(t.columns) {
		return fmt.Errorf("%d fields; the table has %d columns", len(t.fields), len(t.columns))
	}
	if t.repeats() {
		return nil
	}
	if t.labels.Len() == MaxRows {
		return fmt.Errorf("more than %d samples", MaxRows)
	}
	if t.gaps() {
		return nil
	}
	if err := t.join(); err != nil {
		return err
	}
	for i := range t.columns {
		c := &t.columns[i]
		v, err := t.value(i, t.fields[i])
		if err != nil {
			hint := t.trailing()
			if hint == "" {
				hint = t.options.hint(t.fields[i])
			}
			if hint != "" && c.role == label && t.options.Missing == Refuse {
				hint += "; only drop accepts a missing label"
			}
			return fmt.Errorf("column %d (%s): %w%s", i+1, c.name, err, hint)
		}
		switch c.role {
		case number, word:
			t.values.Append(v)
		case label:
			t.labels.Append(int32(v))
			c.words.count(int(v))
		}
	}
	if t.other != nil {
		t.other.take(t)
	}
	need := 2*t.labels.Bytes() + 2*t.groups.Bytes() + t.values.Bytes() + 4*int64(t.labels.Len())*int64(t.inputs())
	if need > t.text.Budget() {
		return fmt.Errorf("%d samples of %d inputs take %d bytes when every word is written out; accepted are %d and "+
			"%d for each of the %d bytes of text",
			t.labels.Len(), t.inputs(), need, input.Slack, input.Factor, t.text.Offset())
	}
	return nil
}

// trailing returns a hint for an error in a line if the lines seem to end with a separator: the reader then
// sees an additional column, empty and without a name.
func (t *table) trailing() string {
	last := len(t.columns) - 1
	first := t.labels.Len() <= 1
	if t.headed {
		first = t.names[last] == ""
	}
	if !first || len(t.fields) <= last || len(t.fields[last]) > 0 {
		return ""
	}
	hint := fmt.Sprintf("; the last column has no name and is empty, as where each line ends with %q: remove that",
		t.separator)
	if t.headed {
		hint += fmt.Sprintf(", or say ignore: [%d] and name the label's column under label", last+1)
	}
	return hint
}

// inputs returns the number of inputs of a sample, as far as the words are known.
func (t *table) inputs() int {
	n := t.kept
	for _, c := range t.columns {
		if c.role == word {
			n += len(c.words.words) - 1
		}
	}
	return n
}

// value reads a field: a number, the position of a word, or what stands for a missing one.
func (t *table) value(i int, field []byte) (float32, error) {
	c := &t.columns[i]
	if c.role != ignored && t.gap(field) {
		return t.filling(c)
	}
	switch c.role {
	case number:
		return t.numeral(c, field)
	case word, label:
		if c.role == word && c.words.fixed && len(field) > 0 {
			if _, known := c.words.index[string(field)]; !known {
				t.words = datasets.CountUnknown(t.words, c.name, field, t.number)
				return noWord, nil
			}
		}
		most := MaxWords
		if c.role == label {
			most = MaxClasses
		}
		i, err := c.words.at(t, field, most)
		return float32(i), err
	}
	return 0, nil
}

// numeral reads a number, as the difference from its column's origin if that has one.
func (t *table) numeral(c *column, field []byte) (float32, error) {
	v, err := parse(field)
	if err != nil {
		return 0, fmt.Errorf("%w; a column of words is named under words, one of no use under ignore, that of the "+
			"labels under label", err)
	}
	if t.like == nil || t.like.joint {
		c.precision.Add(v.high, v.low)
	}
	if origin := t.origin(c); origin != 0 {
		return float32(v.high - origin + v.low), nil
	}
	return v.narrow, nil
}

// origin is a column's; 0 for none.
func (t *table) origin(c *column) float64 {
	if t.origins == nil {
		return 0
	}
	return t.origins[c.at]
}

// at returns the position of a word.
func (v *vocabulary) at(t *table, field []byte, most int) (int32, error) {
	if i, ok := v.index[string(field)]; ok {
		return i, nil
	}
	switch {
	case v.fixed:
		return 0, fmt.Errorf("%s does not occur in the training file, which has %s", input.Quote(field),
			input.List(v.words))
	case len(v.words) == most:
		return 0, fmt.Errorf("%s is one more than %d different values; accepted are the names of classes or categories",
			input.Quote(field), most)
	case len(field) == 0:
		return 0, errors.New("the field is empty")
	}
	if err := t.checkPrintable(field); err != nil {
		return 0, err
	}
	if v.alike != nil {
		if err := t.joinClass(v, field); err != nil {
			return 0, err
		}
	}
	i := int32(len(v.words))
	if v.index == nil {
		v.index = map[string]int32{}
	}
	v.words = append(v.words, string(field))
	v.index[v.words[i]] = i
	return i, nil
}

// checkPrintable returns an error for text that is too long, not UTF-8 or not printable.
func (t *table) checkPrintable(text []byte) error {
	const longest = 200
	switch {
	case len(text) > longest:
		return fmt.Errorf("%s has %d bytes; at most %d are accepted", input.Quote(text), len(text), longest)
	case !utf8.Valid(text):
		return fmt.Errorf("%s is not UTF-8; if the file is of Windows or in Latin-1, say encoding: windows-1252",
			input.Quote(text))
	}
	for _, c := range string(text) {
		if !strconv.IsPrint(c) {
			return fmt.Errorf("%s has a character in it that cannot be printed", input.Quote(text))
		}
	}
	return nil
}

// numeral is a number of a table.
type numeral struct {
	high, low float64 // which it is the sum of; low is 0 but for integers of many digits
	narrow    float32 // rounded once
}

// parse reads a finite number in decimal notation.
func parse(field []byte) (n numeral, err error) {
	text := string(field)
	v, ok := input.Decimal(text, 64)
	if n.high = v; ok && twiceRounded(v) {
		v, ok = input.Decimal(text, 32)
	}
	if n.narrow = float32(v); !ok || math.IsInf(float64(n.narrow), 0) {
		return n, fmt.Errorf("%s is not a number from %.3g to %.3g%s", input.Quote(field), -math.MaxFloat32,
			math.MaxFloat32, input.NumberHint(field))
	}
	n.high, n.low = datasets.Exact(text, n.high)
	return n, nil
}

// twiceRounded reports whether a number, which was rounded to a float64, may become another float32
// than the one next to what it was before.
func twiceRounded(v float64) bool {
	const behind = 52 - 23 // bits of the fraction that a float32 has not
	tie := math.Float64bits(v)&(1<<behind-1) == 1<<(behind-1)
	size := math.Abs(v)
	return tie || size < 1e-37 && size > 0 || size > math.MaxFloat32
}
