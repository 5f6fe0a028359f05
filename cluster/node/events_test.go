package node

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

// fill gives every field of a struct but those a value of its own that is not zero.
func fill(t *testing.T, v any, but ...string) {
	t.Helper()
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		if slices.Contains(but, s.Type().Field(i).Name) {
			continue
		}
		switch f := s.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(strings.Repeat("x", i+1))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Float64:
			f.SetFloat(float64(i) + 0.5)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(uint64(i + 1))
		default:
			t.Fatalf("field %s is a %s", s.Type().Field(i).Name, f.Kind())
		}
	}
}

func TestEventsAndEdgesCrossWithAllTheirFields(t *testing.T) {
	var e actors.Event
	fill(t, &e, "Figures") // of the coordinator, whose events are recorded where they are made
	m := wireEvent(7, 3, &e)
	if diff := cmp.Diff(e, eventOf(m)); diff != "" || m.Time != 7 || m.Node != 3 {
		t.Errorf("at %d of node %d, %s", m.Time, m.Node, diff)
	}
	var l record.Link
	fill(t, &l)
	if diff := cmp.Diff(l, linkFrom(wireEdge(&l))); diff != "" {
		t.Error(diff)
	}
}

// observed keeps the instants and steps of events.
type observed struct{ seen []gathered }

func (o *observed) Observe(at time.Duration, node int, e actors.Event) {
	o.seen = append(o.seen, gathered{at, node, e})
}

// TestEventsOfAllProcessesAreRecordedInTheOrderOfTime lets three processes say what has happened, in batches of any size that
// come in any order among processes, and compares with all events sorted at the end.
func TestEventsOfAllProcessesAreRecordedInTheOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o observed
		now := time.Duration(0)
		g := newGatherer(&o, func() time.Duration { return now }, []string{"b", "c"})
		all := map[string]int{}
		for range rapid.IntRange(0, 50).Draw(t, "messages") {
			now += time.Duration(rapid.IntRange(1, 5).Draw(t, "pause")) * time.Second
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "process")
			if name == "a" {
				g.Observe(now, 0, actors.Event{Name: name})
				all[name]++
				continue
			}
			// So that one clock is what the other says: the gatherer reads both.
			g.begins[name] = beginning{told: time.Now().Add(-now)}
			m := &protos.RunEvents{}
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				m.Events = append(m.Events, wireEvent(now-time.Millisecond, 1, &actors.Event{Name: name}))
				all[name]++
			}
			if rapid.Bool().Draw(t, "last part") {
				m.Until = int64(now)
			}
			g.add(name, m)
			for _, e := range o.seen[:max(len(o.seen)-1, 0)] {
				if limit := min(g.until["b"], g.until["c"]); e.at > limit {
					t.Fatalf("an event of %v is recorded when all is known until %v", e.at, limit)
				}
			}
		}
		for _, name := range []string{"b", "c"} {
			g.add(name, &protos.RunEvents{Until: int64(now)})
			g.leave(name)
		}
		if !slices.IsSortedFunc(o.seen, func(a, b gathered) int { return int((a.at - b.at) / time.Second) }) {
			t.Fatalf("not in the order of time: %v", o.seen)
		}
		got := map[string]int{}
		for _, e := range o.seen {
			got[e.event.Name]++
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestNodesArePlacedByRuleNameRoleAndCores(t *testing.T) {
	member := func(name string, cores int, role string, labels ...string) membership.Member {
		m := membership.Member{Name: name, Meta: membership.Meta{Role: role, Cores: cores, Labels: map[string]string{}}}
		for _, l := range labels {
			m.Meta.Labels[l] = "yes"
		}
		return m
	}
	nodes := []plan.NodeSpec{{Name: "server", Role: "server"}, {Name: "w1", Role: "worker", Group: "w"}, {Name: "w2", Role: "worker", Group: "w"}, {Name: "far", Role: "worker"}}
	all := []membership.Member{member("a", 1, ""), member("b", 4, ""), member("far", 1, ""), member("gpu", 8, "special", "fast"), member("s", 1, "server")}
	for _, x := range []struct {
		rules    []string
		members  []membership.Member
		reserved map[string]int
		want     string
	}{
		{members: all[:1], want: "a a a a"},
		{members: all[:2], want: "b b b a"},
		{members: all[:3], want: "b b b far"},
		{members: all, want: "s b b far"},
		{members: all[3:], rules: []string{"worker=s"}, want: "s s s s"},
		{members: all, rules: []string{"w=fast:yes", "far=a", "worker=b"}, want: "s gpu gpu a"},
		{members: all, rules: []string{"w2=a", "worker=far"}, want: "s far a far"},
		{members: all[:3], reserved: map[string]int{"b": 3}, want: "a b a far"},
		{members: all[:3], reserved: map[string]int{"b": 4}, want: "a a far far"},
		{members: all[:3], reserved: map[string]int{"far": 1}, want: "b b b a"},
		{members: all, reserved: map[string]int{"s": 1}, want: "b b b far"},
		{members: all[3:], reserved: map[string]int{"s": 1}, want: "node server can live nowhere: actors that belong to no run have reserved all cores of s; gradwire actors lists them"},
		{members: all[:2], reserved: map[string]int{"a": 1, "b": 5}, want: "node server can live nowhere: actors that belong to no run have reserved all cores of a, b; gradwire actors lists them"},
		{members: all, reserved: map[string]int{"a": 1}, rules: []string{"w2=a"}, want: "node w2 is to live on process a, of which actors that belong to no run have reserved all cores; gradwire actors lists them"},
		{members: all, reserved: map[string]int{"gpu": 8}, rules: []string{"w=fast:yes"}, want: "node w1 is to live on a process with label fast=yes, of which actors that belong to no run have reserved all cores; gradwire actors lists them"},
		{members: all[3:4], want: "node server has role server, and all processes are kept for other roles"},
	} {
		rules, err := parseRules(x.rules)
		if err != nil {
			t.Fatal(err)
		}
		where, err := place(&plan.Plan{Nodes: nodes}, rules, x.members, x.reserved)
		got := strings.Join(where, " ")
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("with %v and reserved %v: %s, want %s", x.rules, x.reserved, got, x.want)
		}
	}
}

func TestFingerprintTellsCatalogsApartByWhatTheyName(t *testing.T) {
	first, second := catalog.Default(), catalog.Default()
	if fingerprint(first) != fingerprint(second) {
		t.Error("two default catalogs differ")
	}
	type settings struct{}
	none := catalog.Define("none-of-these", "", func() settings { return settings{} }, func(*catalog.Catalog, *settings) (catalog.Loader, error) { return catalog.Loader{}, nil })
	second.Datasets.Add(none)
	if fingerprint(first) == fingerprint(second) {
		t.Error("a catalog with another data set is the same")
	}
}
