package experiment

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/turns"
	"github.com/gradwire/gradwire/nn"
)

// compressed are further variants, in which codes travel.
var compressed = []string{
	"{kind: all-reduce, algorithm: all-to-all, compress: {up: [{kind: top-k, share: 10%}]}}",
	"{kind: all-reduce, algorithm: ring, segment: 100}",
	"{kind: all-reduce, preset: streaming-diloco}",
	"{kind: all-reduce, preset: sparta}",
	"{kind: parameter-server, compress: {up: [{kind: top-k, share: 5%}, float16], down: [{kind: quantise, bits: 8}]}, " +
		"roles: {server: added}}",
	"{kind: parameter-server, compress: {up: [powersgd], feedback: ef21}, roles: {server: added}}",
	"{kind: parameter-server, compress: {up: [{kind: qsgd}]}, every: 3, roles: {server: added}}",
	"{kind: gossip, compress: {models: [int8]}, exchange: push-pull}",
	"{kind: gossip, period: 30ms, merge: age}",
	"{kind: d-psgd, track: true}",
	"{kind: d-psgd, choco: {compress: [sign], rate: 0.3}}",
	"{kind: ad-psgd, compress: {models: [{kind: quantise, bits: 4}]}}",
	"{kind: gossip-learning, period: 15ms, predict: vote, flow: {kind: randomized, capacity: 8, reactivity: 3}}",
	"{kind: federated, attack: {kind: little-is-enough, share: 25%}, mean: {kind: geometric-median}, " +
		"roles: {server: added}}",
}

// pointsOf returns the points of a plan.
func pointsOf(t testing.TB, text string, set ...string) []Point {
	t.Helper()
	p, err := Parse("plan.yaml", []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// pointOf returns the only point of a plan.
func pointOf(t *testing.T, text string, set ...string) *Point {
	t.Helper()
	return &pointsOf(t, text, set...)[0]
}

// trafficOf plays a run of a point, and returns the digest of the times, ways and sizes of its
// messages, and the counters of its links.
func trafficOf(t *testing.T, p *Point) (digest uint64, links []record.Link) {
	t.Helper()
	s, err := p.stageFor(shelf.New("", 1, nil), 1, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.observe(record.Config{})
	out, err := (Virtual{}).Play(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return *out.Digest, s.links()
}

func TestCountingRunsCarryTheMessagesOfRunsThatTrain(t *testing.T) {
	t.Parallel()
	all := slices.Clone(compressed)
	for _, k := range catalog.Default().Architectures.All() {
		if len(variants[k.Name]) == 0 {
			t.Errorf("architecture %s is not tried", k.Name)
		}
		all = append(all, variants[k.Name]...)
	}
	for i, architecture := range all {
		for k, set := range [][]string{
			{"stop={time: 2s}"},
			{"stop={epochs: 1}", "network.default={delay: 3ms, rate: 2 Mbit/s, loss: {probability: 5%, kind: drop}}",
				"schedule=[{at: 100ms, node: w4, do: pause, for: 50ms}]"},
		} {
			t.Run(architecture+", "+set[0], func(t *testing.T) {
				turns.Row(t, i+k, len(all), 3)
				t.Parallel()
				p := pointOf(t, steady, append([]string{"architecture=" + architecture}, set...)...)
				if _, says := p.Spec.Architecture.(train.Predictable); !says {
					t.Fatal("the architecture does not say whether what it sends depends on what it trains")
				}
				if err := p.countable(); err != nil {
					t.Skip(err)
				}
				c := p.counted()
				digest, links := trafficOf(t, p)
				counted, same := trafficOf(t, &c)
				if digest != counted {
					t.Error("the messages differ")
				}
				if !slices.EqualFunc(links, same, equalLinks) {
					t.Errorf("trained %v, counted %v", links, same)
				}
			})
		}
	}
}

// equalLinks compares counters as they are recorded.
func equalLinks(a, b record.Link) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestPlansWhoseMessagesDependOnWhatIsTrainedAreNotCounted(t *testing.T) {
	for _, x := range []struct{ architecture, at string }{
		{"{kind: gaia, significance: 0%, roles: {server: added}}", "significance"},
		{"{kind: in-network, roles: {switch: added}}", "exponents"},
		{"{kind: gossip, moved: 0.1}", "moved"}, {"{kind: d-psgd, moved: 0.1}", "moved"},
		{"{kind: ad-psgd, moved: 0.1}", "moved"}, {"{kind: all-reduce, reduce: models, every: 2, moved: 0.1}", "moved"},
	} {
		p, err := Parse("plan.yaml", []byte(steady), "architecture="+x.architecture)
		if err == nil {
			_, err = Run(t.Context(), p, Options{Out: filepath.Join(t.TempDir(), "record"), Count: true})
		}
		if err == nil || !strings.Contains(err.Error(), "messages depend on trained values") ||
			!strings.Contains(err.Error(), x.at) {
			t.Errorf("%s: %v", x.architecture, err)
		}
	}
	for tune, refused := range map[string]bool{"train.optimizer.rate: [0.1, 0.2]": false, "train.batch: [5, 10]": true} {
		p, err := Parse("plan.yaml", []byte(steady), "tune={"+tune+"}", "data.validation=10%", "stop={time: 1s}")
		if err == nil {
			_, err = Run(t.Context(), p, Options{Out: filepath.Join(t.TempDir(), "record"), Count: true})
		}
		if (err != nil) != refused {
			t.Errorf("tune: {%s}: %v", tune, err)
		}
	}
}

func TestTheRecordOfACountingRunSaysThatNothingWasTrained(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(steady, "stop: {time: 10s}", "stop: {target: 50%, epochs: 2}", 1)
	text += "sweep: {architecture: [{kind: all-reduce}, {kind: gossip}]}\n"
	report := func(o Options) *Report {
		t.Helper()
		p, err := Parse("plan.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o.Out = filepath.Join(dir, o.Out)
		r, err := Run(t.Context(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, o := range []Options{{Out: "counted", Count: true}, {Out: "counted", Count: true, Continue: true}} {
		r := report(o)
		if !r.Complete || r.Target != nil || len(r.Groups) != 2 {
			t.Errorf("%+v", r.Summary)
		}
		for i := range r.Runs {
			run := &r.Runs[i]
			marked := run.Counted && run.Outcome == record.CountedOnly && run.Digest == ""
			judged := run.Target != nil || run.Reached || !math.IsNaN(float64(run.FinalAccuracy)) ||
				!math.IsNaN(float64(run.BestAccuracy))
			if !marked || judged || run.Bytes == 0 || run.Epochs < 2 || run.Steps == 0 {
				t.Errorf("%+v", run)
			}
		}
		if g := r.Groups[0]; g.Counted != 1 || g.N != 0 || g.FinalAccuracy != nil {
			t.Errorf("%+v", g)
		}
	}
	p, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), p, Options{Out: filepath.Join(dir, "counted"), Continue: true})
	if err == nil || !strings.Contains(err.Error(), "counted without training") {
		t.Errorf("runs that train go on where others were counted: %v", err)
	}
	report(Options{Out: "trained"})
	_, err = Run(t.Context(), p, Options{Out: filepath.Join(dir, "trained"), Continue: true, Count: true})
	if err == nil || !strings.Contains(err.Error(), "runs that were trained") {
		t.Errorf("counting goes on where runs were trained: %v", err)
	}
	_, err = Replay(t.Context(), filepath.Join(dir, "counted/runs/0000"), Options{})
	if err == nil || !strings.Contains(err.Error(), "counted, not trained") {
		t.Errorf("a counting run is replayed: %v", err)
	}
	_, err = Evaluate(filepath.Join(dir, "counted/runs/0000"), "", Options{})
	if err == nil || !strings.Contains(err.Error(), "counted, not trained") {
		t.Errorf("a counting run is evaluated: %v", err)
	}
}

// unusable is a model that fails a run which computes or evaluates anything.
type unusable struct{ nn.Model }

func (unusable) NewWorkspace(int) nn.Workspace { return nil }
func (unusable) Samples(_ []float32, _, _ []int32) *nn.Samples {
	panic("a counting run evaluates a model")
}

func TestCountingRunsComputeNothing(t *testing.T) {
	c := pointOf(t, steady).counted()
	c.Spec.Model = unusable{c.Spec.Model}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := c.stageFor(shelf.New("", 1, nil), 1, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.observe(record.Config{})
	if _, err := (Virtual{}).Play(ctx, s); err != nil {
		t.Error(err)
	}
}
