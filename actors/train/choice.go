package train

import (
	"time"

	"github.com/gradwire/gradwire/nn"
)

// Chooser is an Architecture with a setting that it can choose by what the network is like.
type Chooser interface {
	// Choose returns the architecture as it runs, with everything chosen, and what was chosen; nil
	// and nil if nothing was left to be. If weigh is set, it returns also what the setting costs
	// where it is stated. An error says what the network lacks, as a *field.Error about the
	// setting.
	Choose(l Layout, weigh bool) (Architecture, *Choice, error)
}

// Layout is what is known of a run's network before it begins.
type Layout struct {
	// Params is the length of a model, Tensors what it has.
	Params  int
	Tensors []nn.Tensor
	// Workers are the nodes that train, in the order of the plan.
	Workers []Station
	// Sites says that the workers have sites.
	Sites bool
	// Line says what the link from one worker to another is like, by their places in Workers.
	Line func(from, to int) Line
}

// Station is a worker's own side of the network.
type Station struct {
	// Site is a number for where it is, if the Layout has Sites.
	Site int32
	// Step is the time of a training step.
	Step time.Duration
	// Speed is that of sums, in FLOP/s; infinite where they take no time.
	Speed float64
	// Uplink and Downlink are in bytes a second, 0 for no bound.
	Uplink, Downlink float64
}

// Line is a directed link, as it is in the mean.
type Line struct {
	Delay time.Duration
	Rate  float64 // in bytes a second, 0 for no bound
	// Overhead is the bytes that a message takes beside its own.
	Overhead int64
}

// Choice is a setting with a word for each way to go, and what each costs.
type Choice struct {
	// Key is the setting's in the architecture's section, Word the one that is used.
	Key, Word string
	// Options are in the order in which the setting's words are told.
	Options []Option
}

// Option is one way to go.
type Option struct {
	Word string
	// Time is what one exchange between all workers adds to their steps.
	Time time.Duration
}

// Cheapest is the first of the options that take the least time; there must be one.
func (c *Choice) Cheapest() Option {
	best := c.Options[0]
	for _, o := range c.Options[1:] {
		if o.Time < best.Time {
			best = o
		}
	}
	return best
}
