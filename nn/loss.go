package nn

import "math"

// The loss is the negative log-likelihood of a log-softmax: for logits z and class y,
//
//	loss = log Σ exp(z_j) − z_y = log Σ exp(z_j − m) − (z_y − m),  m = max z
//	∂loss/∂z_j = exp(z_j − m) / Σ exp(z_i − m) − [j = y]

// lossSum is a sum of losses. Of the sums of exponentials it keeps the product, and one logarithm
// is taken of it: that spares most of the time of one for each sample, and rounds no more than
// adding logarithms does.
type lossSum struct {
	margins  float64 // Σ z_y − m
	product  float64 // of the sums of exponentials, without its exponent: from 1 to below 2
	exponent int64   // of the product
	weighted float64 // losses times their weights, where there are weights
}

// times takes one more sum of exponentials, at least 1 or NaN.
func (l *lossSum) times(sum float64) {
	const one, fraction = 1023 << 52, 1<<52 - 1
	b := math.Float64bits(l.product * sum)
	l.exponent += int64(b>>52) - one>>52
	l.product = math.Float64frombits(b&fraction | one)
	if sum != sum {
		l.margins = sum
	}
}

func (l *lossSum) total() float64 {
	return float64(float64(l.exponent)*math.Ln2) + math.Log(l.product) - l.margins + l.weighted
}

// weight is the sum of the weights of a batch's samples.
func (b *Batch) weight() float64 {
	if b.Weights == nil {
		return float64(len(b.Y))
	}
	sum := 0.0
	for _, label := range b.Y {
		sum += float64(b.Weights[label])
	}
	return sum
}

// gradient adds the losses of the rows of logits, one after the other, and replaces the logits by
// scale times the gradient of their loss.
func (l *lossSum) gradient(logits []float32, classes int, y []int32, scale float32) {
	l.exponentials(logits, classes, y)
	for i, label := range y {
		e := logits[i*classes : (i+1)*classes]
		sum := sumWide(e)
		l.times(sum)
		q := float32(float64(scale) / sum)
		for j := range e {
			e[j] *= q
		}
		e[label] -= scale
	}
}

// weightedGradient is gradient with weights of the classes.
func (l *lossSum) weightedGradient(logits []float32, classes int, y []int32, scale float64, weights []float32) {
	for i := range y {
		e, weight := logits[i*classes:(i+1)*classes], float64(weights[y[i]])
		one := lossSum{}
		one.exponentials(e, classes, y[i:i+1])
		sum := sumWide(e)
		l.weighted += float64(weight * (math.Log(sum) - one.margins))
		q := float32(scale * weight / sum)
		for j := range e {
			e[j] *= q
		}
		e[y[i]] -= float32(scale * weight)
	}
}

// score adds the losses of the rows of logits, one after the other, and counts the rows whose first
// maximum is at their label. It overwrites the logits.
func (l *lossSum) score(logits []float32, classes int, y []int32) (correct int) {
	correct = l.exponentials(logits, classes, y)
	for i := range y {
		l.times(sumWide(logits[i*classes : (i+1)*classes]))
	}
	return correct
}

// exponentials replaces the logits by exp(z_j − m), takes the margins, and counts the rows without
// NaN whose first maximum is at their label.
func (l *lossSum) exponentials(logits []float32, classes int, y []int32) (correct int) {
	for i, label := range y {
		z := logits[i*classes : (i+1)*classes]
		best := maximum(z)
		m := z[best]
		l.margins += float64(z[label]) - float64(m)
		var sum float32 // shows NaN, whose comparisons do not
		for j, v := range z {
			z[j] = v - m
			sum += z[j]
		}
		if best == int(label) && sum == sum {
			correct++
		}
	}
	expAll(logits)
	return correct
}

// maximum returns the first place of the largest value of z, and any place if there is NaN. It has
// no branches on values, which would be mispredicted.
func maximum(z []float32) int {
	const places = int64(1<<32 - 1)
	best := int64(math.MinInt64)
	for j, v := range z {
		// Read as integers, the bits of floats are ordered as their values once the bits of
		// negative ones are inverted; -0 + 0 is 0.
		b := int64(int32(math.Float32bits(v + 0)))
		best = max(best, (b^(b>>63)&math.MaxInt32)<<32|(places-int64(j)))
	}
	return int(places - best&places)
}

// sumWide returns the sum of x in float64.
func sumWide(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v)
	}
	return sum
}
