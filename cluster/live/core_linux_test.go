package live_test

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// onCore calls a function while its thread may run on one core only, which processes inherit.
func onCore(core int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &before) //nolint:errcheck // it was like that
	return do()
}
