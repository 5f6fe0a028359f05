package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gradwire/gradwire/cluster/record"
)

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
}

// Table writes a row for each point: how many of its runs arrived at the target, and
// mean ± sample standard deviation of time and epochs to target (over the runs that
// arrived), of the final accuracy, and the means of messages and megabytes (over all
// runs). Columns about a target are left out where the plan has none. An asterisk marks the
// shortest time to target.
//
// The table keeps to as many columns of text as w has, if w has a method Columns() int, as a
// terminal should, and otherwise to 80: where it must, it abbreviates results, and where that is not enough cuts labels. Where a terminal
// is narrower still, it leaves out messages and megabytes, then epochs and runs, accuracy (where there is a time to target), and last how
// many runs arrived, says so below, and keeps every line within the width.
func Table(w io.Writer, s record.Summary) error {
	columns := labelColumns(s)
	columns = append(columns, resultColumns(s)...)
	return writeTable(w, columns, len(s.Groups), notes(s))
}

// writeTable writes columns with so many rows, and notes below them. It keeps to the width of w as Table says.
func writeTable(w io.Writer, columns []column, rows int, notes []string) error {
	if screen, ok := w.(interface{ Columns() int }); ok {
		var left []string
		if columns, left = narrow(columns, screen.Columns()); len(left) > 0 {
			notes = append(notes, "No room here for "+strings.Join(left, ", ")+".")
		}
		notes = wrap(notes, screen.Columns())
	} else {
		fit(columns, tableWidth)
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
	for _, key := range keys(s) {
		c := column{heading: shortKey(key, keys(s)), label: true}
		for _, g := range s.Groups {
			c.cells = append(c.cells, value(g.Point, key))
		}
		columns = append(columns, c)
	}
	return columns
}

// keys returns the sweep's keys in the order in which they first occur.
func keys(s record.Summary) []string {
	var all []string
	for _, g := range s.Groups {
		for _, setting := range g.Point {
			if !slices.Contains(all, setting.Key) {
				all = append(all, setting.Key)
			}
		}
	}
	return all
}

// shortKey cuts a path to its last element, unless another key ends like it.
func shortKey(key string, all []string) string {
	short := key[strings.LastIndex(key, ".")+1:]
	for _, other := range all {
		if other != key && other[strings.LastIndex(other, ".")+1:] == short {
			return key
		}
	}
	return short
}

func value(p record.Point, key string) string {
	for _, setting := range p {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

func resultColumns(s record.Summary) []column {
	runs := column{heading: "runs", leave: 4}
	accuracy := column{heading: "final accuracy, %", brief: &column{heading: "accuracy, %"}}
	messages, volume := column{heading: "messages", leave: 1}, column{heading: "MB", leave: 2}
	volumes := make([]float64, len(s.Groups))
	for i, g := range s.Groups {
		var m float64
		m, volumes[i] = traffic(s, g.Point)
		volumes[i] /= 1e6
		messages.cells = append(messages.cells, fmt.Sprintf("%.0f", m))
		runs.cells = append(runs.cells, fmt.Sprint(g.N))
		accuracy.cells = append(accuracy.cells, spreadCell(g.FinalAccuracy, 100, 2))
	}
	accuracy.brief.cells = accuracy.cells
	for _, v := range volumes {
		volume.cells = append(volume.cells, fmt.Sprintf("%.*f", decimals(volumes), v))
	}
	if s.Target == nil {
		return []column{runs, accuracy, messages, volume}
	}
	unit := timeUnit(longestMean(s))
	accuracy.leave, accuracy.brief.leave = 5, 5
	reached := column{heading: "reached", leave: 6}
	times := column{heading: "time to target, " + unit.name, brief: &column{heading: "time, " + unit.name}}
	epochs := column{heading: "epochs to target", leave: 3, brief: &column{heading: "epochs", leave: 3}}
	var timeMeans, epochMeans []float64
	for _, g := range s.Groups {
		if g.TimeToTarget != nil && g.EpochsToTarget != nil {
			timeMeans = append(timeMeans, float64(g.TimeToTarget.Mean)/unit.seconds)
			epochMeans = append(epochMeans, float64(g.EpochsToTarget.Mean))
		}
	}
	best, _ := fastest(s)
	for i, g := range s.Groups {
		reached.cells = append(reached.cells, fmt.Sprintf("%d/%d", g.Reached, g.N))
		mark := ""
		switch {
		case slices.Contains(best, i):
			mark = " *"
		case len(best) > 0:
			mark = "  "
		}
		times.addTarget(g, spreadCell(g.TimeToTarget, 1/unit.seconds, decimals(timeMeans)), mark)
		epochs.addTarget(g, spreadCell(g.EpochsToTarget, 1, decimals(epochMeans)), "")
	}
	return []column{reached, times, epochs, accuracy, messages, volume}
}

// fastest returns the groups of the shortest mean time to target among those whose
// runs arrived most often, and how often these did; none where there is nothing to compare.
func fastest(s record.Summary) (best []int, share float64) {
	shortest, arrived := math.Inf(1), 0
	for i, g := range s.Groups {
		if g.TimeToTarget == nil || g.N == 0 {
			continue
		}
		arrived++
		own, mean := float64(g.Reached)/float64(g.N), float64(g.TimeToTarget.Mean)
		switch {
		case own > share || own == share && mean < shortest:
			best, share, shortest = []int{i}, own, mean
		case own == share && mean == shortest:
			best = append(best, i)
		}
	}
	if len(s.Groups) < 2 || arrived == 0 {
		return nil, 0
	}
	return best, share
}

// traffic returns the mean messages and bytes of a point's runs.
func traffic(s record.Summary, p record.Point) (messages, bytes float64) {
	n := 0.0
	for _, r := range s.Runs {
		if slices.Equal(r.Point, p) {
			n++
			messages += float64(r.Messages)
			bytes += float64(r.Bytes)
		}
	}
	if n == 0 {
		return 0, 0
	}
	return messages / n, bytes / n
}

func longestMean(s record.Summary) float64 {
	longest := 0.0
	for _, g := range s.Groups {
		if g.TimeToTarget != nil {
			longest = max(longest, float64(g.TimeToTarget.Mean))
		}
	}
	return longest
}

// addTarget adds a cell about the target with a mark behind it. Where no run arrived the long form
// says so once more than the column that counts them.
func (c *column) addTarget(g record.Group, cell, mark string) {
	c.brief.cells = append(c.brief.cells, cell+mark)
	if cell == nothing {
		cell = fmt.Sprintf("not reached (%d of %d)", g.N-g.Reached, g.N)
	}
	c.cells = append(c.cells, cell+mark)
}

// nothing is the cell of a figure that there is not.
const nothing = "–"

// spreadCell writes mean ± std, the latter only where there is one.
func spreadCell(s *record.Spread, scale float64, decimals int) string {
	if s == nil {
		return nothing
	}
	mean := fmt.Sprintf("%.*f", decimals, float64(s.Mean)*scale)
	if math.IsNaN(float64(s.Std)) {
		return mean
	}
	return fmt.Sprintf("%s ± %.*f", mean, decimals, float64(s.Std)*scale)
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

// unit is a unit of time.
type unit struct {
	name    string
	seconds float64
}

// timeUnit chooses a unit in which a time of so many seconds is a handy number.
func timeUnit(seconds float64) unit {
	switch {
	case seconds > 0 && seconds < 1:
		return unit{"ms", 1e-3}
	case seconds < 600:
		return unit{"s", 1}
	case seconds < 3*3600:
		return unit{"min", 60}
	}
	return unit{"h", 3600}
}

// sizeUnit is a unit of data.
type sizeUnit struct {
	name  string
	bytes float64
}

// byteUnit chooses a unit in which so many bytes are a handy number.
func byteUnit(bytes float64) sizeUnit {
	switch {
	case bytes < 1e4:
		return sizeUnit{"bytes", 1}
	case bytes < 1e6:
		return sizeUnit{"kB", 1e3}
	case bytes < 2e9:
		return sizeUnit{"MB", 1e6}
	case bytes < 2e12:
		return sizeUnit{"GB", 1e9}
	}
	return sizeUnit{"TB", 1e12}
}

// notes are the lines below the table.
func notes(s record.Summary) []string {
	var lines []string
	if best, share := fastest(s); len(best) > 0 && s.Target != nil {
		line := "* shortest mean time to " + percent(*s.Target)
		if share < 1 || slices.ContainsFunc(s.Groups, func(g record.Group) bool { return g.Reached < g.N }) {
			line += " of the points whose runs reached it most often"
		}
		lines = append(lines, line+".")
	}
	if missing := s.Missing(); missing != "" {
		lines = append(lines, "N"+missing[1:]+".")
	}
	missed := 0
	for _, g := range s.Groups {
		missed += g.N - g.Reached
	}
	if s.Target != nil && missed > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d runs did not reach %s; means to the target are over those that did.",
			missed, len(s.Runs), percent(*s.Target)))
	}
	crowded, missing := 0, uint64(0)
	for _, r := range s.Runs {
		if r.Unmeasured > 0 {
			crowded++
			missing += r.Unmeasured
		}
	}
	if crowded > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d runs measured more than is kept of a run: %d measurements are missing.", crowded, len(s.Runs), missing))
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
		lines = append(lines, fmt.Sprintf("The real clock was late in %d of %d runs (p99 up to %.3g ms): their times are not the plan's.",
			late, len(s.Runs), worst*1e3))
	}
	return lines
}

// stalled says which runs stood still before their bound ended them.
func stalled(s record.Summary) string {
	still, first := 0, math.Inf(1)
	for _, r := range s.Runs {
		if r.Stalled > 0 {
			still++
			first = min(first, r.Stalled)
		}
	}
	if still == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d runs stood still until their time was over, the first from %.3g s on: everybody waited for a message that was lost or for a node out of reach.",
		still, len(s.Runs), first)
}

// percent writes a fraction such as 0.94 as "94 %".
func percent(fraction float64) string {
	return fmt.Sprintf("%g %%", math.Round(fraction*1e6)/1e4)
}

func (c *column) width() int {
	n := utf8.RuneCountInString(c.heading)
	for _, cell := range c.cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

// fit abbreviates columns, where it saves most first, and then cuts labels, the widest first, until
// the table is narrow enough or there is nothing left to shorten.
func fit(columns []column, width int) {
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
	c.heading = cut(c.heading, width)
	for i := range c.cells {
		c.cells[i] = cut(c.cells[i], width)
	}
}

// cut shortens a text to a number of characters, the last of which then is an ellipsis.
func cut(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
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
