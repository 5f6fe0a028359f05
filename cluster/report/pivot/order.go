package pivot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
)

// standing is how the rows of one panel compare: the panel's points alone, judged as one family.
type standing struct {
	panel  string
	point  record.Point   // of its first group
	groups []record.Group // by rising time to the target
}

// standings judges the points of each panel among themselves. A layout with dashes has a panel for
// each of their values too, so that a panel differs in By alone.
func standings(s record.Summary, l report.Layout) (all []standing) {
	if l.Dash != nil {
		l.Facets, l.Dash = append(slices.Clone(l.Facets), *l.Dash), nil
	}
	for _, panel := range l.Panels(s) {
		var runs []record.Run
		for _, r := range s.Runs {
			if l.Panel(r.Point) == panel {
				runs = append(runs, r)
			}
		}
		groups := record.GroupRuns(runs, s.Target)
		slices.SortStableFunc(groups, func(a, b record.Group) int { return cmp.Compare(timeOf(a), timeOf(b)) })
		all = append(all, standing{panel, groups[0].Point, groups})
	}
	return all
}

// timeOf is a point's time to the target; one that never arrived comes last.
func timeOf(g record.Group) float64 {
	if g.TimeToTarget == nil {
		return math.Inf(1)
	}
	return middle(&g)
}

// leads reports whether a row is beyond doubt ahead of another: it may be the fastest of the panel,
// and the other cannot be.
func (st *standing) leads(a, b string, l report.Layout) bool {
	return st.may(a, l) && st.cannot(b, l)
}

func (st *standing) may(name string, l report.Layout) bool {
	return st.has(name, l, stats.Fastest, stats.Undecided)
}

func (st *standing) cannot(name string, l report.Layout) bool { return st.has(name, l, stats.Slower) }

func (st *standing) has(name string, l report.Layout, words ...stats.Word) bool {
	return slices.ContainsFunc(st.groups, func(g record.Group) bool {
		return by(g.Point, l) == name && slices.Contains(words, g.Verdict)
	})
}

// by names a point by the rows' factor alone.
func by(p record.Point, l report.Layout) string { return l.By.NameOf(p) }

// Order says of each factor but the rows' whether the order of the rows changes with it beyond
// doubt; nothing without a second factor or without a target.
func Order(s record.Summary, l report.Layout) (lines []string) {
	if len(report.Targets(s)) != 1 || l.By == nil {
		return nil
	}
	factors := otherFactors(l)
	all := standings(s, l)
	for i := range factors {
		lines = append(lines, order(all, l, &factors[i]))
	}
	return lines
}

// OrderWith says whether the order of the rows changes beyond doubt with the factor of a key; empty if
// the layout has no such factor beside the rows' factor.
func OrderWith(s record.Summary, l report.Layout, key string) string {
	i := slices.IndexFunc(otherFactors(l), func(f report.Factor) bool { return f.Key == key })
	if lines := Order(s, l); i >= 0 && i < len(lines) {
		return lines[i]
	}
	return ""
}

// otherFactors are the layout's factors beside the rows' factor.
func otherFactors(l report.Layout) []report.Factor {
	if l.Dash == nil {
		return l.Facets
	}
	return append(slices.Clone(l.Facets), *l.Dash)
}

// order compares the panels that differ in one factor alone.
func order(all []standing, l report.Layout, f *report.Factor) string {
	for i, one := range all {
		for _, two := range all[i+1:] {
			if !differInOnly(one.point, two.point, f.Key, l.By.Key) {
				continue
			}
			for _, a := range l.By.Names() {
				for _, b := range l.By.Names() {
					if one.leads(a, b, l) && two.leads(b, a, l) {
						return fmt.Sprintf("The order of %s changes with %s beyond doubt: at %s, %s is ahead of %s; "+
							"at %s, %s is ahead of %s.", l.By.Name, f.Name, one.panel, a, b, two.panel, b, a)
					}
				}
			}
		}
	}
	if same := bestEverywhere(all, l); len(same) == 1 {
		return fmt.Sprintf("The order of %s is not seen to change with %s: %s is fastest, or cannot be told from the "+
			"fastest, at every value.", l.By.Name, f.Name, same[0])
	}
	return fmt.Sprintf("Whether the order of %s changes with %s is not decided: no two of them are told apart one way "+
		"at one value and the other way at another.", l.By.Name, f.Name)
}

// bestEverywhere are the rows that may be the fastest in every panel.
func bestEverywhere(all []standing, l report.Layout) (names []string) {
	for _, name := range l.By.Names() {
		if !slices.ContainsFunc(all, func(st standing) bool { return !st.may(name, l) }) {
			names = append(names, name)
		}
	}
	return names
}

// differInOnly reports whether two points agree but for one key, whatever their rows are.
func differInOnly(a, b record.Point, key, rows string) bool {
	rest := func(p record.Point) record.Point {
		return slices.DeleteFunc(slices.Clone(p), func(s record.Setting) bool { return s.Key == key || s.Key == rows })
	}
	return slices.Equal(rest(a), rest(b))
}

// Ranks is the table of ranks by time to the target within each panel; nil without a target or
// without panels. Rows that the verdicts do not tell from the first are marked.
func Ranks(s record.Summary, l report.Layout) *Table {
	if len(report.Targets(s)) != 1 || l.By == nil || len(l.Facets) == 0 && l.Dash == nil {
		return nil
	}
	t := &Table{Caption: "Rank by time to " + report.TargetName(s) + report.JudgedSuffix(s), Head: []string{l.By.Name},
		Labels: 1, Note: report.VerdictMarks[stats.Fastest] + " " + string(stats.Fastest) + "; " +
			report.VerdictMarks[stats.Undecided] + " " + string(stats.Undecided) + ", within the column. " +
			strings.Join(Order(s, l), " ")}
	for _, name := range l.By.Names() {
		t.Rows = append(t.Rows, []string{name})
	}
	for _, st := range standings(s, l) {
		t.Head = append(t.Head, st.panel)
		for i, name := range l.By.Names() {
			t.Rows[i] = append(t.Rows[i], st.rank(name, l))
		}
	}
	return t
}

// rank is a row's place in a panel with its mark; empty where the panel lacks it.
func (st *standing) rank(name string, l report.Layout) string {
	for i, g := range st.groups {
		switch {
		case by(g.Point, l) != name:
		case g.TimeToTarget == nil:
			return report.NotReached(g)
		default:
			return strings.TrimSpace(fmt.Sprintf("%d %s", i+1, report.VerdictMarks[g.Verdict]))
		}
	}
	return ""
}
