package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/refusal"
)

// --continue adds repeats to a record. It refuses a record with a run that the plan would not make or
// that report refuses.
func TestRunsThatThePlanWouldNotMakeAreRefused(t *testing.T) {
	t.Parallel()
	const short, run = "stop.time=100ms", "runs/0000/run.json"
	for _, c := range []struct {
		name, file, old, new string
		want                 string // empty where the record is continued
	}{
		{name: "nothing"},
		{"another rate", "plan.yaml", "rate: 0.1", "rate: 0.0001", "run 0 (seed 1) was made by another plan"},
		{"another seed", "plan.yaml", "seed: 1\nrepeats", "seed: 2\nrepeats", "run 0 has seed 1; the plan has 2 to 4"},
		{"another point", run, `"point":{}`, `"point":{"detect":"1s"}`, `run 0 is of the point "detect=1s"`},
		{"another digest", "summary.json", `"digest": "`, `"digest": "0`, "it is a run of another record"},
		{"another number", run, `"run":0`, `"run":1`, "the folder belongs to run 0"},
		{"an accuracy", run, `"best_accuracy":0`, `"best_accuracy":7`, "fractions from 0 to 1"},
		{"no text", run, "*", "", "the file ends too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "record")
			p, err := Parse("plan.yaml", []byte(steady), short)
			if err == nil {
				_, err = Run(t.Context(), p, Options{Out: out})
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.file != "" {
				alter(t, filepath.Join(out, c.file), c.old, c.new)
			}
			text, err := os.ReadFile(filepath.Join(out, "plan.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if p, err = Parse("plan.yaml", text, "repeats=3"); err != nil {
				t.Fatal(err)
			}
			_, err = Run(t.Context(), p, Options{Out: out, Continue: true})
			var input *refusal.InputError
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &input) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), filepath.Join("runs", "0000"))):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// alter replaces a text in a file; * stands for the whole content.
func alter(t *testing.T, path, before, after string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if before == "*" {
		before = string(text)
	}
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q:\n%.600s", path, before, text)
	}
	text = []byte(strings.Replace(string(text), before, after, 1))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
