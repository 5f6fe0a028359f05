//go:build unix

package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/store/storetest"
)

// Ctrl-C ends a command although its store hangs.
func TestInterruptEndsACommandWhoseStoreHangs(t *testing.T) {
	s := storetest.Start(t)
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {time: 10h}")+"checkpoint: {every: 1s}\n")
	wants(t, cli.ExitDone, "run", "plan.yaml", "--set", "stop={epochs: 1}", "--out", "s3://bucket/first")
	for _, line := range []string{"run plan.yaml --out s3://bucket/second", "run plan.yaml --out s3://bucket/third",
		"report s3://bucket/first"} {
		hanging := make(chan bool)
		running := strings.Contains(line, "second") // the store hangs from a later request on, else from the first
		s.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if running && !strings.Contains(r.URL.Path, ".state/") {
				return false
			}
			select {
			case hanging <- true:
			default:
			}
			return storetest.Hang(w, r, next)
		})
		p := newProgram(t, strings.Fields(line)...)
		p.start(t)
		<-hanging
		began := time.Now()
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		status := p.end(t)
		if took := time.Since(began); took > 25*time.Second || status.ExitStatus() != cli.ExitFailed {
			t.Errorf("%s ends after %v with %v: %s", line, took, status.ExitStatus(), p.errs.String())
		}
		if running && !strings.Contains(p.errs.String(), "--continue s3://bucket/second") {
			t.Errorf("%s does not say how to go on: %s", line, p.errs.String())
		}
		s.Disturb(nil)
	}
}

// The node keeps its records in a store, and the client copies them to another path of the store.
func TestSubmissionsAreKeptInAStore(t *testing.T) {
	storetest.Start(t)
	site := siteAlone(t)
	site.records = "s3://bucket/records"
	site.settle([]string{"a"})
	site.write("plan.yaml", edit(t, small, "stop: {epochs: 2}", "stop: {steps: 20}")+
		"checkpoint: {every: 100ms, to: \"s3://bucket/copy\"}\n")
	const copied = "s3://bucket-2/mine"
	code, out, errs := site.run("submit", site.path("plan.yaml"), "--out", copied)
	if code != cli.ExitDone && code != cli.ExitDegraded || !strings.Contains(out, "The record is in "+copied) {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	_, after, _ := strings.Cut(errs, "submission ")
	id := ""
	if _, err := fmt.Sscan(after, &id); err != nil {
		t.Fatal(err, errs)
	}
	if s := site.status(id); s.State != driver.Done && s.State != driver.Degraded {
		t.Errorf("%+v", s)
	}
	site.must("fetch", id, "--out", "s3://bucket-2/again")
	site.signal(os.Interrupt, "a")
	if s := site.nodes["a"].end(t); s.ExitStatus() != cli.ExitDone {
		t.Errorf("a ends with %v: %s", s, site.nodes["a"].errs.String())
	}
	for _, other := range []string{"s3://bucket-2/again", "s3://bucket/copy", "s3://bucket/records/a/plan-" + id} {
		wants(t, cli.ExitDone, "diff", copied, other)
		wants(t, cli.ExitDone, "eval", other+"/runs/0000")
	}
}
