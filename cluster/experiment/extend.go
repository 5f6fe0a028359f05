package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/nn/kernel"
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

// digest returns the hash of the plan's settings at the point. It leaves out the seed and the settings
// that change no figure of a run: the plan's name, record and checkpoint.
func (p *Point) digest() (string, error) {
	one := *p.Spec.Plan
	one.Name, one.Seed, one.Repeats, one.Sweep = "", 0, 1, nil
	one.Record, one.Checkpoint = plan.RecordSummary, nil
	node, err := one.Node()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%016x", xxhash.Sum64String(node.YAML())), nil
}

// digestPoints computes the digest of every point. It must come before tune, which changes the points.
func (r *Runner) digestPoints() (err error) {
	r.digests = map[string]string{}
	for i := range r.points {
		key := settings(r.points[i].Labels).Key()
		if r.digests[key], err = r.points[i].digest(); err != nil {
			return err
		}
	}
	return nil
}

// checkOrigin returns an error for the first run in the folder that does not belong there: its point,
// seed or plan differs from what this plan makes, or the record's summary lists another run instead.
func (r *Runner) checkOrigin(before record.Summary) error {
	first := r.points[0].Spec.Plan.Seed
	for _, done := range r.folder.Runs() {
		refused := func(format string, args ...any) error {
			return fmt.Errorf("%s: %s; delete this folder, and --continue makes the run again, or run the plan with "+
				"another --out", r.folder.RunDir(done.Number), fmt.Sprintf(format, args...))
		}
		digest, known := r.digests[done.Point.Key()]
		switch {
		case !known:
			return refused("run %d is of the point %q, which the plan does not have", done.Number, done.Point.String())
		case done.Seed-first >= uint64(r.repeats): // below the first seed the difference wraps around
			return refused("run %d has seed %d; the plan has %d to %d", done.Number, done.Seed, first,
				first+uint64(r.repeats)-1)
		case done.PlanDigest != "" && done.PlanDigest != digest:
			return refused("run %d (%s) was made by another plan than %s is now", done.Number,
				seedOf(done), record.PlanName)
		}
		if err := before.CheckListed(&done); err != nil {
			return refused("%v", err)
		}
	}
	return nil
}

// seedOf names a run by its point and seed.
func seedOf(done record.Run) string {
	if len(done.Point) == 0 {
		return fmt.Sprintf("seed %d", done.Seed)
	}
	return fmt.Sprintf("%v, seed %d", done.Point, done.Seed)
}

// Edited returns a note if the record's plan.yaml differs from the plan that its runs followed. The note is
// empty if the plans are equal, or if another build made the record, whose digests cannot be compared. A nil
// catalog stands for catalog.Default().
func Edited(c *catalog.Catalog, dir string) (note string, err error) {
	recorded, err := record.NewReader(dir)
	if err != nil || recorded.Summary.Build != record.ReadBuild(kernel.Name()) {
		return "", refusal.Input(err)
	}
	r, runs, file := Runner{}, recorded.Summary.Runs, filepath.Join(dir, record.PlanName)
	p, err := Parse(file, []byte(recorded.Plan))
	if err == nil {
		r.points, err = p.Points(c)
	}
	if err == nil {
		err = r.digestPoints()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil // a data file of the plan is missing on this machine
	case err != nil:
		return fmt.Sprintf("%s was edited after the runs: %v", file, err), nil
	}
	var others []string
	for i := range runs {
		run := &runs[i]
		if digest := r.digests[run.Point.Key()]; run.PlanDigest != "" && run.PlanDigest != digest {
			others = append(others, strconv.Itoa(run.Number))
		}
	}
	if len(others) == 0 {
		return "", nil
	}
	const most = 3
	first, more := strings.Join(others[:min(most, len(others))], ", "), ""
	if len(others) > most {
		more = " and others"
	}
	return fmt.Sprintf("%s was edited after the runs: another plan made %d of %d (run %s%s)", file, len(others),
		len(runs), first, more), nil
}
