package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
)

const (
	// maxComparisons is how many comparisons a headline has a sentence for; it counts the outcomes
	// of more.
	maxComparisons = 3
	// maxNamed is how many points a sentence names; it counts the others.
	maxNamed = 3
)

// Headline says in a few plain sentences what a record shows: first what harms its figures, then
// who reached the target first and how sure that is, or without a target who ended most accurate.
// It claims nothing that the runs do not support.
func Headline(s record.Summary) []string {
	if len(s.Runs) == 0 {
		return []string{"No run is recorded."}
	}
	lines := warnings(s)
	if !slices.ContainsFunc(s.Runs, func(r record.Run) bool { return r.Outcome != record.Failed }) {
		return lines
	}
	if counted := countedOnly(s); counted != "" {
		lines = append(lines, counted)
	}
	all := comparisons(s)
	if len(all) > maxComparisons {
		return append(lines, tally(all)...)
	}
	nameApart(all)
	for _, c := range all {
		said := c.sentences()
		if len(all) > 1 {
			said = said[:1] // the table has the others
		}
		if horizon := c.horizon(); horizon != "" {
			said[len(said)-1] += " " + horizon
		}
		switch {
		case c.title != "":
			said[0] = "With " + c.title + ", " + said[0]
		case !slices.ContainsFunc(c.points, func(p contender) bool { return strings.HasPrefix(said[0], p.name+" ") }):
			said[0] = Capitalized(said[0])
		}
		lines = append(lines, said...)
	}
	return lines
}

// countedOnly states how many runs trained nothing; it is empty if all trained.
func countedOnly(s record.Summary) string {
	n, bytes, messages := 0, 0.0, int64(0)
	for _, r := range s.Runs {
		if r.Counted {
			n++
			bytes += float64(r.Bytes)
			messages += r.Messages
		}
	}
	switch n {
	case 0:
		return ""
	case len(s.Runs):
		return fmt.Sprintf(
			"Counted, not trained: %s sent %.4g MB in %s; there is no accuracy.",
			Count(n, "run"),
			bytes/1e6,
			Count(int(messages), "message"),
		)
	}
	return fmt.Sprintf(
		"%d of %d runs were counted, not trained: they have no accuracy, and are compared with no others.",
		n,
		len(s.Runs),
	)
}

// CountedOnly reports whether no run of a summary trained.
func CountedOnly(s record.Summary) bool {
	return len(s.Runs) > 0 && !slices.ContainsFunc(s.Runs, func(r record.Run) bool { return !r.Counted })
}

// warnings say what harms the figures of a record.
func warnings(s record.Summary) (lines []string) {
	if missing := s.Missing(); missing != "" {
		lines = append(lines, Capitalized(missing)+".")
	}
	n, failed, degraded, stalled, first := len(s.Runs), 0, 0, 0, math.Inf(1)
	for _, r := range s.Runs {
		switch r.Outcome {
		case record.Failed:
			failed++
			continue
		case record.Degraded:
			degraded++
		}
		if r.Stalled > 0 {
			stalled++
			first = min(first, r.Stalled)
		}
	}
	are := func(count int) string { return map[bool]string{true: "is", false: "are"}[count == 1] }
	switch {
	case failed == n && n == 1:
		return append(lines, "The run failed: it has no result.")
	case failed == n:
		return append(lines, fmt.Sprintf("All %d runs failed: there is no result.", n))
	case failed > 0 && degraded > 0:
		lines = append(lines, fmt.Sprintf("%d of %d runs failed, and %d %s degraded.", failed, n, degraded,
			are(degraded)))
	case failed > 0:
		lines = append(lines, fmt.Sprintf("%d of %d runs failed.", failed, n))
	case degraded > 0 && n == 1:
		lines = append(lines, "The run is degraded: its figures are worth less.")
	case degraded > 0:
		lines = append(lines, fmt.Sprintf("%d of %d runs %s degraded: their figures are worth less.", degraded, n,
			are(degraded)))
	}
	if resumed := Resumed(s); resumed != "" {
		lines = append(lines, resumed)
	}
	switch {
	case stalled > 0 && n == 1:
		lines = append(lines, fmt.Sprintf("Nothing happened in the run after %s.", Duration(first)))
	case stalled > 0:
		lines = append(lines, fmt.Sprintf("Nothing happened in %d of %d runs after some time, in the first after %s.",
			stalled, n, Duration(first)))
	}
	return lines
}

// Resumed states how many runs were resumed from a checkpoint, and whether comparisons include them. It is
// empty if no run was resumed.
func Resumed(s record.Summary) string {
	resumed, compared := 0, false
	for _, r := range s.Runs {
		if r.Resumed > 0 {
			resumed++
			compared = r.ComparedIfResumed
		}
	}
	text, them := fmt.Sprintf("%d of %d runs were", resumed, len(s.Runs)), "them"
	switch {
	case resumed == 0:
		return ""
	case len(s.Runs) == 1:
		text, them = "The run was", "it"
	case resumed == 1:
		text, them = fmt.Sprintf("1 of %d runs was", len(s.Runs)), "it"
	}
	text += " resumed from a checkpoint. Comparisons "
	if compared {
		return text + "include " + them + "."
	}
	return fmt.Sprintf("%sleave %s out; gradwire report --with-resumed includes %[2]s.", text, them)
}

// comparison is a set of points that are compared with each other.
type comparison struct {
	of     record.Of
	target *float64     // nil: by the final accuracy
	at     record.Point // the circumstances
	points []contender  // the fastest, or the most accurate, first
	title  string       // what tells it from the other comparisons; empty for the only one
}

// contender is a point of a comparison.
type contender struct {
	record.Group
	name string
	best float64 // the highest accuracy of any run; NaN if there is none
}

// median is the median time to the target; +Inf where most runs did not arrive.
func (p *contender) median() float64 {
	if p.TimeToTarget == nil || math.IsNaN(float64(p.TimeToTarget.Median)) {
		return math.Inf(1)
	}
	return float64(p.TimeToTarget.Median)
}

// final is the median final accuracy; −Inf if there is none.
func (p *contender) final() float64 {
	if p.FinalAccuracy == nil {
		return math.Inf(-1)
	}
	return float64(p.FinalAccuracy.Median)
}

// comparisons are the sets of points of a summary that are compared, in the order in which they
// first occur.
func comparisons(s record.Summary) (all []*comparison) {
	best := map[string]float64{}
	for _, r := range s.Runs {
		key := r.Point.Key()
		if known, ok := best[key]; (!ok || !(known >= float64(r.BestAccuracy))) && r.Outcome != record.Failed {
			best[key] = float64(r.BestAccuracy)
		}
	}
	same := func(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
	for _, g := range s.Groups {
		if g.N == 0 {
			continue // counting runs have no accuracy
		}
		i := slices.IndexFunc(all, func(c *comparison) bool {
			return c.of == g.Of && same(c.target, g.Target) && slices.Equal(c.at, g.Circumstances)
		})
		if i < 0 {
			i = len(all)
			all = append(all, &comparison{of: g.Of, target: g.Target, at: g.Circumstances})
		}
		highest, ok := best[g.Point.Key()]
		if !ok {
			highest = math.NaN()
		}
		all[i].points = append(all[i].points, contender{Group: g, best: highest})
	}
	for _, c := range all {
		points := make([]record.Point, len(c.points))
		for i := range c.points {
			points[i] = c.points[i].Point
		}
		for i, name := range PointNames(points) {
			c.points[i].name = name
		}
		slices.SortStableFunc(c.points, func(a, b contender) int {
			if c.target == nil {
				return cmp.Compare(b.final(), a.final())
			}
			return cmp.Or(cmp.Compare(a.median(), b.median()), cmp.Compare(b.Reached, a.Reached))
		})
	}
	return all
}

// nameApart gives each of several comparisons a unique title: its circumstances, or the names of its
// points if another comparison has the same circumstances.
func nameApart(all []*comparison) {
	if len(all) < 2 {
		return
	}
	for _, c := range all {
		alike := slices.ContainsFunc(all, func(o *comparison) bool { return o != c && slices.Equal(o.at, c.at) })
		if len(c.at) > 0 && !alike {
			c.title = PointNames([]record.Point{c.at})[0]
		}
	}
	var points []record.Point
	var owners []*comparison
	for _, c := range all {
		for i := range c.points {
			if c.title == "" {
				points, owners = append(points, c.points[i].Point), append(owners, c)
			}
		}
	}
	names := PointNames(points)
	for _, c := range all {
		if c.title != "" {
			continue
		}
		var own []string
		for i, name := range names {
			if owners[i] == c {
				own = append(own, name)
			}
		}
		if more := len(own) - maxNamed; more > 0 {
			own = append(own[:maxNamed], fmt.Sprintf("%d more", more))
		}
		c.title = and(own)
	}
}

// with returns the points of a verdict.
func (c *comparison) with(word stats.Word) (points []contender) {
	for _, p := range c.points {
		if p.Verdict == word {
			points = append(points, p)
		}
	}
	return points
}

// reached reports whether any run arrived.
func (c *comparison) reached() bool {
	return slices.ContainsFunc(c.points, func(p contender) bool { return p.Reached > 0 })
}

// sentences say what a comparison shows, the first by itself enough.
func (c *comparison) sentences() []string {
	switch {
	case c.target == nil:
		return []string{c.accuracy()}
	case len(c.points) == 1:
		return []string{c.points[0].alone(Percent(*c.target))}
	case !c.reached():
		return []string{c.nobody()}
	case len(c.with(stats.Fastest)) > 0:
		first := c.with(stats.Fastest)[0]
		said := fmt.Sprintf("%s reaches %s first: after %s, in %d of %d runs.", first.name, Percent(*c.target),
			Duration(first.median()), first.Reached, first.N)
		if math.IsInf(first.median(), 1) {
			said = fmt.Sprintf("%s reaches %s first, in %d of %d runs.", first.name, Percent(*c.target), first.Reached,
				first.N)
		}
		return []string{said, c.losers()}
	case len(c.with(stats.Undecided)) > 0:
		return []string{c.leaders(), c.advice()}
	}
	return []string{c.unjudged()}
}

// nobody says that no run reached the target.
func (c *comparison) nobody() string {
	closest, text := math.NaN(), "no run reached "+Percent(*c.target)
	name := ""
	for _, p := range c.points {
		if !(closest >= p.best) && !math.IsNaN(p.best) {
			closest, name = p.best, p.name
		}
	}
	if name == "" {
		return text + "."
	}
	return fmt.Sprintf("%s: the best accuracy was %s, of %s.", text, accuracy(closest), name)
}

// alone says when the runs of a single point arrived.
func (p *contender) alone(target string) string {
	switch a := p.TimeToTarget; {
	case p.Reached == 0 && math.IsNaN(p.best):
		return "no run reached " + target + "."
	case p.Reached == 0:
		return fmt.Sprintf("no run reached %s: the best accuracy was %s.", target, accuracy(p.best))
	case p.N == 1:
		return fmt.Sprintf("the run reached %s after %s; one repeat does not show how much that varies.", target,
			Duration(p.median()))
	case math.IsInf(p.median(), 1):
		return fmt.Sprintf("%d of %d runs reached %s, the first after %s.", p.Reached, p.N, target,
			Duration(float64(a.Min)))
	default:
		return fmt.Sprintf("%d of %d runs reached %s, from %s to %s; the median is %s.", p.Reached, p.N, target,
			Duration(float64(a.Min)), Duration(float64(a.Max)), Duration(p.median()))
	}
}

// losers say when the points behind the fastest arrived.
func (c *comparison) losers() string {
	slower := c.with(stats.Slower)
	var parts []string
	for _, p := range slower[:min(len(slower), maxNamed)] {
		parts = append(parts, p.name+" "+p.takes())
	}
	switch more := len(slower) - maxNamed; {
	case more == 1:
		parts = append(parts, slower[maxNamed].name+" "+slower[maxNamed].takes())
	case more > 1:
		parts = append(parts, fmt.Sprintf("the other %d are slower", more))
	}
	return strings.Join(parts, "; ") + "."
}

// takes says how long the runs of a point take.
func (p *contender) takes() string {
	switch {
	case p.Reached == 0:
		return "never did"
	case math.IsInf(p.median(), 1):
		return fmt.Sprintf("did in %d of %d runs", p.Reached, p.N)
	case p.Reached < p.N:
		return fmt.Sprintf("takes %s (%d of %d runs)", Duration(p.median()), p.Reached, p.N)
	}
	return "takes " + Duration(p.median())
}

// after says when the runs of a point arrived, in brackets.
func (p *contender) after() string {
	switch {
	case p.Reached == 0:
		return "not reached"
	case math.IsInf(p.median(), 1):
		return fmt.Sprintf("%d of %d runs", p.Reached, p.N)
	case p.Reached < p.N:
		return fmt.Sprintf("%s, %d of %d runs", Duration(p.median()), p.Reached, p.N)
	}
	return Duration(p.median())
}

// listed joins the first points with their times, and counts the others.
func listed(points []contender) string {
	var parts []string
	for _, p := range points[:min(len(points), maxNamed)] {
		parts = append(parts, fmt.Sprintf("%s (%s)", p.name, p.after()))
	}
	if more := len(points) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return and(parts)
}

const sure = " (95 % confidence)"

// leaders say which points may be the fastest.
func (c *comparison) leaders() string {
	set, slower, few := c.with(stats.Undecided), c.with(stats.Slower), c.with(stats.Unjudged)
	target := Percent(*c.target)
	text := fmt.Sprintf("%s cannot be told apart in their time to %s", listed(set), target)
	if len(set) == 1 {
		text = fmt.Sprintf("%s looks fastest to %s", listed(set), target)
	}
	switch len(few) {
	case 0:
	case 1:
		text += "; " + few[0].name + " has too few repeats to compare"
	default:
		text += fmt.Sprintf("; %d points have too few repeats to compare", len(few))
	}
	switch len(slower) {
	case 0:
	case 1:
		text += "; " + slower[0].name + " is slower" + sure
	default:
		text += fmt.Sprintf("; the other %d are slower", len(slower)) + sure
	}
	return text + "."
}

// advice says what would separate the leaders.
func (c *comparison) advice() string {
	most, all, longer, finer := 0, true, false, false
	for _, p := range append(c.with(stats.Undecided), c.with(stats.Unjudged)...) {
		most, all = max(most, p.Repeats), all && p.Repeats > 0
		longer, finer = longer || p.Longer, finer || p.Finer
	}
	switch {
	case len(c.rarer()) > 0:
		return c.tradeOff()
	case all:
		return fmt.Sprintf("To separate the leaders, run %s (%.0f %% power).", Count(most, "repeat"), 100*stats.Power)
	case longer:
		return "Some runs ended without reaching the target. " + LaterBound + "."
	case finer:
		return "Some of these times differ by less than the time between evaluations: evaluate more often to " +
			"separate them."
	}
	return "Some are too close to be separated by more repeats."
}

// LaterBound is advice where runs ended without reaching the target.
const LaterBound = "A later bound, such as stop.time, may tell more"

// rarer are the leaders that reached the target in a smaller share of their runs than another leader.
func (c *comparison) rarer() []contender {
	set := c.with(stats.Undecided)
	most := 0.0
	for _, p := range set {
		most = max(most, p.share())
	}
	return slices.DeleteFunc(set, func(p contender) bool { return p.share() == most })
}

// share is the fraction of the runs that reached the target.
func (p *contender) share() float64 { return float64(p.Reached) / float64(max(p.N, 1)) }

// tradeOff says which leaders cannot be called faster, because they reached the target less often.
func (c *comparison) tradeOff() string {
	var names []string
	rarer := c.rarer()
	for _, p := range rarer[:min(len(rarer), maxNamed)] {
		names = append(names, p.name)
	}
	if more := len(rarer) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return and(names) + " reached the target in a smaller share of runs than another leader, and so cannot be called " +
		"faster than that leader. " + LaterBound + "."
}

// earliestEnd names the time up to which all runs can be compared.
const earliestEnd = "the earliest end of a run that did not reach the target"

// horizon says up to when times are compared, if the verdicts depend on runs that did not reach the
// target; empty otherwise.
func (c *comparison) horizon() string {
	horizon, last := c.points[0].ComparedUpTo, record.Float(0)
	if horizon == 0 {
		return ""
	}
	for _, p := range c.points {
		if p.TimeToTarget != nil {
			last = max(last, p.TimeToTarget.Max)
		}
	}
	text := "Times are compared up to " + Duration(float64(horizon)) + ", " + earliestEnd + "."
	if last > horizon {
		text += " After that, a run that did not reach it counts as slower than a run that did."
	}
	return text
}

// Horizons says of the comparisons of a summary up to when times are compared, if the verdicts depend
// on runs that did not reach the target.
func Horizons(s record.Summary) []string {
	all := comparisons(s)
	var limited []string
	for _, c := range all {
		if len(all) == 1 {
			if text := c.horizon(); text != "" {
				return []string{text}
			}
		} else if at := c.points[0].ComparedUpTo; at > 0 {
			limited = append(limited, c.name()+" "+Duration(float64(at)))
		}
	}
	if len(limited) == 0 {
		return nil
	}
	return []string{"Times are compared up to " + earliestEnd + ": " + ListSome(limited) + "."}
}

// name names a comparison by its circumstances, or by its target.
func (c *comparison) name() string {
	if len(c.at) > 0 {
		return PointNames([]record.Point{c.at})[0]
	}
	return "to " + Percent(*c.target)
}

// unjudged says that the repeats are too few to compare.
func (c *comparison) unjudged() string {
	most := 0
	for _, p := range c.points {
		most = max(most, p.N)
	}
	text := "too few runs share a seed to compare"
	switch {
	case most == 1:
		text = fmt.Sprintf("one repeat decides nothing, at least %d are needed to compare", stats.LeastRepeats)
	case most < stats.LeastRepeats:
		text = fmt.Sprintf("%d repeats decide nothing, at least %d are needed to compare", most, stats.LeastRepeats)
	}
	var parts []string
	for _, p := range c.points[:min(len(c.points), maxNamed)] {
		parts = append(parts, p.name+" "+p.after())
	}
	if more := len(c.points) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s. Time to %s: %s.", text, Percent(*c.target), strings.Join(parts, "; "))
}

// accuracy says how accurate the points end.
func (c *comparison) accuracy() string {
	points := slices.DeleteFunc(slices.Clone(c.points), func(p contender) bool { return p.FinalAccuracy == nil })
	if len(points) == 0 {
		return "no run has a final accuracy."
	}
	first := points[0].FinalAccuracy
	middle := accuracy(float64(first.Median))
	switch {
	case len(points) == 1 && first.N == 1:
		return "the run ended at an accuracy of " + middle + "."
	case len(points) == 1:
		return fmt.Sprintf("%d runs ended at accuracies from %s to %s; the median is %s.", first.N,
			accuracy(float64(first.Min)), accuracy(float64(first.Max)), middle)
	}
	most, fewest := 0, first.N
	var overlap []string
	for _, p := range points[1:] {
		most, fewest = max(most, p.FinalAccuracy.N), min(fewest, p.FinalAccuracy.N)
		if p.FinalAccuracy.Max >= first.Min {
			overlap = append(overlap, p.name)
		}
	}
	last := points[len(points)-1]
	text := fmt.Sprintf("%s ended highest, at an accuracy of %s, and %s lowest, at %s", points[0].name, middle,
		last.name, accuracy(last.final()))
	switch {
	case first.Median == last.FinalAccuracy.Median:
		return fmt.Sprintf("all %d points ended at an accuracy of %s.", len(points), middle)
	case fewest < stats.LeastRepeats && max(most, first.N) == 1:
		return text + "; one repeat decides nothing."
	case fewest < stats.LeastRepeats:
		return text + " (medians); so few repeats decide nothing."
	case len(overlap) > 0:
		if more := len(overlap) - maxNamed; more > 0 {
			overlap = append(overlap[:maxNamed], fmt.Sprintf("%d more", more))
		}
		return fmt.Sprintf("%s (medians), but runs of %s overlap with those of %s.", text, points[0].name, and(overlap))
	}
	return fmt.Sprintf("%s (medians); each of its %d runs is above all others.", text, first.N)
}

// tally counts the outcomes of many comparisons.
func tally(all []*comparison) (lines []string) {
	var names []string
	first := map[string]int{}
	apart, few, missed, alone, arrived, limited := 0, 0, 0, 0, 0, 0
	for _, c := range all {
		if c.points[0].ComparedUpTo > 0 {
			limited++
		}
		switch fastest := c.with(stats.Fastest); {
		case c.target == nil:
			alone, arrived = alone+1, arrived+1
		case len(c.points) == 1:
			alone++
			if c.points[0].Reached > 0 {
				arrived++
			}
		case !c.reached():
			missed++
		case len(fastest) > 0:
			if first[fastest[0].name]++; first[fastest[0].name] == 1 {
				names = append(names, fastest[0].name)
			}
		case len(c.with(stats.Undecided)) > 0:
			apart++
		default:
			few++
		}
	}
	parts := wins(names, first)
	for _, other := range []struct {
		n    int
		text string
	}{
		{apart, "in %d the leaders cannot be told apart"}, {few, "in %d the repeats are too few to compare"},
		{missed, "in %d no run reached the target"},
	} {
		if other.n > 0 {
			parts = append(parts, fmt.Sprintf(other.text, other.n))
		}
	}
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("Of %s, %s.", Count(len(all)-alone, "comparison"), and(parts)))
	}
	if limited > 0 {
		lines = append(lines, fmt.Sprintf("In %d, times are compared only up to %s.", limited, earliestEnd))
	}
	if alone > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d points that are compared with no other reached their targets.",
			arrived, alone))
	}
	return lines
}

// wins says in how many comparisons each named point is the fastest, in falling order.
func wins(names []string, first map[string]int) (parts []string) {
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(first[b], first[a]) })
	others := 0
	for i, name := range names {
		if i < maxNamed {
			parts = append(parts, fmt.Sprintf("%s is fastest in %d", name, first[name]))
		} else {
			others += first[name]
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("another point is in %d", others))
	}
	return parts
}

// and joins words as a sentence does.
func and(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// accuracy writes a fraction with four digits in percent.
func accuracy(fraction float64) string { return digits(100*fraction, 4) + " %" }

// digits writes a number with so many digits, and a whole one with all of its.
func digits(v float64, n int) string {
	if math.Abs(v) >= math.Pow10(n) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', n, 64)
}
