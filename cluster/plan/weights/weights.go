// Package weights reads how much each class counts in the loss.
package weights

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/link/lines"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record/cell"
)

const (
	// Balanced is the word for weights that make all classes count alike; see [Classes.For].
	Balanced = "balanced"
	// Least is the smallest weight.
	Least = 1e-6
	// Most is the largest weight.
	Most = 1e6
	// maxLine bounds a line of a table in bytes; maxLines bounds the number of lines.
	maxLine  = 4 << 10
	maxLines = 1 << 16
)

// Classes is `class-weights`: the word balanced, a table's file, or a map.
type Classes struct {
	Balanced bool
	// File is the path of a table, which Of is read from; see [Read].
	File string
	Of   map[string]float64
	// Source is where a plan says so.
	Source *syntax.Node
}

// UnmarshalPlan reads the word, a file's name or a map.
func (c *Classes) UnmarshalPlan(n *syntax.Node) error {
	*c = Classes{Source: n}
	switch {
	case n.Kind == syntax.Scalar && n.Text == Balanced:
		c.Balanced = true
		return nil
	case n.Kind == syntax.Scalar && filepath.Ext(n.Text) == ".csv":
		c.File = n.Text
		return nil
	case n.Kind != syntax.Map || len(n.Fields) == 0:
		return syntax.Errorf(n, "%s is no weights; accepted are the word %s, a map as in {spam: 2, ham: 0.5}, and a "+
			"table with a class and its weight on each line, as in weights.csv", n.Flow(), Balanced)
	}
	if err := settings.Decode(n, &c.Of); err != nil {
		return err
	}
	for _, f := range n.Fields {
		if err := check(c.Of[f.Key]); err != nil {
			return syntax.Errorf(f.Value, "%w", err)
		}
	}
	return nil
}

// MarshalPlan writes what UnmarshalPlan reads.
func (c *Classes) MarshalPlan() (*syntax.Node, error) {
	switch {
	case c.Balanced:
		return syntax.NewText(Balanced), nil
	case c.File != "":
		return syntax.NewText(c.File), nil
	}
	return settings.Encode(&c.Of)
}

// PlanSchema is the word, a file's name or a map.
func (*Classes) PlanSchema() *settings.Schema {
	return &settings.Schema{AnyOf: []*settings.Schema{
		{Const: Balanced, Description: "samples ÷ (classes × samples of the class), of the training set"},
		{Type: settings.Types{"string"}, Pattern: `\.csv$`},
		settings.SchemaOf(new(map[string]float64)),
	}}
}

func check(v float64) error {
	if !(v >= Least && v <= Most) {
		return fmt.Errorf("weight %v; accepted are numbers from %v to %v", v, Least, Most)
	}
	return nil
}

// Read reads a table: lines of a class and its weight, with a comma between them, after a header
// "class,weight" if there is one. A class may stand in quotes. Blank lines and what follows a # are
// skipped, but not a # within a class that begins otherwise or stands in quotes. Errors begin with
// name and the number of the line.
func Read(r io.Reader, name string) (map[string]float64, error) {
	t := table{of: map[string]float64{}}
	line := func(text []byte, _ int) error { return t.line(text) }
	if _, err := lines.Each(r, name, maxLine, maxLines, line); err != nil {
		return nil, err
	}
	if len(t.of) == 0 {
		return nil, fmt.Errorf("%s: no weights; accepted are lines of %s", name, form)
	}
	return t.of, nil
}

// form describes a line of a table, for errors.
const form = "a class and its weight, as in spam,2"

// table reads the lines of a table of weights.
type table struct {
	headed bool // a header can no longer follow: the reader has passed it, or a class
	of     map[string]float64
}

func (t *table) line(text []byte) error {
	row, err := fields(text)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%w; accepted are %s", err, form)
	case !t.headed && slices.Equal(row, []string{"class", "weight"}):
		t.headed = true
		return nil
	}
	t.headed = true
	class := cell.Plain(row[0])
	if _, twice := t.of[class]; twice {
		return fmt.Errorf("the class %q has a weight already", class)
	}
	v, err := strconv.ParseFloat(row[1], 64)
	if err != nil {
		return fmt.Errorf("%q is not a number; accepted are weights from %v to %v", row[1], Least, Most)
	}
	t.of[class] = v
	return check(v)
}

// fields returns the class and the weight of a line, or io.EOF for a blank line or a comment.
func fields(text []byte) ([]string, error) {
	row := csv.NewReader(bytes.NewReader(withoutComment(text)))
	row.FieldsPerRecord, row.TrimLeadingSpace = 2, true
	both, err := row.Read()
	var wrong *csv.ParseError
	if errors.Is(err, csv.ErrFieldCount) {
		return nil, fmt.Errorf("columns separated by commas: found %d, accepted are 2", len(both))
	}
	if errors.As(err, &wrong) {
		err = wrong.Err
	}
	for i, f := range both {
		both[i] = strings.TrimSpace(f)
	}
	return both, err
}

// withoutComment cuts off a comment, which begins with a # at the start of a line or after the class.
func withoutComment(text []byte) []byte {
	text = bytes.TrimSpace(text)
	quoted, weight := false, false
	for i, b := range text {
		switch {
		case b == '"':
			quoted = !quoted
		case b == ',' && !quoted:
			weight = true
		case b == '#' && !quoted && (weight || i == 0):
			return bytes.TrimSpace(text[:i])
		}
	}
	return text
}

// Check finds classes that do not exist.
func (c *Classes) Check(classes []string) error {
	for _, name := range slices.Sorted(maps.Keys(c.Of)) {
		if !slices.Contains(classes, name) {
			return syntax.Errorf(c.Source.At(name), "there is no class %q to weight; accepted are %q", name, classes)
		}
	}
	return nil
}

// For returns the weights of classes, in their order; classes without one have 1. Balanced ones are
// samples ÷ (classes × samples of the class), as scikit-learn's are, by counts of the samples to
// train on and the classes that have any. A class without samples is none of them.
func (c *Classes) For(classes []string, counts []int) ([]float32, error) {
	if err := c.Check(classes); err != nil {
		return nil, err
	}
	of := slices.Repeat([]float32{1}, len(classes))
	n, present := 0, 0
	for _, count := range counts {
		if n += count; count > 0 {
			present++
		}
	}
	for i, name := range classes {
		if v, given := c.Of[name]; given {
			of[i] = float32(v)
		}
		if c.Balanced && counts[i] > 0 {
			of[i] = float32(float64(n) / (float64(present) * float64(counts[i])))
		}
	}
	return of, nil
}

// Unlisted returns a note about the classes that the table does not list. It returns "" if there are
// none, or no table.
func (c *Classes) Unlisted(classes []string) string {
	if c == nil || c.File == "" {
		return ""
	}
	var unlisted []string
	for _, name := range classes {
		if _, listed := c.Of[name]; !listed {
			unlisted = append(unlisted, strconv.Quote(name))
		}
	}
	if len(unlisted) == 0 {
		return ""
	}
	const most = 3
	first, more := unlisted[:min(most, len(unlisted))], ""
	if len(unlisted) > most {
		more = " and others"
	}
	return syntax.Errorf(c.Source, "the table has no line for %d of %d classes, %s%s; their weight is 1", len(unlisted),
		len(classes), strings.Join(first, ", "), more).Error()
}
