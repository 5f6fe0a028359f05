package link

import "time"

// queue is a first-in, first-out server of bytes.
type queue struct {
	rate float64       // bytes per second, 0 = unlimited
	free time.Duration // when the last message has left; never beyond Horizon
	// carry is what rounding to nanoseconds withheld from, or gave to, the messages of this busy
	// period, so that a saturated queue runs at its rate however small its messages are. |carry| ≤
	// 1 ns.
	carry float64
}

// pass returns when a message of size bytes that comes at an instant has left. What could not leave
// before Horizon does not occupy the queue.
func (q *queue) pass(at time.Duration, size int) time.Duration {
	if q.free >= at {
		at = q.free
	} else {
		q.carry = 0
	}
	if q.rate > 0 && at <= Horizon {
		at = q.serve(at, size)
	}
	if at <= Horizon {
		q.free = at
	}
	return at
}

// serve returns at + size/rate. One message takes at most Horizon, so that no sum overflows.
func (q *queue) serve(at time.Duration, size int) time.Duration {
	exact := float64(size)*1e9/q.rate + q.carry
	if !(exact < float64(Horizon)) {
		return at + Horizon
	}
	whole := time.Duration(exact + 0.5)
	q.carry = exact - float64(whole)
	return at + whole
}
