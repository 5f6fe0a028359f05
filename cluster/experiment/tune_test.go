package experiment

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/datasets"
)

const tuned = `
data: {set: synthetic-traffic, samples: 2000, validation: 20%}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.01}}
architecture: {kind: gossip}
nodes: [{name: n, count: 3, compute: {step: 5ms}}]
network: {default: {delay: 2ms}}
evaluate: {every: 20 steps}
stop: {steps: 60}
repeats: 2
tune: {train.optimizer.rate: [1e-6, 0.2, {label: also small, value: 1e-5}]}
sweep: {architecture.kind: [gossip, parameter-server]}
`

func carryOut(t *testing.T, text, out string, set ...string) *Report {
	t.Helper()
	p, err := Parse("tuned.yaml", []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), p, Options{Out: out, Continue: strings.HasSuffix(out, "again")})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestValueIsChosenForEachPointAndUsedByItsRepeats(t *testing.T) {
	out := filepath.Join(t.TempDir(), "again")
	first := strings.TrimSuffix(out, "again") + "out"
	report := carryOut(t, tuned, first)
	tunings, err := record.ReadTunings(first)
	if err != nil || len(tunings) != 2 {
		t.Fatalf("%d points were tuned: %v", len(tunings), err)
	}
	if len(report.Tunings) != 2 || report.Tunings[1].Chosen != 1 {
		t.Errorf("the summary has %+v", report.Tunings)
	}
	if told := strings.Join(report.Notes, "\n"); strings.Contains(told, oneRateText) {
		t.Errorf("rates were chosen, and the summary notes %q", told)
	}
	for i, tuning := range tunings {
		if got := tuning.Point.String(); got != []string{"architecture.kind=gossip",
			"architecture.kind=parameter-server"}[i] {
			t.Errorf("tuning %d is of %s", i, got)
		}
		sum := 0.0
		for k, c := range tuning.Candidates {
			if want := "train.optimizer.rate=" + []string{"1e-6", "0.2", "also small"}[k]; c.Values.String() != want ||
				c.Failure != "" || c.Duration <= 0 || c.Reached {
				t.Errorf("candidate %d: %+v", k, c)
			}
			sum += c.Duration
		}
		if tuning.Chosen != 1 || tuning.Duration != sum || tuning.Wall <= 0 || tuning.Seed != 1 {
			t.Errorf("%+v", tuning)
		}
	}
	// The repeats equal the repeats of a plan with that value.
	plain := carryOut(t, tuned, filepath.Join(t.TempDir(), "out"), "tune={}", "train.optimizer.rate=0.2")
	if len(report.Runs) != 4 || len(plain.Runs) != 4 {
		t.Fatalf("%d and %d runs", len(report.Runs), len(plain.Runs))
	}
	for i := range plain.Runs {
		if report.Runs[i].Digest != plain.Runs[i].Digest {
			t.Errorf("run %d has the digest %s, with the chosen rate from the start %s", i, report.Runs[i].Digest,
				plain.Runs[i].Digest)
		}
	}
	replayed, err := Replay(t.Context(), filepath.Join(first, "runs", "0002"), Options{})
	if err != nil || !replayed.Equal {
		t.Errorf("replay: %+v, %v", replayed, err)
	}
	// What is chosen is not chosen again.
	if err := os.RemoveAll(filepath.Join(first, "runs", "0003")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(first, out); err != nil {
		t.Fatal(err)
	}
	again := carryOut(t, tuned, out)
	kept, err := record.ReadTunings(out)
	if err != nil || len(kept) != 2 || kept[1].Wall != tunings[1].Wall || again.Runs[3].Digest != plain.Runs[3].Digest {
		t.Errorf("continued: %v, %+v", err, kept)
	}
}

func TestAPointForWhichNothingCanBeChosenLeavesTheOthersAlone(t *testing.T) {
	p, err := Parse("tuned.yaml", []byte(tuned), "sweep={train.optimizer.weight-decay: [1e30, 0]}",
		"architecture={kind: gossip}")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), p, Options{Out: filepath.Join(t.TempDir(), "out")})
	if err == nil || !strings.Contains(err.Error(), "1e30: nothing can be chosen") || !strings.Contains(err.Error(),
		"diverged") {
		t.Errorf("%v", err)
	}
	if report == nil || report.Complete || len(report.Runs) == 0 || report.Runs[0].Point[0].Value != "0" ||
		len(report.Tunings) != 1 {
		t.Errorf("%+v", report)
	}
}

// unsteady is a venue that loses a process in the first runs that try a rate of 0.2: they fail
// after one evaluation, or end degraded.
type unsteady struct {
	Virtual
	losses, runs int
	survives     bool
}

func (u *unsteady) Play(ctx context.Context, s *Stage) (Outcome, error) {
	if rate, _ := s.Point.Root.At("train").At("optimizer").Get("rate"); rate.Text != "0.2" {
		return u.Virtual.Play(ctx, s)
	}
	u.runs++
	switch {
	case u.runs > u.losses:
		return u.Virtual.Play(ctx, s)
	case u.survives:
		out, err := u.Virtual.Play(ctx, s)
		out.Degraded, out.Again = true, 1
		return out, err
	}
	s.Deployment.Observer.Observe(time.Second, 0, actors.Event{
		Kind: actors.Summarized, Evaluation: 1, At: time.Second, Accuracy: 1, Figures: &actors.Figures{},
	})
	return Outcome{Again: 1}, fmt.Errorf("run %d: process b is gone", u.runs)
}

func TestCandidateWhoseRunHasLostAProcessIsTriedAgain(t *testing.T) {
	const none = "nothing is chosen, because each of 3 runs that try train.optimizer.rate=0.2 has lost a process; " +
		"the last: run 3: process b is gone"
	for _, x := range []struct {
		losses   int
		survives bool
		tuned    string // the error; none if a value is chosen
		chosen   int
		outcome  record.Outcome // of the best rate
	}{
		{losses: 0, chosen: 1, outcome: record.Done},
		{losses: 1, chosen: 1, outcome: record.Done},
		{losses: 2, chosen: 1, outcome: record.Done},
		{losses: 2, chosen: 1, outcome: record.Done, survives: true},
		{losses: 3, tuned: none},
		// The others lost nothing.
		{losses: 3, chosen: 0, outcome: record.Degraded, survives: true},
	} {
		p, err := Parse("tuned.yaml", []byte(tuned), "sweep={}", "architecture={kind: gossip}", "repeats=1")
		if err != nil {
			t.Fatal(err)
		}
		v := &unsteady{losses: x.losses, survives: x.survives}
		r, err := Prepare(t.Context(), p, Options{Out: filepath.Join(t.TempDir(), "out"), Jobs: 1}, Site{Venue: v})
		if err != nil {
			t.Fatal(err)
		}
		failure := r.RunAll(t.Context())
		report, err := r.Report(0)
		if err != nil {
			t.Fatal(err)
		}
		if x.tuned != "" {
			if failure == nil || failure.Error() != x.tuned || len(report.Tunings)+len(report.Runs) != 0 {
				t.Errorf("%+v: %v; %+v, %+v", x, failure, report.Tunings, report.Runs)
			}
			continue
		}
		if failure != nil || len(report.Tunings) != 1 || len(report.Runs) != 1 {
			t.Fatalf("%+v: %v; %+v", x, failure, report.Tunings)
		}
		tuning := report.Tunings[0]
		if c := tuning.Candidates[1]; tuning.Chosen != x.chosen || c.Failure != "" || c.Outcome != x.outcome ||
			c.Duration >= 1 {
			t.Errorf("%+v: %d is chosen, of %+v", x, tuning.Chosen, tuning.Candidates)
		}
	}
}

func TestTuningIsCheckedBeforeAnythingRuns(t *testing.T) {
	for set, want := range map[string]string{
		"data.validation=none": "tuned.yaml:11:7: tune: values are chosen on a validation " +
			"split, and there is none; add one under data, such as data: {validation: 10%}",
		"data.validation=0%":               "leaves nothing to train on or nothing to choose by",
		"data.validation=some":             `"some" is neither a share such as 10% nor the word none`,
		"tune={train.optimiser.rate: [1]}": "unknown key \"optimiser\"",
		"tune={seed: [1, 2]}": `"seed" cannot be tuned; accepted are settings of model, train, ` +
			"architecture",
		"tune={train.optimizer.rate: 1}": "give the values",
		"tune={architecture.kind: [gossip]}": "the sweep says what stands at architecture.kind; it cannot be " +
			"chosen as well",
		"tune={architecture: [{kind: gossip}]}": "the sweep says what stands at architecture.kind; it cannot be " +
			"chosen as well",
		"tune={train.batch: [8, 0]}": "train.batch: 0 is out of range; accepted is 1 to 65536; at " +
			"architecture.kind = gossip",
		"tune={train.optimizer.kind: [sgd, newton]}": "train.optimizer.kind = newton",
	} {
		p, err := Parse("tuned.yaml", []byte(tuned), set)
		if err == nil {
			_, err = p.Resolved(nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", set, err, want)
		}
	}
}

func TestValidationSamplesAreDrawnAnewForEachSeed(t *testing.T) {
	p, err := Parse("tuned.yaml", []byte(tuned), "sweep={}", "data.scale=none")
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	shelf := shelf.New("", 4, nil)
	before := ""
	for seed := range uint64(2) {
		task, err := points[0].Task(shelf, seed)
		if err != nil {
			t.Fatal(err)
		}
		for i, set := range []*datasets.Set{task.Train, task.Test, task.Validation} {
			if want := []int{1200, 500, 300}[i]; set.Len() != want {
				t.Errorf("part %d has %d samples, want %d", i, set.Len(), want)
			}
		}
		if first := fmt.Sprint(task.Validation.Row(0)); first == before {
			t.Error("another seed draws the same validation samples")
		} else {
			before = first
		}
		if task.OnValidation().Test != task.Validation || task.Test == task.Validation {
			t.Error("the samples that a candidate is judged by are not those for validation")
		}
	}
}

func TestBestCandidateIsTheFirstThatArrivesOrElseTheMostAccurate(t *testing.T) {
	arrives := func(at float64) record.Candidate {
		return record.Candidate{Reached: true, TimeToTarget: &at, FinalAccuracy: 0.9}
	}
	ends := func(accuracy float64) record.Candidate {
		return record.Candidate{FinalAccuracy: record.Float(accuracy)}
	}
	failed := record.Candidate{Failure: "diverged", FinalAccuracy: 1}
	with := func(c record.Candidate, o record.Outcome) record.Candidate {
		c.Outcome = o
		return c
	}
	late := func(c record.Candidate, harm record.Harm) record.Candidate {
		c.Incidents = []record.Incident{{Harm: record.ToTimes}, {}, {Harm: harm}}
		return with(c, record.Degraded)
	}
	for _, x := range []struct {
		all  []record.Candidate
		want int
	}{
		{[]record.Candidate{arrives(3), arrives(2), arrives(2)}, 1},
		{[]record.Candidate{ends(0.99), arrives(5), ends(0.5)}, 1},
		{[]record.Candidate{ends(0.2), ends(0.7), ends(0.7)}, 1},
		{[]record.Candidate{failed, ends(math.NaN()), ends(0)}, 2},
		{[]record.Candidate{failed, ends(math.NaN())}, 1},
		{[]record.Candidate{with(arrives(1), record.Degraded), with(ends(0.5), record.Done)}, 1},
		{[]record.Candidate{failed, with(ends(0.5), record.Degraded)}, 1},
		{[]record.Candidate{with(ends(0.1), record.Done), late(ends(0.8), record.ToTimes)}, 1},
		{[]record.Candidate{with(ends(0.1), record.Done), late(ends(0.8), record.ToAll)}, 0},
		{[]record.Candidate{late(arrives(2), record.ToAll), late(ends(0.8), record.ToTimes)}, 1},
	} {
		if got := best(x.all); got != x.want {
			t.Errorf("%+v: %d is chosen, want %d", x.all, got, x.want)
		}
	}
}

func TestOnlyNumbersThatThePlanAcceptsLieBeyondACandidate(t *testing.T) {
	for _, c := range []struct {
		key, values string
		chosen      int
		bound       bool
	}{
		{"train.batch", "[1, 8]", 0, true},
		{"train.batch", "[2, 8]", 0, false},
		{"train.batch", "[1, 8]", 1, false},
		{"train.optimizer.rate", "[0.01, 0.1]", 0, false},
		{"train.optimizer", "[{kind: sgd, rate: 0.1}, {kind: sgd, rate: 0.2}]", 1, false},
	} {
		p, err := Parse("plan.yaml", []byte(tuned), "tune={"+c.key+": "+c.values+"}")
		if err != nil {
			t.Fatal(err)
		}
		points, err := p.Points(nil)
		if err != nil {
			t.Fatalf("%s %s: %v", c.key, c.values, err)
		}
		at := record.Tuning{Chosen: c.chosen}
		for _, one := range points[0].candidates {
			at.Candidates = append(at.Candidates, record.Candidate{Values: settings(one.chosen)})
		}
		if got := points[0].atBound(nil, &at); (len(got) > 0) != c.bound {
			t.Errorf("%s %s chosen %d: at the bound are %v", c.key, c.values, c.chosen, got)
		}
	}
}

// unready is a venue that cannot begin the first runs.
type unready struct {
	Virtual
	refusals, runs int
}

func (u *unready) Play(ctx context.Context, s *Stage) (Outcome, error) {
	if u.runs++; u.runs > u.refusals {
		return u.Virtual.Play(ctx, s)
	}
	return Outcome{Again: 1, Unbegun: true}, fmt.Errorf("run %d: process b is gone: left", u.runs)
}

func TestRunThatHasNotBegunIsTriedThreeTimes(t *testing.T) {
	for refusals, outcome := range []record.Outcome{record.Done, record.Done, record.Done, record.Failed} {
		p, err := Parse("plain.yaml", []byte(tuned), "tune={}", "sweep={}", "architecture={kind: gossip}", "repeats=1")
		if err != nil {
			t.Fatal(err)
		}
		v := &unready{refusals: refusals}
		r, err := Prepare(t.Context(), p, Options{Out: filepath.Join(t.TempDir(), "out"), Jobs: 1}, Site{Venue: v})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.RunAll(t.Context()) // the outcome says how it ended
		report, err := r.Report(0)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Runs) != 1 || report.Runs[0].Outcome != outcome {
			t.Errorf("after %d refusals: %+v", refusals, report.Runs)
		}
	}
}
