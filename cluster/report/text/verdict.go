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

// verdictNotes say how points were compared, and what would decide where that did not.
func verdictNotes(s record.Summary) (lines []string) {
	all := families(s)
	for _, f := range all {
		lines = append(lines, f.note(s, len(all) > 1))
		if line := f.needs(); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// note explains the marks of the family's points.
func (f *family) note(s record.Summary, named bool) string {
	var marks []string
	for _, w := range []stats.Word{stats.Fastest, stats.Undecided, stats.Unjudged} {
		if slices.ContainsFunc(f.groups, func(g record.Group) bool { return g.Verdict == w }) {
			marks = append(marks, report.VerdictMarks[w]+" "+string(w))
			if w == stats.Unjudged {
				marks[len(marks)-1] += fmt.Sprintf(" (at least %d)", stats.LeastRepeats)
			}
		}
	}
	what := report.Percent(f.target)
	if len(report.JudgedKinds(s)) > 0 {
		what += " (" + report.JudgedWords[f.of] + ")"
	}
	text := strings.Join(marks, ", ") + ": time to " + what
	switch {
	case len(f.at) > 0:
		text += ", among points of " + report.PointName(f.at)
	case named:
		text += " at " + report.Count(len(f.groups), "point")
	}
	n := len(f.groups)
	text += ", in pairs of equal seeds, t test"
	if pairs := n * (n - 1) / 2; pairs > 1 {
		text += fmt.Sprintf(", Holm's correction for %d comparisons", pairs)
	}
	return text + "."
}

// needs says how many repeats would decide, or what else would.
func (f *family) needs() string {
	var decide, finer, longer []string
	for _, g := range f.groups {
		switch {
		case g.Longer:
			longer = append(longer, pointName(g.Point))
		case g.Repeats > 0 && g.Verdict == stats.Undecided:
			decide = append(decide, fmt.Sprintf("%s %d", pointName(g.Point), g.Repeats))
		case g.Finer:
			finer = append(finer, pointName(g.Point))
		}
	}
	text := ""
	if len(decide) > 0 {
		text = "Repeats that would decide in 4 of 5 experiments: " + report.ListSome(decide) + "."
	}
	if len(finer) > 0 {
		text += " Less apart than evaluations are, which must come more often to decide: " + report.ListSome(finer) +
			"."
	}
	if len(longer) > 0 {
		text += " Compared only up to where the first run that did not arrive ended; a later bound, such as " +
			"stop.time, would tell more: " +
			report.ListSome(longer) + "."
	}
	return strings.TrimSpace(text)
}

// pointName is a point's values, or its plan's name for the only one.
func pointName(p record.Point) string {
	if len(p) == 0 {
		return "the plan"
	}
	return report.PointName(p)
}

// intervalNotes say what stands in brackets, and how runs that did not arrive are counted.
func intervalNotes(s record.Summary) (lines []string) {
	missed, failed, few, given := 0, 0, 0, 0
	for _, g := range s.Groups {
		failed += g.Failed
		if g.Target == nil {
			continue
		}
		missed += g.N - g.Reached
		switch {
		case g.TimeToTarget == nil:
		case g.TimeToTarget.Method == stats.TooFew:
			few++
		default:
			given++
		}
	}
	accurate := slices.ContainsFunc(s.Groups, func(g record.Group) bool {
		return g.FinalAccuracy != nil && g.FinalAccuracy.Method != stats.TooFew
	})
	switch {
	case given > 0:
		lines = append(lines,
			"[ ]: 95 % confidence interval of the mean by Student's t; to the target with what lies between two "+
				"evaluations.")
	case accurate:
		lines = append(lines, "[ ]: 95 % confidence interval of the mean by Student's t.")
	}
	if few > 0 {
		lines = append(lines, fmt.Sprintf("Too few repeats for an interval of the time to the target: %s.",
			report.Count(few, "point")))
	}
	if len(report.Targets(s)) > 0 && missed > 0 {
		text := fmt.Sprintf("%d of %d runs did not reach %s%s: censored at their ends", missed, len(s.Runs),
			report.TargetName(s), report.JudgedSuffix(s))
		if failed > 0 {
			text += ", or if they failed never there"
		}
		lines = append(lines, text+"; means are restricted to how long runs were watched (Kaplan–Meier).")
	}
	return lines
}

// outcomeNotes name the runs whose figures are worth less: which, at which node, when and why.
func outcomeNotes(s record.Summary) (lines []string) {
	spoilt := report.Spoilt(s)
	if len(spoilt) == 0 {
		return nil
	}
	lines = append(lines, fmt.Sprintf("Of %s %s:", report.Count(len(s.Runs), "run"), strings.Join(spoilt, ", ")))
	more := -report.MaxListed
	for _, r := range s.Runs {
		if r.Outcome != record.Degraded && r.Outcome != record.Failed {
			continue
		}
		if more++; more <= 0 {
			lines = append(lines, outcomeLine(r))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more.", more))
	}
	return lines
}

// outcomeLine says what has become of a run, with its first incidents.
func outcomeLine(r record.Run) string {
	line := report.RunName(r) + " " + string(r.Outcome)
	const most = 2
	causes := slices.Clone(r.Incidents) // who waits is named behind what happened
	slices.SortStableFunc(causes, func(a, b record.Incident) int { return cmp.Compare(stoodStill(a), stoodStill(b)) })
	for i, n := range causes[:min(len(causes), most)] {
		line += [...]string{": ", "; "}[min(i, 1)] + incident(n)
	}
	if more := len(r.Incidents) - most; more > 0 {
		line += fmt.Sprintf("; and %d more", more)
	}
	return report.Printable(line) + "."
}

// stoodStill is 1 for an incident of a node that stood still, 0 for others.
func stoodStill(n record.Incident) int {
	if strings.HasPrefix(n.What, "stood still") {
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
	return []string{
		"Chosen on the validation samples, in the place of what the plan says: " + report.ListSome(chosen) + ".",
		fmt.Sprintf("That took %s of %.3g s on their clocks, which no figure here counts.",
			report.Count(tried, "further run"), seconds),
	}
}
