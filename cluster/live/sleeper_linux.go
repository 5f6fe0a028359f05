package live

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper puts a thread to sleep until a time has passed or somebody wakes it. It
// waits in ppoll, whose time-out is exact to the kernel's timer slack.
type sleeper struct{ event int }

func newSleeper() (sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return sleeper{}, fmt.Errorf("clock: eventfd: %w", err)
	}
	return sleeper{fd}, nil
}

// sleep asks the calling thread's timer slack to be the smallest before it sleeps.
// Where the system refuses, sleeps end some 50 µs later.
func (s sleeper) sleep(d time.Duration) {
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
		panic(fmt.Sprintf("live: eventfd: %v", err)) // only a closed descriptor: the clock is used after its end
	}
}

func (s sleeper) close() { _ = unix.Close(s.event) }
