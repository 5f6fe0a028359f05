package nn

import "math"

// The loss is the negative log-likelihood of a log-softmax: for logits z and class y,
//
//	loss = log Σ exp(z_j) − z_y = log Σ exp(z_j − m) − (z_y − m),  m = max z
//	∂loss/∂z_j = exp(z_j − m) / Σ exp(z_i − m) − [j = y]

// lossGradient adds the losses of the rows of logits to sum, one after the other, and replaces the logits by scale
// times the gradient of their loss.
func lossGradient(sum float64, logits []float32, classes int, y []int32, scale float32) float64 {
	for i, label := range y {
		z := logits[i*classes : (i+1)*classes]
		m, _ := maximum(z)
		zy := float64(z[label]) - float64(m)
		var s float64
		for j, v := range z {
			e := exp(v - m)
			z[j] = e
			s += float64(e)
		}
		sum += math.Log(s) - zy
		q := float32(float64(scale) / s)
		for j := range z {
			z[j] *= q
		}
		z[label] -= scale
	}
	return sum
}

// score adds the losses of the rows of logits to sum, one after the other, and counts the rows whose first maximum is
// at their label.
func score(sum float64, logits []float32, classes int, y []int32) (float64, int) {
	correct := 0
	for i, label := range y {
		z := logits[i*classes : (i+1)*classes]
		m, best := maximum(z)
		var s float64
		for _, v := range z {
			s += float64(exp(v - m))
		}
		sum += math.Log(s) - (float64(z[label]) - float64(m))
		// Comparisons with NaN are false, so the maximum alone would not show it.
		if best == int(label) && s == s {
			correct++
		}
	}
	return sum, correct
}

// maximum returns the largest value of z and the first index that holds it. NaN compares as smaller than all, unless
// it comes first.
func maximum(z []float32) (float32, int) {
	m, best := z[0], 0
	for j, v := range z {
		if v > m {
			m, best = v, j
		}
	}
	return m, best
}
