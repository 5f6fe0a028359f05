package report

import (
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// These name what an accuracy is of where several nodes hold a model: in a figure or a sentence, and in a heading.
var (
	judgedNames = map[record.Of]string{
		record.AverageModel: "accuracy of the average model", record.Mean: "mean of the nodes' accuracies",
		record.All: "accuracy of the worst node", record.Any: "accuracy of the best node",
	}
	judgedWords = map[record.Of]string{
		record.AverageModel: "average model", record.Mean: "mean of the nodes", record.All: "worst node", record.Any: "best node",
	}
)

// several reports whether a run has several models. One model's accuracy needs no other name.
func several(s record.Summary) bool {
	return slices.ContainsFunc(s.Runs, func(r record.Run) bool { return r.Models > 1 })
}

// severalOf reports whether a run of a point has several models.
func severalOf(s record.Summary, p record.Point) bool {
	return slices.ContainsFunc(s.Runs, func(r record.Run) bool { return r.Models > 1 && slices.Equal(r.Point, p) })
}

// kindsOf are what the points of several models judge, without repetition.
func kindsOf(s record.Summary) (kinds []record.Of) {
	for _, r := range s.Runs {
		if r.Models > 1 && !slices.Contains(kinds, r.Of) {
			kinds = append(kinds, r.Of)
		}
	}
	return kinds
}

// mixed stands for what is judged where this is not the same at all points.
const mixed = "what each point judges"

// judged says what an accuracy of a summary is of: "accuracy" where every run has a single model.
func judged(s record.Summary) string {
	switch kinds := kindsOf(s); len(kinds) {
	case 0:
		return "accuracy"
	case 1:
		return judgedNames[kinds[0]]
	}
	return "accuracy of " + mixed
}

// judgedWord is judged as an addition to the word accuracy; empty where every run has a single model.
func judgedWord(s record.Summary) string {
	switch kinds := kindsOf(s); len(kinds) {
	case 0:
		return ""
	case 1:
		return judgedWords[kinds[0]]
	}
	return mixed
}

// targetsOf are the targets of a summary's points, rising.
func targetsOf(s record.Summary) (all []float64) {
	for _, g := range s.Groups {
		if g.Target != nil && !slices.Contains(all, *g.Target) {
			all = append(all, *g.Target)
		}
	}
	slices.Sort(all)
	return all
}

// targetName is the target as a figure names it.
func targetName(s record.Summary) string {
	if all := targetsOf(s); len(all) == 1 {
		return percent(all[0])
	}
	return "each point's target"
}

// title names the plan and what a figure shows of it.
func title(s record.Summary, what string) string { return cut(s.Plan+": "+what, maxTitle) }

// maxTitle is how many characters a title has room for.
const maxTitle = 95

// sampleNote says where fewer models are looked at than there are; of what is judged, only these are known.
func sampleNote(s record.Summary) string {
	var samples []string
	for _, r := range s.Runs {
		if r.Holders == 0 {
			continue
		}
		if sample := fmt.Sprintf("%d of %s", r.Models, count(r.Holders, "node")); !slices.Contains(samples, sample) {
			samples = append(samples, sample)
		}
	}
	if len(samples) == 0 {
		return ""
	}
	return "Looked at are the models of a sample: " + some(samples) + " (evaluate.sample)."
}
