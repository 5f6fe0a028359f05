package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/memory"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/store"
	"github.com/gradwire/gradwire/nn/kernel"
)

// Options say how a plan is run.
type Options struct {
	// Catalog is what the plan can name; nil stands for catalog.Default().
	Catalog *catalog.Catalog
	// Data is the folder of data sets.
	Data string
	// Out is the folder of the record; empty for a new one in results, named after plan and time.
	Out string
	// Continue runs what is missing in Out.
	Continue bool
	// FromCheckpoint makes an interrupted run in virtual time resume from its newest checkpoint. By default
	// the run is repeated from its start, with the same result. Runs in real time always resume.
	FromCheckpoint bool
	// Jobs is how many runs go on side by side; 0 stands for the number of cores. In real time
	// it is always one, because runs would disturb each other.
	Jobs int
	// Clock is VirtualTime, the default, or RealTime. On a cluster plans run by Submit.
	Clock Clock
	// Strict checks every message on its way; see world.Deployment.
	Strict bool
	// Count has runs carry the plan's messages and train nothing, in virtual time. A plan whose
	// messages depend on what is trained is refused.
	Count bool
	// KeepRuntime leaves GOMAXPROCS and GOGC of this process as they are while runs go on in real
	// time, at the price of later timers; see live.Config.
	KeepRuntime bool
	// Opened, if not nil, gets the folder of the record once it exists, before the first run.
	Opened func(dir string)
	// Finish, if not nil, gets the report of Run before the last upload of the record, so that it can add
	// a page to the record's folder.
	Finish func(*Report) error
	// Progress, if not nil, is told how far the plan is, from one goroutine at a time.
	Progress func(Progress)
}

// Progress says how far a plan is.
type Progress struct {
	// Done and Total count runs.
	Done, Total int
	// Share is the share of the whole plan that is done, with runs under way in part.
	Share float64
	// Tried and ToTry count the ended and all runs of tune in this process. Total does not include
	// them.
	Tried, ToTry int
	// Finished is the run that has just finished; nil in between.
	Finished *record.Run
	// Note is something to be told, such as where a run goes on; empty in between.
	Note string
}

// Report is what running a plan leaves.
type Report struct {
	record.Summary
	// Dir is the folder of the record. If the record goes to a store, it is a working folder, which is removed
	// with the last upload.
	Dir string
	// Record is the final place of the record: Dir, or the address in the store.
	Record string
	// Traces hold what figures are drawn from, for the summary's runs in their order.
	Traces []record.Trace
	// Clock is the one that was used.
	Clock Clock
}

// Run runs every point and repeat of a plan. What has finished is kept and
// reported also when ctx is cancelled or a run fails; the error then says so. An
// InputError comes before anything has run.
func Run(ctx context.Context, p *Plan, o Options) (*Report, error) {
	began := time.Now()
	v, err := venueOf(o)
	if err != nil {
		return nil, refusal.Input(err)
	}
	r, err := Prepare(ctx, p, o, Site{Venue: v})
	if err != nil {
		return nil, err
	}
	if err := r.StartUploads(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	for _, text := range r.rounded {
		r.note("note: " + text)
	}
	r.tellForecast(ctx)
	failure := r.RunAll(ctx)
	report, err := r.Report(time.Since(began))
	if report != nil && o.Finish != nil {
		err = errors.Join(err, o.Finish(report))
	}
	return report, errors.Join(failure, err, r.Upload(ctx))
}

// Site is where a plan is carried out.
type Site struct {
	// Venue is where its runs take place.
	Venue Venue
	// Shared are data that plans of one process share; nil shares nothing.
	Shared *shelf.Shared
	// Tried says that the plan was found to run before.
	Tried bool
	// Key signs checkpoints; nil stands for the user's.
	Key checkpoint.Key
}

// Runner carries a plan out.
type Runner struct {
	Options
	Site
	plan    *Plan
	points  []Point
	repeats int
	shelf   *shelf.Shelf
	folder  *record.Folder
	queue   []run
	digests map[string]string // by point: see Point.digest
	notes   []string          // notes on the plan as written, before tuning
	rounded []string          // notes on intervals that rounding changes; see Point.rounded
	keyOnce sync.Once
	work    *store.Uploader   // uploader of the working folder; nil if the record stays in a folder
	uploads []*store.Uploader // uploaders of the record, including work once it has started
	address string            // address of the record in a store; empty for a folder

	mu       sync.Mutex
	failures []error // of runs that were made, and could not go on
	done     int
	tried    int             // ended runs of tune
	toTry    int             // all runs of tune, including the ended ones
	parts    map[int]float64 // how far the runs under way are
}

// run is one repeat of one point.
type run struct {
	number int
	point  *Point
	seed   uint64
	again  bool // it failed when it had this number
}

// Prepare checks everything that can be checked before the first run. An InputError says what is
// wrong.
func Prepare(ctx context.Context, p *Plan, o Options, at Site) (*Runner, error) {
	if o.Jobs < 1 {
		o.Jobs = runtime.NumCPU()
	}
	points, err := p.Points(o.Catalog)
	if err != nil {
		return nil, err
	}
	written, traits := points, at.Venue.Traits()
	if o.Count {
		if traits.Clock != VirtualTime {
			return nil, refusal.Input(errors.New("a run that only counts takes place in virtual time"))
		}
		if points, err = counted(points); err != nil {
			return nil, err
		}
	}
	if traits.Here {
		limit := memory.Limit()
		if err := affordable(points, limit); err != nil {
			return nil, err
		}
		o.Jobs = side(points, limit, o.Jobs)
	}
	first := points[0].Spec.Plan
	r := &Runner{Options: o, Site: at, plan: p, points: points, repeats: first.Repeats, parts: map[int]float64{},
		notes: notes(points)}
	if r.Total() > record.MaxRuns {
		return nil, refusal.Input(fmt.Errorf("%d points of %d repeats are %d runs; at most %d are accepted",
			len(points), r.repeats, r.Total(), record.MaxRuns))
	}
	if first.Seed+uint64(r.repeats) < first.Seed {
		return nil, refusal.Input(fmt.Errorf("seed %d with %d repeats goes beyond %d", first.Seed, r.repeats,
			uint64(math.MaxUint64)))
	}
	if r.Jobs = min(r.Jobs, r.Total()); traits.Alone {
		r.Jobs = 1
	}
	r.shelf = shelf.New(o.Data, r.Jobs+1, at.Shared)
	if err := r.rehearse(ctx); err != nil {
		return nil, err
	}
	text, err := p.resolved(written)
	if err != nil {
		return nil, err
	}
	return r, r.open(ctx, text)
}

// Total is how many runs the plan has.
func (r *Runner) Total() int { return len(r.points) * r.repeats }

// open opens the folder and finds out what is to be run: repeat after repeat, so
// that runs that share their samples come together.
func (r *Runner) open(ctx context.Context, text string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := r.openStore(ctx); err != nil {
		return err
	}
	if err := r.openFolder(); err != nil {
		return folderError(err)
	}
	if err := r.savePlan(text); err != nil {
		return folderError(err)
	}
	if err := r.digestPoints(); err != nil {
		return err
	}
	if err := r.compatible(); err != nil {
		return err
	}
	failed := r.failed()
	for repeat := range r.repeats {
		for i := range r.points {
			pt := &r.points[i]
			next := run{number: i*r.repeats + repeat, point: pt, seed: pt.Spec.Plan.Seed + uint64(repeat)}
			at := settings(pt.Labels)
			if n, known := failed[made{at.Key(), next.seed}]; known {
				next.number, next.again = n, true
			}
			if n, finished := r.folder.Finished(at, next.seed); !finished {
				r.queue = append(r.queue, next)
			} else if err := checkpoint.NewFolder(r.folder.RunDir(n), 0).Remove(); err != nil {
				return folderError(err)
			}
		}
	}
	r.renumber()
	r.done = r.Total() - len(r.queue)
	if r.Opened != nil {
		r.Opened(cmp.Or(r.address, r.folder.Dir()))
	}
	return nil
}

// openFolder opens the folder of the record, or makes a new one.
func (r *Runner) openFolder() (err error) {
	switch {
	case r.Continue && r.Out == "":
		return refusal.Input(errors.New("nothing to continue: no folder was named"))
	case r.Continue:
		if r.folder, err = record.OpenToWrite(r.Out); err != nil {
			err = fmt.Errorf("--continue: %w", err)
		}
		return err
	case r.Out == "":
		r.Out, err = reserve(filepath.Join("results", r.Plan().Name+time.Now().Format("-20060102-150405")))
	}
	if err == nil {
		r.folder, err = record.Create(r.Out)
	}
	return err
}

// reserve makes an empty folder of this name, or with a number behind it if others have been
// quicker.
func reserve(name string) (dir string, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil { //nolint:gosec // the mask of the process decides
		return "", fmt.Errorf("output folder: %w; --out names another one", err)
	}
	for n := 1; n <= record.MaxRuns; n++ {
		if dir = name; n > 1 {
			dir = fmt.Sprintf("%s-%d", name, n)
		}
		if err = os.Mkdir(dir, 0o777); !errors.Is(err, fs.ErrExist) { //nolint:gosec // as above
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("output folder: %w; --out names another one", err)
	}
	return dir, nil
}

// compatible returns an error unless the finished runs in the folder belong to this plan, data and build.
// A failure to read the summary from disk is no InputError.
func (r *Runner) compatible() error {
	before, err := record.ReadSummary(r.Out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return folderError(err)
	}
	return refusal.Input(r.fits(before, err == nil))
}

// fits returns an error unless the folder's finished runs, and its summary if summarized is set, belong to
// this plan, data and build.
func (r *Runner) fits(before record.Summary, summarized bool) error {
	for _, done := range r.folder.Runs() {
		if done.Clock != string(r.Venue.Traits().Clock) {
			if done.Clock != string(VirtualTime) && done.Clock != string(RealTime) {
				return fmt.Errorf("the record in %s was made on a %s, where each submission has its own record; "+
					"submit the plan again", r.Out, done.Clock)
			}
			return fmt.Errorf("the record in %s was made in %s time; go on with --clock %s", r.Out, done.Clock,
				done.Clock)
		}
		if done.Counted && !r.Count {
			return fmt.Errorf(
				"the record in %s has runs that were counted without training; go on with --count, or train "+
					"in another folder",
				r.Out,
			)
		}
		if r.Count && !done.Counted {
			return fmt.Errorf("the record in %s has runs that were trained; count in another folder", r.Out)
		}
	}
	if err := r.checkOrigin(before); err != nil {
		return err
	}
	if build := record.ReadBuild(kernel.Name()); summarized && before.Build != build {
		return fmt.Errorf("the record in %s was made by another build (%v); this is %v", r.Out, before.Build, build)
	}
	if other := record.OtherData(before.Data, r.shelf.Files()); summarized && len(other) > 0 {
		return fmt.Errorf("the record in %s was made with other samples: %s", r.Out, strings.Join(other, "; "))
	}
	return nil
}

// folderError tells a folder that the user should not have named from what the disk
// has done.
func folderError(err error) error {
	for _, mistake := range []error{
		record.ErrExists, record.ErrLocked, record.ErrOtherPlan, record.ErrNoRecord, record.ErrDamaged,
		record.ErrDamagedSummary, record.ErrNoFolder,
		fs.ErrNotExist, fs.ErrExist,
		fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EROFS,
	} {
		if errors.Is(err, mistake) {
			return refusal.Input(err)
		}
	}
	return err
}

func settings(labels []plan.Label) record.Point {
	p := record.Point{}
	for _, l := range labels {
		p = append(p, record.Setting{Key: l.Key, Value: l.Value})
	}
	return p
}

// grace is how long runs in virtual time may take to stop.
const grace = 250 * time.Millisecond

// RunAll chooses what the plan has to tune, and works the queue off, several runs side by side,
// until one cannot be saved. When ctx ends, runs in virtual time have a moment to stop: one that is
// loading data or computing then is left behind, and saves nothing once the record is closed.
func (r *Runner) RunAll(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- r.runAll(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if r.Venue.Traits().Clock != VirtualTime {
		return <-ended
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		r.mu.Lock()
		defer r.mu.Unlock()
		return errors.Join(context.Cause(ctx), r.failure())
	}
}

func (r *Runner) runAll(ctx context.Context) error {
	if err := r.tune(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sideBySide(ctx, r.Jobs, len(r.queue), func(i int) {
		if err := r.makeRun(ctx, r.queue[i]); err != nil {
			cancel(err)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == r.Total() {
		return r.failure() // whoever cancelled came too late
	}
	return errors.Join(context.Cause(ctx), r.failure())
}

// sideBySide does something for each of n, several at a time, in their order, until ctx ends.
func sideBySide(ctx context.Context, several, n int, do func(i int)) {
	queue := make(chan int, n)
	for i := range n {
		queue <- i
	}
	close(queue)
	var workers sync.WaitGroup
	for range min(several, n) {
		workers.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				do(i)
			}
		})
	}
	workers.Wait()
}

// maxFailures is how many failures are told one by one.
const maxFailures = 8

// failure is the error of the runs that could not go on; r.mu is held.
func (r *Runner) failure() error {
	failures := r.failures
	if more := len(failures) - maxFailures; more > 0 {
		failures = append(slices.Clone(failures[:maxFailures]), fmt.Errorf("and %d more runs failed", more))
	}
	return errors.Join(failures...)
}

// makeRun makes one run and saves it.
func (r *Runner) makeRun(ctx context.Context, next run) error {
	wrap := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return next.failure(err)
	}
	began := time.Now()
	s, out, failure, err := r.play(ctx, next)
	if unmade := (setupError{}); errors.As(err, &unmade) && ctx.Err() == nil {
		return r.saveUnmade(next, unmade.error)
	}
	if err != nil {
		return wrap(err)
	}
	if failure != nil && (ctx.Err() != nil || errors.Is(failure, ErrStopping) ||
		errors.Is(failure, checkpoint.ErrUnwritten)) { // the disk failed, not the run: another process can continue it
		return errors.Join(wrap(failure), s.close())
	}
	last := s.result.Last
	if failure != nil {
		last = 0 // the record ends where the run did
	}
	data, err := s.Collector.Close(last)
	if err := errors.Join(err, s.close()); err != nil {
		return wrap(err)
	}
	row := r.row(next, s, out, &data, time.Since(began))
	judge(row, s, out, &data, failure)
	models := record.Models{}
	if failure == nil {
		if err := r.disturbed(ctx, next, s, out, row); err != nil {
			return wrap(err)
		}
		if !r.Count {
			if models, err = next.models(s, r.shelf); err != nil {
				return wrap(err)
			}
		}
	}
	if r.Count {
		markCounted(row, &data)
	}
	if err := r.folder.SaveRun(next.number, *row, data, models); err != nil {
		return wrap(err)
	}
	if failure == nil && s.saves != nil {
		if err := s.saves.Folder.Remove(); err != nil {
			return wrap(err)
		}
	}
	if failure != nil {
		failure = wrap(failure)
	}
	r.finished(next, row, failure)
	return nil
}

// threads is how many jobs of one run compute at a time: the cores that no other run uses.
func (r *Runner) threads() int {
	return max(runtime.NumCPU()/r.Jobs, 1)
}

// observe gives the run its collector, and opens the file of its events behind what is to stay.
func (r *Runner) observe(s *Stage, next run, events int64) error {
	config := record.Config{OnEvaluation: func(e record.Evaluation) { r.progress(next, e) }}
	if next.point.Spec.Plan.Record == plan.RecordEvents {
		w, err := r.folder.EventsWriter(next.number, events)
		if err != nil {
			return err
		}
		s.events = &checkpoint.Counted{WriteCloser: w, Bytes: events}
		config.Events = s.events
	}
	s.observe(config)
	if faults.Hurts(next.point.Spec.Plan) {
		s.count()
	}
	return nil
}

// progress notes how far a run is.
func (r *Runner) progress(next run, e record.Evaluation) {
	stop := next.point.Spec.Plan.Stop
	part := 0.0
	if stop.Epochs > 0 {
		part = max(part, e.Epoch/stop.Epochs)
	}
	if stop.Time > 0 {
		part = max(part, e.Time/time.Duration(stop.Time).Seconds())
	}
	if stop.Steps > 0 {
		part = max(part, float64(e.Step)/float64(stop.Steps))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[next.number] = min(part, 1)
	r.reportProgress(nil, "")
}

// finished notes that a run is saved, with the error if it could not go on.
func (r *Runner) finished(next run, row *record.Run, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failure != nil {
		r.failures = append(r.failures, failure)
	}
	delete(r.parts, next.number)
	r.done++
	r.reportProgress(row, "")
	r.changed()
}

// reportProgress reports the progress; r.mu is held.
func (r *Runner) reportProgress(row *record.Run, note string) {
	if r.Progress == nil {
		return
	}
	share := float64(r.done + r.tried)
	for _, part := range r.parts {
		share += part
	}
	r.Progress(Progress{Done: r.done, Total: r.Total(), Tried: r.tried, ToTry: r.toTry,
		Share: share / float64(r.Total()+r.toTry), Finished: row, Note: note})
}

// Plan returns the plan of the first point. All points have its name, target and repeats.
func (r *Runner) Plan() *plan.Plan { return r.points[0].Spec.Plan }

// Missing is how many runs are not in the record yet.
func (r *Runner) Missing() int { return len(r.queue) }

// Close unlocks the record, without uploading its last changes.
func (r *Runner) Close() (err error) {
	if r.folder != nil {
		err = r.folder.Close()
	}
	if r.work != nil && len(r.uploads) == 0 {
		err = errors.Join(err, r.work.Abandon())
	}
	for _, u := range r.uploads {
		err = errors.Join(err, u.Abandon())
	}
	r.work, r.uploads = nil, nil
	return err
}

// Report assembles the files of the record, and lets others write into it.
func (r *Runner) Report(wall time.Duration) (_ *Report, err error) {
	defer func() { err = errors.Join(err, r.folder.Close()) }()
	first := r.points[0].Spec.Plan
	o := record.Overview{
		Plan: first.Name, Build: record.ReadBuild(kernel.Name()), Wall: wall.Seconds(),
		RunsPlanned: r.Total(),
		Data:        r.shelf.Files(),
		Notes:       slices.Concat(r.notes, r.rounded),
	}
	o.Target, _ = Target(first)
	report := &Report{Dir: r.Out, Record: cmp.Or(r.address, r.Out), Clock: r.Venue.Traits().Clock}
	if report.Summary, err = r.folder.Write(o); err != nil {
		return nil, err
	}
	report.Traces, err = r.folder.Traces(report.Runs)
	return report, err
}
