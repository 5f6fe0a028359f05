package experiment

import (
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
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

// made is what a run was of.
type made struct {
	point string // its key
	seed  uint64
}

// failed are the numbers of the runs in the record that failed.
func (r *Runner) failed() map[made]int {
	numbers := map[made]int{}
	for _, done := range r.folder.Runs() {
		if done.Outcome == record.Failed {
			numbers[made{done.Point.Key(), done.Seed}] = done.Number
		}
	}
	return numbers
}

// renumber gives a missing run another number if a finished run has its number, as when there were
// fewer repeats. A run that failed is made again under its number, which its checkpoints have.
func (r *Runner) renumber() {
	taken := map[int]bool{}
	var others []int // places in the queue
	for _, done := range r.folder.Runs() {
		taken[done.Number] = true
	}
	for i, next := range r.queue {
		switch {
		case next.again:
		case taken[next.number]:
			others = append(others, i)
		default:
			taken[next.number] = true
		}
	}
	for free := 0; len(others) > 0; free++ {
		if !taken[free] {
			r.queue[others[0]].number, others = free, others[1:]
		}
	}
}
