package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gradwire/gradwire/cluster/report"
)

const (
	// maxShownRuns is how many runs that differ are written out; in JSON are all.
	maxShownRuns = 20
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
	b.WriteString("first difference: " + c.Runs[0].Differences[0].String() + "\n\n")
	writeDifferences(b, c.Runs[0].Differences)
}

func (c *Comparison) writeRecord(b *strings.Builder) {
	switch {
	case c.Plan != nil:
		b.WriteString("first difference: " + c.Plan.String() + "\n")
	case len(c.Runs) > 0:
		b.WriteString("first difference: " + report.Printable(c.Runs[0].A) + ", " + c.Runs[0].Differences[0].String() +
			"\n")
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
	_ = w.Flush() // a strings.Builder takes everything
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

// valueText shows a value: a string without its quotes, and what is not there as a dash.
func valueText(value json.RawMessage) string {
	shown := string(value)
	switch {
	case value == nil:
		return report.NoValue // only the other has it
	case value[0] == '"':
		if err := json.Unmarshal(value, &shown); err != nil {
			shown = string(value)
		}
	}
	return report.Cut(report.Printable(shown), maxShownValue)
}
