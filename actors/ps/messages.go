package ps

import "github.com/gradwire/gradwire/actors/train"

var _ train.Messenger = Architecture{}

// Messages is a gradient and the model that answers it.
func (a Architecture) Messages(_, _ int) (messages, models float64) {
	both := 2 / float64(max(a.Every, 1))
	return both, both
}
