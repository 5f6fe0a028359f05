package journal

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/protos"
)

// fill gives every field of a struct, except those named in but, its own value that is not zero.
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
		case reflect.Uint8, reflect.Uint32, reflect.Uint64:
			f.SetUint(uint64(i + 1))
		default:
			t.Fatalf("field %s is a %s", s.Type().Field(i).Name, f.Kind())
		}
	}
}

func TestEventsAndEdgesCrossWithAllTheirFields(t *testing.T) {
	var e actors.Event
	fill(t, &e, "Figures") // of the coordinator, whose events are recorded where they are made
	m := WireEvent(7, 3, 5, &e)
	if diff := cmp.Diff(e, eventOf(m)); diff != "" || m.Time != 7 || m.Node != 3 || m.Saved != 5 {
		t.Errorf("at %d of node %d, %s", m.Time, m.Node, diff)
	}
	var l record.Link
	fill(t, &l)
	if diff := cmp.Diff(l, linkFrom(WireEdge(&l))); diff != "" {
		t.Error(diff)
	}
}

func TestCountersOfASenderReplaceThoseOfItsEdges(t *testing.T) {
	g := NewGatherer(&observed{}, func() time.Duration { return 0 }, []string{"other", "third"})
	add := func(process string, links ...record.Link) {
		m := &protos.RunEvents{}
		for i := range links {
			m.Edges = append(m.Edges, WireEdge(&links[i]))
		}
		g.Add(process, m)
	}
	add("other", record.Link{From: "a", To: "b", Messages: 2}, record.Link{From: "a", To: "c", Messages: 3})
	add("third", record.Link{From: "c", To: "a", Messages: 9})
	add("other", record.Link{From: "a", To: record.Everyone, Messages: 6})
	add("other", record.Link{From: "a", To: record.Everyone, Messages: 7})
	got, _ := g.Elsewhere()
	slices.SortFunc(got, func(a, b record.Link) int { return strings.Compare(a.From, b.From) })
	want := []record.Link{{From: "a", To: record.Everyone, Messages: 7}, {From: "c", To: "a", Messages: 9}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCountersOfAFormerLifeOfAProcessStay(t *testing.T) {
	g := NewGatherer(&observed{}, func() time.Duration { return 0 }, []string{"other"})
	count := func(messages int64) {
		l := record.Link{From: "a", To: "b", Messages: messages}
		g.Add("other", &protos.RunEvents{Edges: []*protos.EdgeCounters{WireEdge(&l)}})
	}
	g.Started("other", 0)
	count(5)
	count(7)
	g.Gone("other")
	g.Started("other", 0)
	count(2)
	now, former := g.Elsewhere()
	if len(now) != 1 || now[0].Messages != 2 || len(former) != 1 || former[0].Messages != 7 {
		t.Errorf("2 messages now and 7 in a former life are told as %v and %v", now, former)
	}
}

// observed keeps the instants and steps of events.
type observed struct{ seen []world.Recorded }

func (o *observed) Observe(at time.Duration, node int, e actors.Event) {
	o.seen = append(o.seen, world.Recorded{At: at, Node: node, Event: e})
}

// TestEventsOfAllProcessesAreRecordedInTheOrderOfTime lets three processes say what has happened,
// in batches of any size that come in any order among processes, and compares with all events
// sorted at the end.
func TestEventsOfAllProcessesAreRecordedInTheOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o observed
		now := time.Duration(0)
		g := NewGatherer(&o, func() time.Duration { return now }, []string{"b", "c"})
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
			g.sources[name].told = time.Now().Add(-now)
			m := &protos.RunEvents{}
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				m.Events = append(m.Events, WireEvent(now-time.Millisecond, 1, 0, &actors.Event{Name: name}))
				all[name]++
			}
			if rapid.Bool().Draw(t, "last part") {
				m.Until = int64(now)
			}
			g.Add(name, m)
			for _, e := range o.seen[:max(len(o.seen)-1, 0)] {
				if limit := min(g.sources["b"].until, g.sources["c"].until); e.At > limit {
					t.Fatalf("an event of %v is recorded when all is known until %v", e.At, limit)
				}
			}
		}
		for _, name := range []string{"b", "c"} {
			g.Add(name, &protos.RunEvents{Until: int64(now)})
			g.Gone(name)
		}
		if !slices.IsSortedFunc(o.seen, func(a, b world.Recorded) int { return int((a.At - b.At) / time.Second) }) {
			t.Fatalf("not in the order of time: %v", o.seen)
		}
		got := map[string]int{}
		for _, e := range o.seen {
			got[e.Name]++
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What waits when a cut begins is late, and what comes later of nodes that were not saved for it.
func TestLateEventsAreThoseBeforeACutThatAreNotRecordedWhenItBegins(t *testing.T) {
	var o observed
	g := NewGatherer(&o, func() time.Duration { return 0 }, []string{"other"})
	come := func(saved uint64, until int64, name string) {
		e := WireEvent(0, 1, saved, &actors.Event{Name: name})
		g.Add("other", &protos.RunEvents{Events: []*protos.RunEvent{e}, Until: until})
	}
	g.Started("other", 0)
	come(2, int64(time.Minute), "recorded")
	g.Observe(time.Hour, 0, actors.Event{Name: "own, waits"})
	come(2, 0, "waits")
	g.Held(3, func() {})
	g.Observe(2*time.Hour, 0, actors.Event{Name: "own"}) // its world knows whether it is late
	come(2, 0, "late")
	come(3, int64(time.Minute), "after the cut")
	come(2, 0, "late as well")
	names := func(events []world.Recorded) (all []string) {
		for _, e := range events {
			all = append(all, e.Name)
		}
		slices.Sort(all)
		return all
	}
	want := []string{"late", "late as well", "own, waits", "waits"}
	if diff := cmp.Diff(want, names(g.Tail())); diff != "" {
		t.Error(diff)
	}
	if tail := g.Tail(); tail != nil {
		t.Errorf("%v are late once more", names(tail))
	}
	g.Gone("other")
	want = append(want, "after the cut", "own", "recorded")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(o.seen)); diff != "" {
		t.Error(diff)
	}
}
