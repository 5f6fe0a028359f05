package driver_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/turns"
)

// cut breaks every connection of this process, and so all of a test's cluster, and tells how many
// there were. Nobody else has any. It does so at the end that was called: whoever calls may still
// be in connect(2), and Go's waits until its deadline if the socket is shut down under it.
func cut(t *testing.T) (broken int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	called, ports := map[int]int{}, map[int]bool{}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		own, err := syscall.Getsockname(fd)
		if err != nil {
			continue
		}
		at, tcp := own.(*syscall.SockaddrInet4)
		if !tcp {
			continue
		}
		called[fd] = at.Port
		if n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); err == nil && n > 0 {
			delete(called, fd)
			ports[at.Port] = true
		}
	}
	for fd, port := range called {
		if ports[port] && syscall.Shutdown(fd, syscall.SHUT_RDWR) == nil {
			broken++
		}
	}
	return broken
}

// Connections between processes break again and again while a run goes on. No message is lost, no
// node is taken out of the run, and the models have the bits of virtual time.
func TestBrokenConnectionsLoseNothing(t *testing.T) {
	turns.Take(t, 1, 3)
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
		for range 8 {
			time.Sleep(150 * time.Millisecond) // rarer than it takes to connect, also on a busy machine
			broken += cut(t)
		}
		summary, dir := c.ends(c.client(identity.Operator), id, driver.Done)
		if got := summary.Runs[0]; got.Clock != "cluster" || got.Epochs < 5 || len(got.Incidents) > 0 {
			t.Errorf("%s: %+v", architecture, got)
		}
		equal(t, "models of "+architecture, bits(t, want), bits(t, &driver.Report{Dir: dir}))
		if broken < 10 {
			t.Errorf("%s: only %d connections broke", architecture, broken)
		}
	}
}
