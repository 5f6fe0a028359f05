package drill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
)

// asp is a plan of three workers in step: each pushes 100 ms after it has got parameters, a push
// takes 5 ms, and so does the answer.
var asp = strings.NewReplacer("ssp, bound: 2", "asp").Replace(servedPlan)

// crashing has a server of a plan crash at an instant, and be back after 2 s.
func crashing(plan string, at time.Duration) string {
	before, _, _ := strings.Cut(plan, "schedule:")
	return fmt.Sprintf("%sschedule: [{at: %v, node: s, do: restart, for: 2s}]\n", before, at)
}

// replicated is a plan of three servers with replicas in place of one.
func replicated(plan string) string {
	return strings.NewReplacer("{name: s, role: server}",
		"{name: s, role: server}, {name: t, role: server}, {name: u, role: server}",
		"{kind: parameter-server,", "{kind: parameter-server, servers: {shard: 64 B, replicas: 1},").Replace(plan)
}

// A server that crashes without replicas loses the push of each of three workers that is on its way
// to it, or waits for its round, or finds it gone: a worker that is not answered makes no other,
// unless it may have two rounds ahead.
func TestPushesThatACrashLosesAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	calm, _ := watch(t, crashing(asp, 9*time.Second))
	pushed := first(t, calm, actors.StepDone, 1, 4*time.Second).At
	for name, x := range map[string]struct {
		plan  string
		after time.Duration // the workers have pushed
		want  int64
	}{
		"pushes on their way":  {asp, 2 * time.Millisecond, 3},
		"answers on their way": {asp, 7 * time.Millisecond, 3}, // which arrive
		"two rounds ahead": {strings.NewReplacer("{kind: asp}", "{kind: bounded-delay, bound: 2}").Replace(asp),
			2 * time.Millisecond, 9},
		"gradients under way": {asp, 50 * time.Millisecond, 3},
		"pushes of a round":   {strings.NewReplacer("asp", "bsp").Replace(asp), 2 * time.Millisecond, 3},
		"replicas, pushes":    {replicated(asp), 2 * time.Millisecond, 0},
		"replicas, gradients": {replicated(asp), 50 * time.Millisecond, 0},
		"replicas, pushes of a round": {replicated(strings.NewReplacer("asp", "bsp").Replace(asp)),
			2 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := watch(t, crashing(x.plan, pushed+x.after))
			c := sum(w, p, 1).Faults[0]
			if c.Pushes == nil || *c.Pushes != x.want {
				t.Errorf("%d pushes are told as lost, and %d were; all at %v", value(c.Pushes), x.want, lost(w.Run))
			}
			if at := lost(w.Run); slices.ContainsFunc(at, func(d time.Duration) bool { return d.Seconds() < c.At }) {
				t.Errorf("pushes are lost at %v, before the crash at %v", at, c.At)
			}
			if at := lost(w.Calm); len(at) > 0 {
				t.Errorf("the undisturbed run loses pushes at %v", at)
			}
		})
	}
}

// A run that ends with pushes on their way has not lost them, whatever its schedule has later.
func TestPushesUnderWayAtTheEndAreNotLost(t *testing.T) {
	calm, _ := watch(t, crashing(asp, 9*time.Second))
	pushed := first(t, calm, actors.StepDone, 3, 4*time.Second).At // the last of the three
	w, _ := watch(t, crashing(asp, pushed+2*time.Millisecond))
	if at := lost(w.Run); len(at) != 3 {
		t.Fatalf("pushes are lost at %v", at)
	}
	w.Run.End = pushed + time.Millisecond
	if at := lost(w.Run); len(at) > 0 {
		t.Errorf("pushes are lost at %v, after the end at %v", at, w.Run.End)
	}
}

// Without pushes, and where links may lose them for good, nothing is told.
func TestPushesAreCountedWhereThereAreSome(t *testing.T) {
	asIs := strings.Replace(servedPlan, "bound: 2}", "bound: 2}, delivery: as-is", 1)
	for _, text := range []string{ranks, neighbours, asIs} {
		w, p := watch(t, text)
		r := sum(w, p, 1)
		if n := r.Faults[0].Pushes; n != nil {
			t.Errorf("%d pushes are told as lost", *n)
		}
		var b strings.Builder
		err := r.Write(&b)
		head, rows, _ := strings.Cut(b.String(), "\n")
		cells := regexp.MustCompile(`\s{2,}`)
		column := slices.Index(cells.Split(head, -1), "pushes lost more")
		if row := cells.Split(rows, -1); err != nil || column < 0 || row[column] != "–" {
			t.Errorf("column %d is no dash, %v\n%s", column, err, b.String())
		}
	}
}

func value(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func TestAnUpdateThatIsRecordedTwiceIsNoticed(t *testing.T) {
	w, _ := watch(t, servedPlan)
	e := *first(t, w, actors.UpdateApplied, 0, 5*time.Second)
	e.At += time.Second
	w.Run.Events = append(w.Run.Events, e)
	if watched, broken := UpdatesOnce.Check(w); !watched || !strings.Contains(broken, "is recorded once more") {
		t.Errorf("%v, %q", watched, broken)
	}
}
