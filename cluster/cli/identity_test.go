package cli_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/identity"
)

func TestWhoHasNoIdentityIsToldTheCommandsThatMakeOne(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GRADWIRE_IDENTITY", "")
	t.Setenv("GRADWIRE_JOIN", "")
	for _, x := range []struct {
		command, folder string
		role            identity.Role
		lines           int
	}{
		{"node --bind 127.0.0.1:0", "a", identity.Node, 2},
		{"nodes --join 127.0.0.1:1", "operator", identity.Operator, 1},
	} {
		code, _, errs := gradwire(t, strings.Fields(x.command)...)
		expectCode(t, cli.ExitInput, code, errs)
		typed := 0
		for line := range strings.Lines(errs) {
			if line, ok := strings.CutPrefix(strings.TrimSpace(line), "gradwire "); ok {
				typed++
				code, _, errs := gradwire(t, strings.Fields(strings.Replace(line, "NAME", x.folder, 1))...)
				expectCode(t, cli.ExitDone, code, errs)
			}
		}
		id, err := identity.Load(x.folder)
		if err != nil || id.Role() != x.role || typed != x.lines {
			t.Errorf("%s: %d commands make %v, %v:\n%s", x.command, typed, id, err, errs)
		}
	}
}
