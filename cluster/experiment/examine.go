package experiment

import (
	"context"
	"errors"
	"io/fs"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/shelf"
)

// Examined is everything known about a plan before it runs. It resolves the plan's points once.
type Examined struct {
	points []Point
	each   []Estimate // of a run of each point
	// Estimate approximates the cost of the largest run.
	Estimate Estimate
	// Weighed lists the costs of the values that the network decides between.
	Weighed []Weighed
	// Notes has the plan's notes, and Drawn the faults drawn by its first seed, a line each; see
	// [Plan.Notes] and [Plan.Drawn].
	Notes, Drawn []string

	shelf *shelf.Shelf
}

// Examine checks the plan, as Check does, and estimates its cost. It reads no data. A nil catalog
// stands for catalog.Default().
func (p *Plan) Examine(c *catalog.Catalog) (*Examined, error) {
	points, err := p.Points(c)
	if err != nil {
		return nil, err
	}
	e := &Examined{points: points, Notes: notes(points), Drawn: drawn(points)}
	if e.Estimate, e.each, err = estimate(points); err != nil {
		return nil, err
	}
	e.Weighed, err = weigh(points)
	return e, err
}

// Try reads the data and sets up the first repeat of each point, as a run does before it starts. It
// returns the error with which the run would refuse the plan. Data that do not exist on this machine
// are no error. It uses the option Data.
func (e *Examined) Try(ctx context.Context, o Options) error {
	e.open(o)
	for i := range e.points {
		p := &e.points[i]
		_, err := firstOf(ctx, p, func(seed uint64) (*train.Task, error) { return p.Task(e.shelf, seed) })
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return refusal.Input(p.About(err))
		}
	}
	return nil
}

// Forecast approximates the plan's cost on this machine. It reads the data. It uses the options Data,
// Jobs and Clock.
func (e *Examined) Forecast(ctx context.Context, o Options) (*Forecast, error) {
	e.open(o)
	return forecast(ctx, e.points, e.each, o, e.shelf, forecastTime)
}

// Rounded returns a note on each interval in epochs or samples that rounding to whole steps changes
// by more than a tenth, with its rounded value. It reads the data. If the data are missing, it
// covers intervals in samples only. It uses the option Data.
func (e *Examined) Rounded(o Options) (all []string) {
	e.open(o)
	for i := range e.points {
		p, epoch := &e.points[i], 0.0
		if samples, err := e.shelf.Samples(&p.Spec.Data, p.Spec.Plan.Seed); err == nil {
			epoch = float64(p.epochSamples(samples.Train.Len()))
		}
		if p, err := p.resolve(epoch); err == nil {
			all = addNew(all, p.rounded(epoch))
		}
	}
	return all
}

// open opens the shelf that Try, Forecast and Rounded share: the data are read once.
func (e *Examined) open(o Options) {
	if e.shelf == nil {
		e.shelf = shelf.New(o.Data, 1, nil)
	}
}
