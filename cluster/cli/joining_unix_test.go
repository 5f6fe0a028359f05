//go:build unix

package cli_test

import (
	"net"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

func TestCommandsToANodeThatIsJoiningSayThatItIsAndLeaveItAlive(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	site := newSite(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a seed that does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // a test's
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	site.must("identity", "issue", site.path("ca"), "--node", "b", "--out", site.path("b"))
	site.must("identity", "issue", site.path("ca"), "--client", "--out", site.path("client"))
	site.join, site.operator = address, site.path("client")
	node := site.program("node", "--bind", address, "--identity", "b", "--join", silent.Addr().String())
	node.start(t)
	site.await("open port", func() bool {
		code, _, errs := site.run("nodes")
		if code != cli.ExitTryAgain && !strings.Contains(errs, "no node runs there") {
			t.Fatalf("code %d: %s", code, errs)
		}
		return code == cli.ExitTryAgain
	})
	for _, args := range [][]string{{"nodes"}, {"submissions"}, {"status", "a"}, {"actors"}} {
		code, _, errs := site.run(args...)
		if code != cli.ExitTryAgain || !strings.Contains(errs, "process b is joining the cluster") {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
}
