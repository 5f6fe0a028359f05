package experiment

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// linked is a plan of nodes with links between pairs of them that are drawn at random; each node
// stands in a line, or all in a group.
func linked(nodes, links int, group bool) []byte {
	var b strings.Builder
	b.WriteString("data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\n" +
		"architecture: {kind: gossip}\nstop: {epochs: 1}\nnodes:\n")
	if group {
		fmt.Fprintf(&b, "  - {name: n, count: %d}\n", nodes)
	} else {
		for i := range nodes {
			fmt.Fprintf(&b, "  - {name: n%d}\n", i+1)
		}
	}
	b.WriteString("network:\n  links:\n")
	r := rand.New(rand.NewPCG(1, 2))
	for range links {
		a, c := r.IntN(nodes), r.IntN(nodes-1)
		if c >= a {
			c++
		}
		fmt.Fprintf(&b, "    - {between: [n%d, n%d], delay: %dms}\n", a+1, c+1, 1+r.IntN(50))
	}
	return []byte(b.String())
}

func check(t testing.TB, text []byte) {
	p, err := Parse("plan.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(nil); err != nil {
		t.Fatal(err)
	}
}

func TestCheckTakesAsMuchAsThereAreNodesAndLinks(t *testing.T) {
	work := func(text []byte) (objects, bytes float64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		check(t, text)
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)
	}
	check(t, linked(10, 10, false)) // what is made once
	for _, group := range []bool{false, true} {
		objects, bytes := work(linked(1000, 1000, group))
		moreObjects, moreBytes := work(linked(2000, 2000, group))
		if moreObjects > 2.2*objects || moreBytes > 2.5*bytes {
			t.Errorf("1000 nodes and links: %v objects, %v bytes; 2000: %v, %v", objects, bytes, moreObjects, moreBytes)
		}
	}
}

// The pairs of these nodes are 10¹⁰, which nobody could visit: neither for what the links, the
// schedule and its outages say of all of them, nor for the network of a run.
func TestEntriesAboutAllPairsDoNotVisitThem(t *testing.T) {
	const nodes = 100_000
	text := string(linked(nodes, 100, true)) + `    - {between: [n, "*"], rate: 1 MB/s}
    - {from: "*", to: n7, delay: 3ms}
schedule:
  - {at: 1s, from: "*", to: "*", delay: 20ms}
  - {at: 2s, link: [n, n], do: down}
  - {at: 3s, link: ["*", "*"], do: up}
`
	p, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	network, _, changes := points[0].network(1, nil)
	used := network.Edge(3, 6)
	for _, c := range changes {
		if c.Edges != nodes*(nodes-1) {
			t.Errorf("a change at %v is about %d edges", c.At, c.Edges)
		}
		c.Apply()
	}
	if got := used.Delay(0).Milliseconds(); got != 20 {
		t.Errorf("a link that was used takes %d ms", got)
	}
	if got := network.Edge(nodes-1, 5).Delay(0).Milliseconds(); got != 20 {
		t.Errorf("a link that was not used before takes %d ms", got)
	}
}

func BenchmarkCheck2000Nodes2000Links(b *testing.B) { benchmarkCheck(b, linked(2000, 2000, false)) }
func BenchmarkCheck10000Nodes100000Links(b *testing.B) {
	benchmarkCheck(b, linked(10_000, 100_000, true))
}

func benchmarkCheck(b *testing.B, text []byte) {
	b.ReportAllocs()
	for b.Loop() {
		check(b, text)
	}
}

// What an architecture says of nodes and topologies before a run is said by Check, of every point.
func TestCheckSaysWhichPointItsArchitectureDoesNotFit(t *testing.T) {
	const text = "data: {set: synthetic-traffic}\nmodel: {kind: mlp, layers: [93, 5]}\nstop: {epochs: 1}\n" +
		"architecture: {kind: all-reduce}\nnodes: [{name: n, count: 4}]\n" +
		"sweep: {architecture: [{kind: gossip}, {kind: gaia, roles: {server: [n1, n3]}}]}\n"
	p, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = "n1 and n3 are servers at one site"
	if err := p.Check(nil); err == nil || !strings.Contains(err.Error(), "plan.yaml:6:") ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
