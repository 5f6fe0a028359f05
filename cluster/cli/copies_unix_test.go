//go:build unix

package cli_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/turns"
)

// Process a comes back with an empty disk, though b and c have copies: every command finds them.
func TestEveryCommandFindsTheCopyOfARecordThatItsProcessHasLost(t *testing.T) {
	turns.Take(t, 0, 2)
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	s := settle(t, "a", "b", "c")
	s.write("plan.yaml", strings.Replace(shortRuns, "steps: 80", "steps: 30", 1))
	at := s.addresses()
	submit := func(args ...string) string {
		return strings.TrimSpace(s.must(append([]string{"submit", s.path("plan.yaml"), "--join", at["a"], "--detach"},
			args...)...))
	}
	whole, part := submit(), submit("--repeats=50")
	s.await("finished run", func() bool { return s.status(part).Done > 0 })
	s.must("stop", part)
	s.await("end", func() bool { now := s.status(part); return now.Over() && len(now.Lacking) == 0 })
	s.kill("a")
	if err := os.RemoveAll(s.path("records-a")); err != nil {
		t.Fatal(err)
	}
	s.join, s.seed = at["b"], at["b"]
	s.start("a")
	s.await("three nodes", func() bool { return strings.Count(s.must("nodes"), "\n") == 4 })

	now := s.status(whole)
	if ended := now.State == driver.Done || now.State == driver.Degraded; !ended || now.Process == "a" || !now.Copy {
		t.Errorf("%+v", now) // a busy machine degrades a run that was late
	}
	if out := s.must("status", whole); !strings.Contains(out, "a copy at ") {
		t.Error(out)
	}
	if errs := lacks(s.must("logs", whole), []string{"copy of the record in ", "run 0 "}); errs != nil {
		t.Error(errs)
	}
	if list := s.must("submissions"); strings.Count(list, whole) != 1 || strings.Count(list, part) != 1 {
		t.Error(list)
	}
	s.must("fetch", whole, "--out", s.path("fetched"))
	code, _, errs := gradwireHere("report", s.path("fetched"))
	expectCode(t, cli.ExitDone, code, errs)
	if code, _, errs := s.run("stop", whole); code != cli.ExitInput || !strings.Contains(errs, "is over already") {
		t.Errorf("code %d, %s", code, errs)
	}
	if code, _, errs := s.run("submit", "--continue", whole); code != cli.ExitInput ||
		!strings.Contains(errs, "all of its runs are finished") {
		t.Errorf("code %d, %s", code, errs)
	}
	next := strings.TrimSpace(s.must("submit", "--continue", part, "--detach"))
	s.await("progress", func() bool { return strings.Contains(s.must("logs", next), "goes on with submission "+part) })
	s.must("stop", next)
	s.must("remove", whole)
	for _, gone := range []string{whole, part} {
		s.await("removal", func() bool { return !strings.Contains(s.must("submissions"), gone) })
	}
}

// The folder of a record is deleted under its process, which goes on: a copy answers for it.
func TestCopyAnswersForARecordThatIsDeletedUnderItsProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := settle(t, "a", "b", "c")
	s.write("plan.yaml", strings.Replace(shortRuns, "steps: 80", "steps: 30", 1))
	id := strings.TrimSpace(s.must("submit", s.path("plan.yaml"), "--join", s.addresses()["a"], "--detach"))
	s.await("end", func() bool { now := s.status(id); return now.Over() && len(now.Lacking) == 0 })
	if err := os.RemoveAll(s.path("records-a/plan-" + id)); err != nil {
		t.Fatal(err)
	}
	s.must("fetch", id, "--out", s.path("fetched"))
	s.must("remove", id)
	s.await("removal", func() bool { return !strings.Contains(s.must("submissions"), id) })
}

// While the conductor is stopped and no process has replaced it, holders answer commands within
// seconds and in full.
func TestHoldersAnswerWhileTheConductorIsStopped(t *testing.T) {
	turns.Take(t, 0, 2)
	if testing.Short() {
		t.Skip("stops processes")
	}
	site := newSite(t)
	site.settings = []string{"--node-timeout", "30s"}
	s := (&succession{site: site.settle([]string{"a", "b", "c"}), runs: 1}).begin(
		strings.Replace(longRun, "5000", "1000000", 1), "a")
	s.await("checkpoint", func() bool { return s.status(s.id).Share > 0 })
	time.Sleep(2 * time.Second) // the others have it
	s.shun("a")
	s.signal(syscall.SIGSTOP, "a")
	began := time.Now()
	for time.Since(began) < 12*time.Second {
		asked := time.Now()
		code, out, errs := s.run("status", s.id)
		if took := time.Since(asked); code != cli.ExitDone || took > 8*time.Second {
			t.Errorf("%v after the stop: code %d after %v: %s%s", time.Since(began), code, took, out, errs)
		}
		if time.Since(began) > 6*time.Second && !strings.Contains(out, "has not heard of it since") {
			t.Error(out)
		}
	}
	if log := s.must("logs", s.id); !strings.Contains(log, "began on ") {
		t.Error(log)
	}
	if code, out, _ := s.run("submissions"); !strings.Contains(out, s.id) {
		t.Errorf("code %d, %s", code, out)
	}
	s.signal(syscall.SIGCONT, "a")
	s.await("return", func() bool { return s.now().Away.IsZero() })
	s.must("stop", s.id)
	s.following.end(t)
}

// A holder's disk is full from the start: submit, status and log say so. When the conductor dies, the
// third process goes on to the end.
func TestThirdProcessGoesOnThoughAHolderNeverHadRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	s := newSite(t)
	mountSmall(t, s.path("records-b"), "100k")
	fillDisk(t, s.path("records-b"))
	s.settle([]string{"a", "b", "c"})
	s.write("plan.yaml", shortRuns)
	code, out, errs := s.run("submit", s.path("plan.yaml"), "--detach", "--repeats=5")
	id := strings.TrimSpace(out)
	says := "copies 2 of 3, b: no space left on device"
	if code != cli.ExitDone || !strings.Contains(errs, says) {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	if now := s.status(id); len(now.Holders) != 3 || len(now.Lacking) != 1 ||
		!strings.HasPrefix(now.Lacking[0], "b: no space left on device") {
		t.Errorf("%+v", now)
	}
	s.await("log", s.logged(id, says))
	s.await("a run", func() bool { return s.status(id).Done > 0 })
	addresses := s.addresses()
	s.kill("a")
	s.join = addresses["c"]
	s.await("succession", func() bool { now := s.status(id); return now.Process == "c" && now.Away.IsZero() })
	s.await("end", func() bool { now := s.status(id); return now.Over() && now.Done == 5 })
	if state := s.status(id).State; state != driver.Done && state != driver.Degraded {
		t.Errorf("it is %s", s.must("status", id))
	}
}

// The disk of a holder is full: log and status say so, and the fourth process takes its place.
func TestHolderWithAFullDiskIsNamedAndReplaced(t *testing.T) {
	turns.Take(t, 1, 2)
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := newSite(t)
	for _, name := range []string{"b", "c", "d"} { // 16 MB: room for the copy and the registry's log
		mountSmall(t, s.path("records-"+name), "16m")
	}
	s.settle([]string{"a", "b", "c", "d"})
	s.write("plan.yaml", shortRuns)
	id := strings.TrimSpace(s.must("submit", s.path("plan.yaml"), "--detach", "--repeats=60"))
	held := s.status(id).Holders
	if len(held) != 3 {
		t.Fatalf("held by %v", held)
	}
	full := held[1]
	fillDisk(t, s.path("records-"+full))
	s.await("word of the full disk", func() bool {
		out := s.must("status", id)
		return strings.Contains(out, "2 of 3, "+full+": no space left on device")
	})
	s.await("log", s.logged(id, "copies 2 of 3, "+full+": no space left on device"))
	s.await("replacement", func() bool {
		now := s.status(id)
		return len(now.Holders) == 3 && !slices.Contains(now.Holders, full) && now.Lacking == nil
	})
	s.must("stop", id)
}
