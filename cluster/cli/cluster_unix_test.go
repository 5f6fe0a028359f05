//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// asynchronous goes on as long as it is let.
const asynchronous = `name: asynchronous
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes:
  - {name: server, role: server}
  - {name: b, role: worker, compute: {step: 5ms}}
  - {name: c, role: worker, compute: {step: 5ms}}
evaluate: {every: 100ms}
stop: {time: 1h}
`

func TestNodeThatIsKilledIsMissedAndTakesItsPartAgainWhenItIsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	site := settle(t, "a", "b", "c")
	site.write("plan.yaml", asynchronous)
	id := strings.TrimSpace(site.must("submit", site.path("plan.yaml"), "--place", "server=a", "--detach"))
	site.await("beginning", site.logged(id, "began on a, b, c"))
	site.kill("b")
	site.await("news of b", site.logged(id, "without b from now on"))
	if s := site.status(id); s.State != driver.Running || s.Placement["b"] != "b" || s.Placement["server"] != "a" {
		t.Fatalf("%+v", s)
	}
	site.start("b")
	site.await("return of b", site.logged(id, "b is back"))
	site.signal(os.Interrupt, "b")
	if s := site.nodes["b"].end(t); s.ExitStatus() != cli.ExitDone {
		t.Errorf("b ends with %v", s)
	}
	site.await("second news of b", func() bool {
		return strings.Count(site.must("logs", id),
			"without b from now on") >= 2
	})
	if one, all := site.must("submissions"), site.must("status"); one != all || !strings.Contains(all, id) {
		t.Errorf("status without a name says\n%s\nthe list is\n%s", all, one)
	}
	if out := site.must("stop", id[:4]); !strings.Contains(out, id+" is stopped with 0 of 1 runs") {
		t.Error(out)
	}
}

func TestRunIsGivenUpWhenTheProcessThatConductsItIsKilled(t *testing.T) {
	turns.Take(t, 1, 2)
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	site := settle(t, "a", "b")
	site.write("plan.yaml", asynchronous)
	all := site.members()
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	id := strings.TrimSpace(site.must("submit", site.path("plan.yaml"), "--detach"))
	site.await("beginning", site.logged(id, "began on a, b"))
	site.kill("a")
	site.join = site.seed + "," + all[1].Address // the first does not answer
	site.await("news of a", func() bool { return !strings.Contains(site.must("nodes"), "\na ") })
	if s := site.status(id); s.Process != "a" || s.State != driver.Running || s.Away.IsZero() {
		t.Errorf("%+v", s)
	}
	if out := site.must("status", id); !strings.Contains(out, "a is since 2") ||
		!strings.Contains(out, "does not survive process a") {
		t.Error(out)
	}
	for _, args := range [][]string{{"logs", id}, {"stop", id}, {"fetch", id, "--out", site.path("x")},
		{"remove", id}} {
		code, _, errs := site.run(args...)
		if code != cli.ExitTryAgain || !strings.Contains(errs,
			"run "+id+" is kept by process a, which is away since 2") {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
	site.await("loss", func() bool {
		code, out, errs := site.run("status", id)
		return code == cli.ExitFailed && strings.Contains(out, "lost") &&
			strings.Contains(errs, "no other process goes on")
	})
	code, _, errs := site.run("status", "zzz")
	if code != cli.ExitInput || !strings.Contains(errs, "the cluster knows no submission") {
		t.Errorf("code %d: %s", code, errs)
	}
	site.bringBackVoter(all[1].Address)
	next := site.program(site.flags("submit", "plan.yaml", "--set", "stop={steps: 20}")...)
	next.start(t)
	if s := next.end(t); s.ExitStatus() != cli.ExitDone {
		t.Errorf("the next submission ends with %v: %s", s, next.errs.String())
	}
	if records, _ := filepath.Glob(site.path("results/asynchronous-*/summary.json")); len(records) != 1 {
		t.Errorf("records in %v", records)
	}
	site.hangUp("b")
	site.signal(syscall.SIGTERM, "b")
	if s := site.nodes["b"].end(t); s.ExitStatus() != cli.ExitDone {
		t.Errorf("b ends with %v", s) // it waits for all that it hosts
	}
}

// bringBackVoter restarts node a, the only voter of two nodes. Without node a, the other node
// accepts no submission.
func (s *site) bringBackVoter(seed string) {
	s.t.Helper()
	code, _, errs := s.run("submit", s.path("plan.yaml"), "--detach")
	if code != cli.ExitTryAgain || !strings.Contains(errs, "no submission is accepted now: no quorum: this process "+
		"hears no majority of the voters a") {
		s.t.Errorf("without the voter: code %d: %s", code, errs)
	}
	s.seed = seed
	s.start("a")
}

// hangUp gives a node a certificate that ends soon, has it read with SIGHUP, and then one that
// holds.
func (s *site) hangUp(name string) {
	s.t.Helper()
	for _, x := range []struct{ lifetime, want string }{{"1h", "EXPIRES 2"}, {"9000h", "until 2"}} {
		next := s.path("next-" + x.lifetime)
		s.must("identity", "issue", s.path("ca"), "--node", name, "--again", "--lifetime", x.lifetime, "--out", next)
		for _, file := range []string{"cert.pem", "cert.key"} {
			if err := os.Rename(filepath.Join(next, file), filepath.Join(s.path(name), file)); err != nil {
				s.t.Fatal(err)
			}
		}
		s.signal(syscall.SIGHUP, name)
		s.await("new certificate", func() bool { return strings.Contains(s.must("nodes"), x.want) })
	}
}

func TestRunGoesOnWhenItsDriverIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	site := settle(t, "a", "b")
	site.write("plan.yaml", strings.Replace(asynchronous, "1h", "2s", 1))
	submit := site.program(site.flags("submit", "plan.yaml")...)
	h := listen(t, submit)
	site.await("submission", h.has("submission "))
	id := strings.Fields(h.find("submission "))[1]
	if err := submit.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	submit.end(t)
	if out := site.ends(id, driver.Done, site.path("fetched")); !strings.Contains(out,
		"\nOpen "+filepath.Join(site.path("fetched"), "index.html")) {
		t.Error(out)
	}
	s, err := record.ReadSummary(site.path("fetched"))
	if err != nil || !s.Complete || s.Runs[0].Clock != "cluster" || s.Runs[0].Duration < 1.9 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{"plan.yaml", "curve.csv", "links.csv", "updates.csv", "runs/0000/model.safetensors"} {
		if _, err := os.Stat(filepath.Join(site.path("fetched"), name)); err != nil {
			t.Error(err)
		}
	}
}

func TestThrowAwayClusterLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			site := newSite(t)
			site.write("plan.yaml", strings.Replace(asynchronous, "time: 1h", "steps: 40", 1))
			site.write("tmp/x", "")
			up := site.program("up", "--nodes", "2", "--verbose")
			up.Env = append(up.Env, "TMPDIR="+site.path("tmp"))
			h := listen(t, up)
			site.await("cluster", h.has("export "))
			words := strings.Fields(h.find("export "))
			site.join = strings.TrimPrefix(words[1], "GRADWIRE_JOIN=")
			site.operator = strings.TrimPrefix(words[2], "GRADWIRE_IDENTITY=")
			site.useThrowAway()
			if err := up.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if s := up.end(t); sig == os.Interrupt && s.ExitStatus() != cli.ExitDone {
				t.Errorf("up ends with %v: %v", s, h.lines)
			}
			site.operator = site.path("operator") // another cluster's, which is enough to be answered
			site.await("end of the nodes", func() bool {
				_, _, errs := site.run("nodes")
				return strings.Contains(errs, "no node runs there")
			})
			if left, _ := filepath.Glob(site.path("tmp/gradwire-*")); sig == os.Interrupt && len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// useThrowAway submits to a cluster of gradwire up, whose folder is below tmp.
func (s *site) useThrowAway() {
	s.t.Helper()
	plan := s.path("plan.yaml")
	out := s.submit(s.path("results/first"), plan)
	if !strings.Contains(out, "\nOpen "+filepath.Join(s.path("results/first"), "index.html")+"\n") {
		s.t.Error(out)
	}
	printed := s.submit(s.path("second"), plan, "--format", "json")
	expectSummary(s.t, printed, s.path("second"))
	before := s.must("submissions")
	code, _, errs := s.run("submit", plan, "--out", s.path("second"))
	if code != cli.ExitInput || !strings.Contains(errs, "is not empty") {
		s.t.Errorf("code %d: %s", code, errs)
	}
	if after := s.must("runs"); after != before { // as submissions may be called
		s.t.Errorf("submitted though its record cannot be copied: %s", after)
	}
	var told map[string]string
	out = s.must("submit", plan, "--detach", "--format", "json")
	if err := json.Unmarshal([]byte(out), &told); err != nil || len(told) != 1 {
		s.t.Errorf("%v: %s", err, out)
	}
	s.over(told["submission"])
	if keys, _ := filepath.Glob(s.path("tmp/gradwire-up-*/*/ca.key")); len(keys) > 0 {
		s.t.Errorf("the authority's key lies in %v", keys)
	}
}

// submit prints an estimate of the cost of the runs in real time.
func TestSubmitForecastsARunInRealTime(t *testing.T) {
	s := settle(t, "a")
	s.write("plan.yaml", shortRuns)
	code, _, errs := s.run("submit", s.path("plan.yaml"), "--repeats=3", "--detach")
	expectCode(t, cli.ExitDone, code, errs)
	line := regexp.MustCompile(`(?m)^3 runs, about [34][.0-9]* s in real time, .* sent, .* of memory$`)
	if !line.MatchString(errs) {
		t.Errorf("no estimate in\n%s", errs)
	}
}
