package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
)

// family is a set of groups that are compared with each other.
type family struct {
	of     record.Of
	target float64
	at     record.Point // the circumstances
	groups []record.Group
}

// families are the sets of groups that are compared, in the order in which they first occur.
func families(s record.Summary) (all []*family) {
	for _, g := range s.Groups {
		if g.Verdict == "" || g.Target == nil {
			continue
		}
		i := slices.IndexFunc(all, func(f *family) bool {
			return f.of == g.Of && f.target == *g.Target && slices.Equal(f.at, g.Circumstances)
		})
		if i < 0 {
			i = len(all)
			all = append(all, &family{of: g.Of, target: *g.Target, at: g.Circumstances})
		}
		all[i].groups = append(all[i].groups, g)
	}
	return all
}

// legend explains the marks and brackets of a table in one line.
func legend(s record.Summary) []string {
	var parts []string
	for _, w := range []stats.Word{stats.Fastest, stats.Undecided, stats.Unjudged} {
		if slices.ContainsFunc(s.Groups, func(g record.Group) bool { return g.Verdict == w }) {
			parts = append(parts, report.VerdictMarks[w]+" "+markWords[w])
		}
	}
	marks := strings.Join(parts, ", ")
	intervals, ranges := false, false
	for _, g := range s.Groups {
		for _, a := range spreads(g) {
			intervals = intervals || a.Method != stats.TooFew
			ranges = ranges || a.Method == stats.TooFew && a.N > 1
		}
	}
	parts = nil
	if intervals {
		parts = append(parts, "[ ] 95 % interval")
	}
	if ranges {
		parts = append(parts, fmt.Sprintf("( ) range of fewer than %d runs", stats.LeastForInterval))
	}
	text := ""
	if len(parts) > 0 {
		text = "Medians, " + strings.Join(parts, ", ") + "."
	}
	if marks != "" {
		text = strings.TrimSpace(marks + ". " + text)
	}
	if text == "" {
		return nil
	}
	return []string{text}
}

// markWords say in a legend what marks mean.
var markWords = map[stats.Word]string{
	stats.Fastest: "fastest", stats.Undecided: "among the fastest",
	stats.Unjudged: fmt.Sprintf("too few repeats to compare (at least %d)", stats.LeastRepeats),
}

// spreads are the figures of a group that have intervals or ranges in a table.
func spreads(g record.Group) (all []*record.Spread) {
	if g.TimeToTarget != nil {
		all = append(all, &g.TimeToTarget.Spread)
	}
	if g.FinalAccuracy != nil {
		all = append(all, g.FinalAccuracy)
	}
	return all
}

// Method returns how the figures of a table were computed, and what would decide between points
// where they did not.
func Method(s record.Summary) (lines []string) {
	if all := families(s); len(all) > 0 {
		lines = append(lines, fmt.Sprintf("A point is slower if another one of the same comparison is faster in a "+
			"one-sided t test of log times, paired by seeds, at the level %g ÷ (points − 1), repeated among those "+
			"that are left (the set of best; Gupta 1956, Hsu 1984). So the best point is called slower in at most "+
			"5 %% of experiments.", stats.Error))
		for _, f := range all {
			if line := f.needs(s, len(all) > 1); line != "" {
				lines = append(lines, line)
			}
		}
	}
	if slices.ContainsFunc(s.Groups, func(g record.Group) bool {
		return slices.ContainsFunc(spreads(g), func(a *record.Spread) bool { return a.Method != stats.TooFew })
	}) {
		lines = append(lines, "Intervals are of the median, between two order statistics, and to the target with what "+
			"lies between two evaluations. They assume independent repeats, and nothing about how times are "+
			"distributed.")
	}
	if line := missedNote(s); line != "" {
		lines = append(lines, line)
	}
	if estimates := report.Estimates(s); estimates != "" {
		lines = append(lines, estimates)
	}
	return lines
}

// missedNote says how runs that did not reach the target are counted.
func missedNote(s record.Summary) string {
	missed, failed := 0, 0
	for _, g := range s.Groups {
		if g.Target != nil {
			missed += g.N - g.Reached
			failed += g.Failed
		}
	}
	if missed == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d runs did not reach %s%s: their times are censored at their ends", missed, len(s.Runs),
		report.TargetName(s), report.JudgedSuffix(s))
	if failed > 0 {
		text += ", or without a bound if they failed"
	}
	return text + ". Medians are by Kaplan and Meier's curve. No point is called slower than a point that reached the " +
		"target in a smaller share of its runs."
}

// title names what the points of a family have in common.
func (f *family) title(s record.Summary) string {
	what := report.Percent(f.target)
	if len(report.JudgedKinds(s)) > 0 {
		what += " (" + report.JudgedWords[f.of] + ")"
	}
	if len(f.at) > 0 {
		what += ", " + report.PointName(f.at)
	}
	return what
}

// needs says how many repeats would decide, or what else would.
func (f *family) needs(s record.Summary, named bool) string {
	var decide, finer, longer []string
	leader := ""
	for _, g := range f.groups {
		if g.Leader {
			leader = pointName(g.Point)
		}
		switch {
		case g.Leader:
		case g.Longer:
			longer = append(longer, pointName(g.Point))
		case g.Repeats > 0 && g.Verdict == stats.Undecided:
			decide = append(decide, fmt.Sprintf("%s %d", pointName(g.Point), g.Repeats))
		case g.Finer:
			finer = append(finer, pointName(g.Point))
		}
	}
	var parts []string
	if len(decide) > 0 {
		part := fmt.Sprintf("Repeats that would separate %s, whose runs take the least time in the mean, "+
			"from the other leaders with %.0f %% power: %s.", leader, 100*stats.Power, report.ListSome(decide))
		parts = append(parts, part)
	}
	if len(finer) > 0 {
		parts = append(parts, "Less apart than evaluations are, which must come more often to decide: "+
			report.ListSome(finer)+".")
	}
	if len(longer) > 0 {
		part := fmt.Sprintf("%s about %s beside %s: some of their runs ended without reaching the target.",
			report.LaterBound, leader, report.ListSome(longer))
		parts = append(parts, part)
	}
	text := strings.Join(parts, " ")
	if named && text != "" {
		text = "To " + f.title(s) + ": " + text
	}
	return text
}

// pointName is a point's values, or its plan's name for the only one.
func pointName(p record.Point) string {
	if len(p) == 0 {
		return "the plan"
	}
	return report.PointName(p)
}

// heapNotes name the points whose runs arrive in two heaps, of which a median says too little.
func heapNotes(s record.Summary) []string {
	var all []string
	for _, g := range s.Groups {
		var times []float64
		for _, r := range s.Runs {
			if r.Reached && r.TimeToTarget != nil && slices.Equal(r.Point, g.Point) {
				times = append(times, *r.TimeToTarget)
			}
		}
		slices.Sort(times)
		if k := stats.Heaps(times); k > 0 {
			all = append(all, fmt.Sprintf("%s: %s, %s", pointName(g.Point), heap(times[:k]), heap(times[k:])))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []string{"Runs arrive in two heaps: " + report.ListSome(all) + "."}
}

// heap says how many runs arrived when.
func heap(times []float64) string {
	first, last := report.Duration(times[0]), report.Duration(times[len(times)-1])
	if first == last {
		return fmt.Sprintf("%d after %s", len(times), first)
	}
	return fmt.Sprintf("%d after %s to %s", len(times), first, last)
}

// outcomeNotes list the failed and degraded runs, and then the other runs that had incidents.
func outcomeNotes(s record.Summary) (lines []string) {
	var spoilt, sound []record.Run
	for _, r := range s.Runs {
		switch {
		case r.Outcome == record.Degraded || r.Outcome == record.Failed:
			spoilt = append(spoilt, r)
		case len(r.Incidents) > 0:
			sound = append(sound, r)
		}
	}
	if len(spoilt) > 0 {
		lines = append(lines, fmt.Sprintf("Of %s %s:", report.Count(len(s.Runs), "run"),
			strings.Join(report.Spoilt(s), ", ")))
		lines = append(lines, outcomeLines(spoilt)...)
	}
	if len(sound) > 0 {
		lines = append(lines, "Incidents that made no result unreliable:")
		lines = append(lines, outcomeLines(sound)...)
	}
	return lines
}

// outcomeLines list the outcomes of the first runs, and count the others.
func outcomeLines(runs []record.Run) (lines []string) {
	for _, r := range runs[:min(len(runs), report.MaxListed)] {
		lines = append(lines, outcomeLine(r))
	}
	if more := len(runs) - report.MaxListed; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more.", more))
	}
	return lines
}

// outcomeLine states the outcome of a run, with its first incidents.
func outcomeLine(r record.Run) string {
	line := report.RunName(r) + " " + string(r.Outcome)
	const most = 2
	causes := slices.Clone(r.Incidents) // who waits is named behind what happened
	slices.SortStableFunc(causes, func(a, b record.Incident) int { return cmp.Compare(stalled(a), stalled(b)) })
	for i, n := range causes[:min(len(causes), most)] {
		line += [...]string{": ", "; "}[min(i, 1)] + incident(n)
	}
	if more := len(r.Incidents) - most; more > 0 {
		line += fmt.Sprintf("; and %d more", more)
	}
	return report.Printable(line) + "."
}

// stalled is 1 for an incident of a node that stalled, 0 for others.
func stalled(n record.Incident) int {
	if strings.HasPrefix(n.What, "stalled") {
		return 1
	}
	return 0
}

// incident says what happened where and when.
func incident(n record.Incident) string { return fmt.Sprintf("%s at %.4g s: %s", n.Node, n.At, n.What) }

// choiceNotes say which settings were chosen that the plan leaves to the program, and what the
// other words would have cost.
func choiceNotes(s record.Summary) []string {
	var made []string
	for _, r := range s.Runs {
		if r.Choice == nil {
			continue
		}
		text := r.Choice.String()
		if len(s.Groups) > 1 {
			text = pointName(r.Point) + ": " + text
		}
		if !slices.Contains(made, text) {
			made = append(made, text)
		}
	}
	if len(made) == 0 {
		return nil
	}
	return []string{"Chosen by the network: " + report.ListSome(made) + "."}
}

// tuningNotes say what was chosen for each point before its runs, and what that has cost.
func tuningNotes(s record.Summary) []string {
	if len(s.Tunings) == 0 {
		return nil
	}
	var chosen []string
	tried, seconds := 0, 0.0
	for _, t := range s.Tunings {
		chosen = append(chosen, pointName(t.Point)+" with "+t.Candidates[t.Chosen].Values.String())
		tried, seconds = tried+len(t.Candidates), seconds+t.Duration
	}
	lines := []string{
		"Chosen on the validation samples, in the place of what the plan says: " + report.ListSome(chosen) + ".",
		fmt.Sprintf("That took %s of %.3g s on their clocks, which no figure here counts.",
			report.Count(tried, "further run"), seconds),
	}
	return append(lines, edgeNotes(s)...)
}

// edgeNotes list the chosen values that are their key's smallest or largest candidate, with their
// points.
func edgeNotes(s record.Summary) (lines []string) {
	var edges []string
	points := map[string][]string{}
	for _, t := range s.Tunings {
		for _, edge := range t.Edges {
			if points[edge] == nil {
				edges = append(edges, edge)
			}
			points[edge] = append(points[edge], pointName(t.Point))
		}
	}
	for _, edge := range edges {
		lines = append(lines, fmt.Sprintf("%s (%s).", edge, strings.Join(points[edge], "; ")))
	}
	return lines
}
