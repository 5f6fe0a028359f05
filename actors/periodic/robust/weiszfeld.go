package robust

import (
	"cmp"
	"math"
	"slices"
)

const (
	iterations = 1000  // at most
	still      = 1e-10 // by which no share changes when they end
	smooth     = 1e-6  // ν of the paper, in radii of the heart, see heart
	far        = 1e6   // radii beyond which a vector is left out
)

// weiszfeld finds the shares by which the geometric median is made of the vectors. With z = Σ λᵢxᵢ,
// whose shares add up to 1, ‖z − xᵢ‖² = Σⱼ λⱼDᵢⱼ − ½ Σⱼₖ λⱼλₖDⱼₖ, where D are the squares of the
// distances: an iteration needs no vectors. It begins with the mean, as there. Vectors that are so
// far from the others that few digits were left do not count.
func weiszfeld(vectors [][]float32, weights []float64) []float64 {
	n, squares := len(vectors), distances(vectors)
	shares, distance := make([]float64, n), make([]float64, n)
	center, radius := heart(squares, weights)
	if radius == 0 || math.IsInf(radius, 1) {
		shares[center] = 1
		return shares
	}
	near, sum := slices.Clone(weights), 0.0
	for i := range n {
		if math.Sqrt(squares[center*n+i]) > far*radius {
			near[i] = 0
		}
		sum += near[i]
	}
	for i, w := range near {
		shares[i] = w / sum
	}
	for step, moved := 0, true; step < iterations && moved; step++ {
		measure(distance, squares, shares, near)
		moved = pull(shares, near, distance, smooth*radius)
	}
	return shares
}

// heart is the vector with the least radius within which it has half of the weight. A radius of 0
// is one of a vector which, with its equals, is the geometric median.
func heart(squares, weights []float64) (center int, radius float64) {
	n, all := len(weights), 0.0
	order := make([]int, n)
	for i, w := range weights {
		order[i] = i
		all += w
	}
	radius = math.Inf(1)
	for i := range n {
		row := squares[i*n : (i+1)*n]
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(row[a], row[b]) })
		sum, k := weights[order[0]], 0
		for ; sum < all/2 && k+1 < n; k++ {
			sum += weights[order[k+1]]
		}
		if r := math.Sqrt(row[order[k]]); r < radius {
			center, radius = i, r
		}
	}
	return center, radius
}

// measure finds the distance of each vector that has a weight from the sum of all by their shares.
func measure(distance, squares, shares, weights []float64) {
	n, half := len(shares), 0.0
	for i := range n {
		if distance[i] = 0; weights[i] == 0 {
			continue
		}
		for j, share := range shares {
			if share > 0 {
				distance[i] += float64(share * squares[i*n+j])
			}
		}
		half += float64(shares[i]*distance[i]) / 2
	}
	for i, w := range weights {
		if w > 0 {
			distance[i] = math.Sqrt(max(distance[i]-half, 0))
		}
	}
}

// pull gives each vector a share by its weight and how near it is, and reports whether any changes.
func pull(shares, weights, distance []float64, floor float64) (moved bool) {
	sum := 0.0
	for i, w := range weights {
		sum += w / max(distance[i], floor)
	}
	for i, w := range weights {
		share := w / max(distance[i], floor) / sum
		moved = moved || math.Abs(share-shares[i]) > still
		shares[i] = share
	}
	return moved
}
