package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

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
