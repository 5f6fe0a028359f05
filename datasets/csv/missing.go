package csv

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/datasets/input"
)

// Missing says what becomes of a sample of which a value is missing.
type Missing string

const (
	// Refuse makes it an error.
	Refuse Missing = "refuse"
	// Drop leaves the sample out, also where its label is missing.
	Drop Missing = "drop"
	// Mean leaves NaN in a column of numbers, for a datasets.Filler. Where a word is missing, all
	// inputs of its column are 0.
	Mean Missing = "mean"
	// Constant puts Options.Constant into a column of numbers. Where a word is missing, all inputs
	// of its column are 0.
	Constant Missing = "constant"
)

// Marks are the fields that stand for a missing value unless a plan states others.
func Marks() []string { return []string{"NA", "N/A", "NaN", "nan", "null", "?"} }

// usual holds the common marks of missing values, in lower case.
var usual = []string{
	"na", "n/a", "n.a.", "n.a", "<na>", "#na", "#n/a", "#n/a n/a", "nan", "-nan", "nat",
	"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "null", "(null)", "<null>", `\n`, "nil", "<nil>", "(nil)",
	"none", "<none>", "nothing", "undefined", "missing", "(missing)", "(blank)", "not available", "no data",
	"#null!", "#value!", "#ref!", "#name?", "#num!", "#div/0!",
	"?", "??", "???", minus, "--", "---", "–", "—", ".", "..", "...", "*",
}

// isUsual reports whether a field is a common mark of a missing value.
func isUsual[T ~string | ~[]byte](field T) bool {
	return slices.Contains(usual, strings.ToLower(strings.TrimSpace(string(field))))
}

// noWord stands for a missing word among the values.
const noWord = -1

func (o *Options) checkMissing() error {
	switch o.Missing {
	case "":
		o.Missing = Refuse
	case Refuse, Drop, Mean, Constant:
	default:
		return fmt.Errorf("missing %q; accepted are refuse, drop, mean and constant", o.Missing)
	}
	if !(math.Abs(o.Constant) <= math.MaxFloat32) {
		return fmt.Errorf("constant %v; accepted are numbers from %.3g to %.3g", o.Constant, -math.MaxFloat32,
			math.MaxFloat32)
	}
	return nil
}

// missing reports whether a field stands for a missing value.
func (o *Options) missing(field []byte) bool {
	return len(field) == 0 || slices.Contains(o.Marks, string(field))
}

// gap reports whether a field stands for a missing value where these are accepted.
func (t *table) gap(field []byte) bool {
	return t.options.Missing != Refuse && t.options.missing(field)
}

// gaps counts the missing values of a line that has as many fields as there are columns, and
// reports whether the sample is left out for them.
func (t *table) gaps() (leftOut bool) {
	n := 0
	for i, c := range t.columns {
		if (c.role != ignored || i == t.by-1) && t.gap(t.fields[i]) {
			n++
		}
	}
	if n == 0 {
		return false
	}
	t.found.Values += n
	t.found.Samples++
	if t.options.Missing == Drop && t.other != nil {
		t.other.total++
	}
	return t.options.Missing == Drop
}

// join puts the sample of a line into its group.
func (t *table) join() error {
	if t.by == 0 {
		return nil
	}
	field := t.fields[t.by-1]
	if t.gap(field) {
		return fmt.Errorf("column %d (%s): the value that the samples are split by is missing; missing: drop leaves "+
			"such samples out", t.by, t.columns[t.by-1].name)
	}
	g, err := t.group.at(t, field, MaxGroups)
	if err != nil {
		return fmt.Errorf("column %d (%s), by which the samples are split: %w%s", t.by, t.columns[t.by-1].name, err,
			t.options.hint(field))
	}
	t.groups.Append(g)
	return nil
}

// filling is what stands among the values for one that is missing.
func (t *table) filling(c *column) (float32, error) {
	switch {
	case c.role == label:
		return 0, errors.New("the label is missing; missing: drop leaves such samples out")
	case c.role == word:
		return noWord, nil
	case t.options.Missing == Mean:
		return float32(math.NaN()), nil
	}
	return float32(t.options.Constant - t.origin(c)), nil
}

// hint returns the settings that accept a field which marks a missing value, for an error about it.
func (o *Options) hint(field []byte) string {
	switch {
	case !o.missing(field) && isUsual(field):
		return fmt.Sprintf("; %s seems to stand for a missing value: %s and missing: drop, mean or constant leave "+
			"such samples out or fill them", input.Quote(field), o.marksWith(string(field)))
	case o.Missing == Refuse && o.missing(field):
		return "; missing values are left out or filled with missing: drop, mean or constant; marks lists the fields " +
			"that stand for one beside the empty one"
	}
	return ""
}

// marksWith returns the setting marks, as a plan writes it, with one more mark.
func (o *Options) marksWith(mark string) string {
	var quoted []string
	for _, m := range append(slices.Clip(o.Marks), mark) {
		quoted = append(quoted, strconv.Quote(m))
	}
	return "marks: [" + strings.Join(quoted, ", ") + "]"
}

// open reads the table of a file, which may be like another one.
func (o Options) open(path string, like *table) (*table, input.File, error) {
	t, file, err := input.Open(path, o.read(like))
	if err != nil {
		return nil, file, err
	}
	if t.options.Missing != Refuse {
		file.Missing = t.found
		file.Missing.Done = string(t.options.Missing)
	}
	file.Notes = t.notes()
	return t, file, nil
}

// notes say what was passed over.
func (t *table) notes() (notes []string) {
	for _, u := range t.words {
		notes = append(notes, u.String())
	}
	if t.like == nil {
		notes = append(notes, t.columnNotes()...)
	}
	if len(t.renamed) > 0 {
		notes = append(notes, fmt.Sprintf("columns have the names of earlier ones; they are called %s",
			input.List(t.renamed)))
	}
	if t.repeated > 0 {
		notes = append(notes, fmt.Sprintf("lines that repeat the header are passed over, %d in all, the first of them "+
			"line %d", t.repeated, t.repeat))
	}
	return notes
}
