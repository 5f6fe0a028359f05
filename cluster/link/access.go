package link

import (
	"errors"
	"time"
)

// access is what a node's own line adds to the delays of all its edges.
type access struct {
	constant time.Duration
	process  Process // nil where it is constant
}

// CheckAccess reports why a delay cannot be that of a node's access. All edges of the node share
// it, so that it must remember nothing of earlier messages, or be drawn once for the node.
func CheckAccess(d Delay) error {
	if once, is := d.(Once); is && !once.PerNode {
		return errors.New("it is drawn once for each link; accepted are for each message or once for the node")
	}
	switch d.(type) {
	case Memoryless, Once:
		return d.Validate()
	}
	return errors.New("it depends on earlier messages; accepted is one that does not, such as a distribution")
}

func (n *Network) newAccess(d Delay, key uint64) access {
	switch model := d.(type) {
	case nil:
		return access{}
	case Constant:
		return access{constant: model.Delay}
	case Once:
		n.draws.seek(key, 0, accesses)
		return access{constant: model.Start(n.random, nil).Present(0)}
	default:
		return access{process: d.Start(n.random, nil)}
	}
}

// next draws what is added to the delay of a message that departs at an instant.
func (a *access) next(departure time.Duration) time.Duration {
	if a.process == nil {
		return a.constant
	}
	return bounded(a.process.Next(departure))
}

// present is what is to be expected at an instant.
func (a *access) present(now time.Duration) time.Duration {
	if a.process == nil {
		return a.constant
	}
	return bounded(a.process.Present(now))
}
