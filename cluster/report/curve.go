package report

import (
	"math"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// gridPoints is how many abscissae a mean curve has.
const gridPoints = 400

// xy is a point of a curve.
type xy struct{ x, y float64 }

// band is the mean of several runs' curves and its spread.
type band struct{ x, mean, low, high []float64 }

// bandOf averages the runs of a group over a common grid: mean and one sample
// standard deviation to either side, within 0 and 1. A run that has ended counts with
// its last accuracy, so that the mean is over the same runs everywhere.
func bandOf(curves [][]record.Evaluation, abscissa func(record.Evaluation) float64) band {
	var runs [][][]xy
	end := 0.0
	for _, curve := range curves {
		models := byNode(curve, abscissa)
		if len(models) == 0 {
			continue
		}
		runs = append(runs, models)
		for _, points := range models {
			end = max(end, points[len(points)-1].x)
		}
	}
	var b band
	if len(runs) == 0 {
		return b
	}
	values := make([]float64, len(runs))
	for i := range gridPoints {
		x := end * float64(i) / (gridPoints - 1)
		for k, models := range runs {
			values[k] = meanAt(models, x)
		}
		s := record.SpreadOf(values)
		mean, std := float64(s.Mean), float64(s.Std)
		if math.IsNaN(std) {
			std = 0
		}
		b.x, b.mean = append(b.x, x), append(b.mean, mean)
		b.low, b.high = append(b.low, max(mean-std, 0)), append(b.high, min(mean+std, 1))
	}
	return b
}

// byNode divides a run's curve into those of its models, of which each node that is
// evaluated has one.
func byNode(curve []record.Evaluation, abscissa func(record.Evaluation) float64) [][]xy {
	var names []string
	var models [][]xy
	for _, e := range curve {
		p := xy{abscissa(e), float64(e.Accuracy)}
		if math.IsNaN(p.y) || math.IsInf(p.y, 0) || math.IsNaN(p.x) || math.IsInf(p.x, 0) {
			continue
		}
		i := slices.Index(names, e.Node)
		if i < 0 {
			i = len(names)
			names, models = append(names, e.Node), append(models, nil)
		}
		models[i] = append(models[i], p)
	}
	for _, points := range models {
		slices.SortStableFunc(points, func(a, b xy) int {
			switch {
			case a.x < b.x:
				return -1
			case a.x > b.x:
				return 1
			}
			return 0
		})
	}
	return models
}

func meanAt(models [][]xy, x float64) float64 {
	sum := 0.0
	for _, points := range models {
		sum += at(points, x)
	}
	return sum / float64(len(models))
}

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
