//go:build unix

package cli_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// savedRun is a run of some seconds that is saved often.
var savedRun = strings.Replace(longRun, "5000", "600", 1)

// The record of a run under way is lost under its process. Another holder goes on from its copy,
// and one whole record is left.
func TestRunGoesOnFromACopyWhenItsRecordIsLost(t *testing.T) {
	lengthy(t)
	ways := map[string]func(t *testing.T, dir string) error{
		"deleted": func(_ *testing.T, dir string) error { return os.RemoveAll(dir) },
		"renamed": func(_ *testing.T, dir string) error { return os.Rename(dir, dir+"-moved") },
		"a file": func(_ *testing.T, dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
		"without its plan": func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "plan.yaml")) },
		"without its runs": func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Join(dir, "runs")) },
		"on a full disk": func(t *testing.T, dir string) error {
			fillDisk(t, filepath.Dir(dir))
			return nil
		},
	}
	for i, what := range slices.Sorted(maps.Keys(ways)) {
		t.Run(what, func(t *testing.T) {
			turns.Row(t, i, len(ways), 3)
			s := newSite(t)
			for _, name := range []string{"a", "b", "c"} {
				s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
				if name == "a" && what == "on a full disk" {
					mountSmall(t, s.path("records-a"), "2m")
				}
				s.join = s.start(name)
				s.seed = s.join
			}
			c := s.follow(savedRun, 1, "a")
			c.await("copies of a checkpoint", func() bool {
				return len(checkpoints(t, c.path("records-*/.held-*/"+c.id+"/runs/0000"))) == 2
			})
			dir := c.path("records-a/plan-" + c.id)
			err := ways[what](t, dir)
			for tries := 0; err != nil && tries < 20; tries++ { // its process may be about to write a file
				err = ways[what](t, dir)
			}
			if err != nil {
				t.Fatal(err)
			}
			lost := time.Now()
			c.await("successor", func() bool {
				now := c.now()
				return now.Away.IsZero() && now.Process != "" && now.Process != "a"
			})
			t.Logf("%s goes on after %v", c.now().Process, time.Since(lost).Round(time.Millisecond))
			c.whole()
			log := c.must("logs", c.id)
			if errs := lacks(log, []string{"process a could not keep the record; a copy takes its place",
				"goes on from its checkpoint at "}); errs != nil {
				t.Errorf("%v in\n%s", errs, log)
			}
		})
	}
}

// follow submits a plan to the process of a name, and follows it.
func (s *site) follow(plan string, runs int, name string) *succession {
	s.t.Helper()
	s.await("cluster", func() bool { return len(s.members()) == 3 })
	return (&succession{site: s, runs: runs}).begin(plan, name)
}

// A process that takes over a run refuses a checkpoint copy with one flipped bit and a correct checksum.
// It begins the run again, and no process dies.
func TestHolderRefusesACheckpointWithAChangedBit(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	s := begin(t, savedRun, 1, "a", "b", "c")
	copies := func() []string { return checkpoints(t, s.path("records-[bc]/.held-*/"+s.id+"/runs/0000")) }
	s.await("copies of a checkpoint", func() bool { return len(copies()) >= 2 })
	s.shun("a")
	s.kill("a")
	random := rand.New(rand.NewPCG(1, 3))
	for _, name := range copies() {
		t.Logf("%s: changed %s", name, changeBit(t, name, random))
		resum(t, name)
	}
	s.whole()
	log := s.must("logs", s.id)
	if errs := lacks(log, []string{"is not signed with the key of this user or cluster", "begins anew"},
		"goes on from its checkpoint"); errs != nil {
		t.Errorf("%v in\n%s", errs, log)
	}
	for _, name := range []string{"b", "c"} {
		s.signal(syscall.Signal(0), name)
	}
}

// Only the checkpoints are deleted: the run goes on, and is saved again.
func TestRunWhoseCheckpointsAreDeletedIsSavedAgain(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	s := begin(t, savedRun, 1, "a", "b", "c")
	saved := func() bool {
		return len(checkpoints(t, s.path("records-a/plan-"+s.id+"/runs/0000"))) > 0
	}
	s.await("checkpoint", saved)
	for _, what := range []string{"runs/0000/checkpoints", "runs/0000"} {
		if err := os.RemoveAll(s.path("records-a/plan-" + s.id + "/" + what)); err != nil {
			t.Fatal(err)
		}
		s.await("another checkpoint", saved)
	}
	s.following.end(t)
	summary, err := record.ReadSummary(s.path("fetched"))
	if now := s.now(); err != nil || len(summary.Runs) != 1 || !summary.Complete && !onlyLate(t, s.path("fetched")) ||
		now.Process != "a" {
		t.Errorf("%+v: %+v, %v", now, summary, err)
	}
}

// A record is lost while its submission waits, and another one when some of its runs have finished.
func TestSubmissionsGoOnFromCopiesWhenTheirRecordsAreLost(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	s := beginSeveral(t, 6, "a", "b", "c")
	next := strings.TrimSpace(s.must("submit", s.path("plan.yaml"), "--join", s.addresses()["a"], "--detach"))
	s.await("copies", func() bool { return s.now().Done >= 2 && len(s.status(next).Lacking) == 0 })
	for _, id := range []string{next, s.id} {
		if err := os.RemoveAll(s.path("records-a/plan-" + id)); err != nil {
			t.Fatal(err)
		}
	}
	s.whole()
	s.ends(next, driver.Done, s.path("next"))
	for _, id := range []string{s.id, next} {
		if now := s.status(id); now.Process == "a" || len(now.Holders) != 3 {
			t.Errorf("%+v", now)
		}
	}
	left, err := filepath.Glob(s.path("records-*/plan-*"))
	if err != nil || len(left) != 2 {
		t.Errorf("records %v, want one of each submission; %v", left, err)
	}
}

// otherBuild is a program that differs from this one in its file alone.
func (s *site) otherBuild() string {
	s.t.Helper()
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		s.t.Fatal(err)
	}
	path := s.path("other-program")
	if err := os.WriteFile(path, append(own, 0), 0o700); err != nil { //nolint:gosec // a program
		s.t.Fatal(err)
	}
	return path
}

// A process of another build takes a run over and resumes it from its checkpoint. Before that, every
// command shows that the builds differ.
func TestRunGoesOnFromItsCheckpointInAnotherBuild(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	s := newSite(t)
	other := s.otherBuild()
	for _, name := range []string{"a", "b", "c"} {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
		if name != "a" {
			s.executable = other
		}
		s.join = s.start(name)
		s.seed = s.join
	}
	c := s.follow(savedRun, 1, "a")
	c.await("note", c.heard.has("builds differ: "))
	c.await("run", func() bool { return c.now().Share > 0.1 })
	if out := c.must("status", c.id); !strings.Contains(out, "builds differ") || !strings.Contains(out, "; b, c (") &&
		!strings.Contains(out, ": b, c (") {
		t.Error(out)
	}
	if of := c.now().Builds; len(of) != 3 || of["a"] == of["b"] || of["b"] != of["c"] {
		t.Errorf("builds %v", of)
	}
	if out := c.must("nodes"); !strings.Contains(out, "builds differ") {
		t.Error(out)
	}
	c.survive("a")
	c.await("end", func() bool { now := c.now(); return now.ID != "" && now.Over() })
	if now := c.now(); now.State != driver.Degraded {
		t.Errorf("%+v", now)
	}
	c.following.end(t)
	summary, err := record.ReadSummary(c.path("fetched"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(summary.Runs[0].Incidents, func(i record.Incident) bool {
		return strings.Contains(i.What, "went on from its state here")
	}) || summary.Runs[0].Outcome != record.Degraded {
		t.Errorf("%s: %+v", summary.Runs[0].Outcome, summary.Runs[0].Incidents)
	}
}
