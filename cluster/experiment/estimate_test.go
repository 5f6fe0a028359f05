package experiment

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/memory"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/shelf"
)

const estimatedPlan = `
data: {set: synthetic-traffic, samples: 20000}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: gossip, choose: {kind: random, count: 1}}
nodes: [{name: n, count: 10, compute: {step: 10ms}}]
network: {default: {delay: 5ms}}
evaluate: {every: 1000 steps, sample: 1}
stop: {time: 60ms}
`

// measured plays a run of a plan and returns the bytes that are live in its midst, beside what was
// there before. Data have been read by then.
func measured(t *testing.T, p *Point, at time.Duration) float64 {
	t.Helper()
	shelf := shelf.New("", 1, nil)
	if _, err := p.stageFor(shelf, 1, false, 1); err != nil {
		t.Fatal(err)
	}
	live := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools have kept
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	before, during := live(), 0.0
	s, err := p.stageFor(shelf, 1, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.observe(record.Config{})
	s.Changes = append(s.Changes, link.Change{At: at, Apply: func() { during = live() }})
	if _, err := (Virtual{}).Play(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(shelf) // lest what it has read counts before and not in the midst
	return during - before
}

func TestEstimatedMemoryIsThatOfRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	for _, set := range [][]string{
		{"nodes.n.count=1000"},
		{"nodes.n.count=300", "model.layers=[93, 64, 5]"},
		{"nodes.n.count=300", "architecture={kind: d-psgd}", "network.topology=ring"},
		{"nodes.n.count=16", "model.layers=[93, 1000, 100, 5]",
			"architecture={kind: parameter-server, roles: {server: added}}"},
		{"nodes.n.count=64", "model.layers=[93, 256, 5]", "architecture={kind: all-reduce, algorithm: tree}"},
		{"nodes.n.count=64", "train.batch=256", "model.layers=[93, 64, 64, 5]", "architecture={kind: local}"},
		{"nodes.n.count=16", "train.batch=4096", "model.layers=[93, 1000, 5]", "architecture={kind: local}"},
	} {
		p, err := Parse("plan.yaml", []byte(estimatedPlan), set...)
		if err != nil {
			t.Fatal(err)
		}
		points, err := p.Points(nil)
		if err != nil {
			t.Fatal(err)
		}
		got := measured(t, &points[0], 50*time.Millisecond)
		const factor = 3
		if want := (points[0].Estimate().Memory - programBytes) / headroom; got < want/factor || got > want*factor {
			t.Errorf("%v: %.3g bytes live, estimated %.3g", set, got, want)
		} else {
			t.Logf("%v: %.3g bytes live, estimated %.3g", set, got, want)
		}
	}
}

// near allows for rounding.
func near(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }

func TestEstimateCountsStepsAndMessages(t *testing.T) {
	estimate := func(set ...string) Estimate {
		p, err := Parse("plan.yaml", []byte(estimatedPlan), set...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Estimate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two := estimate("nodes.n.count=100"), estimate("nodes.n.count=200")
	if one.Second <= 0 || !near(two.Second, 2*one.Second) {
		t.Errorf("100 nodes %v, twice as many %v", one.Second, two.Second)
	}
	if slow := estimate("nodes.n.count=100", "nodes.n.compute.step=20ms"); !near(2*slow.Second, one.Second) {
		t.Errorf("steps of 10 ms %v, of 20 ms %v", one.Second, slow.Second)
	}
	all := estimate("nodes.n.count=100", "architecture.choose={kind: random, share: 100%}")
	if all.Second < 10*one.Second {
		t.Errorf("one neighbour %v, all 99 %v", one.Second, all.Second)
	}
	served := []string{"architecture={kind: parameter-server, roles: {server: added}}", "nodes.n.compute.step=0s"}
	// The server makes 10¹⁰ ÷ (2 · (93 · 5 + 5)) updates a second, each for a step of over 10 µs.
	if none := estimate(append(served, "network.default.delay=0s")...); none.Second < 100*time.Second {
		t.Errorf("steps that only the server's work holds up: %v", none.Second)
	}
	if delayed := estimate(served...); delayed.Second != 0 {
		t.Errorf("steps that links hold up: %v", delayed.Second)
	}
	if native := estimate("nodes.n.compute=native"); native.Second != 0 {
		t.Errorf("as fast as the machine: %v", native.Second)
	}
}

func TestPlanThatNeedsMoreMemoryThanThereIsGetsAWarning(t *testing.T) {
	limit := memory.Limit()
	have := limit.Bytes
	if have == 0 {
		t.Skip("the system does not say how much memory there is")
	}
	if w := (Estimate{Memory: 2 * have}).Warning(); w != "a run may take "+memory.Text(2*have)+
		" of memory, and "+limit.By+" "+memory.Text(have) {
		t.Error(w)
	}
	if w := (Estimate{Memory: have / 2}).Warning(); w != "" {
		t.Error(w)
	}
}
