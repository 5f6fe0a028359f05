package experiment

import (
	"context"

	"github.com/gradwire/gradwire/cluster/catalog"
)

// Examined is what can be told of a plan before it runs. Its points are resolved once for all of it.
type Examined struct {
	points []Point
	each   []Estimate // of a run of each point
	// Estimate is about what the largest of its runs takes.
	Estimate Estimate
	// Weighed says what settings cost that could be chosen by the network.
	Weighed []Weighed
	// Notes are those of the plan, and Drawn the faults that its first seed draws, a line each; see
	// [Plan.Notes] and [Plan.Drawn].
	Notes, Drawn []string
}

// Examine checks the plan, as Check does, and says what it takes and means. Data are not read. A nil
// catalog stands for catalog.Default().
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

// Forecast is about what the plan takes on this machine. Data are read. Of the options Data, Jobs
// and Clock count.
func (e *Examined) Forecast(ctx context.Context, o Options) (*Forecast, error) {
	return forecast(ctx, e.points, e.each, o, forecastTime)
}
