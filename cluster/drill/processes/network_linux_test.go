package processes

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
)

// island is a bridge with a network namespace for each process. It can drop the packets between
// two processes. The test's own process always reaches all of them.
type island struct {
	number int
	prefix string // prefix of the names of links and namespaces
	names  []string
}

// islands counts the islands of this process.
var islands atomic.Int64

// newIsland creates the bridge and the namespaces.
func newIsland(names []string) (*island, error) {
	n := int(islands.Add(1))
	i := &island{number: n, prefix: fmt.Sprintf("gp%d%c", os.Getpid()%100000, 'a'+n%26), names: names}
	steps := [][]string{
		{"link", "add", i.prefix, "type", "bridge"},
		{"addr", "add", i.address(-1) + "/24", "dev", i.prefix},
		{"link", "set", i.prefix, "up"},
	}
	for n, name := range names {
		space, outer := i.space(name), i.prefix+"-"+name
		steps = append(steps, []string{"netns", "add", space},
			[]string{"link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space},
			[]string{"link", "set", outer, "master", i.prefix, "up"},
			[]string{"-n", space, "link", "set", "lo", "up"},
			[]string{"-n", space, "addr", "add", i.address(n) + "/24", "dev", "eth0"},
			[]string{"-n", space, "link", "set", "eth0", "up"},
			// Rules that drop packets come before the rule that delivers local packets.
			[]string{"-n", space, "rule", "add", "pref", "100", "lookup", "local"},
			[]string{"-n", space, "rule", "del", "pref", "0"})
	}
	for _, args := range steps {
		if err := ip(args...); err != nil {
			i.remove()
			return nil, err
		}
	}
	return i, nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil { //nolint:gosec // of this test
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (i *island) space(name string) string { return i.prefix + name }

// address returns the address of the process at a position; -1 stands for the test's own process.
func (i *island) address(n int) string {
	return fmt.Sprintf("10.252.%d.%d", (os.Getpid()+i.number)%250, n+2)
}

// drop starts or stops the silent loss, at a process, of all packets from another process.
func (i *island) drop(at, from string, on bool) error {
	do, pref := "add", 10+slices.Index(i.names, from)
	if !on {
		do = "del"
	}
	return ip("-n", i.space(at), "rule", do, "pref", fmt.Sprint(pref), "from", i.address(slices.Index(i.names, from)),
		"blackhole")
}

// remove removes the bridge and the namespaces.
func (i *island) remove() {
	for _, name := range i.names {
		_ = ip("link", "del", i.prefix+"-"+name)
		_ = ip("netns", "del", i.space(name))
	}
	_ = ip("link", "del", i.prefix)
}
