package ps

import "github.com/gradwire/gradwire/actors/train"

var _ train.Messenger = Architecture{}

// Messages is a gradient and the model that answers it.
func (a Architecture) Messages(_, _ int) (messages, models float64) {
	rounds := 1 / float64(max(a.Every, 1))
	return 2 * rounds, rounds * (a.Compress.Up.Ratio() + a.Compress.Down.Ratio())
}
