package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
)

var (
	// JudgedNames says, for a figure or a sentence, what an accuracy is of where several nodes hold
	// a model.
	JudgedNames = map[record.Of]string{
		record.AverageModel: "accuracy of the average model", record.Mean: "mean of the nodes' accuracies",
		record.All: "accuracy of the worst node", record.Any: "accuracy of the best node",
	}
	// JudgedWords says the same in a heading, behind the word accuracy.
	JudgedWords = map[record.Of]string{
		record.AverageModel: "average model", record.Mean: "mean of the nodes", record.All: "worst node",
		record.Any: "best node",
	}
	// VerdictMarks stand behind times to the target.
	VerdictMarks = map[stats.Word]string{
		stats.Fastest: "*", stats.Undecided: "=", stats.Unjudged: "?", stats.Slower: " ", "": " ",
	}
)

// JudgedKinds returns what the points of several models judge, without repetition; none where every
// run has a single model, whose accuracy needs no other name.
func JudgedKinds(s record.Summary) (kinds []record.Of) {
	for _, r := range s.Runs {
		if r.Models > 1 && !r.Counted && !slices.Contains(kinds, r.Of) {
			kinds = append(kinds, r.Of)
		}
	}
	return kinds
}

// Judged says what an accuracy of a summary is of: "accuracy" where every run has a single model.
func Judged(s record.Summary) string {
	return judgedAs(s, "accuracy", JudgedNames, "each point's own accuracy")
}

// JudgedSuffix says what an accuracy of a summary is of behind the word accuracy, as in " (best
// node)"; empty where every run has a single model.
func JudgedSuffix(s record.Summary) string {
	if name := judgedAs(s, "", JudgedWords, "as each point is judged"); name != "" {
		return " (" + name + ")"
	}
	return ""
}

// judgedAs names what is judged where that is one thing.
func judgedAs(s record.Summary, none string, names map[record.Of]string, several string) string {
	switch kinds := JudgedKinds(s); len(kinds) {
	case 0:
		return none
	case 1:
		return names[kinds[0]]
	}
	return several
}

// JudgedBy says by what the points of a summary are judged, as an addition to its name; empty where
// every run has a single model.
func JudgedBy(s record.Summary) string {
	kinds := JudgedKinds(s)
	if len(kinds) == 0 {
		return ""
	}
	parts := make([]string, len(kinds))
	for i, of := range kinds {
		parts[i] = "by the " + JudgedNames[of]
	}
	if len(parts) == 1 {
		return "judged " + parts[0]
	}
	return "some points judged " + strings.Join(parts, ", others ")
}

// Targets returns the targets of a summary's points, rising.
func Targets(s record.Summary) (all []float64) {
	for _, g := range s.Groups {
		if g.Target != nil && !slices.Contains(all, *g.Target) {
			all = append(all, *g.Target)
		}
	}
	slices.Sort(all)
	return all
}

// TargetName names the target, as in "94 %".
func TargetName(s record.Summary) string {
	if all := Targets(s); len(all) == 1 {
		return Percent(all[0])
	}
	return "each point's target"
}

// Estimates says how many evaluations of a summary's runs are estimates by a part of the test set;
// empty where none is.
func Estimates(s record.Summary) string {
	runs, partial, confidence := 0, 0, 1.0
	for _, r := range s.Runs {
		if r.Early != nil && r.Early.Partial > 0 {
			runs++
			partial += r.Early.Partial
			confidence = min(confidence, r.Early.Confidence)
		}
	}
	if partial == 0 {
		return ""
	}
	return fmt.Sprintf("Below the target, %s of %s are estimates by a part of the test set, without a loss; that "+
		"they are below it is sure with a probability of %v or more for each model. Arrivals, the evaluations before "+
		"them and the last ones are of the whole set.", Count(partial, "evaluation"), Count(runs, "run"), confidence)
}

// HasVerdicts reports whether points are compared.
func HasVerdicts(s record.Summary) bool {
	return slices.ContainsFunc(s.Groups, func(g record.Group) bool { return g.Verdict != "" })
}

// Spoilt says how many runs of a summary failed or are degraded, as in "1 failed" and "2 degraded".
func Spoilt(s record.Summary) (parts []string) {
	for _, outcome := range []record.Outcome{record.Failed, record.Degraded} {
		n := 0
		for _, r := range s.Runs {
			if r.Outcome == outcome {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	return parts
}

// LongestMean returns the longest mean time to the target, in seconds; 0 if no run arrived.
func LongestMean(s record.Summary) float64 {
	longest := 0.0
	for _, g := range s.Groups {
		if g.TimeToTarget != nil {
			longest = max(longest, float64(g.TimeToTarget.Restricted))
		}
	}
	return longest
}

// MeanLength returns the mean duration of a point's runs, in seconds on their clock.
func MeanLength(s record.Summary, p record.Point) float64 {
	n, sum := 0.0, 0.0
	for _, r := range s.Runs {
		if slices.Equal(r.Point, p) {
			n++
			sum += r.Duration
		}
	}
	return sum / max(n, 1)
}

// MeanTraffic returns the mean messages and bytes of a point's runs.
func MeanTraffic(s record.Summary, p record.Point) (messages, bytes float64) {
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
