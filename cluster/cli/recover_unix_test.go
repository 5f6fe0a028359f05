//go:build unix

package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
)

// votes returns the number of voting nodes, as the answering node sees them.
func (s *site) votes() (n int) {
	for _, v := range s.members() {
		if v.Vote == "votes" || v.Vote == "leads" {
			n++
		}
	}
	return n
}

// recovered recovers from a node once the node knows that there is no quorum.
func (s *site) recovered(node string) (r driver.Recovery) {
	s.t.Helper()
	s.await("recovery", func() bool {
		code, out, errs := s.run("cluster", "recover", "--from", node, "--format", "json")
		if code == cli.ExitTryAgain || strings.Contains(errs, "the registry has a quorum") {
			return false
		}
		expectCode(s.t, cli.ExitDone, code, errs)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			s.t.Fatal(err)
		}
		return true
	})
	return r
}

// TestRecoverAfterTheLossOfAQuorum kills two of three nodes for good. The third refuses names until
// the operator recovers from it. The two nodes then return with their old logs and vote again.
func TestRecoverAfterTheLossOfAQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	site := settle(t, "a", "b", "c")
	site.await("three voters", func() bool { return site.votes() == 3 })
	c := site.connect()
	spawn := func(name, node string) error {
		_, err := c.Spawn(t.Context(), driver.ActorSpec{Name: name, Kind: "tally", Node: node})
		return err
	}
	for name, node := range map[string]string{"old": "b", "own": "c"} {
		if err := spawn(name, node); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := site.run("cluster", "recover", "--from", "c"); code != cli.ExitInput ||
		!strings.Contains(errs, "the registry has a quorum") {
		t.Errorf("with a quorum: exit code %d: %s", code, errs)
	}
	site.join = site.addresses()["c"]
	site.seed = site.join
	c = site.connect()
	site.kill("a")
	site.kill("b")
	site.await("lack of a quorum", func() bool {
		return strings.Contains(site.must("nodes"), "node c refuses new names and submissions: no quorum")
	})
	if err := spawn("fresh", "c"); err == nil || !strings.Contains(err.Error(), "no quorum") {
		t.Errorf("without a quorum: %v", err)
	}
	site.expectNoRecovery()
	r := site.recovered("c")
	claim := driver.UnreachableClaim{Kind: "name", Name: "old", Owner: "b"}
	if r.Node != "c" || r.Already || r.Registry == r.Superseded || !slices.Equal(r.Dropped, []string{"a", "b"}) ||
		!slices.Contains(r.Claims, claim) || !exists(site.path(r.Copy))() {
		t.Errorf("%+v", r)
	}
	site.await("new name", func() bool { return spawn("fresh", "c") == nil })
	if out := site.must("cluster", "recover", "--from", "c"); !strings.HasPrefix(out,
		"node c has recovered before: nothing was changed\nregistry "+r.Registry+", started by node c, ") {
		t.Errorf("again:\n%s", out)
	}
	site.start("a")
	site.start("b")
	site.await("three voters of the new registry", func() bool { return site.votes() == 3 })
	for _, name := range []string{"a", "b"} {
		site.await(name+"'s word on its former registry", site.said[name].has("supersedes registry "+r.Superseded))
	}
	if err := spawn("own", "a"); err == nil || !strings.Contains(err.Error(), "the name own is taken by an actor") {
		t.Errorf("a name of the survivor: %v", err)
	}
}

// expectNoRecovery checks that a client's identity, an unknown node and a missing --from are
// refused.
func (s *site) expectNoRecovery() {
	s.t.Helper()
	s.must("identity", "issue", s.path("ca"), "--client", "--out", s.path("reader"))
	for _, v := range []struct{ args, want string }{
		{"--from c --identity " + s.path("reader"), "has role client and may not recover the registry"},
		{"--from x", `the cluster has no node "x"`},
		{"", "no node is given, as --from does"},
	} {
		args := append([]string{"cluster", "recover"}, strings.Fields(v.args)...)
		if code, _, errs := s.run(args...); code != cli.ExitInput || !strings.Contains(errs, v.want) {
			s.t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

// TestRunsGoOnWithoutAQuorum kills two of three nodes. The third continues the runs of its
// submission, and refuses a new submission. When the two nodes are back, all runs count.
func TestRunsGoOnWithoutAQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	s := settle(t, "a", "b", "c")
	s.await("three voters", func() bool { return s.votes() == 3 })
	s.join = s.addresses()["c"]
	s.seed = s.join
	id := s.submitTo(s.join, shortRuns, "several", "--place", "peer=c", "--repeats=25")
	other := strings.TrimSpace(s.must("submit", s.path("several.yaml"), "--detach"))
	s.kill("a")
	s.kill("b")
	s.await("lack of a quorum", s.logged(id, "counts when a majority of the registry's voters, "))
	done := s.status(id).Done
	code, _, errs := s.run("submit", s.path("several.yaml"), "--detach")
	if code != cli.ExitTryAgain || !strings.Contains(errs, "no submission is accepted now: no quorum: this process "+
		"hears no majority of the voters ") {
		t.Errorf("without a quorum: exit code %d: %s", code, errs)
	}
	if code, _, errs := s.run("stop", other); code != cli.ExitFailed ||
		!strings.Contains(errs, "is stopped here, but the registry has no quorum") {
		t.Errorf("stopped without a quorum: exit code %d: %s", code, errs)
	}
	if code, _, errs := s.run("remove", other); code != cli.ExitTryAgain ||
		!strings.Contains(errs, "has ended, but the registry does not know yet") {
		t.Errorf("removed without a quorum: exit code %d: %s", code, errs)
	}
	s.await("further runs", func() bool { return s.status(id).Done > done+2 })
	s.start("a")
	s.start("b")
	s.over(id)
	now := s.status(id)
	ended := now.State == driver.Done || now.State == driver.Degraded
	if !ended || now.Done != 25 || now.Process != "c" {
		t.Errorf("%+v", now)
	}
	s.await("copies", func() bool { return len(s.status(id).Lacking) == 0 })
	s.must("remove", other)
}
