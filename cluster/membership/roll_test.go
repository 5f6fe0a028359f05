package membership

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func member(name string, incarnation uint64) Member {
	return Member{Name: name, Meta: Meta{Incarnation: incarnation}, Gossip: netip.MustParseAddrPort("127.0.0.1:1")}
}

// follower knows the members by the events alone, and checks that each node's events are in an
// order that makes sense.
type follower struct {
	present map[string]uint64 // incarnation by name
	last    map[string]Kind
	view    uint64
}

func (f *follower) follow(t *rapid.T, e Event) {
	if e.View <= f.view {
		t.Fatalf("event of view %d after one of %d", e.View, f.view)
	}
	f.view = e.View
	name := e.Member.Name
	_, present := f.present[name]
	switch e.Kind {
	case Joined, Returned:
		if present || (e.Kind == Returned) != (f.last[name] == Failed) {
			t.Fatalf("%s %s after %s", name, e.Kind, f.last[name])
		}
		f.present[name] = e.Member.Meta.Incarnation
	case Left, Failed:
		if !present {
			t.Fatalf("%s %s and was not here", name, e.Kind)
		}
		delete(f.present, name)
	}
	f.last[name] = e.Kind
}

// Whatever memberlist says, who follows the events knows the view.
func TestEventsAddUpToTheView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRoll("self")
		r.appeared(member("self", 1), false)
		followed := follower{present: map[string]uint64{"self": 1}, last: map[string]Kind{}}
		calls := []string{"appeared", "changed", "vanished", "confirmed"}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "self"}).Draw(t, "name")
			m := member(name, rapid.Uint64Range(1, 3).Draw(t, "incarnation"))
			if name == "self" {
				m.Meta.Incarnation = 1
			}
			leaving := rapid.Bool().Draw(t, "leaving")
			switch rapid.SampledFrom(calls).Draw(t, "what") {
			case "appeared":
				r.appeared(m, leaving)
			case "changed":
				r.changed(m, leaving)
			case "vanished":
				if name != "self" {
					r.vanished(name)
				}
			case "confirmed":
				for _, d := range r.doubts() {
					r.confirm(d)
				}
			}
			for e, ok := r.next(); ok; e, ok = r.next() {
				followed.follow(t, e)
			}
			var names []string
			v := r.snapshot()
			for _, m := range v.Members {
				names = append(names, m.Name)
				if m.Meta.Incarnation != followed.present[m.Name] {
					t.Fatalf("%s has incarnation %d in the view, %d by the events", m.Name, m.Meta.Incarnation,
						followed.present[m.Name])
				}
			}
			if want := slices.Sorted(maps.Keys(followed.present)); !slices.Equal(names, want) {
				t.Fatalf("the view is %v, by the events %v", names, want)
			}
		}
	})
}

func TestEventsBeyondTheBoundAreCounted(t *testing.T) {
	r := newRoll("self")
	for i := range maxEvents + 10 {
		r.appeared(member(fmt.Sprint("n", i), 1), false)
	}
	if e, ok := r.next(); !ok || e.Kind != Missed || e.Missed != 10 {
		t.Fatalf("the first event is %+v, want 10 missed", e)
	}
	n := 0
	for e, ok := r.next(); ok; e, ok = r.next() {
		if want := fmt.Sprint("n", n+10); e.Member.Name != want {
			t.Fatalf("event %d is about %s, want %s", n, e.Member.Name, want)
		}
		n++
	}
	if n != maxEvents {
		t.Errorf("%d events were kept, want %d", n, maxEvents)
	}
}

func TestLongestGoneIsForgottenFirst(t *testing.T) {
	r := newRoll("self")
	for i := range maxDeparted + 1 {
		r.appeared(member(fmt.Sprint("n", i), 1), false)
		r.vanished(fmt.Sprint("n", i))
		for _, d := range r.doubts() {
			r.confirm(d)
		}
	}
	for r.missed > 0 || len(r.queue) > 0 {
		r.next()
	}
	for name, want := range map[string]Kind{"n0": Joined, "n1": Returned} {
		r.appeared(member(name, 2), false)
		if e, _ := r.next(); e.Kind != want {
			t.Errorf("%s %s, want %s", name, e.Kind, want)
		}
	}
	if len(r.failed()) > maxDeparted {
		t.Errorf("%d failed nodes are remembered, want at most %d", len(r.failed()), maxDeparted)
	}
}
