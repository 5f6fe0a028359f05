// Package text writes tables of recorded runs and of probes for a terminal.
package text

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
)

// sampleNote says where fewer models are looked at than there are; of what is judged, only these
// are known.
func sampleNote(s record.Summary) string {
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
		return ""
	}
	return "Looked at are the models of a sample: " + report.ListSome(samples) + " (evaluate.sample)."
}

const (
	tableWidth = 80 // columns of text that a table keeps to if it can, unless its writer has another number
	minLabel   = 12 // columns to which labels are cut at most to get there
)

// column is a column of the table: its heading and a cell for each group.
type column struct {
	heading string
	cells   []string
	label   bool    // a value of the point: to the left, and may be cut
	leave   int     // when it is left out for want of width: 1 first; 0 never
	brief   *column // the same in fewer columns of text; nil if there is no shorter way
	last    *column // the same without intervals, for where nothing else is left to leave out; nil if it has none
}

// Table writes a row for each point: how many of its runs arrived at the target, the mean time and
// epochs to it (restricted, where runs did not arrive), and of the final accuracy, with their 95 %
// intervals, and the means of messages and megabytes. Columns about a target are left out where the
// plan has none. Marks behind the times are verdicts: which point is the fastest, and which cannot
// be told from it. Lines below say what is judged, how points were compared and how many repeats
// would decide, and which runs failed or are degraded, where, when and why.
//
// The table keeps to as many columns of text as w has, if w has a method Columns() int, as a
// terminal should, and otherwise to 80: where it must, it abbreviates results, and where that is
// not enough cuts labels. Where a terminal is narrower still, it leaves out messages and megabytes,
// then epochs and runs, accuracy (where there is a time to target), how many runs arrived, and last
// the intervals, says so below, and keeps every line within the width.
func Table(w io.Writer, s record.Summary) error {
	columns := labelColumns(s)
	columns = append(columns, resultColumns(s)...)
	return writeTable(w, columns, len(s.Groups), Notes(s))
}

// Cells returns what Table writes at its widest: the headings, a row for each point, and how many
// columns name it.
func Cells(s record.Summary) (head []string, rows [][]string, labels int) {
	columns := labelColumns(s)
	labels = len(columns)
	columns = append(columns, resultColumns(s)...)
	rows = make([][]string, len(s.Groups))
	for _, c := range columns {
		head = append(head, c.heading)
		for i := range rows {
			rows[i] = append(rows[i], strings.TrimSpace(c.cells[i]))
		}
	}
	return head, rows, labels
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
		fitWidth(columns, tableWidth)
	}
	var b strings.Builder
	line := make([]string, len(columns))
	for i := range columns {
		line[i] = columns[i].heading
	}
	writeLine(&b, columns, line)
	for row := range rows {
		for i := range columns {
			line[i] = columns[i].cells[row]
		}
		writeLine(&b, columns, line)
	}
	for _, note := range notes {
		b.WriteString(note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// labelColumns are the settings of the points, one column for each key.
func labelColumns(s record.Summary) []column {
	var columns []column
	keys := report.SweptKeys(s)
	for i, heading := range report.ShortKeys(keys) {
		c := column{heading: heading, label: true}
		for _, g := range s.Groups {
			c.cells = append(c.cells, report.ValueAt(g.Point, keys[i]))
		}
		columns = append(columns, c)
	}
	return columns
}

func resultColumns(s record.Summary) []column {
	runs := column{heading: "runs", leave: 4}
	accuracy := accuracyColumn(s)
	messages, volume := column{heading: "messages", leave: 1}, column{heading: "MB", leave: 2}
	volumes := make([]float64, len(s.Groups))
	for i, g := range s.Groups {
		var m float64
		m, volumes[i] = report.MeanTraffic(s, g.Point)
		volumes[i] /= 1e6
		messages.cells = append(messages.cells, fmt.Sprintf("%.0f", m))
		runs.cells = append(runs.cells, fmt.Sprint(g.N))
	}
	for _, v := range volumes {
		volume.cells = append(volume.cells, fmt.Sprintf("%.*f", decimals(volumes), v))
	}
	if len(report.Targets(s)) == 0 {
		return []column{runs, accuracy, messages, volume}
	}
	accuracy.leave, accuracy.brief.leave = 5, 5
	reached := column{heading: "reached", leave: 6}
	for _, g := range s.Groups {
		cell := report.NoValue
		if g.Target != nil {
			cell = fmt.Sprintf("%d/%d", g.Reached, g.N)
		}
		reached.cells = append(reached.cells, cell)
	}
	unit := report.TimeUnit(report.LongestMean(s))
	times := targetColumn(s, "time", unit.Seconds, func(g record.Group) *record.Arrivals { return g.TimeToTarget })
	times.setHeadings("time to target, "+unit.Name, "time, "+unit.Name)
	epochs := targetColumn(s, "epochs", 1, func(g record.Group) *record.Arrivals { return g.EpochsToTarget })
	epochs.setHeadings("epochs to target", "epochs")
	for c := &epochs; c != nil; c = c.brief {
		c.leave = 3
	}
	// whose interval adds little to the interval of the time
	epochs.brief.brief, epochs.last, epochs.brief.last = epochs.last, nil, nil
	epochs.brief.brief.leave = 3
	times.addVerdicts(s)
	return []column{reached, times, epochs, accuracy, messages, volume}
}

// accuracyColumn has the final accuracies.
func accuracyColumn(s record.Summary) column {
	heading := "accuracy" + report.JudgedSuffix(s) + ", %"
	long, short := column{heading: "final " + heading}, column{heading: heading}
	for _, g := range s.Groups {
		long.cells = append(long.cells, spreadCell(g.FinalAccuracy, 100, 2))
		cell := report.NoValue
		if g.FinalAccuracy != nil {
			cell = fmt.Sprintf("%.2f", float64(g.FinalAccuracy.Mean)*100)
		}
		short.cells = append(short.cells, cell)
	}
	long.brief = &short
	return long
}

// targetColumn has the means to the target, in units of scale, with their intervals; its brief form
// is shorter where no run arrived, and its last one is without intervals.
func targetColumn(s record.Summary, heading string, scale float64, of func(record.Group) *record.Arrivals) column {
	var means []float64
	for _, g := range s.Groups {
		if a := of(g); a != nil {
			means = append(means, float64(a.Restricted)/scale)
		}
	}
	digits := decimals(means)
	var long, short, bare column
	for _, g := range s.Groups {
		a := of(g)
		if a == nil {
			cell := report.NoValue
			if g.Target != nil {
				cell = fmt.Sprintf("not reached (%d of %d)", g.N-g.Reached, g.N)
			}
			long.cells = append(long.cells, cell)
			short.cells, bare.cells = append(short.cells, report.NoValue), append(bare.cells, report.NoValue)
			continue
		}
		mean := fmt.Sprintf("%.*f", digits, float64(a.Restricted)/scale)
		cell := mean
		if a.Method != stats.TooFew {
			cell = fmt.Sprintf("%s [%.*f, %.*f]", mean, digits, float64(a.Low)/scale, digits, float64(a.High)/scale)
		}
		long.cells, short.cells, bare.cells = append(long.cells, cell), append(short.cells, cell),
			append(bare.cells, mean)
	}
	bare.heading = heading
	short.last, long.last, long.brief = &bare, &bare, &short
	return long
}

// setHeadings gives a column and its shorter forms their headings.
func (c *column) setHeadings(long, short string) {
	c.heading, c.brief.heading, c.last.heading = long, short, short
}

// addVerdicts puts the verdicts behind a column's cells.
func (c *column) addVerdicts(s record.Summary) {
	if !report.HasVerdicts(s) {
		return
	}
	for _, form := range []*column{c, c.brief, c.last} {
		for i, g := range s.Groups {
			form.cells[i] += " " + report.VerdictMarks[g.Verdict]
		}
	}
}

// spreadCell writes a mean with its interval, the latter only where there is one.
func spreadCell(s *record.Spread, scale float64, decimals int) string {
	if s == nil {
		return report.NoValue
	}
	mean := fmt.Sprintf("%.*f", decimals, float64(s.Mean)*scale)
	if s.Method == stats.TooFew {
		return mean
	}
	return fmt.Sprintf("%s [%.*f, %.*f]", mean, decimals, float64(s.Low)*scale, decimals, float64(s.High)*scale)
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
	var lines []string
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
	if line := sampleNote(s); line != "" {
		lines = append(lines, line)
	}
	lines = append(lines, tuningNotes(s)...)
	lines = append(lines, verdictNotes(s)...)
	lines = append(lines, intervalNotes(s)...)
	lines = append(lines, outcomeNotes(s)...)
	if missing := s.Missing(); missing != "" {
		lines = append(lines, "N"+missing[1:]+".")
	}
	crowded, missing := 0, uint64(0)
	for _, r := range s.Runs {
		if r.Unmeasured > 0 {
			crowded++
			missing += r.Unmeasured
		}
	}
	if crowded > 0 {
		lines = append(lines,
			fmt.Sprintf("%d of %d runs measured more than is kept of a run: %d measurements are missing.",
				crowded, len(s.Runs), missing))
	}
	if line := stalled(s); line != "" {
		lines = append(lines, line)
	}
	late, worst := 0, 0.0
	for _, r := range s.Runs {
		if r.Lateness != nil && r.Late {
			late++
			worst = max(worst, float64(r.P99))
		}
	}
	if late > 0 {
		lines = append(lines,
			fmt.Sprintf("The real clock was late in %d of %d runs (p99 up to %.3g ms): their times are not the plan's.",
				late, len(s.Runs), worst*1e3))
	}
	return lines
}

// stalled says which runs stood still before their bound ended them. Failed ones had none: their
// incidents say why.
func stalled(s record.Summary) string {
	still, first := 0, math.Inf(1)
	for _, r := range s.Runs {
		if r.Stalled > 0 && r.Outcome != record.Failed {
			still++
			first = min(first, r.Stalled)
		}
	}
	if still == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d runs stood still until their time was over, the first from %.3g s on: everybody "+
		"was gone, or waited for what was lost or for a node out of reach.",
		still, len(s.Runs), first)
}

func (c *column) width() int {
	n := utf8.RuneCountInString(c.heading)
	for _, cell := range c.cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

// fitWidth abbreviates columns, where it saves most first, and then cuts labels, the widest first,
// until the table is narrow enough or there is nothing left to shorten.
func fitWidth(columns []column, width int) {
	for {
		total, longest, widest := -2, -1, -1
		for i := range columns {
			c := &columns[i]
			total += c.width() + 2
			if c.brief != nil && (longest < 0 || c.saving() > columns[longest].saving()) {
				longest = i
			}
			if c.label && (widest < 0 || c.width() > columns[widest].width()) {
				widest = i
			}
		}
		switch {
		case total <= width:
			return
		case longest >= 0:
			columns[longest] = *columns[longest].brief
		case widest < 0 || columns[widest].width() <= minLabel:
			return
		default:
			columns[widest].cut(max(columns[widest].width()-(total-width), minLabel))
		}
	}
}

// saving is how many columns of text the brief form of a column saves.
func (c *column) saving() int { return c.width() - c.brief.width() }

func (c *column) cut(width int) {
	c.heading = report.Cut(c.heading, width)
	for i := range c.cells {
		c.cells[i] = report.Cut(c.cells[i], width)
	}
}

func writeLine(b *strings.Builder, columns []column, cells []string) {
	var line strings.Builder
	for i := range columns {
		if i > 0 {
			line.WriteString("  ")
		}
		gap := strings.Repeat(" ", columns[i].width()-utf8.RuneCountInString(cells[i]))
		if columns[i].label {
			line.WriteString(cells[i] + gap)
		} else {
			line.WriteString(gap + cells[i])
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}
