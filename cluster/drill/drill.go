package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/goodput"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/report"
	"github.com/gradwire/gradwire/cluster/report/figure"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/sim"
)

// Options say how a drill is made.
type Options struct {
	// Catalog is what the plan can name; nil stands for catalog.Default().
	Catalog *catalog.Catalog
	// Data is the folder of data sets.
	Data string
	// Out is the folder of drill.json and the plot; empty for one in results, named after plan and
	// time.
	Out string
	// Where are conditions that a point of the sweep must meet, see [report.Where]; none keeps all.
	Where []string
	// Progress, if not nil, is told how far the drill is, with all its runs.
	Progress func(experiment.Progress)
}

// Report is what a drill leaves, and drill.json. Times are in seconds on the run's clock.
type Report struct {
	Plan string `json:"plan"`
	// Point names the point of the sweep; empty without one.
	Point record.Point `json:"point,omitempty"`
	Seed  uint64       `json:"seed"`
	// End is when the run ended, and the undisturbed one was stopped.
	End float64 `json:"run_s"`
	// Goodput is that of the run.
	Goodput goodput.Goodput `json:"goodput"`
	// Run and Undisturbed are sums of the two.
	Run         Sums `json:"run"`
	Undisturbed Sums `json:"undisturbed_run"`
	// Faults are what the faults cost, in the order of time, and Invariants which were watched.
	Faults     []Cost    `json:"faults"`
	Invariants []Verdict `json:"invariants"`

	file      string // base name of the plot, without .png
	run, calm []record.Evaluation
}

// Sums are of a whole run.
type Sums struct {
	// Accuracy is the one of the last evaluation.
	Accuracy record.Float `json:"accuracy"`
	// Steps of all workers, and Messages and Bytes on all links, without control.
	Steps    uint64 `json:"steps"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	// Dropped counts messages that were lost on links or came to nodes that were gone.
	Dropped int64 `json:"dropped"`
	// Repeats counts the messages that sessions, and the pushes that workers, sent again.
	Repeats int    `json:"repeats"`
	Digest  string `json:"digest"`
	// Failure is why the run could not go on.
	Failure string `json:"failure,omitempty"`
}

// Broken are the invariants that did not hold.
func (r *Report) Broken() []Verdict {
	return slices.DeleteFunc(slices.Clone(r.Invariants), func(v Verdict) bool { return v.Broken == "" })
}

// Err names what broke, and the seed; nil if nothing did.
func (r *Report) Err() error {
	var names []string
	for _, v := range r.Broken() {
		names = append(names, v.Name+" ("+v.Broken+")")
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("broken: %s; seed %d", strings.Join(names, ", "), r.Seed)
}

// stages is how many runs a drill makes.
const stages = 5

// Drill is the reports of a plan's points. Its JSON is a list of reports for a plan with a sweep, and
// the report itself for a plan without one.
type Drill struct {
	Points []*Report
	// Swept is true if the plan has a sweep. Unhurt is the number of its points without faults.
	Swept  bool
	Unhurt int
	// Dir is the folder of drill.json and the plots.
	Dir string
}

// MarshalJSON writes the reports.
func (d *Drill) MarshalJSON() ([]byte, error) {
	if d.Swept {
		return json.Marshal(d.Points)
	}
	return json.Marshal(d.Points[0])
}

// Err names the broken invariant, its point and the seed; nil if all hold.
func (d *Drill) Err() error {
	var all []error
	for _, r := range d.Points {
		if err := r.Err(); err != nil && d.Swept {
			all = append(all, fmt.Errorf("%s: %w", r.Point, err))
		} else if err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Run makes the drill of each point of a plan that has faults, with the seed of the first repeat, and
// writes their folder. A plan without faults is an input error. Nothing is written when ctx ends.
func Run(ctx context.Context, p *experiment.Plan, o Options) (*Drill, error) {
	points, err := p.Points(o.Catalog)
	if err != nil {
		return nil, err
	}
	d := &Drill{Swept: len(points[0].Labels) > 0, Dir: o.Out}
	if d.Dir == "" {
		d.Dir = filepath.Join("results", points[0].Spec.Plan.Name+time.Now().Format("-drill-20060102-150405"))
	}
	if points, err = chosen(points, o.Where); err != nil {
		return nil, err
	}
	hurt := slices.DeleteFunc(slices.Clone(points), func(p experiment.Point) bool { return !faults.Hurts(p.Spec.Plan) })
	if d.Unhurt = len(points) - len(hurt); len(hurt) == 0 {
		return nil, refusal.Input(errors.New("nothing to drill: the plan has no faults:, and nothing in its " +
			"schedule: hurts; give it faults: {crash: {mtbf: 1m, back: 10s}}, for example"))
	}
	data, tell := shelf.New(o.Data, 1, nil), o.Progress
	for i := range hurt {
		if tell != nil {
			o.Progress = func(part experiment.Progress) {
				part.Done += i * stages
				part.Share = (float64(i) + part.Share) / float64(len(hurt))
				part.Total *= len(hurt)
				tell(part)
			}
		}
		r, err := drillPoint(ctx, &hurt[i], data, o)
		if err != nil {
			if ctx.Err() == nil && len(d.Points) > 0 {
				err = errors.Join(err, d.write()) // the points before are drilled
			}
			return nil, err
		}
		if r.file = "drill"; d.Swept {
			r.file = fmt.Sprintf("drill-%d", i+1)
		}
		d.Points = append(d.Points, r)
	}
	return d, d.write()
}

// chosen are the points that meet conditions, see [report.Where].
func chosen(points []experiment.Point, where []string) (kept []experiment.Point, err error) {
	var s record.Summary
	for i := range points {
		s.Runs = append(s.Runs, record.Run{Number: i, Point: points[i].Settings()})
	}
	s.Groups = record.GroupRuns(s.Runs, nil)
	places, err := report.Where(s, where)
	if err != nil {
		return nil, refusal.Input(err)
	}
	for _, i := range places {
		kept = append(kept, points[i])
	}
	return kept, nil
}

// drillPoint makes the drill of one point.
func drillPoint(ctx context.Context, p *experiment.Point, data *shelf.Shelf, o Options) (*Report, error) {
	seed := p.Spec.Plan.Seed
	w, err := Make(ctx, p, data, seed, o)
	if err != nil {
		return nil, err
	}
	if w.Panicked != nil {
		return nil, p.About(fmt.Errorf("broken: %s (%s); seed %d", NoPanic.Name, panicked(w.Panicked), seed))
	}
	r := sum(w, p, seed)
	r.run, r.calm = w.Run.Data.Curve, w.Calm.Data.Curve
	return r, nil
}

// eighths are the parts of a run between which it is saved.
const eighths = 8

// Make makes the runs of a drill of a point with a seed. A panic beneath their actors is no error;
// see [NoPanic].
func Make(ctx context.Context, p *experiment.Point, shelf *shelf.Shelf, seed uint64, o Options) (w *Watch, err error) {
	w = &Watch{}
	w.Left = Left(ctx, func(ctx context.Context) {
		defer func() {
			if reason := recover(); reason != nil {
				w.Panicked, err = world.PanicError(reason), nil
			}
		}()
		err = w.make(ctx, p, shelf, seed, o)
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// make makes the runs.
func (w *Watch) make(ctx context.Context, p *experiment.Point, shelf *shelf.Shelf, seed uint64,
	o Options) (err error) {
	done := 0
	horizon := time.Duration(p.Spec.Plan.Stop.Time)
	tell := func(e record.Evaluation) {
		if o.Progress == nil {
			return
		}
		share := float64(done)
		if horizon > 0 {
			share += min(e.Time/horizon.Seconds(), 1)
		}
		o.Progress(experiment.Progress{Done: done, Total: stages, Share: share / stages})
	}
	ended := func() {
		done++
		tell(record.Evaluation{})
	}
	if w.Run, err = p.Try(ctx, shelf, seed, sim.Audit{Tensors: true}, tell); err != nil {
		return err
	}
	horizon = w.Run.End
	ended()
	if w.Again, err = p.Try(ctx, shelf, seed, sim.Audit{}, tell); err != nil {
		return err
	}
	ended()
	calm, err := p.Undisturbed(o.Catalog, seed, w.Run.End)
	if err != nil {
		return err
	}
	if w.Calm, err = calm.Try(ctx, shelf, seed, sim.Audit{}, tell); err != nil {
		return err
	}
	ended()
	task, err := p.Task(shelf, seed)
	if err != nil {
		return err
	}
	count(task)
	if w.Count, err = p.TryTask(ctx, task, sim.Audit{}, tell); err != nil {
		return err
	}
	ended()
	w.SavedAt = max(w.Run.End/eighths*time.Duration(1+seed%(eighths-1)), 1)
	if w.Run.Failure == nil {
		if w.Resumed, w.Unresumed = p.Resume(ctx, shelf, seed, w.SavedAt, tell); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w.Resumed != nil {
			if w.Damaged, err = damaged(w.Resumed.Saved, w.SavedAt, seed); err != nil {
				return err
			}
		}
	}
	ended()
	w.noteRecovery(p, seed)
	return nil
}

// noteRecovery sets Recovered to the time at which the last fault is over.
func (w *Watch) noteRecovery(p *experiment.Point, seed uint64) {
	for _, f := range list(p, seed) {
		if f.What != plan.Slow { // under which training goes on
			w.Recovered = max(w.Recovered, over(&f, p))
		}
	}
}

// list are the faults of a run of a point.
func list(p *experiment.Point, seed uint64) []goodput.Fault {
	return faults.List(p.Scheduled(seed), len(p.Spec.Plan.Schedule))
}

// over is when a fault is over and noticed.
func over(f *goodput.Fault, p *experiment.Point) time.Duration {
	noticed := f.At + time.Duration(p.Spec.Plan.Detect).Seconds()
	return time.Duration(max(f.Until, noticed) * float64(time.Second))
}

// sum sums a drill up.
func sum(w *Watch, p *experiment.Point, seed uint64) *Report {
	r := &Report{Plan: p.Spec.Plan.Name, Point: p.Settings(), Seed: seed, End: w.Run.End.Seconds(), Run: sums(w.Run),
		Undisturbed: sums(w.Calm), Invariants: Check(w), Faults: costs(w, p, list(p, seed))}
	g := &r.Goodput
	g.Counted, g.Lost, g.Undisturbed = w.Run.Counted, w.Run.Lost, w.Calm.Counted
	if g.Undisturbed > 0 {
		g.Share = float64(g.Counted) / float64(g.Undisturbed)
	}
	return r
}

func sums(t *experiment.Trial) Sums {
	s := Sums{Steps: t.Data.Steps, Messages: t.Data.Messages, Bytes: t.Data.Bytes, Digest: t.Digest,
		Dropped: t.Stage.Network.Dropped(), Repeats: len(t.Audit.Repeats)}
	s.Accuracy, _ = t.Data.Accuracies()
	if t.Failure != nil {
		s.Failure = t.Failure.Error()
	}
	return s
}

// write writes drill.json, and the plot of each point as PNG and SVG.
func (d *Drill) write() error {
	if err := os.MkdirAll(d.Dir, 0o777); err != nil { //nolint:gosec // the mask of the process decides
		return refusal.Input(fmt.Errorf("output folder: %w", err))
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := record.WriteFile(filepath.Join(d.Dir, "drill.json"), append(text, '\n')); err != nil {
		return err
	}
	for _, r := range d.Points {
		var marks []goodput.Fault
		for k := range r.Faults {
			if !r.Faults[k].AfterEnd {
				marks = append(marks, r.Faults[k].Fault)
			}
		}
		title := r.Plan + ": accuracy with faults and without"
		if d.Swept {
			title = r.Plan + ", " + r.Point.String() + ": accuracy with faults and without"
		}
		if err := figure.Drill(filepath.Join(d.Dir, r.file), title, r.End, r.run, r.calm, marks); err != nil {
			return err
		}
	}
	return nil
}
