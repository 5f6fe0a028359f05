package driver_test

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/protos"
)

// stopsInTime has an operator stop submissions that wait, one of which at least must be over within
// a second: the machine may be busy with other things meanwhile.
func stopsInTime(t *testing.T, c *testCluster, ids []string) {
	t.Helper()
	best := time.Hour
	for _, id := range ids {
		began := time.Now()
		stop(t, c.client(identity.Operator), id)
		if best = min(best, time.Since(began)); best <= time.Second {
			return
		}
	}
	t.Errorf("stop took %v, want a second at most", best)
}

func TestCallersThatSayNothingLockNobodyOut(t *testing.T) {
	c, operator, _ := occupied(t)
	ids := []string{submit(t, operator, long), submit(t, operator, long), submit(t, operator, long)}
	for range 100 {
		conn, err := net.Dial("tcp", c.seed)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test's
	}
	stopsInTime(t, c, ids)
}

func TestClientThatWatchesAsOftenAsItCanLocksNoOperatorOut(t *testing.T) {
	c, operator, running := occupied(t)
	ids := []string{submit(t, operator, long), submit(t, operator, long), submit(t, operator, long)}
	body, err := proto.Marshal(&protos.Request{Kind: &protos.Request_Watch{Watch: &protos.WatchRun{Id: running}}})
	if err != nil {
		t.Fatal(err)
	}
	guest := c.identity("guest", identity.Client)
	for range 256 {
		conn, _, err := transport.Open(t.Context(), guest, c.seed, identity.Clients)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // a test's
		_, _ = conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	stopsInTime(t, c, ids)
	_, err = driver.Connect(t.Context(), []string{c.seed}, guest)
	expectAgain(t, err, "process a has 64 connections with client guest already, which is as many as one has")
	if _, err := driver.Connect(t.Context(), []string{c.seed}, c.identity("other", identity.Client)); err != nil {
		t.Errorf("another client: %v", err)
	}
}

func expectAgain(t *testing.T, err error, want string) {
	t.Helper()
	var later *driver.AgainError
	if !errors.As(err, &later) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an AgainError with %s", err, want)
	}
}
