package record

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oldRecord copies a record from before version 2: two peers that gossip, at two points of two
// seeds.
func oldRecord(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "old"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRecordsWithoutAVersionSayWhatTheyThenMeant(t *testing.T) {
	r, err := NewReader(oldRecord(t))
	if err != nil {
		t.Fatal(err)
	}
	run, d, err := r.Run(1).Read()
	if err != nil {
		t.Fatal(err)
	}
	if run.Outcome != Done || run.Of != Any || !run.Reached || r.Summary.Version != Version {
		t.Errorf("%+v of version %d", run, r.Summary.Version)
	}
	both, one := d.Curve[1], d.Curve[len(d.Curve)-1]
	if both.Models != 2 || both.Number != 2 || both.Time <= 0 || both.Node != "" ||
		!math.IsNaN(float64(both.AverageModel)) ||
		both.All > both.Mean || both.Mean > both.Any || both.Accuracy != both.Any {
		t.Errorf("an instant of both peers: %+v", both)
	}
	if one.Accuracy != 0.8 || one.Mean >= 0.8 {
		t.Errorf("the last instant, at which one peer of two is at the target: %+v", one)
	}
	// Run 0 ended with 78.67 % at one peer and 78 % at the other, which it called its final
	// accuracy.
	if last, _, err := r.Run(0).Read(); err != nil || last.FinalAccuracy != r.Summary.Runs[0].FinalAccuracy ||
		math.Abs(float64(last.FinalAccuracy)-0.7867) > 5e-5 {
		t.Errorf("%v: the best node ended with %g", err, float64(last.FinalAccuracy))
	}
	if n := len(d.Models); n != 2*len(d.Curve) || d.Models[2].Number != 2 || d.Models[2].Node != "peer1" {
		t.Errorf("%d verdicts on models: %+v", n, d.Models)
	}
	b := r.Summary.Runs[1].Bracket
	if b == nil || b.TimeBefore != one.Time || b.TimeAfter >= *run.TimeToTarget || b.EpochsBefore != one.Epoch ||
		r.Summary.Runs[1].Epochs != one.Epoch {
		t.Errorf("%+v around %g s", b, *run.TimeToTarget)
	}
	if g := r.Summary.Groups[0]; g.Done != 2 || g.Of != Any || g.TimeToTarget.Method != "too few repeats" {
		t.Errorf("%+v", g)
	}
}

func TestRecordsWithoutAVersionAreContinued(t *testing.T) {
	dir := oldRecord(t)
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, d := example(4, "third point", 1)
	if err := f.SaveRun(4, r, d, Models{Judged: params}); err != nil {
		t.Fatal(err)
	}
	s, err := f.Write(Overview{Plan: "old", Target: 0.8, RunsPlanned: 5})
	if err != nil || !s.Complete || s.Runs[0].Of != Any || s.Runs[4].Of != Mean {
		t.Fatalf("%+v, %v", s, err)
	}
	read, err := ReadSummary(dir)
	if diff := cmp.Diff(s, read, sameFloats); err != nil || diff != "" {
		t.Errorf("%v, -written +read:\n%s", err, diff)
	}
	text, err := os.ReadFile(filepath.Join(dir, "models.csv"))
	if err != nil || !strings.Contains(string(text), "\n1,architecture.every=1,2,1,peer1,0,0,") {
		t.Errorf("%v, models.csv:\n%s", err, text)
	}
}

func TestAFailedRunIsMadeAgainAndReplaced(t *testing.T) {
	f := newExample(t)
	r, d := example(3, "share 20 %, skewed", 2)
	r.Outcome, r.Incidents = Failed, []Incident{{At: 1, Node: "fast", What: "the loss is NaN from step 7 on"}}
	r.Reached, r.TimeToTarget, r.EpochsToTarget, r.FinalAccuracy = false, nil, nil, Float(math.NaN())
	if err := f.SaveRun(3, r, d, Models{Judged: params}); err != nil { // diverged, but there are parameters
		t.Fatal(err)
	}
	if err := f.SaveRun(3, r, d, Models{Judged: nil}); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []*Folder{f, reopened(t, f.Dir())} {
		if _, err := os.Stat(folder.runPath(3, modelName)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a failed run without parameters has a model: %v", err)
		}
		if n, ok := folder.Finished(r.Point, 2); ok {
			t.Errorf("a failed run counts as finished, as run %d", n)
		}
		s, err := folder.Write(overview)
		if err != nil || s.Complete || len(s.Runs) != 4 || s.Groups[1].Failed != 1 || s.Groups[1].N != 2 ||
			s.Groups[1].FinalAccuracy.N != 1 {
			t.Errorf("%v: %+v", err, s.Groups)
		}
	}
	r, d = example(3, "share 20 %, skewed", 2)
	if err := f.SaveRun(3, r, d, Models{Judged: params}); err != nil {
		t.Fatal(err)
	}
	if n, ok := reopened(t, f.Dir()).Finished(r.Point, 2); !ok || n != 3 {
		t.Errorf("made again: run %d, %v", n, ok)
	}
	if s, err := f.Write(overview); err != nil || s.Complete ||
		s.Groups[0].Degraded != 1 { // a degraded run is not made again
		t.Errorf("%v: complete %v, %+v", err, s.Complete, s.Groups)
	}
}

func reopened(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
