package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/turns"
)

// island is a site whose nodes have a network each, on one bridge. It takes root.
type island struct {
	*site
	number int    // among the islands of this process
	prefix string // of names in the system
	names  []string
}

// islands counts the islands that were made.
var islands atomic.Int64

func newIsland(t *testing.T, names ...string) *island {
	t.Helper()
	n := int(islands.Add(1))
	i := &island{number: n, prefix: fmt.Sprintf("gw%d%c", os.Getpid()%100000, 'a'+n%26), names: names}
	i.site = newSite(t)
	t.Cleanup(i.sink)
	if out, err := i.try("link", "add", i.prefix, "type", "bridge"); err != nil {
		t.Skipf("networks can only be made by root on Linux: %v: %s", err, out)
	}
	i.ip("addr", "add", i.address(-1)+"/24", "dev", i.prefix)
	i.ip("link", "set", i.prefix, "up")
	for n, name := range names {
		space, outer := i.prefix+name, i.prefix+"-"+name
		i.ip("netns", "add", space)
		i.ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
		i.ip("link", "set", outer, "master", i.prefix, "up")
		i.ip("-n", space, "link", "set", "lo", "up")
		i.ip("-n", space, "addr", "add", i.address(n)+"/24", "dev", "eth0")
		i.ip("-n", space, "link", "set", "eth0", "up")
	}
	return i
}

// address returns the address of a node, by its position; -1 stands for this process.
func (i *island) address(n int) string {
	return fmt.Sprintf("10.251.%d.%d", (os.Getpid()+i.number)%250, n+2)
}

func (i *island) at(name string) string { return i.address(slices.Index(i.names, name)) }

func (i *island) try(args ...string) (string, error) {
	out, err := exec.Command("ip", args...).CombinedOutput() //nolint:gosec // a test's
	return string(out), err
}

func (i *island) ip(args ...string) {
	i.t.Helper()
	if out, err := i.try(args...); err != nil {
		i.t.Skipf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// sink removes all of it.
func (i *island) sink() {
	for _, name := range i.names {
		_, _ = i.try("link", "del", i.prefix+"-"+name)
		_, _ = i.try("netns", "del", i.prefix+name)
	}
	_, _ = i.try("link", "del", i.prefix)
}

// cut takes a node off the network; mend puts it back.
func (i *island) cut(name string)  { i.ip("link", "set", i.prefix+"-"+name, "down") }
func (i *island) mend(name string) { i.ip("link", "set", i.prefix+"-"+name, "up") }

// part drops whatever one node sends to another; meet undoes it.
func (i *island) part(from, to string) {
	i.ip("-n", i.prefix+from, "route", "add", "blackhole", i.at(to)+"/32")
}

func (i *island) meet(from, to string) {
	i.ip("-n", i.prefix+from, "route", "del", "blackhole", i.at(to)+"/32")
}

// settle starts the nodes of the island.
func (i *island) settle() {
	i.t.Helper()
	i.seed = i.at(i.names[0]) + ":7946"
	i.join = i.seed
	for n, name := range i.names {
		i.must("identity", "issue", i.path("ca"), "--node", name, "--out", i.path(name))
		args := []string{"node", "--bind", i.at(name) + ":7946", "--identity", name, "--out", "records-" + name}
		if n > 0 {
			args = append(args, "--join", i.seed)
		}
		args = append(args, i.settings...)
		p := i.program(args...)
		p.Args = append([]string{"ip", "netns", "exec", i.prefix + name}, p.Args...)
		p.Path, p.Err = exec.LookPath("ip")
		i.await("node "+name, listen(i.t, p).has("ready at "))
	}
	i.await("cluster", func() bool { return strings.Count(i.must("nodes"), "\n") == len(i.names)+1 })
}

func TestNodeThatIsCutOffIsDoneWithoutAndTakenInAgainWhenTheNetworkIsBack(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	t.Parallel()
	for name, length := range map[string]time.Duration{
		"briefly": 5 * time.Second,
		"long":    25 * time.Second, // the cluster has given the node up, and the node the cluster
	} {
		t.Run(name, func(t *testing.T) {
			i := newIsland(t, "a", "b", "c", "d")
			i.settle()
			whole := length + 20*time.Second
			id := i.beginTogether("stop.time=" + whole.String())
			i.cut("d")
			cut := time.Now()
			i.await("news of d", i.logged(id, "without d from now on"))
			noticed := i.when(id, "without d from now on").Sub(cut)
			time.Sleep(length - time.Since(cut)) // how long it lasts
			i.mend("d")
			joined := time.Now()
			i.await("return of d", i.logged(id, "d is back"))
			back := i.when(id, "d is back").Sub(joined)
			steps := i.endTogether(id, driver.Done)
			pause, from := longest(steps)
			t.Logf("cut off for %v: out of the view after %v; the longest pause between two rounds of all-reduce "+
				"was %v, from %v on; back %v after the network", length, noticed.Round(time.Millisecond),
				pause.Round(time.Millisecond), from.Round(time.Millisecond), back.Round(time.Millisecond))
			if noticed > 6*time.Second || pause > 10*time.Second || back > 25*time.Second {
				t.Errorf("noticed after %v, rounds paused for %v, back after %v", noticed, pause, back)
			}
			if again := i.stepsOf("fetched", "peer4"); len(again) == 0 || again[len(again)-1] < whole-time.Second {
				t.Errorf("the node that was cut off makes no steps at the end: %d in all\n%s", len(again),
					i.must("logs", id))
			}
		})
	}
}

// Who hears nobody does not take all others for gone.
func TestConductorThatIsCutOffThrowsNobodyOut(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	i := newIsland(t, "a", "b", "c", "d")
	i.settings = []string{"--node-timeout", "20s"} // so that no other process takes over
	i.settle()
	id := i.beginTogether("stop.time=16s")
	i.cut("a")
	time.Sleep(5 * time.Second) // how long it lasts
	i.mend("a")
	steps := i.endTogether(id, driver.Degraded)
	log := i.must("logs", id)
	if strings.Contains(log, "without ") || strings.Count(log, " was silent until ") != 3 {
		t.Errorf("the conductor was cut off: %s", log)
	}
	if last := steps[len(steps)-1]; last < 15*time.Second {
		t.Errorf("the last round was at %v of 16 s\n%s", last, log)
	}
}

// All packets of the process that leads a submission are dropped; no connection reports an error.
func TestLeaderThatVanishesIsReplacedAfterItsTimeout(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	i := newIsland(t, "a", "b", "c")
	i.settle()
	i.write("plan.yaml", shortRuns)
	s := &succession{site: i.site, runs: 12}
	s.id = strings.TrimSpace(i.must("submit", i.path("plan.yaml"), "--repeats=12", "--detach"))
	i.await("finished run", func() bool { return i.status(s.id).Done > 0 })
	i.join = i.at("b") + ":7946"
	i.cut("a")
	began := time.Now()
	i.await("successor", func() bool {
		now := s.now()
		return now.Process != "" && now.Process != "a" && now.Away.IsZero()
	})
	t.Logf("another process goes on after %v", time.Since(began).Round(time.Second))
	i.mend("a")
	i.await("return of a", func() bool { return strings.Count(i.must("nodes"), " up ")+1 == len(i.names) })
	i.await("end", func() bool { now := s.now(); return now.ID != "" && now.Over() })
	i.must("fetch", s.id, "--out", i.path("fetched"))
	s.expectTold("a", 5)
	s.expectOneRecord("a")
}

// The conductor hears both c and d, who do not hear each other.
func TestRunGoesOnWithoutOneOfTwoThatDoNotHearEachOther(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	i := newIsland(t, "a", "b", "c", "d")
	i.settle()
	id := i.beginTogether("stop.time=25s")
	i.part("c", "d")
	i.part("d", "c")
	parted := time.Now()
	i.await("news of d", i.logged(id, "without d from now on"))
	noticed := i.when(id, "without d from now on").Sub(parted)
	time.Sleep(5 * time.Second) // in which the others go on
	i.meet("c", "d")
	i.meet("d", "c")
	met := time.Now()
	i.await("return of d", i.logged(id, "d is back"))
	back := i.when(id, "d is back").Sub(met)
	pause, from := longest(i.endTogether(id, driver.Done))
	t.Logf("c and d apart: one out of the view after %v; the longest pause between two rounds of all-reduce "+
		"was %v, from %v on; back %v after they met", noticed.Round(time.Millisecond),
		pause.Round(time.Millisecond), from.Round(time.Millisecond), back.Round(time.Millisecond))
	if noticed > 8*time.Second || pause > 12*time.Second || back > 30*time.Second {
		t.Errorf("noticed after %v, rounds paused for %v, back after %v\n%s", noticed, pause, back, i.must("logs", id))
	}
	if again := i.stepsOf("fetched", "peer4"); len(again) == 0 || again[len(again)-1] < 24*time.Second {
		t.Errorf("the node that was apart makes no steps at the end: %d in all\n%s", len(again), i.must("logs", id))
	}
}

// What a worker has sent is under way for longer than a standstill takes to be noticed.
func TestRunWaitsForASilentServerWhoseModelNobodyElseHas(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	i := newIsland(t, "a", "b")
	i.settle()
	i.write("plan.yaml", strings.Replace(asynchronous, "{time: 1h}", "{epochs: 60}", 1)+"record: events\n")
	id := strings.TrimSpace(i.must("submit", i.path("plan.yaml"), "--place", "server=b", "--place", "worker=a",
		"--detach"))
	i.await("progress", func() bool { return i.status(id).Share > 0 })
	i.cut("b")
	i.await("news of b", i.logged(id, "b is silent"))
	time.Sleep(4 * time.Second) // for so long the network stays away, and membership has not given the server up
	i.mend("b")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v\n%s", i.status(id), i.must("logs", id))
		}
	})
	i.await("end", func() bool { return i.status(id).State != driver.Running })
	if s := i.status(id); s.State != driver.Degraded || strings.Contains(i.must("logs", id), "without b") {
		t.Fatalf("%+v\n%s", s, i.must("logs", id))
	}
	i.must("fetch", id, "--out", i.path("fetched"))
	if pause, _ := longest(i.stepsOf("fetched", "c")); pause < 5*time.Second {
		t.Errorf("the longest pause between two steps was %v, though the server was away for more than 5 s", pause)
	}
}

// Both sides of a partition claim a name. The side with the majority gets it. The other side is refused with
// the reason, and learns the owner when the partition ends.
func TestNameIsClaimedOnceAcrossAPartition(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	i := newIsland(t, "a", "b", "c")
	i.settle()
	i.await("three voters", func() bool { return strings.Count(i.must("nodes"), "votes") == 2 })
	at := func(name string) *driver.Client {
		i.seed = i.at(name) + ":7946"
		return i.connect()
	}
	a, c := at("a"), at("c")
	for _, other := range []string{"a", "b"} {
		i.part("c", other)
		i.part(other, "c")
	}
	i.join = i.at("c") + ":7946"
	i.await("report of the lost quorum", func() bool {
		return strings.Contains(i.must("nodes"),
			"node c refuses new names and submissions: no quorum: this process hears no majority of the voters a, ")
	})
	spec := driver.ActorSpec{Name: "votes", Kind: "tally", Settings: "{first: 40}", Node: "c"}
	if _, err := c.Spawn(t.Context(), spec); err == nil || !strings.Contains(err.Error(),
		"the name votes cannot be claimed: no quorum: this process hears no majority of the voters a, ") {
		t.Errorf("the minority claims the name: %v", err)
	}
	spec.Node = "a"
	i.await("the name", func() bool {
		_, err := a.Spawn(t.Context(), spec)
		return err == nil
	})
	for _, other := range []string{"a", "b"} {
		i.meet("c", other)
		i.meet(other, "c")
	}
	i.await("the quorum", func() bool { return !strings.Contains(i.must("nodes"), "no quorum") })
	spec.Node = "c"
	_, err := c.Spawn(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "votes is taken by an actor") {
		t.Errorf("the name is claimed twice: %v", err)
	}
	i.await("one owner", func() bool { all := i.actors(); return len(all) == 1 && all[0].Node == "a" })
}
