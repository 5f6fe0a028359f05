//go:build unix

package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// addresses returns the addresses of the cluster's processes, by name, once each process knows all.
func (s *site) addresses() map[string]string {
	s.t.Helper()
	all, at := s.members(), map[string]string{}
	for _, n := range all {
		at[n.Name] = n.Address
		s.await("cluster", func() bool { return len(s.members("--join", n.Address)) == len(all) })
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
func (s *site) submitTo(process, plan, name string, args ...string) (id string) {
	s.t.Helper()
	s.write(name+".yaml", plan)
	args = append([]string{"submit", s.path(name + ".yaml"), "--detach", "--join", process}, args...)
	id = strings.TrimSpace(s.must(args...))
	s.await("progress of "+name, func() bool { return s.status(id).Share > 0 })
	return id
}

// over waits for the end of a submission, and returns its log.
func (s *site) over(id string) string {
	s.t.Helper()
	s.await("end of "+id, func() bool { now := s.status(id); return now.Over() })
	return s.must("logs", id)
}

// fetched is the record of a submission of one run, which is degraded or not.
func (s *site) fetched(id string, degraded bool) record.Run {
	s.t.Helper()
	s.must("fetch", id, "--out", s.path(id))
	summary, err := record.ReadSummary(s.path(id))
	if err != nil || len(summary.Runs) != 1 {
		s.t.Fatalf("%+v, %v\n%s", summary, err, s.must("logs", id))
	}
	want := record.Done
	if degraded {
		want = record.Degraded
	}
	if r := summary.Runs[0]; r.Outcome != want {
		s.t.Errorf("the run is %q: %+v", r.Outcome, r.Incidents)
	}
	return summary.Runs[0]
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

// Both conductors pause for less than the node timeout, but for longer than membership takes to give a
// process up. Neither hosts a node of the run that it conducts. The first one hosts the server of a
// third run.
func TestPauseOfTheConductorCostsNobodyItsModelAndIsTold(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	site := siteAlone(t)
	site.settings = []string{"--node-timeout", "30s"}
	site.settle([]string{"c", "a", "b", "d"})
	at := site.addresses()
	within := site.submitTo(at["a"], peers, "peers", "--place=peer1=c", "--place=peer2=d")
	beyond := site.submitTo(at["b"], lasting("9s"), "beyond", "--place=server=c", "--place=worker=d")
	served := site.submitTo(at["d"], lasting("22s"), "served", "--place=server=a", "--place=worker=c")
	site.signal(syscall.SIGSTOP, "a", "b")
	time.Sleep(17 * time.Second) // how long it lasts
	site.signal(syscall.SIGCONT, "a", "b")

	log := site.over(within)
	if errs := lacks(log, []string{
		"coordinator evaluated nothing from ", "because process a, which conducts the run, was paused for 1",
	}, "without ", "lost"); errs != nil {
		t.Errorf("%q in %s", errs, log)
	}
	run := site.fetched(within, true)
	for _, peer := range []string{"peer1", "peer2"} {
		steps := site.stepsOf(within, peer)
		pause, from := longest(steps)
		if last := steps[len(steps)-1]; pause > 3*time.Second || last < 22*time.Second || len(steps) < 700 {
			t.Errorf("%s made %d steps, the last at %v, with a pause of %v at %v", peer, len(steps), last, pause, from)
		}
	}
	if run.Steps < 1400 || run.Duration < 22 {
		t.Errorf("a record of %d steps and %v s", run.Steps, run.Duration)
	}

	log = site.over(beyond)
	if errs := lacks(log, []string{
		"because process b, which conducts the run, was paused", "; the run was to end at 9.0 s",
	}, "without "); errs != nil {
		t.Errorf("%q in %s", errs, log)
	}
	site.fetched(beyond, true)

	log = site.over(served)
	if errs := lacks(log, []string{"server was silent until "}, "without ", "lost"); errs != nil {
		t.Errorf("a server that was only paused: %q in %s", errs, log)
	}
	site.fetched(served, true)
}

// The only server's process leaves in the first run, falls silent in the second, and is killed and
// comes back in the third.
func TestServerWhoseProcessGoesIsNeverSilentlyReplaced(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	site := settle(t, "a", "b", "c", "d", "e", "f")
	at := site.addresses()
	// On a busy machine each submission takes up the time of the runs before it, and commands wait
	// for a process that is silent: so each run is disturbed soon, and that of f last.
	gone := site.submitTo(at["b"], lasting("5s"), "gone", "--place=server=d", "--place=worker=b")
	site.signal(syscall.SIGTERM, "d")
	left := time.Now()
	silent := site.submitTo(at["e"], lasting("8s"), "silent", "--place=server=f", "--place=worker=e")
	again := site.submitTo(at["a"], lasting("14s"), "again", "--place=server=c", "--place=worker=a")
	site.kill("c")
	site.signal(syscall.SIGSTOP, "f")
	next := strings.TrimSpace(site.must("submit", site.path("again.yaml"), "--set=stop={steps: 20}", "--detach",
		"--join", at["b"],
		"--place=server=b", "--place=worker=a"))
	site.await("news of c", site.logged(again, "without c from now on"))
	site.start("c")

	for id, process := range map[string]string{gone: "process d", silent: "process f", again: "process c"} {
		log := site.over(id)
		if took := time.Since(left); took > 45*time.Second {
			t.Errorf("a run whose server is gone ended after %v", took)
		}
		if s := site.status(id); s.State != driver.Failed || lacks(log, []string{"server", process}) != nil {
			t.Errorf("%+v\n%s", s, log)
		}
	}
	site.ends(next, driver.Done, site.path("next"))
}

// several is a plan of three servers and two workers that goes on for so long.
func several(d string) string {
	return strings.Replace(lasting(d), "- {name: server, role: server}", "- {name: s, count: 3, role: server}", 1) +
		"record: events\n"
}

// One of several servers leaves with its process, in order, and comes back with it, and no worker
// stops for long. In another run one is killed.
func TestServersLeaveAndJoinWithTheirProcessesWhileARunGoesOn(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	site := settleAlone(t, "a", "b", "c", "d", "e")
	at := site.addresses()
	place := []string{"--place=s1=c", "--place=s2=d", "--place=s3=e", "--place=worker=b"}
	id := site.submitTo(at["a"], several("18s"), "several", place...)
	site.signal(syscall.SIGTERM, "d")
	site.nodes["d"].end(t)
	site.start("d")
	site.await("the return of d", site.logged(id, "d is back"))
	log := site.over(id)
	if errs := lacks(log, nil, "s2 has gone", "lost", "not everything was handed over"); errs != nil {
		t.Errorf("%q in %s", errs, log)
	}
	site.fetched(id, false)
	for _, worker := range []string{"b", "c"} {
		steps := site.stepsOf(id, worker)
		if pause, from := longest(steps); pause > time.Second || len(steps) < 500 {
			t.Errorf("%s made %d steps, with a pause of %v at %v", worker, len(steps), pause, from)
		}
	}

	id = site.submitTo(at["a"], several("1h"), "killed", place...)
	site.kill("e")
	log = site.over(id)
	const want = "s3 has gone without handing over its part of the parameters"
	if s := site.status(id); s.State != driver.Failed || !strings.Contains(log, want) {
		t.Errorf("%+v\n%s", s, log)
	}
}
