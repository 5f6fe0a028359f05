package experiment

import (
	"strings"
	"testing"
)

// A note gives the rounded value of each interval that rounding changes, and is missing if rounding
// hardly changes the interval.
func TestIntervalsThatRoundingChangesAreNamed(t *testing.T) {
	const server = ", roles: {server: added}}"
	for set, want := range map[string]string{
		"architecture={kind: all-reduce, every: 10 samples}": "architecture.every: 10 samples is 0.25 steps of 40 " +
			"samples; it becomes 1 step (40 samples)",
		"architecture={kind: gossip, every: 0.1 epochs}":                       "is 1.5 steps of 40 samples; it becomes 2",
		"architecture={kind: noloco, every: 10 samples}":                       "it becomes 1 step",
		"architecture={kind: parameter-server, every: 10 samples" + server:     "it becomes 1 step",
		"architecture={kind: federated, local: {steps: 10 samples}" + server:   "local.steps: 10 samples is 0.25 steps",
		"architecture={kind: all-reduce, every: 400 samples}":                  "",
		"architecture={kind: all-reduce, every: 410 samples}":                  "",
		"architecture={kind: all-reduce, every: 2 steps}":                      "",
		"stop={epochs: 0.001}":                                                 "0.6 samples; a run ends",
		"stop={epochs: 0.15}":                                                  "",
		"evaluate.every=0.001 epochs":                                          "0.6 samples; models",
		"evaluate.every=0.02 epochs":                                           "",
		"train.optimizer.rate={kind: step, first: 1, every: 0.0000024 epochs}": "this becomes 2e-06 epochs",
		"train.optimizer.rate={kind: warmup, steps: 1e-9 epochs, then: 1}":     "this becomes 1e-06 epochs",
		"train.optimizer.rate={kind: cosine, first: 1, steps: 0.0001 epochs}":  "",
		"train.optimizer.rate={kind: step, first: 1, every: 10 samples}":       "",
	} {
		p, err := Parse("compared.yaml", []byte(compared), set)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Examine(nil)
		if err != nil {
			t.Errorf("%s: %v", set, err)
			continue
		}
		told := strings.Join(append(e.Rounded(Options{}), e.Notes...), "\n")
		if want == "" && told != "" || !strings.Contains(told, want) {
			t.Errorf("%s: told %q, want %q", set, told, want)
		}
	}
}

// Run prints these notes before the first run starts, and keeps them in the record.
func TestRunNamesIntervalsThatRoundingChanges(t *testing.T) {
	const every = "architecture={kind: gossip, every: 10 samples}"
	p, err := Parse("compared.yaml", []byte(compared), every, "stop={steps: 3}")
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	report, err := Run(t.Context(), p, Options{Out: t.TempDir() + "/out", Progress: func(pr Progress) {
		notes = append(notes, pr.Note)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{strings.Join(notes, "\n"), strings.Join(report.Notes, "\n")} {
		if !strings.Contains(told, "it becomes 1 step (40 samples)") {
			t.Errorf("told %q", told)
		}
	}
}
