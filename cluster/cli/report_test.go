package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/record"
)

// recorded runs the small plan with events into a folder.
func recorded(t *testing.T, dir string, args ...string) {
	t.Helper()
	code, _, errs := gradwire(t, append([]string{"run", "plan.yaml", "--out", dir, "--set", "record=events", "--set",
		"sweep={train.batch: [16, 32]}"}, args...)...)
	expectCode(t, cli.ExitDone, code, errs)
}

func TestReportLeavesAPageInTheRecordOrWhereItIsAskedFor(t *testing.T) {
	enter(t, small)
	recorded(t, "out")
	code, out, errs := gradwire(t, "report", "out")
	expectCode(t, cli.ExitDone, code, errs)
	page := filepath.Join("out", "report.html")
	want := "page   in " + page + "\nplots  in " + filepath.Join("out", "report-files") + ", "
	if info, err := os.Stat(page); err != nil || info.Size() < 10_000 || !strings.Contains(out, want) ||
		!strings.HasPrefix(out, "batch ") || strings.Contains(out, "Intervals are") {
		t.Errorf("%v, written:\n%s", err, out)
	}
	// A page in the record does no harm to it.
	code, _, errs = gradwire(t, "run", "plan.yaml", "--set", "record=events", "--set", "sweep={train.batch: [16, 32]}",
		"--continue", "out")
	expectCode(t, cli.ExitDone, code, errs)
	if testing.Short() {
		return
	}
	recorded(t, "other")
	code, _, errs = gradwire(t, "report", "out", "other", "--out", filepath.Join("new", "both.html"))
	expectCode(t, cli.ExitDone, code, errs)
	text, err := os.ReadFile(filepath.Join("new", "both.html"))
	if err != nil || !strings.Contains(string(text), "Accuracy over time, all records") {
		t.Errorf("%v in a page of %d bytes", err, len(text))
	}
}

func TestReportWarnsOfAPlanThatWasEditedAfterTheRuns(t *testing.T) {
	enter(t, small)
	recorded(t, "out")
	plan := filepath.Join("out", record.PlanName)
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, edited, want string }{
		{"", "", ""},
		{"name: ", "name: re", ""}, // the plan's name, on which no run depends
		{"seed: ", "seed: 1", ""},
		{"rate: ", "rate: 0", plan + " was edited after the runs: "},
		{"rate: ", "rate: x", plan + " was edited after the runs: "},
	} {
		edited := strings.Replace(string(text), c.old, c.edited, 1)
		if c.old != "" && edited == string(text) {
			t.Fatalf("no %q in %s", c.old, text)
		}
		if err := os.WriteFile(plan, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := gradwire(t, "report", "out")
		expectCode(t, cli.ExitDone, code, errs)
		if !strings.Contains(errs, c.want) || strings.Contains(errs, "edited") != (c.want != "") {
			t.Errorf("%s: want %q: %s", c.edited, c.want, errs)
		}
	}
}

// The page, the terminal and the note of a table state whether comparisons include resumed runs.
func TestReportIncludesResumedRunsOnDemand(t *testing.T) {
	enter(t, small)
	recorded(t, "out", "--set", "stop.target=30%")
	text, err := os.ReadFile(filepath.Join("out", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	marked := regexp.MustCompile(`"outcome": *"done"`).ReplaceAllString(string(text), `$0, "resumed_s": 1`)
	write(t, filepath.Join("out", "summary.json"), marked)
	if err := os.CopyFS("again", os.DirFS("out")); err != nil {
		t.Fatal(err)
	}
	const (
		leftOut = "2 of 2 runs were resumed from a checkpoint. Comparisons leave them out; gradwire report " +
			"--with-resumed includes them."
		included = "2 of 2 runs were resumed from a checkpoint. Comparisons include them."
		one      = "The run was resumed from a checkpoint. Comparisons include it."
		four     = "4 of 4 runs were resumed from a checkpoint. Comparisons include them."
	)
	for flags, want := range map[string]struct{ shown, page string }{
		"":                                {leftOut, leftOut},
		"--with-resumed":                  {included, included},
		"--with-resumed --where batch=16": {one, one},
		"--with-resumed again":            {included, four},
		"--table csv":                     {"note: " + leftOut, ""},
		"--with-resumed --table csv":      {"note: " + included, ""},
	} {
		args := append([]string{"report", "out", "--out", t.TempDir() + "/made.html"}, strings.Fields(flags)...)
		code, out, errs := gradwire(t, args...)
		expectCode(t, cli.ExitDone, code, errs)
		if !strings.Contains(strings.Join(strings.Fields(out+errs), " "), want.shown) {
			t.Errorf("%s:\n%s%s", flags, out, errs)
		}
		if page, err := os.ReadFile(args[3]); err != nil || !strings.Contains(string(page), want.page) {
			t.Errorf("%s: the page does not say %q; %v", flags, want.page, err)
		}
	}
}

func TestReportAndDiffWorkFromTheFinishedRunsOfAProgramThatWasKilled(t *testing.T) {
	enter(t, small)
	recorded(t, "whole", "--seed", "1")
	recorded(t, "killed", "--seed", "1")
	// What SIGKILL leaves in the second run: no table, no summary, a run that is being saved.
	for _, name := range []string{"summary.json", "curve.csv", "links.csv", "updates.csv"} {
		if err := os.Remove(filepath.Join("killed", name)); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join("killed", "runs", "0001", "run.json")
	if err := os.Rename(run, run+".partial"); err != nil {
		t.Fatal(err)
	}
	code, _, errs := gradwire(t, "report", "killed")
	expectCode(t, cli.ExitDone, code, errs)
	page, err := os.ReadFile(filepath.Join("killed", "report.html"))
	const missing = "not complete: the program was ended before it summed up its runs, of which 1 are finished"
	if err != nil || !strings.Contains(string(page), missing) {
		t.Errorf("%v; a page of %d bytes without %q", err, len(page), missing)
	}
	code, out, errs := gradwire(t, "diff", "whole", "killed")
	expectCode(t, cli.ExitFailed, code, errs)
	if !strings.Contains(out, "killed is "+missing) || !strings.Contains(out, "run 1") {
		t.Errorf("diff says\n%s", out)
	}
	if err := os.Remove(filepath.Join("killed", "runs", "0000", "run.json")); err != nil {
		t.Fatal(err)
	}
	code, _, errs = gradwire(t, "report", "killed")
	expectCode(t, cli.ExitInput, code, errs)
	if !strings.Contains(errs, "killed: there is no summary.json, and no run is finished") {
		t.Errorf("report of nothing says\n%s", errs)
	}
}

func TestDiffTellsWhereRunsDifferAndEndsWithOne(t *testing.T) {
	golden, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	enter(t, small)
	recorded(t, "a", "--seed", "1")
	recorded(t, "b", "--seed", "1")
	recorded(t, "c", "--seed", "2")
	code, out, errs := gradwire(t, "diff", "a", "b")
	expectCode(t, cli.ExitDone, code, errs)
	if want := "A  a\nB  b\nequal: 2 of 2 runs of the same point and seed\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	write(t, "b/runs/0001/events.jsonl", "{}\n")
	code, out, errs = gradwire(t, "diff", "a/runs/0001", "b/runs/0001")
	expectCode(t, cli.ExitFailed, code, errs)
	_, text, _ := strings.Cut(out, "first difference: ")
	if !strings.HasPrefix(text, "events, line 1, epoch: 0 | –\n") || errs != "" {
		t.Errorf("on standard error %q, written:\n%s", errs, out)
	}
	code, out, errs = gradwire(t, "diff", "a", "c")
	expectCode(t, cli.ExitFailed, code, errs)
	expectFile(t, filepath.Join(golden, "diff.txt"), out)
	code, out, errs = gradwire(t, "diff", "a", "c", "--format", "json")
	expectCode(t, cli.ExitFailed, code, errs)
	var printed struct {
		Equal bool     `json:"equal"`
		OnlyA []string `json:"only_a"`
	}
	if err := json.Unmarshal([]byte(out), &printed); err != nil || printed.Equal || len(printed.OnlyA) != 2 {
		t.Errorf("%v in\n%s", err, out)
	}
}

func TestReplayPrintsBothDigests(t *testing.T) {
	enter(t, small)
	recorded(t, "out")
	folder := filepath.Join("out", "runs", "0001")
	code, out, errs := gradwire(t, "replay", folder)
	expectCode(t, cli.ExitDone, code, errs)
	text, err := os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ Digest string }
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	if want := "run 1 (train.batch=32, seed 1)\nrecorded " + run.Digest + "\nreplayed " + run.Digest +
		"\nthe digests are equal\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	write(t, filepath.Join(folder, "run.json"), strings.Replace(string(text), run.Digest, "0123456789abcdef", 1))
	code, out, errs = gradwire(t, "replay", folder, "--format", "json")
	expectCode(t, cli.ExitFailed, code, errs)
	var printed map[string]any
	if err := json.Unmarshal([]byte(out), &printed); err != nil || printed["equal"] != false ||
		printed["recorded_digest"] != "0123456789abcdef" || printed["replayed_digest"] != run.Digest {
		t.Errorf("%v in\n%s", err, out)
	}
	summary, err := os.ReadFile("out/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "out/summary.json", strings.Replace(string(summary), `"goarch": "`, `"goarch": "not `, 1))
	write(t, filepath.Join(folder, "run.json"), string(text))
	code, out, errs = gradwire(t, "replay", folder)
	expectCode(t, cli.ExitFailed, code, errs)
	if !strings.Contains(out, "the digests are equal\nthe builds differ") {
		t.Error(out)
	}
}
