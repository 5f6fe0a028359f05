package cli_test

import (
	"bytes"
	"context"
	tables "encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
)

func TestRunPrintsATableAndLeavesTheRecordAndPlots(t *testing.T) {
	enter(t, small)
	code, out, errs := gradwire(t, "run", "plan.yaml", "--out", "out", "--repeats", "2", "--seed", "7", "--set",
		"stop.target=60%", "--strict")
	expectCode(t, cli.ExitDone, code, errs)
	for _, want := range []string{"reached", "2/2",
		"\nOpen " + filepath.Join("out", "index.html") + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.ContainsAny(out+errs, "\x1b\r") {
		t.Errorf("not plain without a terminal: %q %q", out, errs)
	}
	if !strings.HasSuffix(errs, "2 of 2 runs, 100 %\n") {
		t.Errorf("progress without a terminal:\n%s", errs)
	}
	s, err := record.ReadSummary("out")
	if err != nil || !s.Complete || len(s.Runs) != 2 || s.Runs[0].Seed != 7 || s.Runs[1].Seed != 8 {
		t.Errorf("summary: %+v, %v", s, err)
	}
	for _, file := range []string{"plan.yaml", "curve.csv", "links.csv", "updates.csv", "accuracy-epochs.png",
		"accuracy-epochs.svg", "accuracy-time.png", "index.html", "waiting.png", "runs/0001/model.safetensors"} {
		if info, err := os.Stat(filepath.Join("out", file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestRunAndReportSayTheHeadlineFirstAndExplainWhenAsked(t *testing.T) {
	enter(t, small)
	code, out, errs := gradwire(t, "run", "plan.yaml", "--out", "out", "--repeats", "6", "--set", "stop.target=50%",
		"--explain")
	expectCode(t, cli.ExitDone, code, errs)
	s, err := record.ReadSummary("out")
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Join(report.Headline(s), " ") + "\n\n"
	const method = "Intervals are of the median"
	if !strings.HasPrefix(out, first) || !strings.Contains(out, method) {
		t.Errorf("%q does not begin with %q, or does not explain", out, first)
	}
	for _, c := range []struct {
		flags   []string
		explain bool
	}{{nil, false}, {[]string{"--explain"}, true}} {
		code, out, errs = gradwire(t, append([]string{"report", "out"}, c.flags...)...)
		expectCode(t, cli.ExitDone, code, errs)
		if !strings.HasPrefix(out, first) || strings.Contains(out, method) != c.explain {
			t.Errorf("report %v: %s", c.flags, out)
		}
	}
}

func TestTheCurvesLastBytesAreThoseOfAllLinks(t *testing.T) {
	enter(t, small)
	code, _, errs := gradwire(t, "run", "plan.yaml", "--out", "out", "--repeats", "3")
	expectCode(t, cli.ExitDone, code, errs)
	curve, sent := map[string]int{}, map[string]int{}
	for _, row := range rows(t, "out/curve.csv") {
		bytes := whole(t, row["bytes"])
		if before := curve[row["run"]]; bytes < before {
			t.Errorf("run %s: %d bytes after %d", row["run"], bytes, before)
		}
		curve[row["run"]] = bytes
	}
	for _, row := range rows(t, "out/links.csv") {
		sent[row["run"]] += whole(t, row["bytes"])
	}
	if len(curve) != 3 || curve["0"] == 0 || !maps.Equal(curve, sent) {
		t.Errorf("by the curves %v, by the links %v", curve, sent)
	}
}

// rows reads a CSV file by the names of its columns.
func rows(t *testing.T, path string) (all []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := tables.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		all = append(all, row)
	}
	return all
}

func whole(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRunWithoutAFolderMakesOneNamedAfterThePlan(t *testing.T) {
	enter(t, small)
	code, out, errs := gradwire(t, "run", "plan.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	if !regexp.MustCompile(`\nOpen results.small-\d{8}-\d{6}.index.html\n$`).MatchString(out) {
		t.Error(out)
	}
}

func TestFormatJSONPrintsNothingElseOnStandardOutput(t *testing.T) {
	enter(t, small)
	code, out, errs := gradwire(t, "run", "plan.yaml", "--out", "out", "--format", "json")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.HasSuffix(errs, "\nOpen "+filepath.Join("out", "index.html")+"\n") {
		t.Errorf("where the record is: %s", errs)
	}
	expectSummary(t, out, "out")
}

// expectSummary compares what was printed as JSON with the summary in a folder.
func expectSummary(t *testing.T, out, dir string) {
	t.Helper()
	var printed, written any
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(printed)
	b, _ := json.Marshal(written)
	if !bytes.Equal(a, b) {
		t.Errorf("printed:\n%s\nsummary.json:\n%s", out, text)
	}
}

func TestRunCancelledBeforeItsFirstRunLeavesNothingInItsWay(t *testing.T) {
	enter(t, small)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, format := range []string{"text", "json"} {
		var out, errs bytes.Buffer
		args := []string{"run", "plan.yaml", "--out", format, "--format", format}
		code := asGradwire(catalog.Default()).Run(ctx, args, &out, &errs)
		expectCode(t, cli.ExitFailed, code, errs.String())
		if want := "there is no record to continue; run the plan again"; !strings.Contains(errs.String(), want) {
			t.Errorf("%q is not in\n%s", want, errs.String())
		}
		code, _, e := gradwire(t, args...)
		expectCode(t, cli.ExitDone, code, e)
	}
}

func TestPlanCheckSaysThatAPlanIsInOrder(t *testing.T) {
	enter(t, small)
	code, out, errs := gradwire(t, "plan", "check", "plan.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	order, estimate, _ := strings.Cut(out, "\n")
	if order != "plan.yaml is in order" || !strings.HasPrefix(estimate, "a run takes about ") {
		t.Error(out)
	}
}

func TestPlanCheckAndRunSayWhatAllRunsTake(t *testing.T) {
	enter(t, small+"repeats: 500\n")
	line := regexp.MustCompile(`(?m)^\d+ runs, (at most )?about .* on \d+ cores?, .*B sent, .*B of memory.*$`)
	code, out, errs := gradwire(t, "plan", "check", "plan.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	if !line.MatchString(out) {
		t.Error(out)
	}
	code, out, errs = gradwire(t, "plan", "check", "plan.yaml", "--format", "json")
	expectCode(t, cli.ExitDone, code, errs)
	var about struct {
		Forecast struct {
			Runs  int
			Bytes float64 `json:"bytes_sent"`
		}
	}
	if err := json.Unmarshal(
		[]byte(out),
		&about,
	); err != nil || about.Forecast.Runs < 500 ||
		about.Forecast.Bytes <= 0 {
		t.Errorf("%v: %s", err, out)
	}
	write(t, "plan.yaml", edit(t, edit(t, small, "set: synthetic-traffic, samples: 1500", "set: mnist"), "[93, 8, 5]",
		"[784, 10]"))
	t.Setenv("GRADWIRE_DATA", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	code, out, errs = gradwire(t, "plan", "check", "plan.yaml")
	if code != cli.ExitDone || line.MatchString(out) ||
		!strings.Contains(errs, "note: what all runs take is unknown: ") {
		t.Errorf("without data: code %d, %s\n%s", code, out, errs)
	}
}

func TestCountedRunsHaveNoAccuracyInAnyTable(t *testing.T) {
	enter(t, small)
	code, out, errs := gradwire(t, "run", "plan.yaml", "--count", "--out", "counted")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.HasPrefix(out, "Counted, not trained: ") || !strings.Contains(out, "runs counted") ||
		strings.Contains(out, "%") {
		t.Error(out)
	}
	code, _, errs = gradwire(t, "run", "plan.yaml", "--out", "trained")
	expectCode(t, cli.ExitDone, code, errs)
	code, out, errs = gradwire(t, "report", "counted", "trained", "--out", "both.html")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(out, "counted:\nCounted, not trained: ") {
		t.Error(out)
	}
	for _, args := range [][]string{{"run", "plan.yaml", "--count", "--clock", "real"},
		{"run", "--continue", "counted"}, {"replay", "counted/runs/0000"}, {"eval", "counted/runs/0000"}} {
		if code, _, errs = gradwire(t, args...); code != cli.ExitInput || !strings.Contains(errs, "count") {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
}

func TestPlanCheckAndShowSayWhatIsChosenByTheNetwork(t *testing.T) {
	enter(t, `name: far
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: all-reduce, algorithm: auto}
nodes: [{name: peer, count: 4}]
network: {default: {delay: 10ms}}
stop: {epochs: 1}
`)
	_, out, _ := gradwire(t, "plan", "check", "plan.yaml")
	const chosen = "architecture.algorithm is all-to-all; by formula an exchange takes "
	if lines := strings.Split(out, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], chosen) {
		t.Error(out)
	}
	_, out, _ = gradwire(t, "plan", "show", "plan.yaml")
	if !strings.HasPrefix(out, "# "+chosen) || !strings.Contains(out, "algorithm: auto") {
		t.Error(out)
	}
	_, out, errs := gradwire(t, "plan", "check", "plan.yaml", "--set", "architecture.algorithm=ring", "--format",
		"json")
	for _, want := range []string{`"chosen": "ring"`, `"auto": false`, `"word": "all-to-all"`,
		`"warning": "--set arch`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !strings.HasPrefix(errs, "warning: --set architecture.algorithm=ring: architecture.algorithm: by formula") {
		t.Error(errs)
	}
}

func TestPlanCheckFindsAFaultAtAnyPointOfTheSweep(t *testing.T) {
	enter(t, small+"sweep: {train.batch: [8, 16, 0]}\n")
	code, _, errs := gradwire(t, "plan", "check", "plan.yaml")
	expectCode(t, cli.ExitInput, code, errs)
	if !strings.HasPrefix(errs, "plan.yaml:16:30: ") ||
		!strings.Contains(errs, "train.batch: 0 is out of range; accepted is 1 to 65536") {
		t.Error(errs)
	}
}

func TestPlanThatIsShownShowsAsItself(t *testing.T) {
	enter(t, small+"sweep: {train.batch: [8, 16]}\n")
	code, first, errs := gradwire(t, "plan", "show", "plan.yaml", "--set", "stop.epochs=3")
	expectCode(t, cli.ExitDone, code, errs)
	for _, want := range []string{"stop: {epochs: 3}", "seed: 1", "scale: min-max", "activation: relu",
		"default: {delay: 0ms, rate: unlimited"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in the plan:\n%s", want, first)
		}
	}
	write(t, "shown.yaml", first)
	code, second, errs := gradwire(t, "plan", "show", "shown.yaml")
	expectCode(t, cli.ExitDone, code, errs)
	if first != second {
		t.Errorf("shown:\n%s\nshown again:\n%s", first, second)
	}
}

func TestListsAreThoseOfTheCatalog(t *testing.T) {
	golden, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, kind := range []string{"models", "datasets", "splits", "optimizers", "schedules", "architectures", "links",
		"rates", "networks", "networks lte-driving-up", "networks regions-aws-2024", "topologies", "actors"} {
		code, out, errs := gradwire(t, append([]string{"list"}, strings.Fields(kind)...)...)
		expectCode(t, cli.ExitDone, code, errs)
		all.WriteString("$ gradwire list " + kind + "\n" + out)
	}
	expectFile(t, filepath.Join(golden, "lists.txt"), all.String())
}

func TestContinueSaysThatThereIsNoRecord(t *testing.T) {
	enter(t, plain)
	code, _, errs := gradwire(t, "run", "--continue", "none")
	if code != cli.ExitInput || !strings.Contains(errs, "--continue none: there is no record in this folder") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestProgressNamesRunsOfTune(t *testing.T) {
	enter(t, edit(t, plain, "samples: 1500", "samples: 1500, validation: 10%")+
		"repeats: 2\ntune: {train.optimizer.rate: [0.1, 0.2, 0.4]}\n")
	code, out, errs := gradwire(t, "plan", "check", "plan.yaml")
	if code != cli.ExitDone || !strings.Contains(out, "2 runs and 3 to tune") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	code, _, errs = gradwire(t, "run", "plan.yaml", "--out", "out")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(errs, "0 of 2 runs, ") || !strings.Contains(errs, " of 3 to tune, ") {
		t.Errorf("told: %s", errs)
	}
	if strings.Contains(strings.ReplaceAll(errs, "2 of 2 runs, 100 %", ""), "100 %") {
		t.Errorf("100 %% is told before the end: %s", errs)
	}
}
