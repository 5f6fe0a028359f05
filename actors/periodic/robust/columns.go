package robust

import "slices"

// columns writes for each coordinate what reduce makes of the vectors' values of it, which it gets
// in ascending order, those that are no number first.
func columns(dst []float32, vectors [][]float32, reduce func(sorted []float32) float32) {
	n := len(vectors)
	values := make([]float32, block*n)
	for from := 0; from < len(dst); from += block {
		part := dst[from:min(from+block, len(dst))]
		for i, v := range vectors {
			for k, value := range v[from : from+len(part)] {
				values[k*n+i] = value
			}
		}
		for k := range part {
			column := values[k*n : (k+1)*n]
			slices.Sort(column)
			part[k] = reduce(column)
		}
	}
}

// mean is that of one or more values.
func mean(values []float32) float32 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return float32(sum / float64(len(values)))
}

// median is the value in the middle, or the mean of the two that are.
func median(sorted []float32) float32 {
	n := len(sorted)
	return mean(sorted[(n-1)/2 : n/2+1])
}

// nearest is the mean of a number of values nearest to a center; of two as near the lower counts.
func nearest(sorted []float32, center float32, count int) float32 {
	from := 0
	for from+count < len(sorted) && !(center-sorted[from] <= sorted[from+count]-center) {
		from++
	}
	return mean(sorted[from : from+count])
}
