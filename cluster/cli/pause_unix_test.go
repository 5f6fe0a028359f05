//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

// addresses are those of the processes of the cluster, by name, once each of them knows all.
func addresses(t *testing.T) map[string]string {
	t.Helper()
	var all []driver.Node
	if err := json.Unmarshal([]byte(must(t, "nodes", "--format", "json")), &all); err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, n := range all {
		at[n.Name] = n.Address
		await(t, "cluster", func() bool {
			return strings.Count(must(t, "nodes", "--join", n.Address), "\n") == len(all)+1
		})
	}
	return at
}

// lasting is a plan of a server and two workers that goes on for so long.
func lasting(d string) string { return strings.Replace(asynchronous, "1h", d, 1) }

// lacks tells what should be in a log and is not, or should not and is.
func lacks(log string, has []string, hasNot ...string) (errs []string) {
	for _, part := range has {
		if !strings.Contains(log, part) {
			errs = append(errs, "nothing of: "+part)
		}
	}
	for _, part := range hasNot {
		if strings.Contains(log, part) {
			errs = append(errs, "something of: "+part)
		}
	}
	return errs
}

// submitTo has a process conduct a plan with these settings, whose nodes live where the rest says.
func submitTo(t *testing.T, process, plan, name string, args ...string) (id string) {
	t.Helper()
	write(t, name+".yaml", plan)
	args = append([]string{"submit", name + ".yaml", "--detach", "--join", process}, args...)
	id = strings.TrimSpace(must(t, args...))
	await(t, "progress of "+name, func() bool { return status(t, id).Share > 0 })
	return id
}

// over waits for the end of a submission, and returns its log.
func over(t *testing.T, id string) string {
	t.Helper()
	await(t, "end of "+id, func() bool { s := status(t, id); return s.Over() })
	return must(t, "logs", id)
}

// fetched is the record of a submission of one run, which is degraded or not.
func fetched(t *testing.T, id string, degraded bool) record.Run {
	t.Helper()
	must(t, "fetch", id, "--out", id)
	s, err := record.ReadSummary(id)
	if err != nil || len(s.Runs) != 1 {
		t.Fatalf("%+v, %v\n%s", s, err, must(t, "logs", id))
	}
	want := record.Done
	if degraded {
		want = record.Degraded
	}
	if r := s.Runs[0]; r.Outcome != want {
		t.Errorf("the run is %q: %+v", r.Outcome, r.Incidents)
	}
	return s.Runs[0]
}

func signal(t *testing.T, s os.Signal, all ...*program) {
	t.Helper()
	for _, p := range all {
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

// peers gossip without a server, and do not wait for each other.
const peers = `name: peers
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.02}}
architecture: {kind: gossip, wait: false}
nodes: [{name: peer, count: 2, compute: {step: 20ms}}]
evaluate: {every: 500ms}
record: events
stop: {time: 23s}
`

// Both conductors are paused for longer than the cluster takes to give a process up. Neither hosts a node of its
// own run, but the first one the server of a third.
func TestPauseOfTheConductorCostsNobodyItsModelAndIsTold(t *testing.T) {
	lengthy(t)
	_, nodes := settle(t, "c", "a", "b", "d")
	at := addresses(t)
	within := submitTo(t, at["a"], peers, "peers", "--place=peer1=c", "--place=peer2=d")
	beyond := submitTo(t, at["b"], lasting("9s"), "beyond", "--place=server=c", "--place=worker=d")
	served := submitTo(t, at["d"], lasting("22s"), "served", "--place=server=a", "--place=worker=c")
	signal(t, syscall.SIGSTOP, nodes["a"], nodes["b"])
	time.Sleep(17 * time.Second) // how long it lasts
	signal(t, syscall.SIGCONT, nodes["a"], nodes["b"])

	log := over(t, within)
	if errs := lacks(log, []string{
		"coordinator evaluated nothing from ", "because process a, which conducts the run, was paused for 1",
	}, "without ", "lost"); errs != nil {
		t.Errorf("%q in %s", errs, log)
	}
	run := fetched(t, within, true)
	for _, peer := range []string{"peer1", "peer2"} {
		steps := stepsOf(t, within, peer)
		pause, from := longest(steps)
		if last := steps[len(steps)-1]; pause > 3*time.Second || last < 22*time.Second || len(steps) < 700 {
			t.Errorf("%s made %d steps, the last at %v, with a pause of %v at %v", peer, len(steps), last, pause, from)
		}
	}
	if run.Steps < 1400 || run.Duration < 22 {
		t.Errorf("a record of %d steps and %v s", run.Steps, run.Duration)
	}

	log = over(t, beyond)
	if errs := lacks(log, []string{
		"because process b, which conducts the run, was paused", "; the run was to end at 9.0 s",
	}, "without "); errs != nil {
		t.Errorf("%q in %s", errs, log)
	}
	fetched(t, beyond, true)

	log = over(t, served)
	if errs := lacks(log, []string{"server was silent until "}, "without ", "lost"); errs != nil {
		t.Errorf("a server that was only paused: %q in %s", errs, log)
	}
	fetched(t, served, true)
}

// The server's process of the first run is killed and comes back, that of the second leaves for good, and that of
// the third is not heard of any more.
func TestServerWhoseProcessGoesIsNeverSilentlyReplaced(t *testing.T) {
	lengthy(t)
	seed, nodes := settle(t, "a", "b", "c", "d", "e", "f")
	at := addresses(t)
	again := submitTo(t, at["a"], lasting("14s"), "again", "--place=server=c", "--place=worker=a")
	gone := submitTo(t, at["b"], lasting("5s"), "gone", "--place=server=d", "--place=worker=b")
	silent := submitTo(t, at["e"], lasting("5s"), "silent", "--place=server=f", "--place=worker=e")
	next := strings.TrimSpace(must(t, "submit", "again.yaml", "--set=stop.time=200ms", "--detach", "--join", at["b"],
		"--place=server=b", "--place=worker=a"))
	kill(t, nodes["c"])
	signal(t, syscall.SIGTERM, nodes["d"])
	signal(t, syscall.SIGSTOP, nodes["f"])
	left := time.Now()
	await(t, "news of c", logged(t, again, "without c from now on"))
	startNode(t, "c", seed)

	log := over(t, again)
	if errs := lacks(log, []string{
		"server lost its model: its process c was gone from ", "; it began again from the initial model at ",
	}); errs != nil {
		t.Errorf("%q in %s", errs, log)
	}
	fetched(t, again, true)

	for id, process := range map[string]string{gone: "process d", silent: "process f"} {
		log := over(t, id)
		if took := time.Since(left); took > 45*time.Second {
			t.Errorf("a run of 5 s whose server is gone ended after %v", took)
		}
		if s := status(t, id); s.State != driver.Failed || lacks(log, []string{"server", process}) != nil {
			t.Errorf("%+v\n%s", s, log)
		}
	}
	await(t, "end of what waited", func() bool { return status(t, next).State == driver.Done })
}
