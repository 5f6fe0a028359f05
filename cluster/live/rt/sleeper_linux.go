package rt

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper puts a thread to sleep until a time has passed or another one wakes it. It waits in
// ppoll, whose timeout is exact to the kernel's timer slack.
type sleeper struct {
	event    int
	schedule *unix.SchedAttr // of a thread that sleeps, or nil
}

// slice is how long at least the kernel lets a thread keep a core. A thread that wakes up goes
// before those that ask for a longer slice (since Linux 6.12; older kernels let those run for up to
// 3 ms first).
const slice = 100 * time.Microsecond

// newSleeper returns a sleeper for one thread at a time. A prompt one asks the kernel to run its
// thread as soon as it wakes.
func newSleeper(prompt bool) (sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return sleeper{}, fmt.Errorf("rt: eventfd: %w", err)
	}
	s := sleeper{event: fd}
	if a, err := unix.SchedGetAttr(0, 0); prompt && err == nil && a.Policy == unix.SCHED_NORMAL {
		a.Runtime = uint64(slice)
		s.schedule = a
	}
	return s, nil
}

// sleep asks for the smallest timer slack and the shortest slice that the calling thread can
// have. Where the kernel refuses, sleeps end later.
func (s sleeper) sleep(d time.Duration) {
	if s.schedule != nil {
		_ = unix.SchedSetAttr(0, s.schedule, 0)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	timeout := unix.NsecToTimespec(int64(d))
	fds := []unix.PollFd{{Fd: int32(s.event), Events: unix.POLLIN}}
	if n, err := unix.Ppoll(fds, &timeout, nil); err != nil || n == 0 {
		return // time is up, or a signal: the clock looks again
	}
	var b [8]byte
	_, _ = unix.Read(s.event, b[:])
}

func (s sleeper) wake() {
	one := [8]byte{1}
	if _, err := unix.Write(s.event, one[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		panic(fmt.Sprintf("rt: eventfd: %v", err)) // only a closed descriptor: the clock is used after its end
	}
}

func (s sleeper) close() { _ = unix.Close(s.event) }
