package recordtest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"testing"
)

// event is what a run's file says of an event that has a number of its own: of a step or an update.
type event struct {
	Event         string
	Node, Origin  string
	Step, Version uint64
	Loss          float64
}

// numbered are the steps and updates in a file of events, by node and kind, without their times and
// in the order of their numbers. Those of the last number of each are left out, because a run may
// end before all of them have happened.
func numbered(t testing.TB, file io.Reader) map[string][]event {
	t.Helper()
	all := map[string][]event{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if e.Event == "step" || e.Event == "update" {
			key := e.Node + " " + e.Event
			all[key] = append(all[key], e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for key, of := range all {
		slices.SortFunc(of, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Version, b.Version),
				cmp.Compare(a.Origin, b.Origin))
		})
		last := of[len(of)-1]
		all[key] = slices.DeleteFunc(of, func(e event) bool { return e.Step == last.Step && e.Version == last.Version })
	}
	return all
}

// EachOnce fails a test unless the events of a run have each step and each update once that a
// longer run has up to then, with its loss, at the same nodes.
func EachOnce(t testing.TB, longer, run io.Reader) {
	t.Helper()
	want, got := numbered(t, longer), numbered(t, run)
	if len(got) != len(want) {
		t.Errorf("events of %d nodes and kinds, want %d", len(got), len(want))
	}
	for key, of := range got {
		for i, e := range of {
			if i == len(want[key]) {
				t.Errorf("%s: %d, more than the longer run has", key, len(of))
				break
			}
			if e != want[key][i] {
				t.Errorf("%s %d: %+v, want %+v", key, i, e, want[key][i])
				break
			}
		}
	}
}
