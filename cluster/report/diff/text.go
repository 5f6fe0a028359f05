package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gradwire/gradwire/cluster/report"
)

const (
	// maxShownRuns is how many runs that differ are written out; in JSON are all.
	maxShownRuns = 20
	// maxShownEntries limits the entries of a mapping or a list that differ and are written out.
	maxShownEntries = 8
	// maxShownValue is how many characters of a value are.
	maxShownValue = 60
)

// Write writes the comparison as text: whether the two are equal, the first difference, and
// of a single pair of runs all of them.
func (c *Comparison) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A  %s\nB  %s\n", c.A, c.B)
	for _, note := range c.Notes {
		b.WriteString("note: " + report.Printable(note) + "\n")
	}
	if c.Kind == "run" {
		c.writeRun(&b)
	} else {
		c.writeRecord(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Comparison) writeRun(b *strings.Builder) {
	if c.Equal {
		b.WriteString("equal: " + strings.Join(c.What, ", ") + "\n")
		return
	}
	b.WriteString("first difference: " + c.Runs[0].Differences[0].entries()[0].String() + "\n\n")
	writeDifferences(b, c.Runs[0].Differences)
}

func (c *Comparison) writeRecord(b *strings.Builder) {
	switch {
	case c.Plan != nil:
		b.WriteString("first difference: " + c.Plan.String() + "\n")
	case len(c.Runs) > 0:
		b.WriteString("first difference: " + report.Printable(c.Runs[0].A) + ", " +
			c.Runs[0].Differences[0].entries()[0].String() + "\n")
	}
	if len(c.Changes) > 1 {
		for _, change := range c.Changes[:min(len(c.Changes), maxShownRuns)] {
			fmt.Fprintf(b, "plan: %s: %s | %s\n", report.Printable(change.Key), planText(change.A), planText(change.B))
		}
	}
	for _, only := range []struct {
		name string
		runs []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		for _, run := range only.runs[:min(len(only.runs), maxShownRuns)] {
			fmt.Fprintf(b, "only %s has %s\n", only.name, report.Printable(run))
		}
		if more := len(only.runs) - maxShownRuns; more > 0 {
			fmt.Fprintf(b, "only %s has %d more runs\n", only.name, more)
		}
	}
	alike := " of the same point and seed"
	if c.Key != "" {
		alike = " of the same seed, at points that differ in " + report.Printable(c.Key) + " alone"
	}
	fmt.Fprintf(b, "equal: %d of %s\n", c.Compared-len(c.Runs), report.Count(c.Compared, "run")+alike)
	for _, r := range c.Runs[:min(len(c.Runs), maxShownRuns)] {
		fmt.Fprintf(b, "\n%s | %s\n", report.Printable(r.A), report.Printable(r.B))
		writeDifferences(b, r.Differences)
	}
	if more := len(c.Runs) - maxShownRuns; more > 0 {
		fmt.Fprintf(b, "\nand %d more runs that differ; --format json has all\n", more)
	}
}

// planText shows a value of a plan, and what it lacks as a dash.
func planText(value string) string {
	if value == "" {
		return report.NoValue
	}
	return report.Cut(report.Printable(value), maxShownValue)
}

func writeDifferences(b *strings.Builder, all []*Difference) {
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', tabwriter.StripEscape)
	for _, d := range all {
		entries := d.entries()
		for _, e := range entries[:min(len(entries), maxShownEntries)] {
			writeDifference(w, e)
		}
		if more := len(entries) - maxShownEntries; more > 0 {
			fmt.Fprintf(w, "  %s: %d more entries differ\n", report.Printable(d.What), more)
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
}

func writeDifference(w io.Writer, d *Difference) {
	what := d.What
	if d.Where != "" {
		what += ": " + d.Where
	}
	line := "  " + report.Printable(what) + "\t" + valueText(d.A) + "\t" + valueText(d.B)
	if d.Note != "" {
		line += "\t(" + report.Printable(d.Note) + ")"
	}
	fmt.Fprintln(w, line)
}

// entries splits a difference of two mappings or two lists into a difference for each entry. A null
// beside a mapping or a list has no entries. Other differences stay whole.
func (d *Difference) entries() (all []*Difference) {
	for _, e := range entriesOf(d.A, d.B) {
		if !bytes.Equal(e.a, e.b) {
			where := strings.TrimPrefix(d.Where+", "+e.key, ", ")
			all = append(all, (&Difference{What: d.What, Where: where, A: e.a, B: e.b}).entries()...)
		}
	}
	if len(all) == 0 {
		return []*Difference{d}
	}
	if d.Note != firstKey(d.A, d.B) { // the entries show that key
		all[0].Note = d.Note
	}
	return all
}

// entry is an entry of one or both of two mappings or lists in JSON.
type entry struct {
	key  string // a number from 1 in lists
	a, b json.RawMessage
}

// entriesOf returns the entries of two mappings or of two lists; nil of other values.
func entriesOf(a, b json.RawMessage) (all []entry) {
	var one, two map[string]json.RawMessage
	if json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &two) == nil {
		for _, key := range slices.Sorted(maps.Keys(merged(one, two))) {
			all = append(all, entry{key, one[key], two[key]})
		}
		return all
	}
	var listA, listB []json.RawMessage
	if json.Unmarshal(a, &listA) != nil || json.Unmarshal(b, &listB) != nil {
		return nil
	}
	for i := range max(len(listA), len(listB)) {
		e := entry{key: strconv.Itoa(i + 1)}
		if i < len(listA) {
			e.a = listA[i]
		}
		if i < len(listB) {
			e.b = listB[i]
		}
		all = append(all, e)
	}
	return all
}

// merged has the entries of both mappings.
func merged(one, two map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(one)
	if all == nil {
		return two
	}
	maps.Copy(all, two)
	return all
}

// String writes the difference in a line.
func (d *Difference) String() string {
	what := d.What
	if d.Where != "" {
		what += ", " + d.Where
	}
	if d.A == nil && d.B == nil {
		return report.Printable(what + ": " + d.Note)
	}
	return report.Printable(what) + ": " + valueText(d.A) + " | " + valueText(d.B)
}

// valueText shows a value as text, and a missing value as a dash.
func valueText(value json.RawMessage) string {
	if value == nil {
		return report.NoValue // only the other has it
	}
	return report.Cut(report.Printable(plainText(value)), maxShownValue)
}

// plainText writes a string without its quotes, a mapping as "key value, key value", and a list as
// its values.
func plainText(value json.RawMessage) string {
	entries := entriesOf(value, json.RawMessage("null"))
	if len(entries) == 0 {
		shown := string(value)
		if json.Unmarshal(value, &shown) != nil {
			return string(value)
		}
		return shown
	}
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = plainText(e.a)
		if len(entriesOf(e.a, json.RawMessage("null"))) > 0 {
			parts[i] = "(" + parts[i] + ")"
		}
		if value[0] == '{' {
			parts[i] = e.key + " " + parts[i]
		}
	}
	return strings.Join(parts, ", ")
}
