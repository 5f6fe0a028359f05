package transport_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestConnectionIsMadeWhereThereAreDescriptorsForNoMoreThanThat(t *testing.T) {
	a, b := start(t, "a", 1, nil), start(t, "b", 1, nil)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few, free := limit, [2]int{} // one for each side
	var err error
	for i := range free {
		if free[i], err = unix.Dup(0); err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range free {
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
	few.Cur = uint64(free[1]) + 1
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }) //nolint:errcheck // a test's
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	a.connect(t, "b", b)
	a.send(t, "b", 0, a.pool.Get(1_000_000))
	until(t, "it is there", func() bool { return b.handled.Load() == 1 })
}
