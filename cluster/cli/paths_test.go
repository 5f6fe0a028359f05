package cli_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

// leaks matches Go identifiers and words of Go's libraries in a message.
var leaks = regexp.MustCompile(
	`strconv\.|(?:^|\s)(?:json|yaml): |invalid character|unmarshal|%!|\{Commit:|&\{|0xc0|goroutine` +
		`|\b(?:bundled|catalog|driver|experiment|fs|plan|record|report|saved|store|syntax)\.[A-Z]`)

func TestMessagesAboutBadInputNameNothingOfTheSource(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil || len(files) < len(mistakes) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := leaks.FindString(string(text)); found != "" {
			t.Errorf("%s has %q", file, found)
		}
	}
}

func TestAnUnknownExampleIsAnsweredInWordsOfTheUser(t *testing.T) {
	var out, errs bytes.Buffer
	p := cli.Program{Catalog: catalog.Default(), Examples: fstest.MapFS{"quick.yaml": {Data: []byte(small)}}}
	code := p.Run(t.Context(), []string{"list", "examples", "quikc"}, &out, &errs)
	if code != cli.ExitInput || !strings.Contains(errs.String(), "not one of the examples; did you mean quick?") {
		t.Errorf("code %d, %s", code, errs.String())
	}
}

// visit calls do for every command without subcommands.
func visit(cmd *cobra.Command, do func(cmd *cobra.Command, path []string)) {
	for _, sub := range cmd.Commands() {
		visit(sub, do)
	}
	if !cmd.HasSubCommands() {
		do(cmd, strings.Fields(cmd.CommandPath())[1:])
	}
}

// The test finds path flags by name, so it covers commands that are added later.
func TestPathsThatCannotBeUsedAreToldWithTheirFlag(t *testing.T) {
	enter(t, small)
	write(t, "file", "x")
	if err := os.Symlink("loop", "loop"); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("nothing", "dangling"); err != nil {
		t.Skip(err)
	}
	arguments := map[string][]string{
		"run": {"plan.yaml"}, "submit": {"plan.yaml"}, "drill": {"plan.yaml"}, "links": {"plan.yaml"},
		"plan check": {"plan.yaml"}, "replay": {"runs/0000"}, "eval": {"runs/0000"}, "predict": {"runs/0000"},
		"report": {"."}, "fetch": {"1a2b"}, "identity issue": {"."}, "status": {"1a2b"}, "logs": {"1a2b"},
		"stop": {"1a2b"}, "remove": {"1a2b"}, "data get": {"mnist"},
	}
	other := []string{"plan new --data", "submit --continue"} // no paths
	tried := 0
	visit(asGradwire(catalog.Default()).Commands(io.Discard, io.Discard), func(cmd *cobra.Command, path []string) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := strings.Join(path, " ")
			paths := []string{"data", "out", "continue", "identity", "labels"}
			if !slices.Contains(paths, f.Name) || slices.Contains(other, name+" --"+f.Name) {
				return
			}
			for _, bad := range []string{"file/x.html", "loop/x.html", "dangling/x.html", "loop", ""} {
				given := bad
				if name == "report" && f.Name == "out" && bad == "loop" {
					given = "loop/y.html"
				}
				if f.Name == "continue" && bad == "dangling/x.html" {
					continue // the command's own error says how to go on
				}
				if bad == "" && (f.Name == "identity" || f.Name == "data" && name != "predict") {
					continue // it overrides a variable of the environment
				}
				line := append(append(slices.Clone(path), arguments[name]...), "--"+f.Name, given)
				code, out, errs := gradwire(t, line...)
				tried++
				if code != cli.ExitInput || out != "" || leaks.MatchString(errs) ||
					given != "" && !strings.Contains(errs, "--"+f.Name+" "+given+": ") ||
					given != "" && !strings.Contains(errs, "; accepted is ") {
					t.Errorf("%q: code %d, %s", line, code, errs)
				}
			}
		})
	})
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 4 || tried < 100 {
		t.Errorf("%d tried; left behind: %v, %v", tried, entries, err)
	}
}

func TestEveryCommandRefusesArgumentsThatItDoesNotTake(t *testing.T) {
	enter(t, small)
	visit(asGradwire(catalog.Default()).Commands(io.Discard, io.Discard), func(_ *cobra.Command, path []string) {
		if path[0] == "__complete" {
			return
		}
		line := slices.Concat(path, []string{"zzz", "zzz", "zzz"})
		code, out, errs := gradwire(t, line...)
		if code != cli.ExitInput || out != "" || errs == "" || leaks.MatchString(errs) {
			t.Errorf("%q: code %d, %s%s", line, code, out, errs)
		}
	})
}

func TestMistakesAboutARecordSayWhatIsThere(t *testing.T) {
	enter(t, edit(t, small, "name: small", "name: small\nrepeats: 2"))
	code, _, errs := gradwire(t, "run", "plan.yaml", "--out", "rec", "--quiet")
	expectCode(t, cli.ExitDone, code, errs)
	write(t, "plans/a.yaml", small)
	write(t, "plans/b.yml", small)
	summary := filepath.Join("rec", "summary.json")
	whole, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]string{
		{`KEY=VALUE or KEY!=VALUE is accepted`, "report", "rec", "--where", "x"},
		{`keys of a plan's sweep are accepted`, "report", "rec", "--where", "nosuch=1"},
		{`keys of a plan's sweep are accepted`, "report", "rec", "--by", "x"},
		{"the 2 finished runs in rec/runs are 0000 to 0001", "replay", "rec/runs/0009"},
		{"the 2 finished runs in rec/runs are 0000 to 0001", "eval", "rec/runs/0009"},
		{"the 2 finished runs in rec/runs are 0000 to 0001", "predict", "rec/runs/0009", "--data", "plan.yaml"},
		{"the 2 finished runs in rec/runs are 0000 to 0001", "diff", "rec/runs/0009", "rec/runs/0000"},
		{"it is a run of the record rec", "report", "rec/runs/0001"},
		{"it is a folder of the record rec", "diff", "rec/runs", "rec"},
		{"such as plans/a.yaml, plans/b.yml", "run", "plans"},
		{"such as plans/a.yaml, plans/b.yml", "submit", "plans"},
		{"such as plans/a.yaml, plans/b.yml", "drill", "plans"},
		{"'gradwire run --continue rec'", "run", "rec"},
		{"'gradwire replay rec/runs/0000'", "plan", "check", "rec"},
		{"'gradwire replay rec/runs/0001'", "plan", "show", "rec/runs/0001"},
		{"its plan is rec/plan.yaml", "links", "rec/runs"},
		{`unknown key "surprise"`, "run", "--continue", "rec"},
	} {
		text := whole
		if strings.Contains(row[0], "surprise") {
			text = []byte(`{"surprise": 1}`)
		}
		if err := os.WriteFile(summary, text, 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := gradwire(t, row[1:]...)
		if code != cli.ExitInput || !strings.Contains(errs, filepath.FromSlash(row[0])) || leaks.MatchString(errs) {
			t.Errorf("%q: code %d, %s", row[1:], code, errs)
		}
	}
	if err := os.Remove(summary); err != nil { // as the error advises
		t.Fatal(err)
	}
	code, _, errs = gradwire(t, "run", "--continue", "rec", "--quiet")
	expectCode(t, cli.ExitDone, code, errs)
}
