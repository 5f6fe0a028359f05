package record

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/record/strict"
)

// sameFloats holds a NaN equal to another.
var sameFloats = cmp.Comparer(func(a, b Float) bool {
	return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b))
})

func number(v float64) *float64 { return &v }

// example is a run that reached its target, with all that can be awkward in text.
func example(n int, label string, seed uint64) (Run, Data) {
	r := Run{
		Number: n, Point: Point{{"data.split", label}}, Seed: seed, Reached: true, TimeToTarget: number(80.5),
		EpochsToTarget: number(1.25),
		FinalAccuracy:  0.95, BestAccuracy: 0.96, Steps: 60, Messages: 360, Bytes: 31449600, Evaluations: 2,
		Clock: "virtual", Duration: 80.5, Wall: 0.5, Digest: "00ff", Outcome: Done, Of: Mean,
		Crossings: map[Of]float64{Any: 70, Mean: 80.5},
	}
	nan := Float(math.NaN())
	d := Data{
		Curve: []Evaluation{
			{Number: 1, Accuracy: 0.2, Loss: nan, Models: 2, AverageModel: nan, Mean: 0.2, All: 0.1, Any: 0.3},
			{
				Number: 2, Time: 80.5, Step: 60, Epoch: 1.25, Accuracy: 0.95, Loss: Float(math.Inf(1)), Bytes: 31449600,
				Models: 2, AverageModel: 0.96, Mean: 0.95, All: 0.94, Any: 0.96,
			},
		},
		Models: []ModelVerdict{
			{Number: 1, Node: "fast", Accuracy: 0.1, Loss: nan}, {Number: 1, Node: "slow", Accuracy: 0.3},
			{Number: 2, Node: "fast", Step: 40, Accuracy: 0.96}, {Number: 2, Node: "slow", Step: 20, Accuracy: 0.94},
		},
		Links: []Link{{From: "fast", To: "server", Messages: 360, Bytes: 31449600, DelayAsked: 0.001,
			DelayAchieved: 0.0011, Lost: 2, Control: 3, ControlBytes: 99}},
		Updates: []Update{{
			Node: "fast", Steps: 60, Samples: 1920, Updates: 59,
			Staleness: Staleness{Mean: 1, P50: 1, P99: 2, Max: 2, Counts: []Count{{1, 58}, {2, 1}}},
			Waiting: []Waiting{{Cause: "parameters", Count: 3, Total: 0.006,
				Buckets: []Bucket{{0.001, 0.0011, 2, 0.0021}, {0.0035, 0.004, 1, 0.0039}}}},
		}},
		Steps: 60, Messages: 360, Bytes: 31449600,
		Selections: []Selection{{Node: "fast", Neighbours: []string{"server", "slow, too"}, Counts: []uint64{3, 1}}},
		Measured: []Measurement{{Time: 0, Node: "coordinator", Name: "consensus distance", Value: 0.5},
			{Time: 80.5, Node: "fast", Name: "x", Value: Float(math.NaN())}},
		Unmeasured: 2,
	}
	return r, d
}

var params = []float32{1, 2, 3, 4, 5, 6}

// newExample makes a folder with two points of two seeds, of which the last run is missing.
func newExample(t *testing.T) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "results", "one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SavePlan("name: p\nseed: 1\n"); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 0, 1} { // runs side by side end in any order
		r, d := example(n, []string{"iid", "iid", "share 20 %, skewed"}[n], uint64(n%2+1))
		if n == 1 {
			r.Reached, r.TimeToTarget, r.EpochsToTarget, r.FinalAccuracy = false, nil, nil, 0.85
			r.Clock, r.Lateness = "real", &Lateness{Late: true, P99: 0.002}
			r.Outcome, r.Incidents = Degraded, []Incident{{At: 6, Node: "server",
				What: "its model was lost with its process"}}
		}
		if err := f.SaveRun(n, r, d, Models{Judged: params}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

var overview = Overview{Plan: "p", Build: Build{Commit: "c", Go: "go1"}, Wall: 1.5, Target: 0.94, RunsPlanned: 4}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("GRADWIRE_REWRITE") != "" {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (rewrite with GRADWIRE_REWRITE=1): -want +got:\n%s", path, diff)
	}
}

func TestFilesHaveTheirNamesColumnsAndKeys(t *testing.T) {
	f := newExample(t)
	if _, err := f.Write(overview); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"summary.json", "curve.csv", "models.csv", "links.csv", "updates.csv",
		"selections.csv",
		"measured.csv", "runs/0001/run.json"} {
		text, err := os.ReadFile(filepath.Join(f.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Base(name), text)
		if strings.HasSuffix(name, ".csv") {
			if _, err := csv.NewReader(bytes.NewReader(text)).ReadAll(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestOpenReadsBackWhatWasSaved(t *testing.T) {
	f := newExample(t)
	summary, err := f.Write(overview)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Runs(), again.Runs()); diff != "" {
		t.Errorf("runs: -saved +read:\n%s", diff)
	}
	_, want := example(0, "iid", 1)
	got, err := again.Data(0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, sameFloats); diff != "" {
		t.Errorf("data: -saved +read:\n%s", diff)
	}
	read, err := ReadSummary(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summary, read, sameFloats); diff != "" {
		t.Errorf("summary: -written +read:\n%s", diff)
	}
	if n, ok := again.Finished(Point{{"data.split", "iid"}}, 2); n != 1 || !ok {
		t.Errorf("run of iid and seed 2: %d, %v", n, ok)
	}
	if _, ok := again.Finished(Point{{"data.split", "iid"}}, 3); ok {
		t.Error("seed 3 has no run")
	}
	model, err := os.ReadFile(again.runPath(0, modelName))
	if err != nil {
		t.Fatal(err)
	}
	values, _, metadata, err := safetensors.Read(bytes.NewReader(model))
	if err != nil || !slices.Equal(values, params) || metadata["seed"] != "1" {
		t.Errorf("model: %v, %v, %v", values, metadata, err)
	}
}

func TestTablesAreWrittenOnlyWhereTheyHaveRows(t *testing.T) {
	f, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SavePlan("p"); err != nil {
		t.Fatal(err)
	}
	for n, wanted := range []bool{false, true} {
		r, d := example(n, "iid", uint64(n))
		if !wanted {
			d.Selections, d.Measured, d.Models = nil, nil, nil
		}
		if err := f.SaveRun(n, r, d, Models{Judged: params}); err != nil {
			t.Fatal(err)
		}
		again, err := Open(f.Dir())
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range []*Folder{f, again} {
			if _, err := folder.Write(overview); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"models.csv", "selections.csv", "measured.csv"} {
				if _, err := os.Stat(filepath.Join(f.Dir(), name)); (err == nil) != wanted {
					t.Errorf("%s after %d runs: %v", name, n+1, err)
				}
			}
		}
	}
}

func TestTracesHaveTheLinksOfOneRunOfEachPoint(t *testing.T) {
	f := newExample(t)
	traces, err := f.Traces(f.Runs())
	if err != nil {
		t.Fatal(err)
	}
	for i, links := range []int{1, 0, 1} {
		if len(traces[i].Links) != links || len(traces[i].Curve) != 2 || len(traces[i].Measured) != 2 {
			t.Errorf("run %d: %+v", i, traces[i])
		}
	}
}

func TestCreateRefusesAFolderThatIsNotEmpty(t *testing.T) {
	f := newExample(t)
	if _, err := Create(f.Dir()); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), f.Dir()) {
		t.Errorf("got %v", err)
	}
	if _, err := Create(t.TempDir()); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Create(filepath.Join(f.Dir(), PlanName)); err == nil {
		t.Error("a file passed for a folder")
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNoRecord) {
		t.Errorf("open an empty folder: %v", err)
	}
}

func TestContinuingWithAnotherPlanIsRefused(t *testing.T) {
	f, err := Open(newExample(t).Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SavePlan("name: p\nseed: 1\n"); err != nil {
		t.Errorf("the same plan: %v", err)
	}
	err = f.SavePlan("name: p\nseed: 2\n")
	if !errors.Is(err, ErrOtherPlan) || !strings.Contains(err.Error(),
		`line 2 was "seed: 1" there and is "seed: 2" now`) {
		t.Errorf("got %v", err)
	}
}

func TestCorruptRunsAreNamed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "run.json:1: the file ends too early"},
		{"{\n\"run\": 0,", "run.json:2: the file ends too early"},
		{"{\n\"run\": x", `run.json:2: key "run" is x, which is no JSON; a whole number is accepted`},
		{`{"run": "x"}`, `run.json:1: key "run" is "x"; a whole number is accepted`},
		{`{"surprise": 1}`, `unknown key "surprise"`},
		{`{"run": 7}`, `key "run" is 7, but the folder belongs to run 0`},
		{`{"run": 0}`, `key "clock" is ""; virtual, real and cluster are accepted`},
		{`{"version": 3}`, `key "version" is 3; up to 2 is accepted`},
		{`{"version": 2, "clock": "real"}`, `key "outcome" is ""; done, degraded, failed and counted are accepted`},
		{`{"version": 2, "clock": "real", "outcome": "done", "of": "best"}`,
			`key "of" is "best"; average-model, mean, all and any are accepted`},
		{`{"version": 2, "clock": "real", "outcome": "done", "of": "any", "crossings_s": {"some": 1}}`,
			`key "crossings_s" is "some"; average-model`},
		{`{"version": 2, "clock": "real", "outcome": "failed", "of": "any", "incidents": [{"at_s": 1, "what": ` +
			`"diverged"}]}`,
			`element 0 of incidents: "diverged" at node ""`},
		{`{"clock": "real", "reached": true}`, `key`},
		{`{"clock": "real"}`, `key "data" must have the lists curve, links and updates`},
		{`{"final_accuracy": "many"}`, `"many" is no number`},
		{`{"point": {"a": [1]}}`, `key "a" of a point`},
		{`{"point": {"a": 1, "a": 2}}`, `key "a" is given twice`},
		{`{"clock": "real", "data": {"curve": [], "links": [], "updates": [], "selections": [{"node": "a", ` +
			`"neighbours": ["b"]}]}}`, `of 1 neighbours, but have 0 counts`},
		{`{"clock": "real"} 1`, `run.json:1: there is text after the end`},
	} {
		f := newExample(t)
		path := f.runPath(0, runName)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(f.Dir())
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n\tgot %v\n\twant %s", c.text, err, c.want)
		}
	}
}

func TestTooLargeAFileIsRefused(t *testing.T) {
	f := newExample(t)
	if err := os.Truncate(f.runPath(0, runName), MaxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.Dir()); err == nil || !strings.Contains(err.Error(), "are more than the") {
		t.Errorf("got %v", err)
	}
}

func TestTwoRunsOfOnePointAndSeedAreRefused(t *testing.T) {
	f := newExample(t)
	r, d := example(3, "iid", 1)
	if err := f.SaveRun(3, r, d, Models{Judged: params}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.Dir()); err == nil || !strings.Contains(err.Error(), "run 0 has the same point") {
		t.Errorf("got %v", err)
	}
}

func TestEventsHaveTheirNameOnceTheRunIsSaved(t *testing.T) {
	f := newExample(t)
	w, err := f.EventsWriter(3, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.runPath(3, eventsName)); err == nil {
		t.Error("the events have their name before the run is saved")
	}
	r, d := example(3, "x", 1)
	if err := f.SaveRun(3, r, d, Models{Judged: params}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.runPath(3, eventsName)); err != nil || string(text) != "{}\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestRunsSaveSideBySide(t *testing.T) {
	f, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SavePlan("p"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			r, d := example(n, "iid", uint64(n))
			if err := f.SaveRun(n, r, d, Models{Judged: params}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	again, err := Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range again.Runs() {
		if r.Number != n {
			t.Errorf("run %d at place %d", r.Number, n)
		}
	}
}

// fullDisk has room for a number of operations, each write, sync, rename and so on being
// one. The write that fails has written half.
type fullDisk struct {
	osDisk
	room *int
}

func (d fullDisk) spend() error {
	if *d.room--; *d.room < 0 {
		return errFull
	}
	return nil
}

func (d fullDisk) Create(path string, stay int64) (diskFile, error) {
	if err := d.spend(); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Create(path, stay)
	return &fullFile{f, d}, err
}

func (d fullDisk) MakeDir(path string) error { return errors.Join(d.spend(), d.osDisk.MakeDir(path)) }

func (d fullDisk) Remove(path string) error { return errors.Join(d.spend(), d.osDisk.Remove(path)) }

func (d fullDisk) Rename(from, to string) error {
	if err := d.spend(); err != nil {
		return err
	}
	return d.osDisk.Rename(from, to)
}

type fullFile struct {
	diskFile
	disk fullDisk
}

func (f *fullFile) Write(b []byte) (int, error) {
	if err := f.disk.spend(); err != nil {
		n, _ := f.diskFile.Write(b[:len(b)/2])
		return n, err
	}
	return f.diskFile.Write(b)
}

func (f *fullFile) Sync() error { return errors.Join(f.disk.spend(), f.diskFile.Sync()) }

func TestFullDiskLeavesOnlyWholeFiles(t *testing.T) {
	whole := newExample(t)
	if _, err := whole.Write(overview); err != nil {
		t.Fatal(err)
	}
	for room := 0; ; room++ {
		left := room
		dir := t.TempDir()
		err := save(dir, fullDisk{room: &left})
		checkWhole(t, dir, whole.Dir())
		if err == nil {
			if room < 20 {
				t.Errorf("all is written in %d operations", room)
			}
			return
		}
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), dir) {
			t.Fatalf("room for %d operations: %v", room, err)
		}
	}
}

// save writes what newExample does, as far as the disk lets it.
func save(dir string, d disk) error {
	f, err := create(dir, d)
	if err != nil {
		return err
	}
	if err := f.SavePlan("name: p\nseed: 1\n"); err != nil {
		return err
	}
	r, data := example(0, "iid", 1)
	if err := f.SaveRun(0, r, data, Models{Judged: params}); err != nil {
		return err
	}
	_, err = f.Write(overview)
	return err
}

// checkWhole expects of each file that has a final name that it is whole.
func checkWhole(t *testing.T, dir, whole string) {
	t.Helper()
	for _, name := range []string{PlanName, "runs/0000/" + runName, "runs/0000/" + modelName} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		want, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not whole: %q", name, got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, summaryName)); err == nil && !json.Valid(text) {
		t.Errorf("summary.json is not whole: %q", text)
	}
}

// TestMain is, as a child of the kill test, a program that saves runs for ever.
func TestMain(m *testing.M) {
	dir := os.Getenv("GRADWIRE_SAVE_FOR_EVER")
	if dir == "" {
		os.Exit(m.Run())
	}
	f, err := Create(dir)
	if err == nil {
		err = f.SavePlan("p")
	}
	large := make([]float32, 1<<18)
	for n := 0; err == nil; n++ {
		r, d := example(n, "iid", uint64(n))
		err = f.SaveRun(n, r, d, Models{Judged: large})
		_, _ = os.Stdout.WriteString(".")
	}
	_, _ = os.Stderr.WriteString(err.Error())
	os.Exit(1)
}

func TestKilledProgramLeavesOnlyWholeRuns(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for saved := 1; saved <= 5; saved++ {
		dir := filepath.Join(t.TempDir(), "out")
		command := exec.Command(program)
		command.Env = append(os.Environ(), "GRADWIRE_SAVE_FOR_EVER="+dir)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, saved)); err != nil {
			t.Fatal(err)
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil {
			t.Fatal("the program was not killed")
		}
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Runs()) < saved {
			t.Errorf("%d runs, want at least %d", len(f.Runs()), saved)
		}
		for _, r := range f.Runs() {
			checkModel(t, f.runPath(r.Number, modelName))
		}
	}
}

func checkModel(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if values, _, _, err := safetensors.Read(file); err != nil || len(values) != 1<<18 {
		t.Errorf("%s: %d values, %v", path, len(values), err)
	}
}

func FuzzRunJSON(f *testing.F) {
	r, d := example(0, "iid", 1)
	text, err := json.Marshal(saved{Version: Version, Run: r, Data: d})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"point": {"a": -1e5, "b": true}, "late": false}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s saved
		if strict.Decode(text, &s) != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var same saved
		if err := strict.Decode(again, &same); err != nil {
			t.Fatalf("%v in %s", err, again)
		}
		if diff := cmp.Diff(s, same, sameFloats, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

// A record that is deleted under its writer does not come back in part.
func TestRunIsNotSavedIntoARecordThatWasDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.SavePlan("name: x\n"), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	r, d := example(0, "x", 1)
	if err := f.SaveRun(0, r, d, Models{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("saved: %v", err)
	}
	if _, err := f.EventsWriter(0, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("events: %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is back: %v", dir, err)
	}
}
