package simtest

import (
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
)

// Links draws what all links of a world do to messages: delays of up to 12 ms, and some of order
// lost, losses up to 30 %, repeats and an outage in the first half second.
func Links(r *rand.Rand) link.Config {
	const ms = time.Millisecond
	c := link.Config{Delay: link.Uniform{Min: ms / 10, Max: time.Duration(1+r.IntN(12)) * ms}, Reorder: r.IntN(3) == 0}
	if r.IntN(2) == 0 {
		c.Loss = link.Loss{Drop: true, Probability: 0.3 * r.Float64()}
	}
	if r.IntN(3) == 0 {
		c.Repeat = 0.2
	}
	if r.IntN(3) == 0 {
		from := time.Duration(100+r.IntN(300)) * ms
		c.Outages = []link.Outage{{From: from, To: from + time.Duration(10+r.IntN(60))*ms}}
		c.Loss.Drop = true
	}
	return c
}
