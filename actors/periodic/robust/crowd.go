package robust

import (
	"cmp"
	"math"
	"slices"
)

// distances are the squares of the distances of all pairs, row by row; infinite where one of a pair
// has values that are not finite.
func distances(vectors [][]float32) []float64 {
	n := len(vectors)
	squares := make([]float64, n*n)
	for from := 0; from < len(vectors[0]); from += block {
		to := min(from+block, len(vectors[0]))
		for i := range vectors {
			for j := range i {
				squares[i*n+j] += square(vectors[i][from:to], vectors[j][from:to])
			}
		}
	}
	for i := range n {
		for j := range i {
			if !(squares[i*n+j] <= math.MaxFloat64) {
				squares[i*n+j] = math.Inf(1)
			}
			squares[j*n+i] = squares[i*n+j]
		}
	}
	return squares
}

// square is that of the distance of two vectors.
func square(a, b []float32) float64 {
	b = b[:len(a)]
	even, odd, k := 0.0, 0.0, 0
	for ; k+1 < len(a); k += 2 {
		d, e := float64(a[k])-float64(b[k]), float64(a[k+1])-float64(b[k+1])
		even += float64(d * d)
		odd += float64(e * e)
	}
	if k < len(a) {
		d := float64(a[k]) - float64(b[k])
		even += float64(d * d)
	}
	return even + odd
}

// crowd is a number of vectors that Krum chooses from.
type crowd struct {
	vectors   [][]float32
	attackers int
	squares   []float64 // see distances
	near      []int     // for each vector the others, the nearest first
	chosen    []bool
}

func newCrowd(vectors [][]float32, attackers int) *crowd {
	n := len(vectors)
	c := &crowd{vectors: vectors, attackers: attackers, squares: distances(vectors), near: make([]int, 0, n*(n-1)),
		chosen: make([]bool, n)}
	for i := range n {
		for j := range n {
			if j != i {
				c.near = append(c.near, j)
			}
		}
		row := c.squares[i*n : (i+1)*n]
		slices.SortFunc(c.near[i*(n-1):], func(a, b int) int { return cmp.Or(cmp.Compare(row[a], row[b]), a-b) })
	}
	return c
}

// score is Krum's for a vector, among those of the crowd that are not chosen, itself included, of
// which there are left: the sum of the squares of its distances to the left − f − 2 nearest of
// them, to one at least.
func (c *crowd) score(i, left int) (sum float64) {
	n, count := len(c.vectors), min(max(left-c.attackers-2, 1), left-1)
	for _, j := range c.near[i*(n-1) : (i+1)*(n-1)] {
		if count == 0 {
			break
		}
		if !c.chosen[j] {
			sum += c.squares[i*n+j]
			count--
		}
	}
	return sum
}

// share gives a number of vectors, those of the best scores, an equal share of 1.
func (c *crowd) share(keep int) []float64 {
	n := len(c.vectors)
	order, scores, shares := make([]int, n), make([]float64, n), make([]float64, n)
	for i := range n {
		order[i], scores[i] = i, c.score(i, n)
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.compare(a, b, scores) })
	for _, i := range order[:keep] {
		shares[i] = 1 / float64(keep)
	}
	return shares
}

// compare compares two vectors by their scores, and where these are equal by their values, so that
// the order in which they come makes no difference.
func (c *crowd) compare(a, b int, scores []float64) int {
	if order := cmp.Compare(scores[a], scores[b]); order != 0 {
		return order
	}
	return slices.Compare(c.vectors[a], c.vectors[b])
}

// inTurn chooses a number of vectors, each the best among those that are left.
func (c *crowd) inTurn(count int) [][]float32 {
	chosen, scores := make([][]float32, 0, count), make([]float64, len(c.vectors))
	for left := len(c.vectors); len(chosen) < count; left-- {
		best := -1
		for i := range c.vectors {
			if c.chosen[i] {
				continue
			}
			if scores[i] = c.score(i, left); best < 0 || c.compare(i, best, scores) < 0 {
				best = i
			}
		}
		c.chosen[best] = true
		chosen = append(chosen, c.vectors[best])
	}
	return chosen
}
