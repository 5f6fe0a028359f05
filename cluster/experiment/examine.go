package experiment

import (
	"context"

	"github.com/gradwire/gradwire/cluster/catalog"
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

// Forecast approximates the plan's cost on this machine. It reads the data. It uses the options Data,
// Jobs and Clock.
func (e *Examined) Forecast(ctx context.Context, o Options) (*Forecast, error) {
	return forecast(ctx, e.points, e.each, o, forecastTime)
}
