package pairing_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report/pairing"
)

func point(settings ...string) (p record.Point) {
	for i := 0; i < len(settings); i += 2 {
		p = append(p, record.Setting{Key: settings[i], Value: settings[i+1]})
	}
	return p
}

func TestPointsArePairedWhereOneKeyAloneDiffers(t *testing.T) {
	split := []record.Point{point("s", "iid"), point("s", "far")}
	with := func(delay string) (all []record.Point) {
		for _, p := range split {
			all = append(all, append(point("d", delay), p...))
		}
		return all
	}
	both := append(with("1"), with("2")...)
	for _, c := range []struct {
		name                string
		a, b                []record.Point
		pairs, onlyA, onlyB int
		key                 string
	}{
		{"equal", split, split, 2, 0, 0, ""},
		{"some equal", split, split[:1], 1, 1, 0, ""},
		{"another value", with("1"), with("2"), 2, 0, 0, "d"},
		{"a key that one lacks", split, with("2"), 2, 0, 0, "d"},
		{"no points", []record.Point{nil}, []record.Point{nil}, 1, 0, 0, ""},
		{"two partners", split, both, 0, 0, 0, ""},
	} {
		p := pairing.Match(c.a, c.b)
		if len(p.Of) != c.pairs || p.Key != c.key ||
			c.pairs > 0 && (len(p.OnlyA) != c.onlyA || len(p.OnlyB) != c.onlyB) {
			t.Errorf("%s: %+v", c.name, p)
		}
		if note := p.Note(c.a, c.b); strings.Contains(note, "differ in d alone") != (c.key == "d") {
			t.Errorf("%s: %q", c.name, note)
		}
	}
}

func TestChangesNameTheKeysInWhichPlansDiffer(t *testing.T) {
	const a = "name: x\nnodes:\n  - {name: n, compute: {step: 5ms}}\nstop: {target: 92%}\n"
	b := strings.NewReplacer("name: x", "name: y", "5ms", "9ms", "stop: {target: 92%}", "stop: {epochs: 3}").Replace(a)
	var got []string
	for _, c := range pairing.Changes(a, b) {
		got = append(got, c.Key+" "+c.A+" "+c.B)
	}
	if want := "nodes.n.compute.step 5ms 9ms|stop.target 92% |stop.epochs  3"; strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
	if got := pairing.Changes("a: [", a); got != nil {
		t.Errorf("a plan that cannot be read: %v", got)
	}
}
