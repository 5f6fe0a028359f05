package experiment

import (
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/shelf"
)

// For plans of a fixed length, the forecast is near the bytes of a counting run. The forecast has
// time to play each run to its end, so the result does not depend on the machine's speed.
func TestForecastsOfTheExamplesAreNear(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	known := 0
	err := filepath.WalkDir("../../examples", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		p, err := Load(path, "repeats=1")
		if err != nil {
			return nil //nolint:nilerr // a file beside a plan, or a plan for another catalog
		}
		points, err := p.Points(nil)
		if err != nil || !strings.HasPrefix(points[0].Spec.Plan.Data.At("set").Text, "synthetic") {
			return nil //nolint:nilerr // as above
		}
		t.Run(path, func(t *testing.T) { nearCount(t, points[:1], &known) })
		return nil
	})
	if err != nil || known < 4 {
		t.Errorf("%d plans were tried: %v", known, err)
	}
}

// forecastOf is the forecast of points in about a time.
func forecastOf(t *testing.T, points []Point, o Options, within time.Duration) (*Forecast, error) {
	t.Helper()
	each := make([]Estimate, len(points))
	for i := range points {
		each[i] = points[i].Estimate()
	}
	return forecast(t.Context(), points, each, o, shelf.New(o.Data, 1, nil), within)
}

// nearCount compares the forecast from the whole run of a point with a counting run.
func nearCount(t *testing.T, points []Point, known *int) {
	if points[0].Spec.Plan.Name == "regions" {
		t.Skip("takes half a minute")
	}
	points[0].candidates = nil
	f, err := forecastOf(t, points, Options{Jobs: 1}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if s := float64(f.Seconds); f.Runs != 1 || !(s > 0 && s < 24*3600) || f.Memory <= 0 ||
		f.AtMost != (points[0].Spec.Plan.Stop.Target != nil) {
		t.Errorf("%+v", f)
	}
	all, err := counted(points)
	if err != nil {
		t.Skip("its messages cannot be counted: ", err)
	}
	_, links := trafficOf(t, &all[0])
	want := 0.0
	for _, l := range links {
		want += float64(l.Bytes)
	}
	if got := float64(f.Bytes); math.Abs(got-want) > want/10 {
		t.Errorf("%g bytes forecast, %g counted", got, want)
	}
	*known++
}

// Plans of a given number of steps, rounds, epochs and seconds, of which only a part can be played.
func TestForecastsDrawAPartOfARunOut(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	for _, set := range [][]string{
		{"stop={steps: 4000}", "architecture={kind: gossip}"},
		{"stop={epochs: 100}", "architecture={kind: all-reduce}"},
		{"stop={time: 40s}", "architecture={kind: parameter-server, roles: {server: added}}"},
		{"stop={rounds: 200}", "architecture={kind: federated, roles: {server: added}}", byRounds},
		{"stop={time: 20s}", "architecture={kind: gaia, roles: {server: added}}"},
	} {
		p := pointOf(t, steady, set...)
		whole, err := forecastOf(t, []Point{*p}, Options{Jobs: 1}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		part, played := p.shortened(0.2)
		drawn, err := forecastOf(t, []Point{*part}, Options{Jobs: 1}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := float64(drawn.Bytes)/played, float64(whole.Bytes); math.Abs(got-want) > want/10 {
			t.Errorf("%v: %g bytes by a fifth, %g in all", set, got, want)
		}
	}
}

func TestForecastCountsRunsAndSaysThatTargetsEndThem(t *testing.T) {
	p, err := Parse("plan.yaml", []byte(steady), "repeats=3", "stop={target: 90%, time: 1s}", "data.validation=10%",
		"sweep={architecture: [{kind: gossip}, {kind: local}]}", "tune={train.optimizer.rate: [0.1, 0.2]}")
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Forecast(t.Context(), Options{})
	if err != nil || f.Runs != 2*(2+3) || !f.AtMost {
		t.Fatalf("%+v, %v", f, err)
	}
	line := regexp.MustCompile(`^6 runs and 4 to tune, at most about .* s on \d+ cores?, .* sent, .* of memory; ` +
		`runs that reach their target end before$`)
	if !line.MatchString(f.String()) {
		t.Error(f)
	}
}

func TestForecastOfWhatCannotBePlayedIsByFormulaOrNone(t *testing.T) {
	crowded := pointOf(t, steady, "nodes.w.count=20001", "data.samples=30000", "architecture={kind: gossip}")
	f, err := forecastOf(t, []Point{*crowded}, Options{}, forecastTime)
	if err != nil || !(f.Bytes > 0) || !(f.Seconds > 0) {
		t.Errorf("%+v, %v", f, err)
	}
	native := pointOf(t, steady, "nodes.w.compute=native")
	f, err = forecastOf(t, []Point{*native}, Options{Clock: RealTime}, forecastTime)
	if err != nil || !math.IsNaN(float64(f.Bytes)) || float64(f.Seconds) != 10 ||
		!strings.HasPrefix(f.String(), "1 run, about 10 s in real time, ") ||
		!strings.HasSuffix(f.String(),
			"; bytes unknown, because nodes compute at this machine's speed (compute: native)") {
		t.Errorf("%+v, %v: %v", f, err, f)
	}
	crowded = pointOf(t, steady, "nodes.w.count=20001", "data.samples=30000", "architecture={kind: gossip}",
		"stop={steps: 5}")
	f, err = forecastOf(t, []Point{*crowded}, Options{}, forecastTime)
	if err != nil || !strings.HasSuffix(f.String(),
		"; time and bytes unknown, because 20001 nodes are too many to play a part of a run") {
		t.Errorf("%v, %v", f, err)
	}
}

// If the usual time is too short to play a part of a run, the forecast takes longer.
func TestForecastTakesLongerRatherThanNone(t *testing.T) {
	p := pointOf(t, steady, "stop={steps: 2}", "architecture={kind: gossip}")
	for range 20 { // because a busy machine can slow a try down
		began := time.Now()
		if _, err := forecastOf(t, []Point{*p}, Options{Jobs: 1}, time.Minute); err != nil {
			t.Fatal(err)
		}
		const short = (longest + patience) / 2 // between both factors: longest is too little, patience is enough
		f, err := forecastOf(t, []Point{*p}, Options{Jobs: 1}, time.Since(began)/short)
		if err != nil || math.IsNaN(float64(f.Bytes)) != (f.Unknown != "") {
			t.Fatalf("%v, %v", f, err)
		}
		if f.Bytes > 0 {
			return
		}
	}
	t.Error("no try had a forecast")
}

func TestShortenedRunsHaveTheirShareOfEveryBound(t *testing.T) {
	p := pointOf(t, steady, "stop={steps: 100, epochs: 10, time: 1s}")
	short, played := p.shortened(0.25)
	if got := short.Spec.Plan.Stop; got.Steps != 25 || got.Epochs != 2.5 || time.Duration(got.Time) != time.Second/4 ||
		played != 0.25 {
		t.Errorf("%+v, %g", got, played)
	}
	if short, played = p.shortened(0.001); short.Spec.Plan.Stop.Steps != 1 || played != 0.01 {
		t.Errorf("%+v, %g", short.Spec.Plan.Stop, played)
	}
	if (p.Spec.Plan.Stop == plan.Stop{}) {
		t.Error("the point itself was changed")
	}
}
