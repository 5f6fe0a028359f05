// Package text writes tables of recorded runs and of probes for a terminal.
package text

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
)

// dataNotes say what of the files of samples was passed over or read otherwise than it stands there.
func dataNotes(s record.Summary) (lines []string) {
	for _, f := range s.Data {
		for _, note := range f.Notes {
			lines = append(lines, f.Name+": "+note+".")
		}
	}
	return lines
}

// sampleNotes say where fewer models are looked at than there are; of what is judged, only these
// are known.
func sampleNotes(s record.Summary) []string {
	var samples []string
	for _, r := range s.Runs {
		if r.Holders == 0 {
			continue
		}
		sample := fmt.Sprintf("%d of %s", r.Models, report.Count(r.Holders, "node"))
		if !slices.Contains(samples, sample) {
			samples = append(samples, sample)
		}
	}
	if len(samples) == 0 {
		return nil
	}
	return []string{"Looked at are the models of a sample: " + report.ListSome(samples) + " (evaluate.sample)."}
}

const (
	tableWidth = 80 // columns of text that a table keeps to if it can, unless its writer has another number
	minLabel   = 12 // columns to which labels are cut at most to get there
)

// column is a column of the table.
type column struct {
	forms []form // of the same figures: the first is shown, and each further one takes less room
	label bool   // a value of the point: to the left, and may be cut
	leave int    // when it is left out for want of width: 1 first; 0 never
	bare  *form  // without intervals, for where nothing else is left to leave out; nil if it has none
}

// form is a heading, of one line or more, and a cell for each row.
type form struct {
	heading string
	cells   []string
}

// title is the heading on one line.
func (f *form) title() string { return strings.ReplaceAll(f.heading, "\n", " ") }

func formOf[T any](heading string, rows []T, cell func(T) string) form {
	f := form{heading, make([]string, len(rows))}
	for i, row := range rows {
		f.cells[i] = cell(row)
	}
	return f
}

func (f *form) width() int {
	n := 0
	for _, cell := range append(strings.Split(f.heading, "\n"), f.cells...) {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

// Table writes a row for each point: how many of its runs arrived at the target, the median time
// and epochs to it, and the final accuracy, with their 95 % intervals or of few runs their range,
// and the means of the goodput, where runs had faults, of messages and of megabytes. Columns about
// a target are left out where the plan has none. Marks behind the times are verdicts: which point
// is the fastest, and which cannot be told from it. Lines below say what is judged, how points were
// compared and how many repeats would decide, and which runs failed or are degraded, where, when
// and why.
//
// The table keeps to as many columns of text as w has, if w has a method Columns() int, as a
// terminal should: where it must, it abbreviates results, and where that is not enough cuts labels.
// Elsewhere it abbreviates results beyond 80 columns and cuts nothing, because programs read that.
// Where a terminal is narrower still, it leaves out messages and megabytes, then epochs and runs,
// accuracy (where there is a time to target), how many runs arrived, and last the intervals, says
// so below, and keeps every line within the width.
func Table(w io.Writer, s record.Summary) error {
	return writeTable(w, slices.Concat(labelColumns(s), resultColumns(s)), len(s.Groups), Notes(s))
}

// Cells returns what Table writes at its widest: the headings, a row for each point, and how many
// columns name it.
func Cells(s record.Summary) (head []string, rows [][]string, labels int) {
	named := labelColumns(s)
	rows = make([][]string, len(s.Groups))
	for _, c := range slices.Concat(named, resultColumns(s)) {
		head = append(head, c.forms[0].title())
		for i := range rows {
			rows[i] = append(rows[i], strings.TrimSpace(c.forms[0].cells[i]))
		}
	}
	return head, rows, len(named)
}

// Headline writes what a record shows in a few sentences, and an empty line. It keeps to the width
// of w as [Table] does.
func Headline(w io.Writer, s record.Summary) error {
	return Paragraphs(w, strings.Join(report.Headline(s), " "))
}

// Explain writes how the figures of a table were computed, and an empty line. It keeps to the width
// of w as [Table] does.
func Explain(w io.Writer, s record.Summary) error { return Paragraphs(w, Method(s)...) }

// Paragraphs writes lines, and an empty line if there are any. It keeps to the width of w as
// [Table] does.
func Paragraphs(w io.Writer, lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	if screen, ok := w.(interface{ Columns() int }); ok {
		lines = wrap(lines, screen.Columns())
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n\n")
	return err
}

// writeTable writes the rows of columns, and notes below them. It keeps to the width of w as
// Table says.
func writeTable(w io.Writer, columns []column, rows int, notes []string) error {
	if screen, ok := w.(interface{ Columns() int }); ok {
		var left []string
		if columns, left = narrow(columns, screen.Columns()); len(left) > 0 {
			notes = append(notes, "No room here for "+strings.Join(left, ", ")+".")
		}
		notes = wrap(notes, screen.Columns())
	} else {
		abbreviate(columns, tableWidth)
	}
	var b strings.Builder
	lines := 1
	for _, c := range columns {
		lines = max(lines, 1+strings.Count(c.forms[0].heading, "\n"))
	}
	for n := lines; n > 0; n-- {
		writeLine(&b, columns, func(f form) string {
			heading := strings.Split(f.heading, "\n")
			if n > len(heading) {
				return ""
			}
			return heading[len(heading)-n]
		})
	}
	for row := range rows {
		writeLine(&b, columns, func(f form) string { return f.cells[row] })
	}
	for _, note := range notes {
		b.WriteString(note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeLine(b *strings.Builder, columns []column, cell func(f form) string) {
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = cell(c.forms[0])
		gap := strings.Repeat(" ", c.width()-utf8.RuneCountInString(line[i]))
		if c.label {
			line[i] += gap
		} else {
			line[i] = gap + line[i]
		}
	}
	b.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
}

// labelColumns are the settings of the points, one column for each key.
func labelColumns(s record.Summary) (columns []column) {
	keys := report.SweptKeys(s)
	for i, heading := range report.ShortKeys(keys) {
		value := func(g record.Group) string {
			return report.PointName(record.Point{{Key: keys[i], Value: g.Point.Value(keys[i])}})
		}
		columns = append(columns, column{label: true, forms: []form{formOf(heading, s.Groups, value)}})
	}
	return columns
}

func resultColumns(s record.Summary) []column {
	messages, volumes := make([]float64, len(s.Groups)), make([]float64, len(s.Groups))
	for i, g := range s.Groups {
		messages[i], volumes[i] = report.MeanTraffic(s, g.Point)
		volumes[i] /= 1e6
	}
	digits := decimals(volumes)
	traffic := append(goodputColumn(s), []column{
		{leave: 1, forms: []form{
			formOf("messages\na run", messages, func(v float64) string { return fmt.Sprintf("%.0f", v) })}},
		{leave: 2, forms: []form{
			formOf("MB\na run", volumes, func(v float64) string { return fmt.Sprintf("%.*f", digits, v) })}},
	}...)
	if report.CountedOnly(s) {
		runs := formOf("runs counted", s.Groups, func(g record.Group) string { return strconv.Itoa(g.Counted) })
		return append([]column{{leave: 4, forms: []form{runs}}, {forms: []form{lengthForm(s)}}}, traffic...)
	}
	if len(report.Targets(s)) == 0 {
		runs := formOf("runs", s.Groups, func(g record.Group) string { return strconv.Itoa(g.N) })
		return append([]column{{leave: 4, forms: []form{runs}}, {forms: accuracyForms(s)}}, traffic...)
	}
	reached := formOf("reached", s.Groups, func(g record.Group) string {
		if g.Target == nil {
			return report.NoValue
		}
		return fmt.Sprintf("%d/%d", g.Reached, g.N)
	})
	unit := report.TimeUnit(report.LongestMean(s))
	times := targetForms(s, "time to\ntarget, "+unit.Name, "not reached", unit.Seconds,
		func(g record.Group) *record.Arrivals { return g.TimeToTarget })
	addVerdicts(s, times)
	epochs := targetForms(s, "epochs\nto\ntarget", report.NoValue, 1,
		func(g record.Group) *record.Arrivals { return g.EpochsToTarget })
	return append([]column{
		{leave: 6, forms: []form{reached}},
		{forms: times[:2], bare: &times[2]},
		{leave: 3, forms: epochs}, // whose interval adds little to the interval of the time
		{leave: 5, forms: accuracyForms(s)},
	}, traffic...)
}

// lengthForm is the column of the runs' mean duration.
func lengthForm(s record.Summary) form {
	lengths := make([]float64, len(s.Groups))
	longest := 0.0
	for i, g := range s.Groups {
		lengths[i] = report.MeanLength(s, g.Point)
		longest = max(longest, lengths[i])
	}
	unit := report.TimeUnit(longest)
	return formOf("run, "+unit.Name, lengths, func(v float64) string { return fmt.Sprintf("%.4g", v/unit.Seconds) })
}

// goodputColumn is the mean goodput, where there is one.
func goodputColumn(s record.Summary) []column {
	if !report.HasGoodput(s) {
		return nil
	}
	return []column{{leave: 3, forms: []form{formOf("goodput, %", s.Groups, func(g record.Group) string {
		share := report.MeanGoodput(s, g.Point)
		if math.IsNaN(share) {
			return report.NoValue
		}
		return fmt.Sprintf("%.1f", share*100)
	})}}}
}

// accuracyForms are the final accuracies, with their intervals and without.
func accuracyForms(s record.Summary) []form {
	heading := "final\naccuracy, %"
	if suffix := report.JudgedSuffix(s); suffix != "" {
		heading = "final accuracy\n" + strings.TrimSpace(suffix) + ", %"
	}
	cell := func(intervals bool) func(record.Group) string {
		return func(g record.Group) string {
			a := g.FinalAccuracy
			if a == nil {
				return report.NoValue
			}
			percent := func(v record.Float) string { return fmt.Sprintf("%.2f", 100*v) }
			if !intervals {
				return percent(a.Median)
			}
			return report.MedianCell(a, a.Median, false, percent)
		}
	}
	return []form{formOf(heading, s.Groups, cell(true)), formOf(heading, s.Groups, cell(false))}
}

// targetForms are the medians to the target, in units of scale: with their intervals; the same, with
// the word missing for points most of whose runs did not reach the target; and without intervals.
func targetForms(
	s record.Summary, heading, missing string, scale float64, of func(record.Group) *record.Arrivals,
) []form {
	var medians []float64
	for _, g := range s.Groups {
		if a := of(g); a != nil {
			medians = append(medians, float64(a.Median)/scale)
		}
	}
	digits := decimals(medians)
	write := func(v record.Float) string { return fmt.Sprintf("%.*f", digits, float64(v)/scale) }
	known := func(g record.Group) bool { return of(g) != nil && report.IsFinite(float64(of(g).Median)) }
	cell := func(intervals bool) func(record.Group) string {
		return func(g record.Group) string {
			switch {
			case !known(g) && g.Target != nil && intervals:
				return missing
			case !known(g):
				return report.NoValue
			}
			a := of(g)
			if !intervals {
				return write(a.Median)
			}
			return report.MedianCell(&a.Spread, a.Median, a.Reached < a.N, write)
		}
	}
	missed := func(g record.Group) string {
		if !known(g) && g.Target != nil {
			return report.NotReached(g)
		}
		return cell(true)(g)
	}
	return []form{formOf(heading, s.Groups, missed), formOf(heading, s.Groups, cell(true)),
		formOf(heading, s.Groups, cell(false))}
}

// addVerdicts puts the verdicts behind cells.
func addVerdicts(s record.Summary, forms []form) {
	if !report.HasVerdicts(s) {
		return
	}
	for _, form := range forms {
		for i, g := range s.Groups {
			form.cells[i] += " " + report.VerdictMarks[g.Verdict]
		}
	}
}

// decimals returns how many decimals a column needs to show its smallest value other
// than zero with three digits, but not more than two where that leaves two digits.
func decimals(values []float64) int {
	smallest := math.Inf(1)
	for _, v := range values {
		if v > 0 {
			smallest = min(smallest, v)
		}
	}
	if math.IsInf(smallest, 1) {
		return 0
	}
	magnitude := int(math.Floor(math.Log10(smallest)))
	return max(0, min(2-magnitude, max(2, 1-magnitude), 6))
}

// Notes returns the lines below the table.
func Notes(s record.Summary) []string {
	lines := slices.Concat(legend(s), report.Horizons(s), heapNotes(s))
	var names []string
	for _, of := range report.JudgedKinds(s) {
		names = append(names, "the "+report.JudgedNames[of])
	}
	switch len(names) {
	case 0:
	case 1:
		lines = append(lines, "Judged: "+names[0]+".")
	default:
		lines = append(lines, "Judged, by point: "+strings.Join(names, ", ")+".")
	}
	lines = append(lines, dataNotes(s)...)
	lines = append(lines, sampleNotes(s)...)
	for _, note := range s.Notes {
		lines = append(lines, "Note: "+report.Printable(strings.SplitN(note, "\n", 2)[0])+".")
	}
	lines = append(lines, tuningNotes(s)...)
	lines = append(lines, choiceNotes(s)...)
	lines = append(lines, outcomeNotes(s)...)
	return append(lines, clockNotes(s)...)
}

// clockNotes say what the runs missed: measurements that were not kept, time in which they stood
// still before their bound ended them, and what a real clock was late with. Of failed ones that
// stood still the incidents say why.
func clockNotes(s record.Summary) (lines []string) {
	crowded, missing := 0, uint64(0)
	still, first := 0, math.Inf(1)
	late, worst := 0, 0.0
	for _, r := range s.Runs {
		if r.Unmeasured > 0 {
			crowded++
			missing += r.Unmeasured
		}
		if r.Stalled > 0 && r.Outcome != record.Failed {
			still++
			first = min(first, r.Stalled)
		}
		if r.Lateness != nil && r.Late {
			late++
			worst = max(worst, float64(r.P99))
		}
	}
	if crowded > 0 {
		lines = append(lines,
			fmt.Sprintf("%d of %d runs measured more than is kept of a run: %d measurements are missing.",
				crowded, len(s.Runs), missing))
	}
	if still > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d runs stalled until their time was over, the first from %.3g s "+
			"on: everybody was gone, or waited for what was lost or for a node out of reach.",
			still, len(s.Runs), first))
	}
	if late > 0 {
		lines = append(lines,
			fmt.Sprintf("The real clock was late in %d of %d runs (p99 up to %.3g ms): their times are not the plan's.",
				late, len(s.Runs), worst*1e3))
	}
	return lines
}

func (c *column) width() int { return c.forms[0].width() }

// fitWidth abbreviates columns and then cuts labels, the widest first, until the table is narrow
// enough or there is nothing left to shorten.
func fitWidth(columns []column, width int) {
	abbreviate(columns, width)
	cut(columns, width, minLabel, false)
}

// abbreviate gives columns shorter forms, where it saves most first, until the table is narrow
// enough or there are none left.
func abbreviate(columns []column, width int) {
	for totalWidth(columns) > width {
		longest := -1
		for i := range columns {
			c := &columns[i]
			if len(c.forms) > 1 && (longest < 0 || c.saving() > columns[longest].saving()) {
				longest = i
			}
		}
		if longest < 0 {
			return
		}
		columns[longest].forms = columns[longest].forms[1:]
	}
}

// saving is how many columns of text the next form of a column saves.
func (c *column) saving() int { return c.width() - c.forms[1].width() }

func (c *column) cut(width int) {
	f := &c.forms[0]
	lines := strings.Split(f.heading, "\n")
	for i := range lines {
		lines[i] = report.Cut(lines[i], width)
	}
	f.heading = strings.Join(lines, "\n")
	for i := range f.cells {
		f.cells[i] = report.Cut(f.cells[i], width)
	}
}
