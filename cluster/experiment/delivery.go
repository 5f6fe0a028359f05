package experiment

import "github.com/gradwire/gradwire/actors/train"

// reliable reports whether sessions have every message of a point handled once and in order. Where
// the plan does not say, they do unless the architecture lives without.
func (p *Point) reliable() bool {
	if p.Spec.Delivery != "" {
		return p.Spec.Delivery == "reliable"
	}
	a, ok := p.Spec.Architecture.(train.Tolerant)
	return !ok || !a.Tolerant()
}
