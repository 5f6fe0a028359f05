package link

import (
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
)

// lane is a first-in, first-out server of bytes.
type lane struct {
	rate float64       // bytes per second where it is always the same, 0 = unlimited
	free time.Duration // when the last message has left; never beyond Horizon
	// carry is what rounding to nanoseconds withheld from, or gave to, the messages of this busy
	// period, so that a saturated queue runs at its rate however small its messages are. |carry| ≤
	// 1 ns.
	carry   float64
	varying *varying // the rate where it is a process
	// resource is the place in shared.flows, plus 1, of a rate that is shared fairly, which queues
	// nobody; 0 if nothing was ever limited.
	resource int32
}

// varying is a rate that is a process. Of what it can carry since the run began the first taken
// bytes are, which is known from the first message on.
type varying struct {
	rate.Process
	taken float64
	known bool
}

// set gives the queue a rate from its next message on.
func (q *lane) set(r rate.Rate, n *Network, key uint64, p purpose) {
	constant, steady := r.(rate.Constant)
	switch {
	case n.shared != nil:
		var process rate.Process
		if r != nil && r != rate.Rate(rate.Constant(0)) {
			process = r.Start(n.stream(key, p))
		}
		n.shared.set(&q.resource, process)
	case r == nil || steady:
		q.rate, q.varying = float64(constant), nil
	default:
		q.rate, q.varying = 0, &varying{Process: r.Start(n.stream(key, p))}
	}
}

// limited reports whether a message can wait for others, or take time.
func (q *lane) limited() bool { return q.rate > 0 || q.varying != nil }

// pass returns when a message of size bytes that comes at an instant has left. What could not leave
// before Horizon does not occupy the queue.
func (q *lane) pass(at time.Duration, size int) time.Duration {
	if q.varying != nil {
		return q.follow(at, size)
	}
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
func (q *lane) serve(at time.Duration, size int) time.Duration {
	exact := float64(size)*1e9/q.rate + q.carry
	if !(exact < float64(Horizon)) {
		return at + Horizon
	}
	whole := time.Duration(exact + 0.5)
	q.carry = exact - float64(whole)
	return at + whole
}

// follow is pass where the rate is a process. Messages take its bytes one after the other; what
// could have passed while there was none is lost.
func (q *lane) follow(at time.Duration, size int) time.Duration {
	if at > Horizon {
		return at
	}
	v := q.varying
	if at > q.free || !v.known {
		at = max(at, q.free)
		v.taken, v.known = v.Carried(at), true
	} else {
		at = q.free
	}
	left := v.Passed(v.taken + float64(size))
	if left > Horizon {
		return at + Horizon
	}
	v.taken += float64(size)
	q.free = max(at, left)
	return q.free
}
