package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
)

var (
	nodes  = []string{"server", "fast", "slow"}
	trains = []bool{false, true, true}
)

// observe is an event with whom and when.
type observe struct {
	at   time.Duration
	node int
	actors.Event
}

func (o observe) tell(c *Collector) { c.Observe(o.at, o.node, o.Event) }

func TestCollectorCountsByHand(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	c.Observe(0, 1, actors.Event{Kind: actors.StepDone, Samples: 32})
	c.Observe(0, 1, actors.Event{Kind: actors.StepDone, Samples: 10})
	for _, staleness := range []uint64{0, 3, 3, 1} {
		c.Observe(0, 0, actors.Event{Kind: actors.UpdateApplied, Origin: 1, Staleness: staleness})
	}
	c.Observe(0, 1, actors.Event{Kind: actors.Waited, Cause: "parameters", Duration: 17 * time.Nanosecond})
	c.Observe(0, 1, actors.Event{Kind: actors.Waited, Cause: "parameters", Duration: 2 * time.Nanosecond})
	c.Observe(0, 1, actors.Event{Kind: actors.Waited, Cause: "barrier", Duration: -1})
	c.Observe(0, 7, actors.Event{Kind: actors.StepDone, Samples: 5})
	got, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	want := Data{Curve: []Evaluation{}, Links: []Link{}, Steps: 2, Updates: []Update{
		{
			Node: "fast", Steps: 2, Samples: 42, Updates: 4,
			Staleness: Staleness{Mean: 1.75, P50: 1, P99: 3, Max: 3, Counts: []Count{{0, 1}, {1, 1}, {3, 2}}},
			Waiting: []Waiting{
				{Cause: "barrier", Count: 1, Buckets: []Bucket{{Low: 0, High: 1e-9, Count: 1}}},
				{Cause: "parameters", Count: 2, Total: 19e-9, Buckets: []Bucket{
					{Low: 2e-9, High: 3e-9, Count: 1, Total: 2e-9}, {Low: 17e-9, High: 18e-9, Count: 1, Total: 17e-9},
				}},
			},
		},
		{Node: "slow", Staleness: Staleness{Counts: []Count{}}, Waiting: []Waiting{}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// summarized is the event of an evaluation of one model.
func summarized(number uint64, accuracy float64) actors.Event {
	score := actors.Score{Accuracy: accuracy}
	return actors.Event{Kind: actors.Summarized, Evaluation: number, Accuracy: accuracy,
		Figures: &actors.Figures{Models: 1, AverageModel: score, Mean: score, All: score, Any: score}}
}

func TestVerdictsOnModelsAreKeptWhereSeveralWereLookedAt(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	for n := range uint64(3) {
		c.Observe(0, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: n + 1})
		f := actors.Figures{Models: 2, AverageModel: actors.Score{Accuracy: 0.9}, All: actors.Score{Accuracy: 0.2},
			Any: actors.Score{Accuracy: 0.6}}
		f.Mean = actors.Score{Accuracy: 0.4, Loss: 2}
		for origin, accuracy := range []float64{1: 0.2, 2: 0.6} {
			if origin > 0 {
				c.Observe(0, -1, actors.Event{Kind: actors.Evaluated, Evaluation: n + 1, Origin: origin, Step: n,
					Accuracy: accuracy})
			}
		}
		c.Observe(0, -1, actors.Event{Kind: actors.Summarized, Evaluation: n + 1, At: 1e9, Accuracy: 0.4, Loss: 2,
			Figures: &f})
	}
	d, err := c.Close(2)
	if err != nil {
		t.Fatal(err)
	}
	want := []ModelVerdict{
		{Number: 1, Node: "fast", Accuracy: 0.2}, {Number: 1, Node: "slow", Accuracy: 0.6},
		{Number: 2, Node: "fast", Step: 1, Accuracy: 0.2}, {Number: 2, Node: "slow", Step: 1, Accuracy: 0.6},
	}
	if diff := cmp.Diff(want, d.Models); diff != "" {
		t.Error(diff)
	}
	point := Evaluation{Number: 2, Time: 1, Accuracy: 0.4, Loss: 2, Models: 2, AverageModel: 0.9, Mean: 0.4, All: 0.2,
		Any: 0.6}
	if diff := cmp.Diff(point, d.Curve[1]); diff != "" {
		t.Error(diff)
	}
}

func TestAgeOfAModelIsWhatItsNodeHasLearntSince(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	step := func(node int, step uint64) {
		c.Observe(time.Duration(step), node, actors.Event{Kind: actors.StepDone, Step: step})
	}
	merge := func(node, origin int, step uint64) {
		c.Observe(0, node, actors.Event{Kind: actors.Merged, Origin: origin, Step: step})
	}
	for n := uint64(11); n <= 15; n++ { // it has joined with the model of ten steps
		step(1, n)
	}
	merge(2, 1, 15)
	merge(2, 1, 12)
	merge(2, 1, 16) // sent with the step, which is recorded behind it
	d, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	if slow := d.Updates[1]; slow.Age == nil || slow.Age.Max != 3 || slow.Age.Mean != 1 || d.Updates[0].Age != nil ||
		d.Updates[0].LastStep != 15e-9 {
		t.Errorf("%+v", d.Updates)
	}
}

var kinds = []actors.EventKind{
	actors.StepDone, actors.UpdateApplied, actors.Waited, actors.SnapshotTaken, actors.Measured, actors.Selected,
}

// drawEvents draws a run's events, with snapshots but without verdicts.
func drawEvents(t *rapid.T) []observe {
	var events []observe
	asked := uint64(0)
	for i := range rapid.IntRange(1, 200).Draw(t, "events") {
		o := observe{at: time.Duration(i), node: rapid.IntRange(0, 2).Draw(t, "node")}
		switch o.Kind = rapid.SampledFrom(kinds).Draw(t, "kind"); o.Kind {
		case actors.StepDone:
			o.Samples = rapid.IntRange(1, 100).Draw(t, "samples")
		case actors.UpdateApplied:
			o.Origin, o.Staleness = rapid.IntRange(1, 2).Draw(t, "origin"),
				rapid.Uint64Range(0, 1<<20).Draw(t, "staleness")
		case actors.Waited:
			o.Cause, o.Duration = rapid.SampledFrom([]string{"parameters", "barrier"}).Draw(t, "cause"),
				time.Duration(rapid.Int64().Draw(t, "wait"))
		case actors.SnapshotTaken:
			asked += rapid.Uint64Range(1, 3).Draw(t, "asked")
			o.Evaluation = asked
		case actors.Measured:
			o.Name, o.Value = "distance", rapid.Float64().Draw(t, "value")
		case actors.Selected:
			o.Origin = rapid.IntRange(0, 2).Draw(t, "chosen")
		}
		events = append(events, o)
	}
	return events
}

func TestRecordEndedAtAMarkIsThatOfARunStoppedThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		sent := int64(0)
		links := func() []Link { return []Link{{From: "fast", To: "server", Messages: sent, Bytes: 7 * sent}} }
		c := NewCollector(Config{Nodes: nodes, Trains: trains, Links: links})
		var marks []int
		for i, o := range events {
			sent++
			o.tell(c)
			if o.Kind == actors.SnapshotTaken {
				marks = append(marks, i)
			}
		}
		if len(marks) == 0 {
			return
		}
		k := rapid.IntRange(0, len(marks)-1).Draw(t, "mark")
		end := events[marks[k]].Evaluation
		if k > 0 {
			end = rapid.Uint64Range(events[marks[k-1]].Evaluation+1, end).Draw(t, "last")
		}
		var curve []Evaluation
		for n := uint64(1); n <= end; n++ {
			c.Observe(1e9, 9, summarized(n, 0.5))
			i := marks[slices.IndexFunc(marks, func(i int) bool { return events[i].Evaluation >= n })]
			curve = append(curve, Evaluation{Number: n, Accuracy: 0.5, Models: 1, AverageModel: 0.5, Mean: 0.5,
				All: 0.5, Any: 0.5, Bytes: 7 * int64(i+1)})
		}
		got, err := c.Close(end)
		if err != nil {
			t.Fatal(err)
		}
		sent = 0
		stopped := NewCollector(Config{Nodes: nodes, Trains: trains, Links: links})
		for _, o := range events[:marks[k]+1] {
			sent++
			o.tell(stopped)
		}
		want, err := stopped.Close(0)
		if err != nil {
			t.Fatal(err)
		}
		want.Curve = curve
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-stopped +ended:\n%s", diff)
		}
	})
}

func TestStalenessAgreesWithSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 300), 1, 300).Draw(t, "values")
		var a ages
		sum := uint64(0)
		for _, v := range values {
			a.add(v)
			sum += v
		}
		slices.Sort(values)
		rank := func(q float64) uint64 { return values[int(math.Ceil(q*float64(len(values))))-1] }
		got := a.staleness()
		want := Staleness{Mean: float64(sum) / float64(len(values)), P50: rank(0.5), P99: rank(0.99),
			Max: values[len(values)-1]}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Staleness{}, "Counts")); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestHugeStalenessCostsBoundedMemory(t *testing.T) {
	var a ages
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		a.add(rng.Uint64() >> rng.IntN(48))
	}
	if len(a.far) > 48*128 || cap(a.near) > 2*exactStaleness {
		t.Errorf("%d rounded and %d exact counts", len(a.far), cap(a.near))
	}
}

func TestWaitLiesInItsBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := uint64(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns"))
		low, high := bounds(bucketOf(ns))
		if ns < low || ns >= high {
			t.Errorf("%d is not in [%d, %d)", ns, low, high)
		}
		if ns >= 100 && float64(high-low) > 0.01*float64(low) {
			t.Errorf("[%d, %d) is too wide", low, high)
		}
		if low > 0 && bucketOf(low-1) != bucketOf(low)-1 {
			t.Errorf("no bucket ends at %d", low)
		}
	})
}

func TestCausesBeyondTheLimitAreCountedAsOther(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	for i := range 1000 {
		c.Observe(0, 1, actors.Event{Kind: actors.Waited, Cause: strings.Repeat("x", i), Duration: 1})
	}
	d, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	total := uint64(0)
	for _, w := range d.Updates[0].Waiting {
		total += w.Count
	}
	if n := len(d.Updates[0].Waiting); n != maxCauses || total != 1000 {
		t.Errorf("%d causes, %d waits", n, total)
	}
}

func TestManyGoroutinesLoseNothing(t *testing.T) {
	var events bytes.Buffer
	c := NewCollector(Config{Nodes: nodes, Trains: trains, Events: &events})
	var group sync.WaitGroup
	const each = 2000
	for worker := 1; worker <= 2; worker++ {
		group.Go(func() {
			for i := range each {
				c.Observe(0, worker, actors.Event{Kind: actors.StepDone, Samples: 1})
				c.Observe(0, 0, actors.Event{Kind: actors.UpdateApplied, Origin: 3 - worker, Staleness: uint64(i % 9)})
				c.Observe(0, worker, actors.Event{Kind: actors.Waited, Cause: "parameters", Duration: time.Duration(i)})
			}
		})
	}
	group.Go(func() {
		for n := range uint64(50) {
			c.Observe(0, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: n + 1})
			c.Observe(0, -1, summarized(n+1, 0))
		}
	})
	group.Wait()
	d, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range d.Updates {
		if u.Steps != each || u.Updates != each || u.Waiting[0].Count != each {
			t.Errorf("%s: %d steps, %d updates, %d waits; want %d each",
				u.Node, u.Steps, u.Updates, u.Waiting[0].Count, each)
		}
	}
	if n := bytes.Count(events.Bytes(), []byte("\n")); n != 6*each+100 {
		t.Errorf("%d lines of events, want %d", n, 6*each+100)
	}
}

func TestSelectionsOfManyNodesAreCountedTogether(t *testing.T) {
	nodes := make([]string, MaxChoosers+1)
	for i := range nodes {
		nodes[i] = "n" + strconv.Itoa(i)
	}
	c := NewCollector(Config{Nodes: nodes, Trains: make([]bool, len(nodes))})
	for i := range 5 {
		c.Observe(0, 3, actors.Event{Kind: actors.Selected, Origin: i})
	}
	data, err := c.Close(0)
	if err != nil {
		t.Fatal(err)
	}
	want := []Selection{{Node: "n3", Neighbours: []string{Everyone}, Counts: []uint64{5}}}
	if diff := cmp.Diff(want, data.Selections); diff != "" {
		t.Error(diff)
	}
}

func TestSelectionsAndMeasurementsEndWithTheRecord(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	for _, o := range []observe{
		{1e9, 2, actors.Event{Kind: actors.Selected, Origin: 1}},
		{1e9, 2, actors.Event{Kind: actors.Selected, Origin: 0}},
		{1e9, 2, actors.Event{Kind: actors.Selected, Origin: 1}},
		{1e9, 3, actors.Event{Kind: actors.Selected, Origin: 1}},
		{1e9, 1, actors.Event{Kind: actors.Selected, Origin: 3}},
		{1e9, 3, actors.Event{Kind: actors.Measured, Name: "spectral gap", Value: 0.25}},
		{2e9, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: 1}},
		{3e9, 0, actors.Event{Kind: actors.Selected, Origin: 1}},
		{3e9, 3, actors.Event{Kind: actors.Measured, Name: "distance", Value: 2}},
		{3e9, 3, actors.Event{Kind: actors.Measured, Name: "distance", Value: 1, At: 2e9, Dated: true}},
		{3e9, 3, actors.Event{Kind: actors.Measured, Name: "distance", Value: 3, Dated: true}},
		{4e9, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: 2}},
	} {
		o.tell(c)
	}
	got, err := c.Close(1)
	if err != nil {
		t.Fatal(err)
	}
	want := []Selection{{Node: "slow", Neighbours: []string{"server", "fast"}, Counts: []uint64{1, 2}}}
	if diff := cmp.Diff(want, got.Selections); diff != "" {
		t.Errorf("selections: -want +got:\n%s", diff)
	}
	measured := []Measurement{
		{Time: 0, Node: "coordinator", Name: "distance", Value: 3},
		{Time: 1, Node: "coordinator", Name: "spectral gap", Value: 0.25},
		{Time: 2, Node: "coordinator", Name: "distance", Value: 1},
	}
	if diff := cmp.Diff(measured, got.Measured); diff != "" {
		t.Errorf("measurements: -want +got:\n%s", diff)
	}
}

func TestMeasurementsBeyondTheLimitAreCounted(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	for i := range MaxMeasured + 3 {
		c.Observe(time.Duration(i), 1, actors.Event{Kind: actors.Measured, Name: "x", Value: float64(i)})
		if i == MaxMeasured {
			c.Observe(time.Duration(i), -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: 1})
		}
	}
	for last, unmeasured := range []uint64{3, 1} {
		d, err := c.Close(uint64(last))
		if err != nil || len(d.Measured) != MaxMeasured || d.Unmeasured != unmeasured ||
			d.Measured[MaxMeasured-1].Value != MaxMeasured-1 {
			t.Errorf("closed at %d: %d kept, %d not (want %d), %v",
				last, len(d.Measured), d.Unmeasured, unmeasured, err)
		}
	}
}

// manyNodes have each made steps, waited, and chosen a hundred others.
func manyNodes(n int) *Collector {
	c := NewCollector(Config{Nodes: make([]string, n), Trains: make([]bool, n)})
	for i := range n {
		c.Observe(0, i, actors.Event{Kind: actors.StepDone, Samples: 32})
		c.Observe(0, i, actors.Event{Kind: actors.Waited, Cause: "neighbour", Duration: time.Second})
		for k := range 100 {
			c.Observe(0, i, actors.Event{Kind: actors.Selected, Origin: (i + 7*k) % n})
		}
	}
	return c
}

func TestSnapshotsWriteOverThoseThatWereDropped(t *testing.T) {
	c := manyNodes(200)
	event := summarized(0, 0)
	round := func() {
		event.Evaluation++
		number := event.Evaluation
		c.Observe(time.Duration(number), -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: number})
		c.Observe(time.Duration(number), -1, event)
	}
	for range 5 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n > 1 {
		t.Errorf("%g allocations a snapshot of 200 nodes, want none but the curve's", n)
	}
	if len(c.marks) != 1 || len(c.spare) > 1 {
		t.Errorf("%d marks are kept and %d to be written over", len(c.marks), len(c.spare))
	}
}

// BenchmarkSnapshot takes a snapshot of 10,000 nodes that have chosen 100 neighbours each.
func BenchmarkSnapshot(b *testing.B) {
	c := manyNodes(10_000)
	b.ReportAllocs()
	number := uint64(0)
	for b.Loop() {
		number++
		c.Observe(0, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: number})
		c.Observe(0, -1, summarized(number, 0))
	}
}

func TestCloseWithoutSuchASnapshotIsAnError(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	c.Observe(0, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: 2})
	if _, err := c.Close(3); err == nil || !strings.Contains(err.Error(), "evaluation 3") {
		t.Errorf("got %v", err)
	}
}

func TestEventsAreLinesOfJSON(t *testing.T) {
	var b strings.Builder
	c := NewCollector(Config{Nodes: []string{`a "b"`}, Trains: []bool{true}, Events: &b})
	second := time.Second
	for _, o := range []observe{
		{second, 0, actors.Event{Kind: actors.StepDone, Step: 3, Samples: 32, Loss: math.NaN()}},
		{second, 0, actors.Event{Kind: actors.UpdateApplied, Version: 5, Staleness: 2}},
		{second, 0, actors.Event{Kind: actors.UpdateApplied, Version: 6, Shard: 7, Life: 8, Push: 9}},
		{second / 2, 0, actors.Event{Kind: actors.Waited, Cause: "para\nmeters", Duration: 1500 * time.Microsecond}},
		{second, -1, actors.Event{Kind: actors.Measured, Name: "distance", Value: 2.5}},
		{second, 0, actors.Event{Kind: actors.Selected, Origin: 0}},
		{second, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: 4, Epoch: 0.5, Step: 9}},
		{second, -1, actors.Event{Kind: actors.Evaluated, Evaluation: 4, At: second, Epoch: 0.5, Step: 9,
			Accuracy: 0.25, Loss: math.Inf(1)}},
		{second, -1, summarized(4, 0.25)},
	} {
		o.tell(c)
	}
	if _, err := c.Close(0); err != nil {
		t.Fatal(err)
	}
	want := `{"time_s":1,"node":"a \"b\"","event":"step","step":3,"samples":32,"loss":null}
{"time_s":1,"node":"a \"b\"","event":"update","origin":"a \"b\"","version":5,"staleness":2}
{"time_s":1,"node":"a \"b\"","event":"update","origin":"a \"b\"","version":6,"staleness":0,"shard":7` +
		`,"life":8,"push":9}
{"time_s":0.5,"node":"a \"b\"","event":"wait","cause":"para\nmeters","duration_s":0.0015}
{"time_s":1,"node":"coordinator","event":"measured","name":"distance","value":2.5}
{"time_s":1,"node":"a \"b\"","event":"selection","origin":"a \"b\""}
{"time_s":1,"node":"coordinator","event":"snapshot","evaluation":4,"step":9,"epoch":0.5}
{"time_s":1,"node":"coordinator","event":"evaluation","origin":"a \"b\"","evaluation":4,"at_s":1,"step":9` +
		`,"epoch":0.5,"accuracy":0.25,"loss":"Inf"}
{"time_s":1,"node":"coordinator","event":"summary","evaluation":4,"at_s":0,"step":0,"epoch":0` +
		`,"accuracy":0.25,"loss":0,"models":1` +
		`,"average_model":0.25,"mean":0.25,"all":0.25,"any":0.25}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for line := range strings.Lines(b.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

var errFull = errors.New("no space left")

// small accepts a number of bytes.
type small struct{ left int }

func (s *small) Write(b []byte) (int, error) {
	if s.left -= len(b); s.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestFirstErrorOfEventsIsReturned(t *testing.T) {
	for _, room := range []int{0, 100_000} {
		c := NewCollector(Config{Nodes: nodes, Trains: trains, Events: &small{room}})
		for range 10_000 {
			c.Observe(0, 1, actors.Event{Kind: actors.StepDone, Samples: 1})
		}
		d, err := c.Close(0)
		if !errors.Is(err, errFull) || d.Steps != 10_000 {
			t.Errorf("room for %d bytes: %v, %d steps", room, err, d.Steps)
		}
	}
}

func TestVerdictsAreToldAsTheyCome(t *testing.T) {
	var told []uint64
	c := NewCollector(Config{Nodes: nodes, Trains: trains,
		OnEvaluation: func(e Evaluation) { told = append(told, e.Number) }})
	for n := range uint64(3) {
		c.Observe(0, -1, summarized(n+1, 0))
	}
	if !slices.Equal(told, []uint64{1, 2, 3}) {
		t.Errorf("told of %v", told)
	}
}

func TestFloatSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Float(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1),
			0})).Draw(t, "value"))
		text, err := json.Marshal([]Float{want})
		if err != nil {
			t.Fatal(err)
		}
		var got []Float
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got[0] != want && !(math.IsNaN(float64(want)) && math.IsNaN(float64(got[0]))) {
			t.Errorf("%v became %v through %s", want, got[0], text)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	for name, event := range map[string]actors.Event{
		"step":   {Kind: actors.StepDone, Samples: 32, Loss: 0.5},
		"update": {Kind: actors.UpdateApplied, Origin: 1, Staleness: 21},
		"wait":   {Kind: actors.Waited, Cause: "parameters", Duration: 200 * time.Millisecond},
		"select": {Kind: actors.Selected, Origin: 2},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := NewCollector(Config{Nodes: nodes, Trains: trains})
			for b.Loop() {
				c.Observe(time.Second, 1, event)
			}
		})
	}
}

func BenchmarkEvent(b *testing.B) {
	b.ReportAllocs()
	c := NewCollector(Config{Nodes: nodes, Trains: trains, Events: discard{}})
	for b.Loop() {
		c.Observe(1234567*time.Microsecond, 1, actors.Event{Kind: actors.StepDone, Step: 1000, Samples: 32,
			Loss: 0.1234567})
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestCountingAllocatesNothing(t *testing.T) {
	c := NewCollector(Config{Nodes: nodes, Trains: trains})
	count := func() {
		c.Observe(0, 1, actors.Event{Kind: actors.StepDone, Samples: 32})
		c.Observe(0, 0, actors.Event{Kind: actors.UpdateApplied, Origin: 1, Staleness: 21})
		c.Observe(0, 1, actors.Event{Kind: actors.Waited, Cause: "parameters", Duration: time.Second})
		c.Observe(0, 1, actors.Event{Kind: actors.Selected, Origin: 2})
	}
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestTimeInWhichANodeIsAwayIsNoneBetweenItsSteps(t *testing.T) {
	c := NewCollector(Config{Nodes: make([]string, 4), Trains: make([]bool, 4)})
	step := func(at time.Duration) { c.Observe(at, 3, actors.Event{Kind: actors.StepDone}) }
	step(time.Second)
	step(2 * time.Second)
	c.Interrupted(4*time.Second, 3)
	c.Interrupted(9*time.Second, 3)
	c.Interrupted(90*time.Second, 2)
	step(10 * time.Second)
	step(12 * time.Second)
	all, longest := c.Paces()
	if p := all[3]; longest != p.Longest || p.Longest != 2*time.Second || p.Last != 12*time.Second {
		t.Errorf("%+v", p)
	}
}

// observeEarly has a collector observe an evaluation of two nodes' models, of which these are the
// accuracies by this many samples.
func observeEarly(c *Collector, number uint64, first, second float64, samples int) {
	score := func(accuracy float64) actors.Score { return actors.Score{Accuracy: accuracy, Samples: samples} }
	for origin, accuracy := range []float64{first, second} {
		c.Observe(0, -1, actors.Event{Kind: actors.Evaluated, Evaluation: number, Origin: origin + 1,
			Accuracy: accuracy, Samples: samples})
	}
	c.Observe(0, -1, actors.Event{Kind: actors.Summarized, Evaluation: number, Accuracy: (first + second) / 2,
		Samples: samples, Figures: &actors.Figures{Models: 2, AverageModel: actors.Score{Accuracy: 0.8},
			Mean: score((first + second) / 2), All: score(min(first, second)), Any: score(max(first, second))}})
}

func TestEvaluationByAPartIsCompletedByAnotherOfItsNumber(t *testing.T) {
	told := 0
	c := NewCollector(Config{Nodes: nodes, Trains: trains, OnEvaluation: func(Evaluation) { told++ }})
	for n := range uint64(3) {
		c.Observe(0, -1, actors.Event{Kind: actors.SnapshotTaken, Evaluation: n + 1})
	}
	observeEarly(c, 1, 0.9, 0.9, 64)
	observeEarly(c, 2, 0.1, 0.3, 64)
	observeEarly(c, 2, 0.2, 0.4, 0)
	observeEarly(c, 3, 0.1, 0.3, 128)
	d, err := c.Close(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []ModelVerdict{
		{Number: 1, Node: "fast", Accuracy: 0.9, Samples: 64}, {Number: 1, Node: "slow", Accuracy: 0.9, Samples: 64},
		{Number: 2, Node: "fast", Accuracy: 0.2}, {Number: 2, Node: "slow", Accuracy: 0.4},
		{Number: 3, Node: "fast", Accuracy: 0.1, Samples: 128}, {Number: 3, Node: "slow", Accuracy: 0.3, Samples: 128},
	}
	if diff := cmp.Diff(want, d.Models); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var samples []int
	for _, e := range d.Curve {
		samples = append(samples, e.Samples)
		if estimate := e.Samples > 0; e.Whole(Mean) == estimate || e.Whole(All) == estimate || !e.Whole(AverageModel) {
			t.Errorf("evaluation %+v", e)
		}
	}
	// The estimates, of which the first is the highest, are neither the last accuracy nor the best.
	final, best := d.Accuracies()
	if diff := cmp.Diff([]int{64, 0, 128}, samples); diff != "" || d.Partial() != 2 || final != best ||
		math.Abs(float64(final)-0.3) > 1e-9 || told != 3 {
		t.Errorf("%s: %d partial, final accuracy %v, best %v, told of %d", diff, d.Partial(), final, best, told)
	}
	w := newRowWriter(nil, &Run{})
	curveRows(w, nil, &d)
	if rows := string(w.bytes()); strings.Count(rows, ",64,mean all any\n") != 1 || strings.Count(rows, ",,\n") != 1 {
		t.Errorf("rows of the curve:\n%s", rows)
	}
}

// Steps and updates after the time bound of a run are counted, and are no progress.
func TestUpdatesAndStepsBeyondTheEndAreNoProgress(t *testing.T) {
	second := time.Second
	for name, row := range map[string]struct {
		until, early  time.Duration
		last          time.Duration
		learned, over bool
	}{
		"in time":   {until: 6 * second, early: second, last: 6 * second, learned: true},
		"before":    {until: 5 * second, early: second, last: second, learned: true, over: true},
		"never":     {until: 5 * second, over: true},
		"unbounded": {early: second, last: 6 * second, learned: true},
	} {
		c := NewCollector(Config{Nodes: []string{"s", "w"}, Trains: []bool{false, true}, Holds: []bool{true, false},
			Until: row.until})
		step := func(at time.Duration) {
			c.Observe(at, 1, actors.Event{Kind: actors.StepDone, Step: 1})
			c.Observe(at, 0, actors.Event{Kind: actors.UpdateApplied, Origin: 1})
		}
		if row.early > 0 {
			step(row.early)
		}
		step(6 * second)
		c.Observe(6*second, 2, actors.Event{Kind: actors.SnapshotTaken, Evaluation: 1})
		paces, _ := c.Paces()
		d, err := c.Close(1)
		if err != nil {
			t.Fatal(err)
		}
		if d.LastUpdate != row.last || d.Learned != row.learned || d.Overtime != row.over || paces[1].Last != row.last {
			t.Errorf("%s: update at %v, %v, %v; step at %v; want %+v", name, d.LastUpdate, d.Learned, d.Overtime,
				paces[1].Last, row)
		}
	}
}
