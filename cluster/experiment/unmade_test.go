package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/record"
)

const unlucky = `
name: unlucky
data: {set: csv, file: t.csv, test: 25%}
model: {kind: mlp, layers: [1, 2]}
train: {batch: 2}
architecture: {kind: parameter-server}
nodes: [{name: s, role: server}, {name: w, role: worker, count: 2, compute: {step: 5ms}}]
evaluate: {every: 2 steps}
stop: {steps: 4}
repeats: 12
`

// scarce is a folder of tables in which something has a single sample.
func scarce(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var rows strings.Builder
	rows.WriteString("x,who,label\n0.5,w2,a\n")
	for i := range 11 {
		fmt.Fprintf(&rows, "0.%d,w1,%c\n", i, 'a'+rune(i%2))
	}
	var few strings.Builder
	few.WriteString("x,label\n0.5,b\n")
	for i := range 5 {
		fmt.Fprintf(&few, "0.%d,a\n", i)
	}
	for name, text := range map[string]string{"t.csv": rows.String(), "few.csv": few.String(),
		"w1.csv": few.String(), "w2.csv": "x,label\n0.7,a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A split that the hold-out of some seeds makes impossible costs the runs with those seeds,
// which are recorded with the cause, and no others. Each kind of split that can leave a worker
// without samples is tried with each hold-out.
func TestSeedThatCannotBeSetUpCostsItsOwnRunAlone(t *testing.T) {
	dir := scarce(t)
	splits := map[string][]string{
		"file":   {"data.file={w1: w1.csv, w2: w2.csv}", "data.split={kind: file}"},
		"column": {"data.split={kind: column, column: who, workers: {w1: [w1], w2: [w2]}}"},
		"classes": {"data.file=few.csv",
			"data.split={kind: classes, workers: {w1: {a: 100%}, w2: {b: 100%}}}"},
	}
	holdouts := map[string]string{"test": "data.test=25%", "validation": "data.validation=30%"}
	for split, set := range splits {
		for holdout, share := range holdouts {
			t.Run(split+" "+holdout, func(t *testing.T) {
				t.Parallel()
				root, err := os.OpenRoot(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = root.Close() }()
				c := catalog.Default()
				c.Folder = root
				p, err := Parse("plan.yaml", []byte(unlucky), append([]string{share}, set...)...)
				if err != nil {
					t.Fatal(err)
				}
				out := filepath.Join(t.TempDir(), "record")
				report, err := Run(context.Background(), p, Options{Catalog: c, Data: dir, Out: out})
				if report == nil {
					t.Fatalf("nothing ran: %v", err)
				}
				failed := 0
				for _, r := range report.Runs {
					if r.Outcome != record.Failed {
						continue
					}
					failed++
					why := fmt.Sprintf("seed %d's hold-out (data.", r.Seed)
					if len(r.Incidents) != 1 || !strings.Contains(r.Incidents[0].What, why) {
						t.Errorf("run %d failed because %+v, which does not say %q", r.Number, r.Incidents, why)
					}
				}
				t.Logf("%d of %d failed: %v", failed, len(report.Runs), err)
				if len(report.Runs) != 12 || (failed > 0) != (err != nil) {
					t.Errorf("%d of 12 runs are recorded, %d failed; error %v", len(report.Runs), failed, err)
				}
				if failed == 0 || failed == 12 {
					t.Errorf("%d of 12 seeds take the samples of a worker, which tests nothing", failed)
				}
			})
		}
	}
}
