//go:build unix

package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
)

// settleShared makes a site whose nodes keep their records in one folder.
func settleShared(t *testing.T, names ...string) *site {
	t.Helper()
	s := newSite(t)
	s.shared = true
	return s.settle(names)
}

// here runs a command in the site's folder, in which the nodes work too.
func (s *site) here(args ...string) (code int, out, errs string) {
	s.t.Helper()
	p := s.program(s.flags(args...)...)
	p.start(s.t)
	return p.end(s.t).ExitStatus(), p.out.String(), p.errs.String()
}

func TestNodesAndClientOfOneFolderShareTheRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := settleShared(t, "a", "b", "c")
	s.write("several.yaml", strings.Replace(shortRuns, "steps: 80", "steps: 30", 1))
	const uncopied = ": nothing was copied\n"
	code, out, errs := s.here("submit", "several.yaml")
	records, _ := filepath.Glob(s.path("results/*/summary.json"))
	if len(records) != 1 {
		t.Fatalf("code %d, records %v: %s", code, records, errs)
	}
	folder, err := filepath.Rel(s.dir, filepath.Dir(records[0]))
	if err != nil {
		t.Fatal(err)
	}
	id := folder[strings.LastIndexByte(folder, '-')+1:]
	want := map[string]int{driver.Done: cli.ExitDone, driver.Degraded: cli.ExitDegraded}[s.status(id).State]
	if code != want || !strings.Contains(errs, "the record is already in "+folder+uncopied) ||
		!strings.Contains(out, "\nOpen "+filepath.Join(folder, "index.html")) {
		t.Errorf("code %d, want %d: %s%s", code, want, out, errs)
	}
	for _, args := range [][]string{{"fetch", id}, {"fetch", id, "--out", "copy"}, {"fetch", id, "--out", "copy"}} {
		code, _, errs := s.here(args...)
		if code != cli.ExitDone || len(args) == 2 && !strings.Contains(errs, uncopied) {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
	s.write("copy/curve.csv", "another's\n")
	code, _, errs = s.here("fetch", id, "--out", "copy")
	if code != cli.ExitInput || !strings.Contains(errs, "name another folder, as in\n") ||
		!strings.Contains(errs, " fetch "+id+" --out copy-2") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestIdOfASubmissionLeadsToTheOneThatGoesOnWithIt(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := settleShared(t, "a", "b", "c")
	s.write("several.yaml", shortRuns)
	ids := []string{strings.TrimSpace(s.must("submit", s.path("several.yaml"), "--detach"))}
	for range 2 {
		last := ids[len(ids)-1]
		s.await("beginning", s.logged(last, " began on "))
		s.must("stop", ids[0])
		code, out, errs := s.run("submit", "--continue", ids[0], "--detach")
		expectCode(t, cli.ExitDone, code, errs)
		next := strings.TrimSpace(out)
		if !strings.Contains(errs, "submission "+last+" goes on as "+next) {
			t.Errorf("told: %s", errs)
		}
		ids = append(ids, next)
	}
	last := ids[len(ids)-1]
	s.await("end", func() bool { now := s.status(last); return now.Over() && len(now.Lacking) == 0 })
	for i, id := range ids {
		if now := s.status(id); now.ID != last || len(now.Continues) != 2 {
			t.Errorf("%s leads to %+v", id, now)
		}
		if out := s.must("status", id); !strings.Contains(out, ids[1]+", "+ids[0]) {
			t.Error(out)
		}
		s.must("fetch", id, "--out", s.path([]string{"first", "second", "third"}[i]))
		if out := s.must("logs", id); !strings.Contains(out, "goes on with submission "+ids[1]) {
			t.Error(out)
		}
	}
}
