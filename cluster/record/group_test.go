package record

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/gradwire/gradwire/cluster/record/stats"
)

func TestGroupsCountAllRunsAndDescribeThoseThatArrived(t *testing.T) {
	a, b := Point{{"k", "a"}}, Point{{"k", "b"}}
	groups := GroupRuns([]Run{
		{Point: b, Reached: true, TimeToTarget: number(2), EpochsToTarget: number(1), FinalAccuracy: 0.5, Of: Mean},
		{Point: a, FinalAccuracy: 0.25, Of: Mean},
		{Point: b, Seed: 1, Reached: true, TimeToTarget: number(4), EpochsToTarget: number(1), FinalAccuracy: 0.75,
			Outcome: Degraded, Of: Mean},
		{Point: b, Seed: 2, FinalAccuracy: 1, Duration: 9, Epochs: 3, Of: Mean},
		{Point: b, Seed: 3, FinalAccuracy: Float(math.NaN()), Outcome: Failed, Of: Mean},
	}, number(0.9))
	text, err := json.Marshal(groups)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"point":{"k":"b"},"n":4,"reached":2,"done":2,"degraded":1,"failed":1,"of":"mean","target":0.9,` +
		`"time_to_target_s":{"n":4,"mean":3,"std":1.4142135623730951,"min":2,"max":4,"low":null,"high":null,` +
		`"method":"too few repeats",` +
		`"reached":2,"censored":1,"median":4,"restricted_mean":6,"horizon":9},` +
		`"epochs_to_target":{"n":4,"mean":1,"std":0,"min":1,"max":1,"low":null,"high":null,"method":"too few ` +
		`repeats",` +
		`"reached":2,"censored":1,"median":1,"restricted_mean":2,"horizon":3},` +
		`"final_accuracy":{"n":3,"mean":0.75,"std":0.25,"min":0.5,"median":0.75,"max":1,"low":null,"high":null,` +
		`"method":"too few repeats"},` +
		`"verdict":"too few repeats","pairs":4,"looks_fastest":true,"repeats_needed":3},` +
		`{"point":{"k":"a"},"n":1,"reached":0,"done":1,"degraded":0,"failed":0,"of":"mean","target":0.9,` +
		`"time_to_target_s":null,"epochs_to_target":null,` +
		`"final_accuracy":{"n":1,"mean":0.25,"std":null,"min":0.25,"median":0.25,"max":0.25,"low":null,"high":null,` +
		`"method":"too ` +
		`few repeats"},` +
		`"verdict":"too few repeats","pairs":1,"repeats_needed":3}]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// GroupRuns counts and describes a run that was resumed from a checkpoint, but no comparison depends on it
// unless it has ComparedIfResumed.
func TestResumedRunsAreInNoComparison(t *testing.T) {
	a, b, c := Point{{"k", "a"}}, Point{{"k", "b"}}, Point{{"k", "c"}}
	runs := slices.Concat(runsOf(a, 5, 10), runsOf(b, 5, 20))
	without := GroupRuns(runs, number(0.9))
	resumed := Run{Point: a, Seed: 9, Of: Mean, Reached: true, TimeToTarget: number(1e6), EpochsToTarget: number(1),
		Resumed: 3}
	only := resumed
	only.Point = c
	with := GroupRuns(append(slices.Clone(runs), resumed, only), number(0.9))
	if g := with[0]; g.N != 5 || g.Resumed != 1 || g.Verdict != without[0].Verdict || g.Pairs != 5 || !g.Leader {
		t.Errorf("with a resumed run %+v, without %+v", g, without[0])
	}
	if with[1].Verdict != without[1].Verdict || with[2].Verdict != "" || with[2].TimeToTarget == nil {
		t.Errorf("the others are %+v", with[1:])
	}
	uninterrupted := append(slices.Clone(runs), resumed, only)
	compared := slices.Clone(uninterrupted)
	for i := range compared {
		uninterrupted[i].Resumed, compared[i].ComparedIfResumed = 0, true
	}
	got := GroupRuns(compared, number(0.9))
	for i, want := range GroupRuns(uninterrupted, number(0.9)) {
		if g := got[i]; g.Verdict != want.Verdict || g.Pairs != want.Pairs || g.Leader != want.Leader {
			t.Errorf("with ComparedIfResumed %+v, want %+v", g, want)
		}
	}
	if got[0].Pairs != 6 || got[0].Resumed != 1 || got[2].Verdict == "" {
		t.Errorf("with ComparedIfResumed %+v", got)
	}
}

// runsOf are n runs of a point that take about so long, watched by evaluations every 0.01 s.
func runsOf(p Point, n int, seconds float64) (runs []Run) {
	rng := rand.New(rand.NewPCG(uint64(seconds), 5))
	for seed := range n {
		at := seconds + rng.NormFloat64()
		runs = append(runs, Run{
			Point: p, Seed: uint64(seed), Of: Mean, Reached: true, TimeToTarget: &at, EpochsToTarget: &at,
			Bracket: &Bracket{TimeAfter: at - 0.005, TimeBefore: at + 0.005,
				EpochsAfter: at - 0.005, EpochsBefore: at + 0.005},
		})
	}
	return runs
}

// F8: a sweep over the target has no point that is faster than one of another target.
func TestPointsAreComparedWithinOneTargetAndOneOf(t *testing.T) {
	var runs []Run
	for _, target := range []string{"50%", "0.8"} {
		for i, every := range []float64{10, 20, 30} {
			runs = append(runs, runsOf(Point{{"stop.target", target}, {"every", strconv.Itoa(i)}}, 10,
				every+float64(len(target)))...)
		}
	}
	other := runsOf(Point{{"of", "any"}}, 10, 5)
	for i := range other {
		other[i].Of, other[i].Models = Any, 4
	}
	for i := range runs {
		runs[i].Models = 4
	}
	named := runsOf(Point{{"stop", "label"}}, 10, 3)
	for i := range named {
		named[i].Target = number(0.7)
	}
	var got []stats.Word
	var targets []float64
	for _, g := range GroupRuns(slices.Concat(runs, other, named), number(0.5)) {
		got, targets = append(got, g.Verdict), append(targets, *g.Target)
	}
	three := []stats.Word{stats.Fastest, stats.Slower, stats.Slower}
	if want := slices.Concat(three, three, []stats.Word{"", ""}); !slices.Equal(got, want) {
		t.Errorf("verdicts %q, want %q", got, want)
	}
	if want := []float64{0.5, 0.5, 0.5, 0.8, 0.8, 0.8, 0.5, 0.7}; !slices.Equal(targets, want) {
		t.Errorf("targets %g, want %g", targets, want)
	}
}

func TestPointsOfASingleModelAreComparedWithThoseOfSeveral(t *testing.T) {
	peers, server, second := runsOf(Point{{"k", "peers"}}, 10, 20), runsOf(Point{{"k", "server"}}, 10,
		10), runsOf(Point{{"k", "second"}}, 10, 30)
	for i := range peers {
		peers[i].Of, peers[i].Models, server[i].Models = Any, 4, 1
	}
	groups := GroupRuns(slices.Concat(server, peers, second), number(0.5))
	if groups[0].Verdict != stats.Fastest || groups[1].Verdict != stats.Slower || groups[2].Verdict != stats.Slower ||
		groups[0].Of != Any {
		t.Errorf("%+v", groups)
	}
}

// A sweep over evaluate.of and over architectures with and without a server.
func TestAPointOfASingleModelKeepsWhatItJudgesWhereOthersJudgeTheSame(t *testing.T) {
	var runs []Run
	for i, of := range []Of{Mean, All, Any} {
		server := runsOf(Point{{"k", "server"}, {"of", string(of)}}, 10, 10)
		peers := runsOf(Point{{"k", "peers"}, {"of", string(of)}}, 10, float64(20+5*i))
		for k := range peers {
			server[k].Of, server[k].Models, peers[k].Of, peers[k].Models = of, 1, of, 4
		}
		runs = slices.Concat(runs, server, peers)
	}
	for i, g := range GroupRuns(runs, number(0.5)) {
		if want := []Of{Mean, All, Any}[i/2]; g.Of != want {
			t.Errorf("point %v is compared by %q, want %q", g.Point, g.Of, want)
		}
		if want := []stats.Word{stats.Fastest, stats.Slower}[i%2]; g.Verdict != want {
			t.Errorf("point %v is %q, want %q", g.Point, g.Verdict, want)
		}
	}
}

func TestTheBracketHasTheEvaluationsAroundTheArrival(t *testing.T) {
	d := Data{Curve: []Evaluation{{Time: 0}, {Time: 1, Epoch: 0.5}, {Time: 1, Epoch: 0.5}, {Time: 2, Epoch: 1}}}
	for at, want := range map[float64]Bracket{
		1.5: {1, 2, 0.5, 1}, 2: {1, 2, 0.5, 1}, 2.1: {1, 2, 0.5, 1}, 0.3: {0, 1, 0, 0.5}, 1: {0, 1, 0, 0.5}, 0: {},
	} {
		r := Run{Reached: true, TimeToTarget: &at}
		if r.complete(&d); *r.Bracket != want || r.Epochs != 1 {
			t.Errorf("reached at %g: %+v, want %+v", at, *r.Bracket, want)
		}
	}
}

func TestPointsAreComparedWhereTheirCircumstancesAreEqual(t *testing.T) {
	var runs []Run
	target := 0.9
	for seed := range uint64(8) {
		for i, split := range []string{"iid", "skewed"} {
			for k, kind := range []string{"local", "gossip"} {
				at, epochs := float64(10*(1+9*i)+3*k)+float64(seed)/100, 1.0
				runs = append(runs, Run{
					Number: len(runs), Seed: seed, Outcome: Done, Of: Mean, Reached: true, TimeToTarget: &at,
					EpochsToTarget: &epochs,
					Point:          Point{{Key: "data.split", Value: split}, {Key: "architecture", Value: kind}},
				})
			}
		}
	}
	for _, g := range GroupRuns(runs, &target) {
		want := stats.Slower
		if g.Point[1].Value == "local" {
			want = stats.Fastest
		}
		if g.Verdict != want || g.Pairs != 8 || len(g.Circumstances) != 1 || g.Circumstances[0] != g.Point[0] {
			t.Errorf("%v: %s of %d pairs at %v, want %s", g.Point, g.Verdict, g.Pairs, g.Circumstances, want)
		}
	}
}
