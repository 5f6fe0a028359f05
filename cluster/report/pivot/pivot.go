// Package pivot sets the results of a sweep out as a table of one factor against another, and says
// whether the order of its rows depends on the column.
package pivot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
)

// Table is a table of text. The first Labels columns name the row, and an empty cell has no value.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
	Labels  int
	// Note says what the cells hold.
	Note string
}

// Of pivots a summary: a row for each value of the layout's rows, a column for each facet. A cell
// has the median time to the target with its interval, or with the range of too few runs for an
// interval, and how many runs reached the target if not all did. Without a target it has the final
// accuracy.
func Of(s record.Summary, l report.Layout) *Table {
	if len(l.Facets) == 0 && l.Dash != nil {
		l.Facets, l.Dash = []report.Factor{*l.Dash}, nil
	}
	timed := len(report.Targets(s)) > 0
	t := frame(s, l)
	marked, longest := false, 0.0
	for i := range s.Groups {
		if g := &s.Groups[i]; g.TimeToTarget != nil {
			longest = max(longest, middle(g))
		}
	}
	unit := report.TimeUnit(longest)
	for _, panel := range t.panels {
		cells := make([]string, len(t.rows))
		groups := t.column(s, l, panel)
		digits := columnDecimals(groups, unit.Seconds)
		for i, g := range groups {
			switch {
			case g == nil:
			case timed:
				cells[i] = timeCell(g, unit.Seconds, digits)
				if mark := strings.TrimSpace(report.VerdictMarks[g.Verdict]); mark != "" && g.TimeToTarget != nil {
					cells[i], marked = cells[i]+" "+mark, true
				}
			default:
				cells[i] = accuracyCell(g)
			}
		}
		t.add(heading(panel, timed, unit.Name), cells)
	}
	t.Caption, t.Note = captions(s, timed, marked)
	return &t.Table
}

// heading names a column, with its unit.
func heading(panel string, timed bool, unit string) string {
	switch {
	case !timed && panel == "":
		return "final accuracy, %"
	case !timed:
		return panel
	case panel == "":
		return "time, " + unit
	}
	return panel + ", " + unit
}

func captions(s record.Summary, timed, marked bool) (caption, note string) {
	note = fmt.Sprintf("Median [95 %% interval], or (range) of fewer than %d runs.", stats.LeastForInterval)
	if !timed {
		return "Final accuracy" + report.JudgedSuffix(s) + ", %", note
	}
	if slices.ContainsFunc(s.Groups, func(g record.Group) bool { return g.Target != nil && g.Reached < g.N }) {
		note += " ∞: too few runs reached the target for a bound. n/m: n of m runs reached it."
	}
	if marked {
		note += " " + report.VerdictMarks[stats.Fastest] + " " + string(stats.Fastest) + "; " +
			report.VerdictMarks[stats.Undecided] + " " + string(stats.Undecided) + ", of those compared."
		note = strings.Join(append([]string{note}, report.Horizons(s)...), " ")
	}
	return "Time to " + report.TargetName(s) + report.JudgedSuffix(s), note
}

// framed is a table whose rows and panels are known.
type framed struct {
	Table
	panels, rows []string
}

// frame makes the label columns: one for each factor of the rows.
func frame(s record.Summary, l report.Layout) *framed {
	t := &framed{panels: l.Panels(s)}
	for _, f := range []*report.Factor{l.By, l.Dash} {
		if f != nil {
			t.Head = append(t.Head, f.Name)
		}
	}
	t.Labels = len(t.Head)
	groups := slices.Clone(s.Groups)
	slices.SortStableFunc(groups, func(a, b record.Group) int { return slices.Compare(levels(l, a), levels(l, b)) })
	for _, g := range groups {
		if row := l.Row(g.Point); !slices.Contains(t.rows, row) {
			t.rows = append(t.rows, row)
			t.Rows = append(t.Rows, labels(l, g.Point))
		}
	}
	return t
}

func levels(l report.Layout, g record.Group) (at []int) {
	for _, f := range []*report.Factor{l.By, l.Dash} {
		if f != nil {
			at = append(at, f.Level(g.Point))
		}
	}
	return at
}

// labels are a row's values, a cell for each factor.
func labels(l report.Layout, p record.Point) (cells []string) {
	for _, f := range []*report.Factor{l.By, l.Dash} {
		if f != nil {
			cells = append(cells, f.NameOf(p))
		}
	}
	return cells
}

// column returns the group of each row in a panel, nil where the sweep has no such point.
func (t *framed) column(s record.Summary, l report.Layout, panel string) []*record.Group {
	groups := make([]*record.Group, len(t.rows))
	for i := range s.Groups {
		g := &s.Groups[i]
		if l.Panel(g.Point) == panel {
			groups[slices.Index(t.rows, l.Row(g.Point))] = g
		}
	}
	return groups
}

// add appends a column of cells.
func (t *framed) add(heading string, cells []string) {
	t.Head = append(t.Head, heading)
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], cells[i])
	}
}

// middle is the median time to the target in seconds, or how long the runs were watched where fewer
// than half arrived.
func middle(g *record.Group) float64 {
	if at := float64(g.TimeToTarget.Median); report.IsFinite(at) {
		return at
	}
	return float64(g.TimeToTarget.Horizon)
}

// timeCell writes a point's time to the target in units of scale seconds.
func timeCell(g *record.Group, scale float64, digits int) string {
	a := g.TimeToTarget
	switch {
	case g.Target == nil:
		return ""
	case a == nil || !report.IsFinite(float64(a.Median)):
		return report.NotReached(*g)
	}
	text := report.MedianCell(&a.Spread, a.Median, a.Reached < a.N, func(v record.Float) string {
		return fmt.Sprintf("%.*f", digits, float64(v)/scale)
	})
	if g.Reached < g.N {
		text += fmt.Sprintf(" %d/%d", g.Reached, g.N)
	}
	return text
}

func accuracyCell(g *record.Group) string {
	a := g.FinalAccuracy
	if a == nil || !report.IsFinite(float64(a.Median)) {
		return ""
	}
	return report.MedianCell(a, a.Median, false, func(v record.Float) string { return fmt.Sprintf("%.2f", 100*v) })
}

// columnDecimals shows the smallest value of a column with three digits.
func columnDecimals(groups []*record.Group, scale float64) int {
	smallest := math.Inf(1)
	for _, g := range groups {
		if g != nil && g.TimeToTarget != nil && middle(g) > 0 {
			smallest = min(smallest, middle(g)/scale)
		}
	}
	if math.IsInf(smallest, 1) {
		return 0
	}
	return min(max(2-int(math.Floor(math.Log10(smallest))), 0), 6)
}
