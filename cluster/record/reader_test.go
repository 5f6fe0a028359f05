package record

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written is a finished record of two points and its folder.
func written(t *testing.T) string {
	t.Helper()
	f := newExample(t)
	if _, err := f.Write(Overview{Plan: "example", Target: 0.9, RunsPlanned: 3}); err != nil {
		t.Fatal(err)
	}
	return f.Dir()
}

func TestReaderReadsWhatAFolderHasWritten(t *testing.T) {
	f := newExample(t)
	s, err := f.Write(Overview{Plan: "example", Target: 0.9, RunsPlanned: 3})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, r.Summary, sameFloats); diff != "" || r.Plan != string(f.Plan()) {
		t.Errorf("plan %q, summary -want +got:\n%s", r.Plan, diff)
	}
	for _, run := range s.Runs {
		want, err := f.Data(run.Number)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range []*RunFolder{r.Run(run.Number), OpenRun(r.Run(run.Number).Path())} {
			got, data, err := folder.Read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(run, got, sameFloats) + cmp.Diff(want, data, sameFloats); diff != "" {
				t.Errorf("%s: %s", folder.Path(), diff)
			}
		}
	}
}

func TestReaderNamesWhatIsMissing(t *testing.T) {
	dir := written(t)
	if _, err := NewReader(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := NewReader(t.TempDir()); !errors.Is(err, ErrNoRecord) {
		t.Errorf("an empty folder: %v", err)
	}
	r, err := NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, summaryName)); err != nil {
		t.Fatal(err)
	}
	if again, err := NewReader(dir); err != nil || len(again.Summary.Runs) != len(r.Summary.Runs) ||
		again.Summary.Complete || again.Summary.Plan != "p" {
		t.Errorf("without a summary: %+v, %v", again, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, runsName)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"there is no " + summaryName:                  second(NewReader(dir)),
		filepath.Join(dir, runsName, "0999", runName): third(r.Run(999).Read()),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want that there is no %s", err, what)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func TestReaderFollowsNoLinkOutOfTheRecord(t *testing.T) {
	for _, name := range []string{PlanName, summaryName, filepath.Join(runsName, "0000", runName)} {
		dir := written(t)
		elsewhere := filepath.Join(t.TempDir(), "file")
		if err := os.Rename(filepath.Join(dir, name), elsewhere); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(dir, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
		if err := readAll(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("%s that leads out: %v", name, err)
		}
		inside := filepath.Join(dir, "kept")
		if err := errors.Join(os.Rename(elsewhere, inside), os.Remove(filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		back, err := filepath.Rel(filepath.Dir(filepath.Join(dir, name)), inside)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(back, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := readAll(dir); err != nil {
			t.Errorf("%s that stays inside: %v", name, err)
		}
	}
}

// readAll reads a record with all its runs.
func readAll(dir string) error {
	r, err := NewReader(dir)
	if err != nil {
		return err
	}
	for _, run := range r.Summary.Runs {
		if _, _, err := r.Run(run.Number).Read(); err != nil {
			return err
		}
	}
	return nil
}

func TestReaderRefusesWhatIsNoFile(t *testing.T) {
	dir := written(t)
	path := filepath.Join(dir, runsName, "0000", runName)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := readAll(dir); err == nil || !strings.HasPrefix(err.Error(), path+": this is no regular file: ") {
		t.Errorf("got %v", err)
	}
}

func TestReaderRefusesFiguresThatNoRunHas(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Run, *Data)
		want  string
	}{
		{"accuracy", func(r *Run, _ *Data) { r.BestAccuracy = 1.5 }, "fractions from 0 to 1"},
		{"bytes", func(r *Run, _ *Data) { r.Bytes = -1 }, "-1 bytes"},
		{"length", func(r *Run, _ *Data) { r.Duration = 1e300 }, `key "run_s" is 1e+300`},
		{"timeout", func(r *Run, _ *Data) { r.NodeTimeout = -1 }, `key "node_timeout_s" is -1`},
		{"time to target", func(r *Run, _ *Data) {
			r.Reached, r.TimeToTarget, r.EpochsToTarget = true, number(-3),
				number(1)
		}, "after -3 s"},
		{"curve", func(_ *Run, d *Data) { d.Curve[0].Time = 1e13 },
			"element 0 of curve: no evaluation has time 1e+13 s"},
		{"curve's accuracy", func(_ *Run, d *Data) { d.Curve[0].Accuracy = Float(math.Inf(1)) }, "accuracy Inf"},
		{"links", func(_ *Run, d *Data) { d.Links[0].DelayAchieved = -1 }, "element 0 of links: no link has delays"},
		{"waits", func(_ *Run, d *Data) {
			d.Updates = []Update{{Waiting: []Waiting{{Buckets: []Bucket{{Low: 2, High: 1}}}}}}
		}, "element 0 of updates: waits of 2 to 1 s"},
		{"models", func(_ *Run, d *Data) { d.Models[1].Accuracy = 2 }, "element 1 of models: accuracy 2"},
		{"judged accuracy", func(_ *Run, d *Data) { d.Curve[0].All = -1 }, "element 0 of curve"},
		{"target", func(r *Run, _ *Data) { r.Target = number(80) }, `key "target" is 80`},
		{"measured", func(_ *Run, d *Data) { d.Measured = []Measurement{{Time: -1}} }, "element 0 of measured"},
	} {
		f := newExample(t)
		r, d := example(7, "bad", 9)
		c.spoil(&r, &d)
		if err := f.SaveRun(7, r, d, Models{Judged: params}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		path := f.runPath(7, "")
		_, _, err := OpenRun(path).Read()
		if err == nil || !strings.Contains(err.Error(), filepath.Join(path, runName)) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestReaderRefusesSummariesThatCannotBe(t *testing.T) {
	run := `{"run": %d, "point": {}, "seed": 1, "clock": "virtual", "final_accuracy": %s}`
	for _, c := range []struct{ text, want string }{
		{`{"runs": [` + fmt.Sprintf(run, -1, "0") + `]}`, `element 0 of runs: key "run" is -1`},
		{`{"runs": [` + fmt.Sprintf(run, 1, "0") + "," + fmt.Sprintf(run, 1, "0") + `]}`,
			"element 1 of runs: run 1 comes after run 1"},
		{`{"version": 2, "runs": [{"run": 0, "point": {}, "seed": 1, "clock": "virtual", "outcome": "done", "of": ` +
			`"mean", "final_accuracy": 7}]}`, "element 0 of runs: the accuracies are 7"},
		{`{}`, `key "runs" is missing`},
		{`{"version": 2, "plan": "p"}`, `key "runs" is missing`},
		{`{"target": 17}`, `key "target" is 17`},
		{"{\n\"runs\": [", "summary.json:2: the file ends too early"},
		{"{\n\"plan\": NaN}", `summary.json:2: key "plan" is NaN, which is no JSON; a string is accepted`},
		{`{"runs": [{"point": {` + keysOf(2000) + `}}]}`, "more than the 1000 keys"},
	} {
		dir := written(t)
		if err := os.WriteFile(filepath.Join(dir, summaryName), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := NewReader(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, summaryName)) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: got %v, want %s", c.text, err, c.want)
		}
	}
}

func keysOf(n int) string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("\"k%d\": 1", i))
	}
	return strings.Join(keys, ", ")
}
