package csv

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/datasets/input"
)

// A minus is a class if plus is one, too; otherwise it marks a missing value.
const minus, plus = "-", "+"

// doubt is a label that may mark a missing value, with its first line.
type doubt struct {
	label string
	line  int
}

// joinClass checks a new label against the classes, and remembers it if it may mark a missing value.
func (t *table) joinClass(classes *vocabulary, field []byte) error {
	label := string(field)
	meaning := strings.TrimSpace(label)
	if n := len(meaning); n > 2 && meaning[0] == '\'' && meaning[n-1] == '\'' {
		meaning = strings.TrimSpace(meaning[1 : n-1])
	}
	if v, err := parse([]byte(meaning)); err == nil {
		meaning = strconv.FormatFloat(v.high+0, 'g', -1, 64) // -0 is 0
	}
	if first, known := classes.alike[meaning]; known {
		return fmt.Errorf("the label %s means the same as %s on an earlier line, and is written otherwise; accepted "+
			"is one way to write each class, with the same blanks, quotes, digits and decimal point",
			input.Quote(label), input.Quote(first))
	}
	classes.alike[meaning] = label
	byDefault := slices.Equal(t.options.Marks, Marks())
	if slices.Contains(t.options.Marks, label) || byDefault && isUsual(label) {
		t.doubts = append(t.doubts, doubt{label, t.number})
	}
	return nil
}

// checkDoubts returns an error if a label marks a missing value.
func (t *table) checkDoubts(name string) error {
	for _, d := range t.doubts {
		i := slices.IndexFunc(t.columns, func(c column) bool { return c.role == label })
		c := t.columns[i]
		if _, signs := c.words.index[plus]; signs && d.label == minus {
			continue
		}
		drop := "missing: drop leaves such samples out"
		if !t.options.missing([]byte(d.label)) {
			drop = t.options.marksWith(d.label) + " and " + drop
		}
		return fmt.Errorf("%s:%d: column %d (%s): the label %s stands for a missing value in most tables; %s; if it "+
			"names a class, state marks without it, such as marks: []", name, d.line, i+1, c.name,
			input.Quote(d.label), drop)
	}
	return nil
}

// halves matches the digits after a decimal comma that was read as a separator, with the next field.
var halves = regexp.MustCompile(`^\d+;`)

// checkClasses returns an error if the labels show that the table has another separator than commas.
func (t *table) checkClasses(name string) error {
	for i, c := range t.columns {
		if c.role != label || t.separator != ',' || slices.ContainsFunc(c.words.words, func(w string) bool {
			return !halves.MatchString(w)
		}) {
			continue
		}
		return fmt.Errorf("%s: column %d (%s): the labels are %s, as where commas stand within numbers and semicolons "+
			"between them; separator: semicolon reads such a table, of which the numbers must have a decimal point", name,
			i+1, c.name, input.List(c.words.words))
	}
	return nil
}

// columnNotes returns notes about columns that the plan may describe wrongly.
func (t *table) columnNotes() (notes []string) {
	var names [][]byte
	for _, name := range t.names {
		names = append(names, []byte(name))
	}
	if i := slices.IndexFunc(names, isNumber); i >= 0 && !t.countsColumns(names) {
		notes = append(notes, fmt.Sprintf("the header names a column %q: if it is a sample, say header: absent",
			names[i]))
	}
	for i, c := range t.columns {
		switch {
		case i == 0 && t.headed && c.role == number && (t.names[0] == "" || strings.HasPrefix(t.names[0], "Unnamed: ")):
			notes = append(notes, "the first column has no name, as the index that pandas writes, and is an input: "+
				"ignore: [1] leaves it out")
		case c.role == word:
			marks := slices.DeleteFunc(slices.Clone(c.words.words), func(w string) bool { return !isUsual(w) })
			if len(marks) > 0 {
				notes = append(notes, fmt.Sprintf("column %s has the words %s, which stand for missing values in most "+
					"tables, and has an input for each: marks and missing say otherwise", c.name, input.List(marks)))
			}
		case c.role == label:
			notes = append(notes, c.words.caseNotes()...)
		}
	}
	return notes
}

// caseNotes returns notes about classes whose names differ in case only.
func (v *vocabulary) caseNotes() (notes []string) {
	first := map[string]string{}
	for _, w := range v.words {
		lower := strings.ToLower(w)
		if other, known := first[lower]; known {
			notes = append(
				notes,
				fmt.Sprintf("the labels %q and %q are two classes, and differ in case only", other, w),
			)
			continue
		}
		first[lower] = w
	}
	return notes
}
