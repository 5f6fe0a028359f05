package experiment

import (
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// savePlan writes the resolved plan into the folder. A record that is continued may be given more
// repeats, and may have its plan in an earlier version of the language.
func (r *Runner) savePlan(text string) error {
	if before, err := syntax.Parse("before", r.folder.Plan()); err == nil && plan.Upgrade(before) {
		r.folder.ReadPlanAs(before.YAML())
	}
	if r.Continue && moreRepeats(string(r.folder.Plan()), text) {
		return r.folder.ReplacePlan(text)
	}
	return r.folder.SavePlan(text)
}

// moreRepeats reports whether a plan is another one but for more repeats.
func moreRepeats(before, after string) bool {
	a, err := syntax.Parse("before", []byte(before))
	b, other := syntax.Parse("after", []byte(after))
	if err != nil || other != nil {
		return false
	}
	const key = "repeats"
	had, _ := strconv.Atoi(a.At(key).Text) // 0 is fewer than any plan has
	wanted, _ := strconv.Atoi(b.At(key).Text)
	return had > 0 && had < wanted && a.Without(key).Equal(b.Without(key))
}

// renumber gives a missing run another number if a finished run has its number already. That
// happens when the record was made with fewer repeats.
func (r *Runner) renumber() {
	taken := map[int]bool{}
	for _, done := range r.folder.Runs() {
		taken[done.Number] = true
	}
	var others []int // places in the queue
	for i, next := range r.queue {
		if taken[next.number] {
			others = append(others, i)
		}
		taken[next.number] = true
	}
	free := 0
	for _, i := range others {
		for taken[free] {
			free++
		}
		taken[free] = true
		r.queue[i].number = free
	}
}
