package train

import "math"

// ErrorProbability bounds the probability with which a [Bound] takes the accuracy of a model to be
// below a target that it reaches, each time that a model is judged.
const ErrorProbability = 1e-9

// BoundName is what records call a [Bound].
const BoundName = "exact, Clopper–Pearson for draws without replacement (hypergeometric), one-sided"

// Bound tells by the first samples of a test set in random order when the accuracy on the whole set
// is surely below a target. It is the exact bound of C. J. Clopper and E. S. Pearson, "The Use of
// Confidence or Fiducial Limits Illustrated in the Case of the Binomial", Biometrika 26, 1934, one
// side of it, for what is done here: samples are not put back, so the number of right answers among
// them is hypergeometric. If just as many answers of the set were right as the target needs, so few
// among the samples would be less likely than [ErrorProbability] divided by the number of times
// that one looks. The more samples are seen the nearer it is to certainty: where more answers are
// wrong than the target leaves, the probability is 0.
type Bound struct {
	target float64
	steps  []boundStep
}

// boundStep is a number of samples after which one looks.
type boundStep struct {
	samples int
	most    int // right answers with which the accuracy is surely below the target; −1 if none
}

// boundUnit is how many samples one looks after first, and of which all numbers are multiples.
const boundUnit = 64

// NewBound returns the bound for a test set of a number of samples and a target above 0.
func NewBound(samples int, target float64) *Bound {
	b := &Bound{target: target}
	for n := boundUnit; n < samples; n += max(n/2/boundUnit, 1) * boundUnit {
		b.steps = append(b.steps, boundStep{samples: n})
	}
	right := needed(samples, target)
	for i := range b.steps {
		s := &b.steps[i]
		s.most = mostBelow(samples, right, s.samples, ErrorProbability/float64(len(b.steps)))
	}
	return b
}

// needed is the least number of right answers that reaches the target; more than there are samples
// if none does.
func needed(samples int, target float64) int {
	right := max(int(target*float64(samples))-2, 0)
	for right <= samples && float64(right)/float64(samples) < target {
		right++
	}
	return right
}

// mostBelow returns the largest number k such that at most k of n samples drawn from a set, of
// which a number is right, are right with no more than a probability; −1 if there is none.
func mostBelow(samples, right, n int, probability float64) int {
	if right > samples {
		return n
	}
	least := max(0, n-(samples-right)) // those that any n samples have
	mode := (n + 1) * (right + 1) / (samples + 2)
	low, high := least-1, mode-1
	for low < high { // the probability rises with k
		k := (low + high + 1) / 2
		if atMost(samples, right, n, k) <= probability {
			low = k
		} else {
			high = k - 1
		}
	}
	return low
}

// atMost is the probability that at most k of n samples drawn from a set, of which a number is
// right, are right, for k from what any n samples have up to the most likely number.
func atMost(samples, right, n, k int) float64 {
	// From k down each probability is the one above times a ratio, which falls.
	sum, term := 0.0, 1.0
	for i := k; i >= 0 && term > sum*1e-17; i-- {
		sum += term
		term *= float64(i) * float64(samples-right-n+i) / (float64(right-i+1) * float64(n-i+1))
	}
	return sum * math.Exp(logChoose(right, k)+logChoose(samples-right, n-k)-logChoose(samples, n))
}

// logChoose is the logarithm of a binomial coefficient.
func logChoose(n, k int) float64 {
	gamma := func(n int) float64 {
		v, _ := math.Lgamma(float64(n) + 1)
		return v
	}
	return gamma(n) - gamma(k) - gamma(n-k)
}
