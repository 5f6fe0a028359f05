package figure

import (
	"cmp"
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
	"github.com/gradwire/gradwire/cluster/report"
	"gonum.org/v1/plot/plotter"
)

const (
	// gridPoints is how many abscissae a mean curve has, fewestPoints how many where a
	// figure has many of them.
	gridPoints, fewestPoints = 400, 60
	// figurePoints is how many all curves of a figure have, if that leaves each enough.
	figurePoints = 12_000
)

// pointsOf returns how many abscissae each of a figure's curves has.
func pointsOf(curves int) int {
	return min(max(figurePoints/max(curves, 1), fewestPoints), gridPoints)
}

// Band is the middle of several runs' curves, and what lies around it.
type Band struct{ X, Mean, Low, High []float64 }

// bandOf joins the runs of a group over a common grid of the given number of points: the median, and
// around it its 95 % interval, or of too few runs for one the lowest and the highest. A run that
// has ended counts with its last value, so that all is of the same runs everywhere; runs without
// any are left out.
func bandOf(runs []plotter.XYs, grid int) Band { return bandFrom(runs, grid, 0) }

// bandFrom is bandOf over a grid that begins at an abscissa, and is logarithmic if that is above 0.
func bandFrom(runs []plotter.XYs, grid int, from float64) Band {
	runs = slices.DeleteFunc(slices.Clone(runs), func(points plotter.XYs) bool { return len(points) == 0 })
	var b Band
	n := len(runs)
	if n == 0 {
		return b
	}
	end := 0.0
	for _, points := range runs {
		end = max(end, points[len(points)-1].X)
	}
	rank := max(stats.Rank(n), 1)
	values := make([]float64, n)
	for i := range grid {
		x := end * float64(i) / float64(grid-1)
		if from > 0 {
			x = min(from*math.Pow(end/from, float64(i)/float64(grid-1)), end)
		}
		for k, points := range runs {
			values[k] = interpolate(points, x)
		}
		slices.Sort(values)
		b.X, b.Mean = append(b.X, x), append(b.Mean, (values[(n-1)/2]+values[n/2])/2)
		b.Low, b.High = append(b.Low, values[rank-1]), append(b.High, values[n-rank])
	}
	return b
}

// times returns the band with all values multiplied.
func (b Band) times(factor float64) Band {
	scaled := Band{X: b.X}
	for i := range b.X {
		scaled.Mean = append(scaled.Mean, b.Mean[i]*factor)
		scaled.Low, scaled.High = append(scaled.Low, b.Low[i]*factor), append(scaled.High, b.High[i]*factor)
	}
	return scaled
}

// curveOf are the points of a run's curve, by their abscissae.
func curveOf(curve []record.Evaluation, abscissa, value func(record.Evaluation) float64) (points plotter.XYs) {
	for _, e := range curve {
		if x, y := abscissa(e), value(e); report.IsFinite(x) && report.IsFinite(y) {
			points = append(points, plotter.XY{X: x, Y: y})
		}
	}
	slices.SortStableFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// interpolate interpolates a curve linearly; before its first and after its last point it is
// constant.
func interpolate(points plotter.XYs, x float64) float64 {
	i, _ := slices.BinarySearchFunc(points, x, func(p plotter.XY, x float64) int {
		if p.X <= x {
			return -1
		}
		return 1
	})
	switch i {
	case 0:
		return points[0].Y
	case len(points):
		return points[i-1].Y
	}
	a, b := points[i-1], points[i]
	return a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X)
}

// thinness is how far a thinned line may be from the whole one, as a share of its height
// and width: less than a figure shows.
const thinness = 0.001

// thin leaves out the points without which a line looks the same (Douglas and Peucker,
// Cartographica 1973), on a horizontal axis that may be logarithmic.
func thin(whole plotter.XYs, logarithmic bool) plotter.XYs {
	if len(whole) < 3 {
		return whole
	}
	points := slices.Clone(whole)
	for i := range points {
		if logarithmic {
			points[i].X = math.Log(points[i].X)
		}
	}
	left, right, low, high := plotter.XYRange(points)
	width, height := max(right-left, math.SmallestNonzeroFloat64), max(high-low, math.SmallestNonzeroFloat64)
	keep := make([]bool, len(points))
	keep[0], keep[len(points)-1] = true, true
	for todo := [][2]int{{0, len(points) - 1}}; len(todo) > 0; {
		from, to := todo[len(todo)-1][0], todo[len(todo)-1][1]
		todo = todo[:len(todo)-1]
		a, b := points[from], points[to]
		dx, dy := (b.X-a.X)/width, (b.Y-a.Y)/height
		farthest, at := thinness, 0
		for i := from + 1; i < to; i++ {
			x, y := (points[i].X-a.X)/width, (points[i].Y-a.Y)/height
			distance := math.Hypot(x, y) // from the end, where both are one point
			if long := math.Hypot(dx, dy); long > 0 {
				distance = math.Abs(dx*y-dy*x) / long
			}
			if distance > farthest {
				farthest, at = distance, i
			}
		}
		if at > 0 {
			keep[at] = true
			todo = append(todo, [2]int{from, at}, [2]int{at, to})
		}
	}
	var kept plotter.XYs
	for i, p := range whole {
		if keep[i] {
			kept = append(kept, p)
		}
	}
	return kept
}
