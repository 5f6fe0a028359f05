package faults_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

const nodes = `data: toy
model: {kind: mlp}
architecture: {kind: ps}
nodes: [{name: server, role: server}, {name: w, role: worker, count: 8}]
stop: {time: 1000s}
`

func read(t testing.TB, more string) (p *plan.Plan, roles []string) {
	t.Helper()
	root, err := syntax.Parse("p.yaml", []byte(nodes+more))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = plan.ReadPlan(root); err != nil {
		t.Fatal(err)
	}
	for i := range p.Nodes {
		roles = append(roles, p.Nodes[i].Role)
	}
	return p, roles
}

// drawn are the changes that a plan's faults come to.
func drawn(t testing.TB, seed uint64, more string) []plan.Change {
	t.Helper()
	p, roles := read(t, more)
	if err := faults.Check(p, roles); err != nil {
		t.Fatal(err)
	}
	return faults.Schedule(p, roles, seed).Schedule[len(p.Schedule):]
}

func text(changes []plan.Change) (lines []string) {
	for _, c := range changes {
		lines = append(lines, fmt.Sprint(c.At, " ", c.Node, " ", c.Do, " ", c.For, " ", c.Cut))
	}
	return lines
}

// TestTimesBetweenFaultsAreExponential compares the share of time that nodes are there, and the
// spread of the times between failures, with what the two settings say.
func TestTimesBetweenFaultsAreExponential(t *testing.T) {
	const mtbf, back = 5.0, 2.0
	changes := drawn(t, 3, "faults: {crash: {mtbf: 5s, nodes: worker, back: 2s}, until: 20000s}\n")
	last, gaps := map[string]float64{}, []float64{}
	for _, c := range changes {
		if c.Do != plan.Restart || c.For != 2e9 || !strings.HasPrefix(c.Node, "w") {
			t.Fatalf("%+v", c)
		}
		at := time.Duration(c.At).Seconds()
		gaps = append(gaps, at-last[c.Node])
		last[c.Node] = at + back
	}
	if want := 8 * 20000 / (mtbf + back); math.Abs(float64(len(gaps))-want) > 4*math.Sqrt(want) {
		t.Errorf("%d faults, want about %.0f", len(gaps), want)
	}
	mean, squares := 0.0, 0.0
	for _, g := range gaps {
		mean += g / float64(len(gaps))
	}
	for _, g := range gaps {
		squares += (g - mean) * (g - mean) / float64(len(gaps))
	}
	if math.Abs(mean-mtbf) > 0.15 || math.Abs(math.Sqrt(squares)-mtbf) > 0.3 || slices.Min(gaps) < 0 {
		t.Errorf("times between failures have mean %.2f and deviation %.2f, want both %.0f", mean, math.Sqrt(squares),
			mtbf)
	}
}

// The mean of what is drawn is for or back, and its logarithm has the deviation that is asked for.
func TestFaultsOfSigmaLastLogNormally(t *testing.T) {
	const mean, sigma = 2.0, 0.5
	for do, fault := range map[string]string{
		plan.Pause: "pause: {mtbf: 5s, for: 2s", plan.Restart: "crash: {mtbf: 5s, back: 2s",
		plan.Slow: "slow: {mtbf: 5s, factor: 2, for: 2s", plan.Preempt: "preempt: {mtbf: 5s, notice: 1s, back: 2s",
		"": "cut: {mtbf: 700ms, for: 2s", // of all together
	} {
		changes := drawn(t, 3, "faults: {"+fault+", nodes: worker, sigma: 0.5}, until: 20000s}\n")
		n := float64(len(changes))
		sum, logs, squares := 0.0, 0.0, 0.0
		for _, c := range changes {
			x := time.Duration(c.For).Seconds()
			if c.Do != do || x <= 0 {
				t.Fatalf("%+v", c)
			}
			sum += x / n
			logs += math.Log(x) / n
		}
		for _, c := range changes {
			x := math.Log(time.Duration(c.For).Seconds()) - logs
			squares += x * x / n
		}
		off := 4 * sigma / math.Sqrt(n)
		if n < 5000 || math.Abs(sum-mean) > 1.1*mean*off || math.Abs(logs-math.Log(mean)+sigma*sigma/2) > off ||
			math.Abs(math.Sqrt(squares)-sigma) > off {
			t.Errorf("%s: %.0f faults last %.3f s in the mean, their logarithms are %.3f, with a deviation of %.3f",
				fault, n, sum, logs, math.Sqrt(squares))
		}
	}
}

func TestWhatIsDrawnDependsOnSeedNodeAndKindAlone(t *testing.T) {
	crash := "crash: {mtbf: 100s, nodes: [w1, w2], back: 30s}"
	first := text(drawn(t, 1, "faults: {"+crash+"}\n"))
	if len(first) < 5 || !cmp.Equal(first, text(drawn(t, 1, "faults: {"+crash+"}\n"))) ||
		cmp.Equal(first, text(drawn(t, 2, "faults: {"+crash+"}\n"))) {
		t.Fatalf("%q", first)
	}
	more := text(drawn(t, 1, "faults: {slow: {mtbf: 50s, nodes: w3, factor: 2, for: 1s}, "+
		"crash: {mtbf: 100s, nodes: [w1, w2, w4], back: 30s}}\n"))
	more = slices.DeleteFunc(more, func(s string) bool {
		return !strings.Contains(s, " w1 ") && !strings.Contains(s, " w2 ")
	})
	if diff := cmp.Diff(first, more); diff != "" {
		t.Error(diff)
	}
}

// TestNothingStrikesANodeThatIsAway follows each node through its schedule.
func TestNothingStrikesANodeThatIsAway(t *testing.T) {
	changes := drawn(t, 1, `faults:
  crash: {mtbf: 20s, nodes: worker, back: 5s}
  preempt: {mtbf: 20s, nodes: worker, notice: 3s, back: 5s}
  pause: {mtbf: 5s, nodes: worker, for: 1s}
  slow: {mtbf: 5s, nodes: w, factor: 2, for: 1s}
schedule: [{at: 50s, node: w8, do: leave}]
`)
	away := map[string]unit.Duration{}
	seen := map[string]int{}
	for _, c := range changes {
		seen[c.Do]++
		if c.At <= away[c.Node] || c.Node == "w8" || c.Node == "server" {
			t.Errorf("%+v, and %s is away until %s", c, c.Node, away[c.Node])
		}
		if c.Do == plan.Restart || c.Do == plan.Preempt {
			away[c.Node] = c.At + c.Notice + c.For
		}
	}
	if len(seen) != 4 || seen[plan.Preempt] < 50 {
		t.Error(seen)
	}
	if err := faults.Check(read(t, "faults: {pause: {mtbf: 1s, nodes: [w1, wx], for: 1s}}\n")); err == nil ||
		!strings.Contains(err.Error(), `there is no node, group or role named "wx"; did you mean w`) {
		t.Error(err)
	}
}

func TestACutSplitsNodesInTwo(t *testing.T) {
	splits := map[string]int{}
	for _, c := range drawn(t, 1, "faults: {cut: {mtbf: 1s, nodes: [w1, w2, w3], for: 1s}, until: 3600s}\n") {
		if len(c.Cut) != 2 || len(c.Cut[0])+len(c.Cut[1]) != 3 || len(c.Cut[0])*len(c.Cut[1]) != 2 || c.For != 1e9 {
			t.Fatalf("%+v", c)
		}
		splits[fmt.Sprint(c.Cut)]++
	}
	if len(splits) != 6 {
		t.Fatalf("%v", splits)
	}
	for split, n := range splits { // 300 each, with a deviation of 16
		if n < 230 || n > 370 {
			t.Errorf("%s %d times of about 300", split, n)
		}
	}
}

func TestASwizzleTakesNodesAwayAndBackInOtherOrders(t *testing.T) {
	changes := drawn(t, 1, "faults: {swizzle: {mtbf: 100s, nodes: w, for: 10s}, until: 10000s}\n")
	orders := map[bool]int{}
	for i, c := range changes {
		if len(c.Cut) != 1 || len(c.Cut[0]) != 1 || c.For > 10e9 {
			t.Fatalf("%+v", c)
		}
		if i > 0 && c.At-changes[i-1].At < 5e9 && changes[i-1].At+changes[i-1].For > c.At {
			orders[changes[i-1].At+changes[i-1].For < c.At+c.For]++
		}
	}
	if orders[true] < 100 || orders[false] < 100 {
		t.Errorf("of %d cuts the one that came first ended first %d times, and last %d times", len(changes),
			orders[true], orders[false])
	}
	for _, c := range drawn(t, 1, "faults: {swizzle: {mtbf: 100s, for: 10s, do: pause}}\n") {
		if c.Do != plan.Pause || c.Node == "" || c.Cut != nil {
			t.Fatalf("%+v", c)
		}
	}
}

// TestACutIsAnOutageOfTheLinksBetweenItsSides compares each edge with the definition.
func TestACutIsAnOutageOfTheLinksBetweenItsSides(t *testing.T) {
	p, _ := read(t, `schedule:
  - {at: 1s, cut: [w1, [server, w2]], for: 2s}
  - {at: 2s, cut: w2, for: 4s}
`)
	own := &link.Config{Outages: []link.Outage{{From: 10, To: 20}}}
	of := faults.Over(faults.Cuts(p), link.Config{}, func(from, _ int32) *link.Config {
		if from == 3 {
			return own
		}
		return nil
	})
	first, second := link.Outage{From: 1e9, To: 3e9}, link.Outage{From: 2e9, To: 6e9}
	for from := range int32(10) {
		for to := range int32(10) { // server, w1 to w8, coordinator
			var want []link.Outage
			pair := [2]int32{min(from, to), max(from, to)}
			switch {
			case from == to || to == 9 || from == 9:
			case pair == [2]int32{1, 2}:
				want = []link.Outage{{From: first.From, To: second.To}}
			case pair == [2]int32{0, 1}:
				want = []link.Outage{first}
			case from == 2 || to == 2:
				want = []link.Outage{second}
			}
			if from == 3 {
				want = append(slices.Clone(own.Outages), want...)
			}
			var got []link.Outage
			if c := of.Config(from, to); c != nil {
				got = c.Outages
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d to %d: %s", from, to, diff)
			}
			if again := of.Config(from, to); again != of.Config(from, to) {
				t.Errorf("%d to %d: another configuration each time", from, to)
			}
		}
	}
}
