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
	t.Chdir(t.TempDir())
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
	must(t, "identity", "init", "ca")
	must(t, "identity", "issue", "ca", "--node", "b")
	must(t, "identity", "issue", "ca", "--client")
	node := newProgram(t, "node", "--bind", address, "--identity", "b", "--join", silent.Addr().String())
	node.start(t)
	await(t, "open port", func() bool {
		code, _, errs := gradwire(t, "nodes", "--join", address, "--identity", "client")
		if code != cli.ExitTryAgain && !strings.Contains(errs, "no node runs there") {
			t.Fatalf("code %d: %s", code, errs)
		}
		return code == cli.ExitTryAgain
	})
	for _, args := range [][]string{{"nodes"}, {"submissions"}, {"status", "a"}, {"actors"}} {
		code, _, errs := gradwire(t, append(args, "--join", address, "--identity", "client")...)
		if code != cli.ExitTryAgain || !strings.Contains(errs, "process b is joining the cluster") {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
}
