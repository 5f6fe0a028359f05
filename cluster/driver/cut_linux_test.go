package driver_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
)

// ends are those of all connections of this process, and so of a test's cluster. Nobody else has
// any.
func ends(t *testing.T) (all []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if peer, err := syscall.Getpeername(fd); err != nil {
			continue
		} else if _, tcp := peer.(*syscall.SockaddrInet4); !tcp {
			continue
		}
		all = append(all, fd)
	}
	return all
}

// cut breaks every connection, and tells how many ends there were.
func cut(t *testing.T) (broken int) {
	t.Helper()
	for _, fd := range ends(t) {
		if syscall.Shutdown(fd, syscall.SHUT_RDWR) == nil {
			broken++
		}
	}
	return broken
}

// Connections between processes break again and again while a run goes on. No message is lost, no
// node is taken out of the run, and the models have the bits of virtual time.
func TestBrokenConnectionsLoseNothing(t *testing.T) {
	c, _ := gathered(t, "a", "b", "c")
	for _, architecture := range []string{"{kind: all-reduce, algorithm: all-to-all}",
		"{kind: parameter-server, consistency: bsp, roles: {server: added}}"} {
		// The last gradients are under way for longer than it takes to tell that the run is over.
		set := []string{"architecture=" + architecture, "network.default.delay=20ms", "stop.epochs=5"}
		want := run(t, load(t, sound, set...), driver.Options{})
		id, err := c.client(identity.Operator).Submit(t.Context(), load(t, sound, set...), driver.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		broken := 0
		for range 5 {
			for begin := time.Now(); len(ends(t)) < 5 && time.Since(begin) < time.Second; {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(300 * time.Millisecond) // rarer than it takes to connect, also on a busy machine
			broken += cut(t)
		}
		summary, dir := c.ends(c.client(identity.Operator), id, driver.Done)
		// On a busy machine a process may be silent for a while, and be waited for.
		gone := func(i record.Incident) bool { return !strings.Contains(i.What, "was silent") }
		got := summary.Runs[0]
		if got.Clock != "cluster" || got.Epochs < 5 || slices.ContainsFunc(got.Incidents, gone) {
			t.Errorf("%s: %+v", architecture, got)
		}
		equal(t, "models of "+architecture, bits(t, want), bits(t, &driver.Report{Dir: dir}))
		if broken < 20 {
			t.Errorf("%s: only %d ends of connections broke", architecture, broken)
		}
	}
}
