package driver_test

import (
	"math"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

// early is a run whose models are judged only as far as it takes, if it says so.
const early = `name: early
repeats: 2
data: {set: synthetic-traffic, samples: 4000}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: gossip}
nodes: [{name: n, count: 3, compute: {step: 5ms}}]
network: {default: {delay: 10ms}}
evaluate: {every: 0.1 epochs, of: all}
stop: {target: 75%, epochs: 6}
`

// curves are the curves of a record's runs.
func curves(t *testing.T, r *driver.Report) (all [][]record.Evaluation) {
	t.Helper()
	reader, err := record.NewReader(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Runs {
		_, data, err := reader.Run(i).Read()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data.Curve)
	}
	return all
}

func TestEarlyEvaluationsLeaveTheSameTimesAndSayWhatTheyAre(t *testing.T) {
	plain := run(t, load(t, early), driver.Options{})
	got := run(t, load(t, early, "evaluate.early=true"), driver.Options{})
	whole, partial := curves(t, plain), curves(t, got)
	for i, want := range plain.Runs {
		r := got.Runs[i]
		if !r.Reached || r.Early == nil || r.Early.Partial == 0 || r.Early.Confidence != 1-1e-9 || want.Early != nil {
			t.Fatalf("run %d: %+v, %+v", i, r, r.Early)
		}
		r.Early, r.BestAccuracy, r.Wall, r.Digest = nil, want.BestAccuracy, want.Wall, want.Digest
		r.PlanDigest = want.PlanDigest
		equal(t, "run", want, r)
		estimates := 0
		for k, e := range partial[i] {
			if e.Samples == 0 {
				equal(t, "accuracy of the whole set", whole[i][k].Accuracy, e.Accuracy)
				equal(t, "loss of the whole set", whole[i][k].Loss, e.Loss)
				continue
			}
			if estimates++; !math.IsNaN(float64(e.Loss)) || e.Whole(record.All) || e.Accuracy >= 0.75 {
				t.Errorf("an estimate is %+v", e)
			}
		}
		if estimates == 0 || estimates > got.Runs[i].Early.Partial {
			t.Errorf("%d evaluations are estimates, of %+v", estimates, got.Runs[i].Early)
		}
	}
}

func TestEarlyEvaluationsAreMadeInRealTimeToo(t *testing.T) {
	got := run(t, load(t, early, "evaluate.early=true", "repeats=1"), driver.Options{Clock: driver.Real})
	r, curve := got.Runs[0], curves(t, got)[0]
	if !r.Reached || r.Early == nil || r.Early.Partial == 0 || r.FinalAccuracy < 0.75 || r.Bracket == nil {
		t.Fatalf("%+v, %+v", r, r.Early)
	}
	for _, e := range curve[len(curve)-2:] {
		if e.Samples > 0 {
			t.Errorf("an evaluation beside the arrival is %+v", e)
		}
	}
	if last := curve[len(curve)-1]; len(last.Estimates) > 0 {
		t.Errorf("the last evaluation is %+v", last)
	}
}
