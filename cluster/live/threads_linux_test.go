package live_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
)

// lowered counts the threads of this process that give way: nice 19 or SCHED_IDLE.
// The first thread of a process is not counted if a run before this one has had it: Go
// cannot end it, and lets it stand.
func lowered(t *testing.T, before bool) int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprintf("/%d/", os.Getpid())
	n := 0
	for _, task := range tasks {
		if before && strings.Contains(task, first) {
			continue
		}
		b, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ") // proc_pid_stat(5): fields from the third on
		fields := strings.Fields(rest)
		if nice, policy := fields[19-3], fields[41-3]; nice == "19" || policy == "5" {
			n++
		}
	}
	return n
}

// gone waits until no thread that gives way is left, the first one of the process aside.
func gone(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(limit); lowered(t, true) > 0; runtime.Gosched() { // the kernel takes a moment
		if time.Now().After(deadline) {
			t.Fatalf("%d threads are left after a run", lowered(t, true))
		}
	}
}

func TestThreadsOfThePoolGiveWayAndEndWithTheRun(t *testing.T) {
	const threads = 3
	gone(t)
	before := lowered(t, false) > 0
	during := 0
	s := &stage{threads: threads}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		switch ctx.Message().(type) {
		case *actor.Started:
			env.After(0, "look")
		case string:
			if during = lowered(t, before); during < 2*threads && env.Now() < limit/2 {
				env.After(time.Millisecond, "look again")
				return
			}
			s.finish()
		}
	}}
	if _, err := s.world(t).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if during != 2*threads {
		t.Errorf("%d threads gave way during the run, want %d", during, 2*threads)
	}
	gone(t)
}
