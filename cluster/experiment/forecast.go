package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/memory"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/nn"
)

// Forecast approximates the total cost of a plan's runs. It is measured: a counting run plays a prefix
// of each point, which is extrapolated to the whole, and the numbers of steps and evaluations are
// multiplied by their measured time on this machine. If a point's messages depend on trained values,
// the prefix trains.
type Forecast struct {
	// Runs is the number of runs, and Tune the number of runs for tuning among these.
	Runs int `json:"runs"`
	Tune int `json:"runs_to_tune,omitempty"`
	// Seconds is the wall time on Cores of this machine, or of all runs in sequence on a real clock;
	// NaN if unknown.
	Seconds record.Float `json:"seconds"`
	Cores   int          `json:"cores"`
	// Bytes is the number of bytes sent on all links, without control messages; NaN if unknown.
	Bytes record.Float `json:"bytes_sent"`
	// Memory is the peak memory of the process, in bytes.
	Memory record.Float `json:"memory_bytes"`
	// AtMost is true if a target may end runs early.
	AtMost bool `json:"at_most"`
	// Unknown is the reason why Seconds or Bytes are unknown; empty if both are known.
	Unknown string `json:"unknown,omitempty"`
	// Notes name settings that do not fit the samples that were read, and settings that take effect only
	// after the forecast end of the runs.
	Notes []string `json:"notes,omitempty"`

	clock Clock
}

// String returns the forecast as one line.
func (f *Forecast) String() string {
	text := "1 run"
	if runs := f.Runs - f.Tune; runs != 1 {
		text = fmt.Sprintf("%d runs", runs)
	}
	if f.Tune > 0 {
		text += fmt.Sprintf(" and %d to tune", f.Tune)
	}
	about := "about "
	if f.AtMost {
		about = "at most about "
	}
	if s := float64(f.Seconds); !math.IsNaN(s) {
		text += ", " + about + roughly(s)
		switch {
		case f.clock == RealTime:
			text += " in real time"
		case f.Cores == 1:
			text += " on 1 core"
		default:
			text += fmt.Sprintf(" on %d cores", f.Cores)
		}
		about = ""
	}
	if b := float64(f.Bytes); !math.IsNaN(b) {
		text += ", " + about + memory.Text(b) + " sent"
	}
	text += ", " + memory.Text(float64(f.Memory)) + " of memory"
	if f.AtMost {
		text += "; runs that reach their target end before"
	}
	if f.Unknown != "" {
		text += "; " + f.Unknown
	}
	return text
}

// Short reports whether the runs take less time than a forecast is worth printing for.
func (f *Forecast) Short() bool { return float64(f.Seconds) < shortestTold }

// roughly formats seconds with two digits.
func roughly(seconds float64) string {
	for _, u := range []struct {
		name  string
		size  float64
		below float64
	}{{"s", 1, 100}, {"min", 60, 100 * 60}, {"h", 3600, 72 * 3600}} {
		if seconds < u.below {
			return fmt.Sprintf("%.2g %s", max(seconds/u.size, 0.1), u.name)
		}
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}

const (
	// forecastTime bounds a forecast, without the time to read data. longest is the factor by which
	// the bound grows while no prefix of a point is long enough to extrapolate; patience is the
	// factor while this holds for every point.
	forecastTime = 500 * time.Millisecond
	longest      = 3
	patience     = 10
	// shortestTold is the shortest forecast that run prints.
	shortestTold = 2.0 // seconds
	// mostPlayed is the number of nodes above which a point is forecast by formula: placing that many nodes
	// alone exceeds forecastTime.
	mostPlayed = 20_000
)

// forecast forecasts points within about the given time.
func forecast(ctx context.Context, points []Point, each []Estimate, o Options, data *shelf.Shelf,
	within time.Duration) (*Forecast, error) {
	left := make([]int, len(points))
	for i := range points {
		left[i] = points[i].Spec.Plan.Repeats
	}
	jobs := o.Jobs
	if jobs < 1 {
		jobs = runtime.NumCPU()
	}
	f := &forecaster{shelf: data, jobs: side(points, memory.Limit(), jobs), clock: o.Clock}
	return f.forecast(ctx, points, each, left, within)
}

// forecast forecasts the missing runs.
func (r *Runner) forecast(ctx context.Context) (*Forecast, error) {
	tunings, err := record.ReadTunings(r.folder.Dir())
	if err != nil {
		return nil, err
	}
	for i := range r.points {
		if _, err := r.points[i].settle(tunings); err != nil {
			return nil, err
		}
	}
	left := make([]int, len(r.points))
	at := map[*Point]int{}
	for i := range r.points {
		at[&r.points[i]] = i
	}
	for i := range r.queue {
		left[at[r.queue[i].point]]++
	}
	f := &forecaster{shelf: r.shelf, jobs: r.Jobs, clock: r.Venue.Traits().Clock}
	each := make([]Estimate, len(r.points))
	for i := range r.points {
		each[i] = r.points[i].Estimate()
	}
	return f.forecast(ctx, r.points, each, left, forecastTime)
}

// tellForecast reports the forecast of the missing runs, unless it is short.
func (r *Runner) tellForecast(ctx context.Context) {
	if r.Progress == nil || len(r.queue) == 0 {
		return
	}
	f, err := r.forecast(ctx)
	if err != nil {
		return
	}
	for _, text := range f.Notes {
		r.note("note: " + text)
	}
	if !f.Short() {
		r.note(f.String())
	}
}

// smallShards returns a note on workers with fewer samples than a batch; empty if every worker has
// enough.
func smallShards(t *train.Task) string {
	var small []int // indices of workers with too few samples
	for i, rows := range t.Shards {
		if t.Clients == nil && len(rows) > 0 && len(rows) < t.Batch {
			small = append(small, i)
		}
	}
	if len(small) == 0 {
		return ""
	}
	first := small[0]
	return fmt.Sprintf("train.batch is %d, and %d of %d workers have fewer samples (%s has %d): each of their steps "+
		"takes all of them", t.Batch, len(small), len(t.Shards), t.Workers[first], len(t.Shards[first]))
}

// forecaster makes a forecast.
type forecaster struct {
	shelf *shelf.Shelf
	jobs  int
	clock Clock
	units map[string]unitCost
	began time.Time // start, shifted by the time to read data
	end   time.Time // deadline
	notes []string  // on the samples that were read
	late  lateness
}

// cost is the cost of runs: seconds of simulation, which use one core a run; seconds of computation,
// which spread over cores; seconds on the run's clock; bytes on links.
type cost struct{ simulated, computed, clock, bytes float64 }

func (c *cost) add(o cost, times float64) {
	c.simulated += times * o.simulated
	c.computed += times * o.computed
	c.clock += times * o.clock
	c.bytes += times * o.bytes
}

// part is a point, or a candidate for a point, with its number of runs.
type part struct {
	*Point
	label string
	runs  float64
	one   Estimate
}

// forecast sums the costs of the points, given an estimate of one run and the number of missing runs
// of each. Points that do not fit into the time count as the mean of the others.
func (f *forecaster) forecast(ctx context.Context, points []Point, each []Estimate, left []int,
	within time.Duration) (*Forecast, error) {
	f.units = map[string]unitCost{}
	told := &Forecast{Cores: min(runtime.NumCPU(), runtime.GOMAXPROCS(0)), clock: f.clock}
	var parts []part
	live := 0.0
	for i := range points {
		if left[i] == 0 {
			continue
		}
		p := &points[i]
		told.Runs += left[i] + len(p.candidates)
		told.Tune += len(p.candidates)
		told.AtMost = told.AtMost || p.Spec.Plan.Stop.Target != nil
		live = max(live, each[i].Memory-programBytes)
		if len(p.candidates) == 0 {
			parts = append(parts, part{p, describe(p.Labels), float64(left[i]), each[i]})
		}
		for k := range p.candidates {
			c := &p.candidates[k]
			runs := 1 + float64(left[i])/float64(len(p.candidates))
			parts = append(parts, part{&c.Point, describe(slices.Concat(p.Labels, c.chosen)), runs, each[i]})
		}
	}
	f.jobs = min(f.jobs, max(told.Runs, 1))
	sum, samples, err := f.probeAll(ctx, parts, within)
	if err != nil {
		return nil, err
	}
	told.Bytes = record.Float(sum.bytes)
	told.Memory = record.Float(programBytes + float64(f.jobs)*live + samples)
	told.Seconds = record.Float(sum.clock)
	if f.clock != RealTime {
		told.Seconds = record.Float(sum.simulated/float64(min(f.jobs, told.Cores)) + sum.computed/float64(told.Cores))
	}
	told.Unknown, told.Notes = told.unknown(parts), slices.Concat(f.notes, f.late.notes(parts))
	return told, context.Cause(ctx)
}

// probeAll sums the costs of parts, and returns the size in bytes of their largest data set. It
// takes about the given time, or up to patience times as long while the cost of every part is
// unknown.
func (f *forecaster) probeAll(ctx context.Context, parts []part, within time.Duration) (sum cost, samples float64,
	err error) {
	total, probed := 0.0, 0.0 // runs: of all parts, and of parts with a known cost
	probe := func(p part, within time.Duration) error {
		c, bytes, err := f.probe(ctx, p, within)
		samples = max(samples, bytes)
		switch {
		case errors.Is(err, errUnknown): // the part counts as the mean of the others
			return nil
		case err == nil:
			sum.add(c, p.runs)
			probed += p.runs
		}
		return err
	}
	f.began = time.Now()
	f.end = f.began.Add(longest * within)
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(parts))
	for n, i := range order {
		total += parts[i].runs
		spent := time.Since(f.began)
		if n > 0 && spent > within || ctx.Err() != nil {
			continue
		}
		if err := probe(parts[i], (within-spent)/time.Duration(len(parts)-n)); err != nil {
			return sum, samples, err
		}
	}
	f.end = f.began.Add(patience * within)
	for _, i := range order {
		if probed > 0 || ctx.Err() != nil || time.Now().After(f.end) {
			break
		}
		if err := probe(parts[i], time.Until(f.end)/2); err != nil {
			return sum, samples, err
		}
	}
	if probed == 0 {
		for i := range parts {
			sum.add(parts[i].byFormula(), parts[i].runs)
		}
		probed = total
	}
	sum.add(sum, total/probed-1)
	return sum, samples, nil
}

// unknown returns the reason why the time or the bytes are unknown; empty if both are known.
func (f *Forecast) unknown(parts []part) string {
	var what []string
	if math.IsNaN(float64(f.Seconds)) {
		what = append(what, "time")
	}
	if math.IsNaN(float64(f.Bytes)) {
		what = append(what, "bytes")
	}
	if what == nil {
		return ""
	}
	why := fmt.Sprintf("the shortest part of a run takes more than %v to play", patience*forecastTime)
	for i := range parts {
		switch n := len(parts[i].Spec.Roles); {
		case parts[i].native():
			why = "nodes compute at this machine's speed (compute: native)"
		case n > mostPlayed:
			why = fmt.Sprintf("%d nodes are too many to play a part of a run", n)
		}
	}
	return strings.Join(what, " and ") + " unknown, because " + why
}

// native reports whether a node computes at this machine's speed.
func (p *Point) native() bool {
	return slices.ContainsFunc(p.Spec.Plan.Nodes, func(n plan.NodeSpec) bool { return n.Compute.Native })
}

// probe measures the cost of a run of a point within about the given time, and returns the bytes of
// its samples too.
func (f *forecaster) probe(ctx context.Context, p part, within time.Duration) (c cost, samples float64, err error) {
	if len(p.Spec.Roles) > mostPlayed || p.native() {
		return p.byFormula(), 0, nil
	}
	counts := p.counted()
	trains := predictable(p.Spec) != nil
	counts.counts = !trains
	reading := time.Now()
	task, err := counts.Task(f.shelf, p.Spec.Plan.Seed)
	if err != nil {
		return c, 0, err
	}
	took := time.Since(reading)
	f.began, f.end = f.began.Add(took), f.end.Add(took)
	samples = 4 * float64(len(task.Train.X)+len(task.Test.X))
	for _, text := range []string{smallShards(task), p.Spec.Weights.Unlisted(task.Train.Classes)} {
		if text != "" {
			f.notes = addNew(f.notes, []string{text})
		}
	}
	var unit unitCost
	if !p.counts {
		unit = f.unit(p.Point, task)
	}
	if trains {
		unit.step = 0 // the prefix trains, so its time includes steps
	} else {
		task = untrained(task)
	}
	whole, err := counts.extrapolate(ctx, task, within, f.end)
	if err != nil {
		return c, samples, err
	}
	f.late.add(p.Point, p.label, task, whole.clock)
	runs := 1.0
	if faults.Hurts(p.Spec.Plan) {
		runs++ // the fault-free run
	}
	return cost{
		simulated: runs * whole.simulated,
		computed:  runs*whole.steps*unit.step + whole.evaluations*unit.evaluation,
		clock:     whole.clock, bytes: whole.bytes,
	}, samples, nil
}

// byFormula is the cost of a run by Estimate, if no node ever waits; NaN for unknown costs.
func (p part) byFormula() cost {
	c := cost{simulated: math.NaN(), computed: math.NaN(), clock: math.NaN(), bytes: math.NaN()}
	end := time.Duration(p.Spec.Plan.Stop.Time).Seconds()
	if end > 0 {
		c.clock = end
	}
	if e := p.one; end > 0 && e.Second > 0 {
		c.simulated, c.computed, c.bytes = end*e.Second.Seconds(), 0, end*e.sent
	}
	return c
}

// amounts are the work of a run.
type amounts struct{ simulated, steps, evaluations, clock, bytes float64 }

// errUnknown means that no prefix of a run was long enough to extrapolate.
var errUnknown = errors.New("no part of the run could be played in time")

const (
	leastPart = 1.0 / 4096 // length of the first prefix, as a share of the run
	nextPart  = 8          // largest ratio of a prefix to the one before
)

// extrapolate extrapolates the work of a whole run from ever longer prefixes, on the line through the
// last two. It stops after within, or at end if no prefix is long enough to extrapolate.
func (p *Point) extrapolate(
	ctx context.Context,
	task *train.Task,
	within time.Duration,
	end time.Time,
) (amounts, error) {
	began := time.Now()
	var before, last amounts
	share, shareBefore := 0.0, 0.0
	for next := leastPart; share < 1; {
		short, played := p.shortened(min(next, 1))
		a, err := short.amounts(ctx, task, end)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			break
		}
		if err != nil {
			return amounts{}, err
		}
		before, shareBefore, last, share = last, share, a, played
		left := within - time.Since(began)
		if !p.settled(&last) {
			left = time.Until(end) / 2
		}
		grow := min(left.Seconds()/max(a.simulated, 1e-9), nextPart)
		if next = share * grow; grow < 1.5 {
			break
		}
	}
	if share < 1 && !p.settled(&last) {
		return amounts{}, errUnknown
	}
	if !p.settled(&before) {
		before, shareBefore = amounts{}, 0
	}
	return line(shareBefore, before, share, last), nil
}

// settled reports whether a prefix is long enough to extrapolate: workers have made two steps in the
// mean, and a communicating architecture has sent messages.
func (p *Point) settled(a *amounts) bool {
	const steps = 2 // of each worker in the mean
	m, sends := p.Spec.Architecture.(train.Messenger)
	if sends {
		_, models := m.Messages(1, trainers(p.Spec))
		sends = models > 0
	}
	return a.steps >= steps*float64(trainers(p.Spec)) && (a.bytes > 0 || !sends)
}

// line draws two amounts at shares of a run out to the whole.
func line(shareBefore float64, before amounts, share float64, last amounts) amounts {
	whole := func(a, b float64) float64 {
		if share >= 1 {
			return b
		}
		return b + max((b-a)/(share-shareBefore), 0)*(1-share)
	}
	return amounts{
		simulated: whole(before.simulated, last.simulated), steps: whole(before.steps, last.steps),
		evaluations: whole(before.evaluations, last.evaluations), clock: whole(before.clock, last.clock),
		bytes: whole(before.bytes, last.bytes),
	}
}

// shortened returns the point with runs of a share of its length, at least one step or round, and
// the actual share.
func (p *Point) shortened(share float64) (short *Point, played float64) {
	c, spec, own := *p, *p.Spec, *p.Spec.Plan
	own.Stop, played = plan.Stop{}, share
	whole := p.Spec.Plan.Stop
	own.Stop.Epochs, own.Stop.Time = whole.Epochs*share, unit.Duration(float64(whole.Time)*share)
	if whole.Time > 0 {
		own.Stop.Time = max(own.Stop.Time, 1)
	}
	for _, count := range []struct {
		of int
		to *int
	}{{whole.Steps, &own.Stop.Steps}, {whole.Rounds, &own.Stop.Rounds}} {
		if count.of > 0 {
			*count.to = max(int(math.Ceil(float64(count.of)*share)), 1)
			played = max(played, float64(*count.to)/float64(count.of))
		}
	}
	spec.Plan, c.Spec = &own, &spec
	return &c, played
}

// amounts plays a run of the point, and counts its work. The error wraps context.DeadlineExceeded if
// the run does not end in time.
func (p *Point) amounts(ctx context.Context, task *train.Task, end time.Time) (a amounts, err error) {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	s, err := p.Stage(task, false, 0)
	if err != nil {
		return a, err
	}
	s.observe(record.Config{})
	out, err := Virtual{}.Play(ctx, s)
	if err != nil {
		return a, err
	}
	data, err := s.Collector.Close(s.result.Last)
	if err != nil {
		return a, err
	}
	a = amounts{simulated: time.Since(began).Seconds(), steps: float64(data.Steps), clock: out.End.Seconds(),
		bytes: float64(data.Bytes), evaluations: float64(s.result.Evaluations)}
	if n := len(s.result.Models); n > 1 {
		a.evaluations *= 1 + 1/float64(n) // that of the average model
	}
	return a, nil
}

// unitCost is the time of a step and of an evaluation of a model, in seconds.
type unitCost struct{ step, evaluation float64 }

// unit measures the time of a step and of an evaluation on one core, once for points with equal
// models, batches and data.
func (f *forecaster) unit(p *Point, t *train.Task) unitCost {
	key := fmt.Sprint(p.Spec.Plan.Model.Flow(), p.Spec.Batch, p.Spec.Plan.Data.Flow())
	u, known := f.units[key]
	if known {
		return u
	}
	const judged = 256
	params, grad := t.Initial(), make([]float32, t.Model.Params())
	step, n := t.Model.NewWorkspace(t.Batch), min(t.Batch, t.Train.Len())
	batch := nn.Batch{X: t.Train.X[:n*t.Train.Inputs], Y: t.Train.Y[:n], Weights: t.Weights}
	if t.Sparse != nil {
		batch.X, batch.Sparse, batch.Rows = nil, t.Sparse, make([]int32, n)
		for i := range batch.Rows {
			batch.Rows[i] = int32(i)
		}
	}
	u.step = seconds(func() { step.Gradient(params, grad, batch) })
	m := min(judged, t.Test.Len())
	look := t.Model.NewWorkspace(judged)
	test := nn.Batch{X: t.Test.X[:m*t.Test.Inputs], Y: t.Test.Y[:m]}
	u.evaluation = seconds(func() { look.Evaluate(params, test) }) * float64(t.Test.Len()) / float64(m)
	f.units[key] = u
	return u
}

// seconds returns the shortest time of a few tries.
func seconds(do func()) float64 {
	const most, tries = 2 * time.Millisecond, 20
	least, began := math.Inf(1), time.Now()
	for i := 0; i < tries && (i < 2 || time.Since(began) < most); i++ {
		start := time.Now()
		do()
		least = min(least, time.Since(start).Seconds())
	}
	return least
}
