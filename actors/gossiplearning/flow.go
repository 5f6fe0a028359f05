package gossiplearning

import (
	"math/rand/v2"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Strategy is a way to decide when a peer sends.
type Strategy string

// The strategies. All but the first keep a token account (G. Danner and M. Jelasity, "Token account
// algorithms: the best of the proactive and reactive worlds", ICDCS 2018): each period a peer sends
// a model with the probability that its strategy gives, and otherwise has one token more, of which
// it keeps at most Capacity. When it has created a model it sends it to as many neighbours, each
// drawn among all, as its strategy gives, for a token each. So in any k periods in a row a peer
// sends at most k + Capacity models. A model that comes is useful if it is at least as old as the
// peer's freshest one when it is taken up.
//
// With a tokens, the reactivity A and the capacity C:
const (
	// Proactive sends a model each period and never else.
	Proactive Strategy = "proactive"
	// Simple sends in a period if a = C, and after a creation one model if a ≥ 1.
	Simple Strategy = "simple"
	// Generalized sends in a period if a = C, and after a creation ⌊(A − 1 + a)/A⌋ models, or
	// ⌊(A − 1 + a)/2A⌋ if what came was not useful.
	Generalized Strategy = "generalized"
	// Randomized sends in a period with the probability (a − A + 1)/(C − A + 1), 0 where that is
	// negative, and after a creation a/A models, rounded up or down at random so that this is the
	// mean, or none if what came was not useful.
	Randomized Strategy = "randomized"
)

// Flow says when a peer sends.
type Flow struct {
	// Kind is the strategy.
	Kind Strategy `plan:"kind" words:"proactive|simple|generalized|randomized" doc:"proactive: a model each period; the others save periods up as tokens, which they spend when a model has come, and send in a period when the account is full (randomized: by chance before that) (Danner and Jelasity 2018)"`
	// Capacity is C, from 1 on, of all but Proactive.
	Capacity int `plan:"capacity,omitzero" range:"1..1000000" doc:"tokens that are kept at most; of all kinds but proactive"`
	// Reactivity is A, from 1 to Capacity, of Generalized and Randomized.
	Reactivity int `plan:"reactivity,omitzero" range:"1..1000000" doc:"A: of a tokens, about a ÷ A are spent in answer, one for each model that is sent, and fewer if an older model came; of generalized and randomized, at most the capacity"`
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (f Flow) Validate() error {
	if err := field.Check(f); err != nil {
		return err
	}
	reactive := f.Kind == Generalized || f.Kind == Randomized
	switch {
	case f.Kind == Proactive && f.Capacity != 0:
		return field.Errorf(f, "Capacity", "left out with kind: proactive, which keeps no tokens")
	case f.Kind != Proactive && f.Capacity < 1:
		return field.Errorf(f, "Capacity", "at least 1 with kind: %s", f.Kind)
	case !reactive && f.Reactivity != 0:
		return field.Errorf(f, "Reactivity", "left out with kind: %s", f.Kind)
	case reactive && (f.Reactivity < 1 || f.Reactivity > f.Capacity):
		return field.Errorf(f, "Reactivity", "1 to the capacity, which is %d, with kind: %s", f.Capacity, f.Kind)
	}
	return nil
}

// proactive is the probability of sending in a period, with a number of tokens.
func (f Flow) proactive(tokens int) float64 {
	switch {
	case f.Kind == Proactive || tokens >= f.Capacity:
		return 1
	case f.Kind == Randomized:
		return max(0, float64(tokens-f.Reactivity+1)/float64(f.Capacity-f.Reactivity+1))
	}
	return 0
}

// reactive is how many models to send after a creation: so many, and one more with a probability.
func (f Flow) reactive(tokens int, useful bool) (count int, more float64) {
	switch f.Kind {
	case Simple:
		return min(tokens, 1), 0
	case Generalized:
		per := f.Reactivity
		if !useful {
			per *= 2
		}
		return (f.Reactivity - 1 + tokens) / per, 0
	case Randomized:
		if useful {
			return tokens / f.Reactivity, float64(tokens%f.Reactivity) / float64(f.Reactivity)
		}
	}
	return 0, 0
}

// account are the tokens of a peer: from 0 to the capacity.
type account struct {
	flow   Flow
	tokens int
}

// period reports whether to send in this period; if not, there is one token more.
func (a *account) period(random *rand.Rand) bool {
	p := a.flow.proactive(a.tokens)
	if p == 1 || p > 0 && random.Float64() < p {
		return true
	}
	a.tokens++
	return false
}

// created spends tokens for a model that was created, and returns how many.
func (a *account) created(useful bool, random *rand.Rand) int {
	n, more := a.flow.reactive(a.tokens, useful)
	if more > 0 && random.Float64() < more {
		n++
	}
	a.tokens -= n
	return n
}
