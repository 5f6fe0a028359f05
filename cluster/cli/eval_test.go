package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/record"
)

func TestEvalPrintsTheModelsAccuracyAsItsRunDid(t *testing.T) {
	enter(t, small)
	const dir = "out"
	var summary record.Summary
	code, out, errs := gradwire(t, "run", "plan.yaml", "--out", dir, "--format", "json")
	if code != 0 || json.Unmarshal([]byte(out), &summary) != nil {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	at := filepath.Join(dir, "runs", "0000")
	var e struct {
		Test struct {
			Accuracy record.Float
		}
		Workers []struct{ Worker string }
	}
	if code, out, errs = gradwire(t, "eval", at, "--format", "json"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatal(err)
	}
	if e.Test.Accuracy != summary.Runs[0].FinalAccuracy || len(e.Workers) == 0 {
		t.Errorf("%+v; the run had %v", e, summary.Runs[0].FinalAccuracy)
	}
	code, out, _ = gradwire(t, "eval", at)
	for _, part := range []string{"test samples are right\n", "\nclass ", "precision", "\nworker "} {
		if code != 0 || !strings.Contains(out, part) {
			t.Errorf("exit code %d, no %q in\n%s", code, part, out)
		}
	}
	code, _, errs = gradwire(t, "eval", dir)
	expectCode(t, cli.ExitInput, code, errs)
	if !strings.Contains(errs, "is no folder of a run") {
		t.Error(errs)
	}
}

// The lines of the table are what the JSON says, from a file or standard input, to standard output
// or a file.
func TestPredictPrintsALineForEachSample(t *testing.T) {
	enter(t, small)
	csv(connection, strings.Replace(connection, "tcp", "udp", 1), connection)(t)
	code, _, errs := gradwire(t, "run", "plan.yaml", "--out", "out")
	expectCode(t, cli.ExitDone, code, errs)
	const file = "data/nsl-kdd/KDDTrain+.txt"
	code, out, errs := gradwire(t, "predict", "out/runs/0000", "--data", file, "--format", "json")
	expectCode(t, cli.ExitDone, code, errs)
	var p struct {
		Predictions []struct {
			Row         int
			Class       string
			Probability float64
		}
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	want := "row,class,probability\n"
	for _, of := range p.Predictions {
		want += fmt.Sprintf("%d,%s,%.6g\n", of.Row, of.Class, of.Probability)
	}
	if len(p.Predictions) != 3 || p.Predictions[0].Probability != p.Predictions[2].Probability ||
		p.Predictions[0].Probability == p.Predictions[1].Probability {
		t.Errorf("%+v of two equal samples and another between them", p)
	}
	if code, out, errs = gradwire(t, "predict", "out/runs/0000", "--data", file); code != 0 || out != want {
		t.Errorf("exit code %d, got %s%s, want %s", code, out, errs, want)
	}
	code, out, errs = gradwire(t, "predict", "out/runs/0000", "--data", file, "--out", "classes.csv")
	if code != 0 || out != "3 predictions in classes.csv\n" {
		t.Errorf("exit code %d, got %s%s", code, out, errs)
	}
	if text, err := os.ReadFile("classes.csv"); err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	program := asGradwire(catalog.Default())
	program.In = strings.NewReader(connection + "\n" + strings.Replace(connection, "tcp", "icp", 1))
	var o, e bytes.Buffer
	code = program.Run(t.Context(), []string{"predict", "out/runs/0000", "--data", "-"}, &o, &e)
	expectCode(t, cli.ExitDone, code, e.String())
	const told = `stdin: column protocol_type has words that the training set has not, 1 in all, the first, "icp", on line 2`
	if !strings.HasPrefix(e.String(), told) {
		t.Error(e.String())
	}
	code, _, errs = gradwire(t, "eval", "out/runs/0000", "--data", "nowhere.txt")
	expectCode(t, cli.ExitInput, code, errs)
}
