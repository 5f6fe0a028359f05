package experiment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/refusal"
)

const probedPlan = `
name: probed
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes:
  - {name: s, role: server, uplink: 8 Mbit/s}
  - {name: a, role: worker, downlink: 16 Mbit/s}
  - {name: b, role: worker}
network:
  default: {delay: {kind: pareto, min: 5ms, alpha: 2}}
  links:
    - between: [s, a]
      delay: {kind: random-walk, first: 10ms..20ms, step: 5ms}
      outages: [{kind: gilbert-elliott, up: 2s, down: 1s}]
    - {from: b, to: s, loss: {bursts: {p: 10%, r: 30%}}}
schedule:
  - {at: 3s, link: [s, a], delay: {kind: uniform, range: 1ms..2ms}}
  - {at: 5s, from: b, to: s, do: down}
  - {at: 6s, from: b, to: s, do: up}
stop: {epochs: 1}
`

func edgesOf(n *Network) (names []string) {
	for _, l := range n.Lines {
		names = append(names, l.From+" "+l.To)
	}
	return names
}

// Of a network with all its edges in use each draws what it draws alone.
func TestLinesDrawWhatARunsLinksDraw(t *testing.T) {
	p, err := Parse("plan.yaml", []byte(probedPlan), "seed=5")
	if err != nil {
		t.Fatal(err)
	}
	n, err := p.Network(nil, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s a", "s b", "a s", "b s"}, edgesOf(n)); diff != "" {
		t.Fatal(diff)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, names, changes := points[0].network(5, nil)
	at := Positions(names)
	const every, count = 100 * time.Millisecond, 100
	probes := map[string][]link.Probe{}
	for _, l := range n.Lines {
		probes[l.From+" "+l.To] = l.Probe(n.Seed, 0, every, count)
	}
	for i := range count {
		now := time.Duration(i) * every
		for _, c := range changes {
			if c.At > now-every && c.At <= now {
				c.Apply()
			}
		}
		for _, l := range n.Lines {
			got, want := probes[l.From+" "+l.To][i], whole.Edge(at[l.From], at[l.To]).Send(now, 0)
			if got.Delay != want.Delay || got.Tries != want.Tries || got.Lost != want.Lost || !got.Lost &&
				now+got.Took != want.Arrival {
				t.Fatalf("probe %d from %s to %s: %+v, in a run %+v", i, l.From, l.To, got, want)
			}
		}
	}
	if l := n.Lines[0]; l.Uplink != rate.Constant(1e6) || l.Downlink != rate.Constant(2e6) || len(l.Changes) != 1 {
		t.Errorf("%+v", l)
	}
}

func TestNetworkHasTheEdgesOfItsTopologies(t *testing.T) {
	const ring = `
data: {set: synthetic-traffic}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: gossip}
nodes: [{name: n, count: 5}]
network: {topology: ring}
stop: {epochs: 1}
`
	for _, c := range []struct {
		more string
		most int
		want string
	}{
		{"", 100, "n1 n2,n1 n5,n2 n1,n2 n3,n3 n2,n3 n4,n4 n3,n4 n5,n5 n1,n5 n4"},
		{"", 4, "n1 n2,n2 n1,n3 n4,n4 n5"},
		{"schedule: [{at: 1s, topology: {kind: star, centre: n1}}]\n", 100,
			"n1 n2,n1 n3,n1 n4,n1 n5,n2 n1,n2 n3,n3 n1,n3 n2,n3 n4,n4 n1,n4 n3,n4 n5,n5 n1,n5 n4"},
		{"schedule: [{at: 1s, topology: complete}]\n", 100, everyPair(5)},
	} {
		p, err := Parse("plan.yaml", []byte(ring+c.more))
		if err != nil {
			t.Fatal(err)
		}
		n, err := p.Network(nil, 1, c.most)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(edgesOf(n), ","); got != c.want {
			t.Errorf("%q, at most %d: %s, want %s", c.more, c.most, got, c.want)
		}
	}
}

func everyPair(count int) string {
	var pairs []string
	for i := range count {
		for j := range count {
			if i != j {
				pairs = append(pairs, fmt.Sprintf("n%d n%d", i+1, j+1))
			}
		}
	}
	return strings.Join(pairs, ",")
}

func TestNetworkOfAPointThatThereIsNot(t *testing.T) {
	for text, number := range map[string]int{probedPlan: 2, probedPlan + "sweep: {train.batch: [16, 32]}\n": 3,
		probedPlan + "repeats: 2\n": 0} {
		p, err := Parse("plan.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var input *refusal.InputError
		if _, err := p.Network(nil, number, 9); !errors.As(err, &input) || !strings.Contains(err.Error(),
			"accepted is 1 to") {
			t.Errorf("point %d: %v", number, err)
		}
	}
	beginning, _, _ := strings.Cut(probedPlan, "nodes:")
	const end = "nodes: [{name: s, role: server}, {name: a, role: worker}]\nnetwork: none\nstop: {epochs: 1}\n"
	p, err := Parse("plan.yaml", []byte(beginning+end))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Network(nil, 1, 9); err == nil || !strings.Contains(err.Error(), "nothing is emulated") {
		t.Errorf("network: none: %v", err)
	}
}
