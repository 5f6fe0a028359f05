package csv

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/datasets/input"
)

// firstLine is a first line that was read as a sample and may be a header. Whether its label occurs in
// other lines decides.
type firstLine struct {
	label     string
	number    bool   // the label is a number
	counts    bool   // the numbers count the columns
	even      bool   // the numbers beside the label ascend by one step
	samples   int    // 1, or 0 if the sample is left out
	at, where string // file with line number, and words for the line, for errors
}

// labelAt returns the position of the label among n columns whose names are unknown.
func (o *Options) labelAt(n int) int {
	if at, err := strconv.Atoi(o.Label); err == nil && at >= 1 && at <= n {
		return at - 1
	}
	return n - 1
}

// mayName reports whether the label of a first line is a word, which may name a class or the column.
// In a test file it must name a class of the training file.
func (t *table) mayName(fields [][]byte) bool {
	at := t.options.labelAt(len(fields))
	field := fields[at]
	if t.like != nil && !t.like.joint {
		_, known := t.like.classes().index[string(field)]
		return known && !isNumber(field)
	}
	return len(field) > 0 && !isNumber(field) && !t.gap(field)
}

// classes returns the vocabulary of the labels.
func (t *table) classes() *vocabulary {
	return t.columns[slices.IndexFunc(t.columns, func(c column) bool { return c.role == label })].words
}

// count counts a sample of the class at a position.
func (v *vocabulary) count(label int) {
	for label >= len(v.uses) {
		v.uses = append(v.uses, 0)
	}
	v.uses[label]++
}

// firstSample reads a first line as a sample, and remembers it if it may be a header. Errors name the
// line by the text where, such as "this line".
func (t *table) firstSample(fields [][]byte, where string) error {
	t.fields = fields
	if err := t.sample(); err != nil || !t.detects || t.like != nil && !t.like.joint {
		return err
	}
	at := t.options.labelAt(len(fields))
	l := &firstLine{label: string(fields[at]), number: isNumber(fields[at]), counts: t.countsColumns(fields),
		samples: t.labels.Len(), at: fmt.Sprintf("%s:%d", t.name, t.number), where: where}
	inputs := slices.Concat(fields[:at], fields[at+1:])
	l.even = evenlySpaced(inputs)
	word := func(f []byte) bool { return len(f) > 0 && !isNumber(f) && !t.gap(f) }
	if !t.gap(fields[at]) && (!l.number || !slices.ContainsFunc(inputs, word)) {
		t.opening = l
	}
	return nil
}

// evenlySpaced reports whether the numbers of a line ascend by one step, as years and wavelengths in a
// header do. A few numbers prove little.
func evenlySpaced(fields [][]byte) bool {
	const many = 3
	var numbers []float64
	for _, f := range fields {
		if v, err := parse(f); err == nil {
			numbers = append(numbers, v.high)
		}
	}
	if len(numbers) < many {
		return false
	}
	step := numbers[1] - numbers[0]
	for i, v := range numbers[1:] {
		if v-numbers[i] != step {
			return false
		}
	}
	return step > 0
}

// checkFirstLines returns an error if the first line of one of a table's parts may be a header. No
// other line of any part has the label of such a line, and its numbers count the columns or ascend
// evenly, or most labels occur again.
func checkFirstLines(tables []*table) error {
	classes := tables[0].classes()
	counts := slices.Clone(classes.uses) // samples per label, without the first lines of all parts
	for _, t := range tables {
		if t.opening != nil && t.opening.samples > 0 {
			counts[classes.index[t.opening.label]]--
		}
	}
	lines, once := 0, 0
	for _, n := range counts {
		if lines += n; n == 1 {
			once++
		}
	}
	for _, t := range tables {
		if t.opening == nil {
			continue
		}
		if y, known := classes.index[t.opening.label]; known && counts[y] > 0 {
			continue
		}
		why := fmt.Sprintf("no other line has its label, %s", input.Quote(t.opening.label))
		switch {
		case t.opening.counts:
			why = counting
		case once == 0, !t.opening.number && (t.opening.even || 2*once <= lines):
		default:
			continue
		}
		return fmt.Errorf("%s: it cannot be told whether %s is a header: %s; say so with header: present or absent",
			t.opening.at, t.opening.where, why)
	}
	return nil
}
