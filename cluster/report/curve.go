package report

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/gradwire/gradwire/cluster/record"
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

// xy is a point of a curve.
type xy struct{ x, y float64 }

// models are the curves of a run's models, of which each node that is evaluated has one.
type models [][]xy

// band is the mean of several runs' curves and its spread.
type band struct{ x, mean, low, high []float64 }

// bandOf averages the runs of a group over a common grid: mean and one sample
// standard deviation to either side, within 0 and limit. Of the values of a run's
// models the run's is made by combine. The grid has so many points. A run that has ended counts with its last
// value, so that the mean is over the same runs everywhere; runs without any are left out.
func bandOf(runs []models, combine func([]float64) float64, limit float64, grid int) band {
	runs = slices.DeleteFunc(slices.Clone(runs), func(m models) bool { return len(m) == 0 })
	var b band
	if len(runs) == 0 {
		return b
	}
	end, widest := 0.0, 0
	for _, m := range runs {
		widest = max(widest, len(m))
		for _, points := range m {
			end = max(end, points[len(points)-1].x)
		}
	}
	values, ofModels := make([]float64, len(runs)), make([]float64, widest)
	for i := range grid {
		x := end * float64(i) / float64(grid-1)
		for k, m := range runs {
			for j, points := range m {
				ofModels[j] = at(points, x)
			}
			values[k] = combine(ofModels[:len(m)])
		}
		s := record.SpreadOf(values)
		mean, std := float64(s.Mean), float64(s.Std)
		if math.IsNaN(std) {
			std = 0
		}
		b.x, b.mean = append(b.x, x), append(b.mean, mean)
		b.low, b.high = append(b.low, max(mean-std, 0)), append(b.high, min(mean+std, limit))
	}
	return b
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// byNode divides a run's accuracies into those of its models.
func byNode(curve []record.Evaluation, abscissa func(record.Evaluation) float64) models {
	places := map[string]int{}
	var all models
	for _, e := range curve {
		p := xy{abscissa(e), float64(e.Accuracy)}
		if !finite(p.x) || !finite(p.y) {
			continue
		}
		i, ok := places[e.Node]
		if !ok {
			i = len(all)
			places[e.Node] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], p)
	}
	for _, points := range all {
		slices.SortStableFunc(points, func(a, b xy) int { return cmp.Compare(a.x, b.x) })
	}
	return all
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// at interpolates a curve linearly; before its first and after its last point it is constant.
func at(points []xy, x float64) float64 {
	i, _ := slices.BinarySearchFunc(points, x, func(p xy, x float64) int {
		if p.x <= x {
			return -1
		}
		return 1
	})
	switch i {
	case 0:
		return points[0].y
	case len(points):
		return points[i-1].y
	}
	a, b := points[i-1], points[i]
	return a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)
}

// thinness is how far a thinned line may be from the whole one, as a share of its height
// and width: less than a figure shows.
const thinness = 0.001

// thin leaves out the points without which a line looks the same (Douglas and Peucker,
// Cartographica 1973).
func thin(points plotter.XYs) plotter.XYs {
	if len(points) < 3 {
		return points
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
	for i, p := range points {
		if keep[i] {
			kept = append(kept, p)
		}
	}
	return kept
}
