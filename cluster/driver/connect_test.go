package driver_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/turns"
)

// server takes connections for as long as the test lasts.
func server(t *testing.T, take func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // a test's
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() }) //nolint:errcheck // a test's
			take(c)
		}
	}()
	return l.Addr().String()
}

func TestConnectSaysWhyThereIsNoCluster(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	defer c.serve("a")()
	own, foreign := c.identity("me", identity.Operator), other.identity("me", identity.Operator)
	closes := server(t, func(conn net.Conn) { conn.Close() }) //nolint:errcheck // a test's
	none, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := none.Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, seed string
		id         *identity.Identity
		want       string
	}{
		{"nobody", none.Addr().String(), own, "no node runs there"},
		{"another cluster", c.seed, foreign, "the identity is one of another cluster"},
		{"without an identity", c.seed, nil, "a cluster that has certificates wants an identity"},
		{"something else", closes, own, "it is not a node, or its cluster has no certificates"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := driver.Connect(t.Context(), []string{x.seed}, x.id)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %s", err, x.want)
			}
		})
	}
	_, err = driver.Connect(t.Context(), []string{"127.0.0.1"}, own)
	expectInput(t, err, `"127.0.0.1" is no address of a node, which is HOST:PORT`)
}

func TestRunOfNodeThatDoesNotAnswerIsNotSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	defer c.serve("a")()
	elsewhere := server(t, func(conn net.Conn) { conn.Close() }) //nolint:errcheck // a test's
	defer c.serve("b", func(n *driver.NodeConfig) { n.Advertise = elsewhere })()
	client := c.client(identity.Operator)
	c.gather(client, 2)
	_, err := client.Status(t.Context(), "abc")
	var wrong *driver.InputError
	if err == nil || errors.As(err, &wrong) || !strings.Contains(err.Error(),
		`no node that answers knows a run "abc": node b: `) {
		t.Error(err)
	}
}

func TestProcessThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	turns.Take(t, 0, 3)
	if testing.Short() {
		t.Skip("waits for as long as a process may take")
	}
	t.Parallel()
	silent := server(t, func(net.Conn) {})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := driver.Connect(ctx, []string{silent}, nil)
	if err == nil || !strings.Contains(err.Error(), "has not answered for 10s") {
		t.Error(err)
	}
}
