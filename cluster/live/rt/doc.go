// Package rt is the scheduler of worlds in real time: a clock that calls functions at their
// instants, and a pool of threads that compute at low priority, so that timers and mailboxes find a
// core while every core computes.
//
// It does what Go's runtime leaves undone. A time.Timer is up to a millisecond late when the
// machine is busy; the clock sleeps in ppoll with the smallest timer slack and polls the last 60
// µs. Go schedules goroutines without priorities; the pool locks each of its goroutines to a thread
// and lowers that thread's priority. On systems other than Linux both do without the kernel's help
// and are later.
package rt
