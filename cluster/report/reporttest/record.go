package reporttest

import (
	"path/filepath"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
)

// WriteRecord leaves a record of a made-up sweep in a folder of this name. Change, if not
// nil, sees each run before it is saved.
func WriteRecord(t testing.TB, name, plan string, labels []string, seeds int,
	change func(*record.Run, *record.Data)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	f, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SavePlan("name: " + plan + "\n"); err != nil {
		t.Fatal(err)
	}
	s, traces := Sample(labels, seeds, 0.94)
	for i, r := range s.Runs {
		d := record.Data{Curve: traces[i].Curve, Links: []record.Link{
			{From: "server", To: "near", Messages: 50, Bytes: 5e6, DelayAsked: 0.001, DelayAchieved: 0.001},
			{From: "near", To: "server", Messages: 50, Bytes: 5e6, DelayAsked: 0.001, DelayAchieved: 0.5, Lost: 3},
		}, Updates: []record.Update{
			{Node: "near", Updates: 12, Staleness: record.Staleness{Counts: []record.Count{{Value: 0, Count: 10},
				{Value: 3, Count: 2}}}},
			{Node: "far", Updates: 4, Staleness: record.Staleness{Counts: []record.Count{{Value: 30, Count: 4}}},
				Waiting: []record.Waiting{
					{Cause: "parameters", Count: 8, Total: 1.2,
						Buckets: []record.Bucket{{Low: 0.1, High: 0.2, Count: 8, Total: 1.2}}},
				}},
		}}
		r.Duration = d.Curve[len(d.Curve)-1].Time
		r.BestAccuracy = r.FinalAccuracy
		for k := range d.Curve {
			d.Curve[k].Accuracy = min(d.Curve[k].Accuracy, 1)
		}
		if change != nil {
			change(&r, &d)
		}
		if err := f.SaveRun(r.Number, r, d, record.Models{Judged: []float32{1, 2, float32(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Write(record.Overview{Plan: plan, Target: 0.94, RunsPlanned: len(s.Runs),
		Build: record.Build{Commit: "abc", Kernel: "avx512"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}
