package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/pairing"
	"github.com/gradwire/gradwire/cluster/report/pivot"
)

// pair is what two records have in common.
type pair struct {
	a, b *Source
	pairing.Pairs
}

// pairOf pairs the points of two records; nil of other numbers of records, or where no points
// answer each other.
func pairOf(sources []*Source) *pair {
	if len(sources) != 2 {
		return nil
	}
	p := &pair{a: sources[0], b: sources[1]}
	p.Pairs = pairing.Match(points(p.a.Summary), points(p.b.Summary))
	if len(p.Of) == 0 {
		return nil
	}
	return p
}

func points(s record.Summary) (all []record.Point) {
	for _, g := range s.Groups {
		all = append(all, g.Point)
	}
	return all
}

// lead says in which settings the two records differ.
func (p *pair) lead() string {
	const most = 4
	var parts []string
	changes := pairing.Changes(p.a.Plan, p.b.Plan)
	for _, c := range changes[:min(len(changes), most)] {
		parts = append(parts, fmt.Sprintf("%s: %s → %s", c.Key, planValue(c.A), planValue(c.B)))
	}
	if more := len(changes) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more settings", more))
	}
	text := fmt.Sprintf("A is %s, B is %s.", p.a.Name, p.b.Name)
	if note := p.Note(points(p.a.Summary), points(p.b.Summary)); note != "" {
		text += " " + report.Capitalized(note) + "."
	}
	if len(parts) == 0 {
		return text + " Their plans are the same."
	}
	return text + " Their plans differ in " + strings.Join(parts, "; ") + "."
}

func planValue(text string) string {
	if text == "" {
		return report.NoValue
	}
	return report.Cut(text, report.MaxName)
}

// Paired compares two records in sentences: whether the order of the points changes between them, and
// the ratio of the times of each pair of points. It returns nil for other numbers of records, or if
// no points match.
func Paired(sources []*Source) (lines []string) {
	p := pairOf(sources)
	if p == nil {
		return nil
	}
	all := join(sources)
	if layout, err := all.View.Arrange(all.Summary); err == nil {
		if line := pivot.OrderWith(all.Summary, layout, report.RecordKey); line != "" {
			lines = append(lines, line)
		}
	}
	names := report.PointNames(points(p.a.Summary))
	var ratios, notes []string
	for _, pair := range p.Of {
		r := p.ratio(&p.a.Summary.Groups[pair[0]], &p.b.Summary.Groups[pair[1]])
		with := strings.TrimSuffix(" with "+names[pair[0]], " with ")
		if r.text != "" {
			ratios = append(ratios, r.text+with)
		}
		if r.note != "" && !slices.Contains(notes, r.note) {
			notes = append(notes, r.note)
		}
	}
	if len(ratios) > 0 {
		lines = append(lines, fmt.Sprintf("Time to the target, %s ÷ %s: %s.", p.b.Name, p.a.Name,
			strings.Join(ratios, "; ")))
	}
	return append(lines, notes...)
}

// table has a row for each pair of points, with what was before and after, and one for each point
// that only one of the records has.
func (p *pair) table() *table {
	timed := len(report.Targets(p.a.Summary)) > 0 && len(report.Targets(p.b.Summary)) > 0
	t := &table{Caption: "Before and after: the points that both records have"}
	var keys []string
	for _, s := range []*Source{p.a, p.b} {
		for _, key := range report.SweptKeys(s.Summary) {
			if !slices.Contains(keys, key) && key != p.Key {
				keys = append(keys, key)
			}
		}
	}
	t.Head, t.Labels, t.keys = report.ShortKeys(keys), len(keys), keys
	unit := report.TimeUnit(max(report.LongestMean(p.a.Summary), report.LongestMean(p.b.Summary)))
	if timed {
		t.Head = append(t.Head, "A: reached", "A: time, "+unit.Name, "B: reached", "B: time, "+unit.Name, "B ÷ A")
	}
	var notes []string
	paired := false
	t.Head = append(t.Head, "A: accuracy, %", "B: accuracy, %", "B − A")
	row := func(a, b *record.Group) {
		g := a
		if a == nil {
			g = b
		}
		var values []any
		if timed {
			r := p.ratio(a, b)
			values = append(values, reached(a), medianTime(a, unit.Seconds), reached(b), medianTime(b, unit.Seconds),
				cmp.Or(r.text, report.NoValue))
			paired = paired || r.text != "" && r.note == ""
			if r.note != "" && !slices.Contains(notes, r.note) {
				notes = append(notes, r.note)
			}
		}
		one, two := accuracy(a), accuracy(b)
		t.add(pairing.Without(g.Point, p.Key), append(values, one, two, two-one)...)
	}
	for _, pair := range p.Of {
		row(&p.a.Summary.Groups[pair[0]], &p.b.Summary.Groups[pair[1]])
	}
	for _, i := range p.OnlyA {
		row(&p.a.Summary.Groups[i], nil)
	}
	for _, i := range p.OnlyB {
		row(nil, &p.b.Summary.Groups[i])
	}
	if paired {
		const ratio = "B ÷ A: the median of the ratios of runs of equal seeds, with its 95 % interval from 6 runs on."
		notes = slices.Insert(notes, 0, ratio)
	}
	if timed {
		t.Note = strings.Join(slices.Insert(notes, 0, "Medians."), " ")
	}
	return t.limitRows()
}

func reached(g *record.Group) string {
	if g == nil || g.Target == nil {
		return report.NoValue
	}
	return fmt.Sprintf("%d/%d", g.Reached, g.N)
}

func medianTime(g *record.Group, unit float64) float64 {
	if g == nil || g.TimeToTarget == nil {
		return math.NaN()
	}
	return float64(g.TimeToTarget.Median) / unit
}

func accuracy(g *record.Group) float64 {
	if g == nil || g.FinalAccuracy == nil {
		return math.NaN()
	}
	return 100 * float64(g.FinalAccuracy.Median)
}

// ratio is B's time to the target divided by A's.
type ratio struct {
	text string // empty if there is none
	note string // why there is none, or how it was computed; empty for a ratio of runs of equal seeds
}

// Notes on ratios that are not of runs of equal seeds.
const (
	noSeedsInCommon = "No seeds in common: the ratio of the medians, in which chance differences between the seeds " +
		"count too, and which has no interval."
	fewSeedsInCommon = "Not every run has a partner of the same seed in the other record: the ratio of the medians, " +
		"which has no interval."
	missedInPairs = "Not every run reached the target: the ratio of the medians, which has no interval."
)

// ratio compares the times of two groups. Runs of equal seeds give the ratio an interval.
func (p *pair) ratio(a, b *record.Group) ratio {
	if a == nil || b == nil {
		return ratio{}
	}
	if why := p.apart(a, b); why != "" {
		return ratio{note: why}
	}
	whole := medianTime(b, 1) / medianTime(a, 1)
	if !report.IsFinite(whole) {
		return ratio{}
	}
	times, partners := map[uint64]float64{}, 0
	seeds := map[uint64]bool{}
	for _, r := range p.a.Summary.Runs {
		if !slices.Equal(r.Point, a.Point) {
			continue
		}
		seeds[r.Seed] = true
		if r.TimeToTarget != nil && *r.TimeToTarget > 0 {
			times[r.Seed] = *r.TimeToTarget
		}
	}
	var logs []float64
	for _, r := range p.b.Summary.Runs {
		if !slices.Equal(r.Point, b.Point) {
			continue
		}
		if seeds[r.Seed] {
			partners++
		}
		if at, ok := times[r.Seed]; ok && r.TimeToTarget != nil && *r.TimeToTarget > 0 {
			logs = append(logs, math.Log(*r.TimeToTarget/at))
		}
	}
	s, text := record.SpreadOf(logs), fmt.Sprintf("%.3g", whole)
	switch most := max(a.N, b.N); {
	case partners == 0:
		return ratio{text, noSeedsInCommon}
	case partners < most:
		return ratio{text, fewSeedsInCommon}
	case s == nil || s.N < most:
		return ratio{text, missedInPairs}
	case !report.IsFinite(float64(s.Low)):
		return ratio{text: fmt.Sprintf("%.3g", math.Exp(float64(s.Median)))}
	}
	return ratio{text: fmt.Sprintf("%.3g [%.3g, %.3g]", math.Exp(float64(s.Median)), math.Exp(float64(s.Low)),
		math.Exp(float64(s.High)))}
}

// apart says why the times of two groups have no ratio: their targets or their judged models differ.
// It returns "" if they have one. A group with a single model has the same judged model under any of.
func (p *pair) apart(a, b *record.Group) string {
	if a.Target == nil || b.Target == nil {
		return ""
	}
	if *a.Target != *b.Target {
		return fmt.Sprintf("Times to different targets have no ratio: %s runs to %s, %s to %s.", p.a.Name,
			report.Percent(*a.Target), p.b.Name, report.Percent(*b.Target))
	}
	if a.Of != b.Of && severalModels(p.a, a) && severalModels(p.b, b) {
		return fmt.Sprintf("Times of different models have no ratio: %s judges the %s, %s the %s.", p.a.Name,
			report.JudgedWords[a.Of], p.b.Name, report.JudgedWords[b.Of])
	}
	return ""
}

// severalModels reports whether runs of a group have several models.
func severalModels(s *Source, g *record.Group) bool {
	return slices.ContainsFunc(s.Summary.Runs, func(r record.Run) bool {
		return r.Models > 1 && slices.Equal(r.Point, g.Point)
	})
}
