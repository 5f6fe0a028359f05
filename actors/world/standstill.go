package world

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
)

// ErrStandstill is returned when nothing is left to happen and the run has not ended.
var ErrStandstill = errors.New("the run came to a standstill: no message, job or timer is left, " +
	"and nobody has ended it")

// Waits returns what the actors of nodes, by their position, say that they wait for. An actor of
// nil, of a node that is not there, waits for nothing.
func Waits(nodes []actor.Actor) map[int]string {
	waits := map[int]string{}
	for i, a := range nodes {
		if w, ok := a.(actors.Waiter); ok {
			if cause := w.Waiting(); cause != "" {
				waits[i] = cause
			}
		}
	}
	return waits
}

// mostWaiting bounds how many waiting nodes are named.
const mostWaiting = 8

// Waiting says which nodes wait, by their position, and for what; it is empty if none does.
func (d *Deployment) Waiting(causes map[int]string) string {
	var waits []string
	for i := range d.Nodes {
		if cause, waiting := causes[i]; waiting {
			waits = append(waits, d.Nodes[i].Name+" waits for "+cause)
		}
	}
	if more := len(waits) - mostWaiting; more > 0 {
		waits = append(waits[:mostWaiting], fmt.Sprintf("and %d more wait", more))
	}
	return strings.Join(waits, ", ")
}

// Standstill is the error of a run that has come to a standstill at an instant, with what nodes, by
// their position, wait for, and with the messages that were lost, ready to stand behind an error.
func (d *Deployment) Standstill(at time.Duration, causes map[int]string, losses string) error {
	told := d.Waiting(causes)
	if told != "" {
		told = "; " + told
	}
	return fmt.Errorf("at %v: %w%s%s", at, ErrStandstill, told, losses)
}
