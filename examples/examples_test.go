package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/examples"
)

// gradwire runs a command of the program that brings the examples along.
func gradwire(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Program{Name: "gradwire", Catalog: catalog.Default(), Examples: examples.Files}.Run(
		context.Background(), args, &o, &e)
	return code, o.String(), e.String()
}

// plansHere are the plans below this folder that no program beside them has to itself.
func plansHere(t *testing.T) (plans []string) {
	t.Helper()
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range found {
			folder := filepath.Dir(plan)
			if _, err := os.Stat(filepath.Join(folder, "main.go")); folder == "." || err != nil {
				plans = append(plans, plan)
			}
		}
	}
	if len(plans) < 14 {
		t.Fatalf("only %d plans are here", len(plans))
	}
	return plans
}

// nameOf is what a plan of this folder is called.
func nameOf(plan string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.ToSlash(plan), ".yaml"), "/plan")
}

func TestEveryPlanOfTheFolderIsAnExampleByName(t *testing.T) {
	plans := plansHere(t)
	code, out, errs := gradwire(t, "list", "examples", "--format", "json")
	if code != cli.ExitDone {
		t.Fatal(errs)
	}
	var listed []struct{ Name, About, Data string }
	if err := json.Unmarshal([]byte(out), &listed); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range listed {
		names = append(names, e.Name)
		if e.About == "" || e.Data == "" {
			t.Errorf("%+v", e)
		}
	}
	for _, plan := range plans {
		if !slices.Contains(names, nameOf(plan)) {
			t.Errorf("%s is not among %s", plan, names)
		}
		text, err := os.ReadFile(plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, shown, errs := gradwire(t, "list", "examples", nameOf(plan)); shown != string(text) {
			t.Errorf("%s is shown as\n%s%s", plan, shown, errs)
		}
	}
	if len(names) != len(plans) {
		t.Errorf("%d examples of %d plans", len(names), len(plans))
	}
}

func TestAnExampleIsTheSamePlanByItsNameAndByItsFile(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	plans := plansHere(t)
	t.Chdir(t.TempDir())
	for _, plan := range plans {
		code, byFile, errs := gradwire(t, "plan", "show", filepath.Join(here, plan), "--format", "json")
		if code != cli.ExitDone {
			t.Fatal(errs)
		}
		code, byName, errs := gradwire(t, "plan", "show", nameOf(plan), "--format", "json")
		if code != cli.ExitDone {
			t.Fatalf("%s: %s", plan, errs)
		}
		// The files that it names lie in the user's cache, where a record finds them later.
		if moved := strings.ReplaceAll(byName, filepath.Join(cache, "gradwire", "examples"), here); moved != byFile {
			t.Errorf("%s: by its name\n%s\nby its file\n%s", plan, byName, byFile)
		}
	}
}

func TestTheQuickstartRunsByItsNameAndAFileOfThatNameComesFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := gradwire(t, "run", "quickstart", "--repeats", "1", "--set", "stop.epochs=0.1", "--out", "out")
	if code != cli.ExitDone || !strings.Contains(out, "far: most") {
		t.Fatalf("%d: %s%s", code, out, errs)
	}
	if code, out, errs := gradwire(t, "replay", "out/runs/0001"); code != cli.ExitDone {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	if code, _, errs := gradwire(t, "plan", "check", "quickstrat"); code != cli.ExitInput ||
		!strings.Contains(errs, "did you mean quickstart?") {
		t.Errorf("%d: %s", code, errs)
	}
	if code, _, errs := gradwire(t, "run", "quickstart", "--set", "stop.epochs=many"); code != cli.ExitInput ||
		!strings.Contains(errs, "epochs") {
		t.Errorf("%d: %s", code, errs)
	}
	if err := os.Mkdir("links", 0o700); err != nil { // a folder is no plan
		t.Fatal(err)
	}
	if code, out, errs := gradwire(t, "plan", "show", "links"); code != cli.ExitDone || !strings.Contains(out, "kyiv") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	if err := os.WriteFile("quickstart", []byte("name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := gradwire(t, "plan", "check", "quickstart"); code != cli.ExitInput ||
		!strings.HasPrefix(errs, "quickstart:1:1: ") {
		t.Errorf("%d: %s", code, errs)
	}
}

func TestShellsOfferExamplesWhereNoFileBeginsSo(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []struct{ typed, want string }{
		{"quick", "quickstart\t"}, {"intermittent-links/th", "intermittent-links/three\t"}, {"other", "yaml\n"},
	} {
		code, out, errs := gradwire(t, "__complete", "run", x.typed)
		if code != cli.ExitDone || !strings.HasPrefix(out, x.want) {
			t.Errorf("%s: %d, %q, %s", x.typed, code, out, errs)
		}
	}
	if err := os.WriteFile("quick.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := gradwire(t, "__complete", "run", "quick"); !strings.HasPrefix(out, "yaml\n") {
		t.Errorf("where there is a file: %q", out)
	}
	_, out, _ := gradwire(t, "__complete", "run", "quickstart", "--set", "nodes.")
	if !strings.Contains(out, "nodes.near.") {
		t.Errorf("keys of an example: %q", out)
	}
}
