package drill

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// NothingLeft watches all runs of a drill.
var NothingLeft = Invariant{"nothing-left",
	"when a run is over, no goroutine of its is left, and every tensor is held by somebody or was given back",
	nothingLeft}

func nothingLeft(w *Watch) (bool, string) {
	if forgotten := w.Run.Audit.Forgotten; forgotten != "" {
		return true, "nobody holds, and nobody has given back, " + forgotten
	}
	return true, w.Left
}

// label marks the goroutines of a drill, and all that they begin.
const label = "gradwire drill"

var drills atomic.Uint64

// patient is how long a goroutine may take to end that has nothing left to do.
const patient = 2 * time.Second

// Left does something, and says which goroutines it leaves; empty if none.
func Left(ctx context.Context, do func(ctx context.Context)) (what string) {
	number := strconv.FormatUint(drills.Add(1), 10)
	pprof.Do(ctx, pprof.Labels(label, number), do)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if what = labelled(number); what == "" || time.Since(began) > patient {
			return what
		}
	}
}

// labelled describes goroutines of a drill.
func labelled(number string) string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return ""
	}
	mark := fmt.Sprintf("%q:%q", label, number)
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(block, mark) {
			count, stack, _ := strings.Cut(block, " @ ")
			lines := strings.Split(stack, "\n")
			return fmt.Sprintf("%s goroutines, in%s", strings.TrimSpace(count),
				strings.TrimLeft(lines[len(lines)-1], "# \t0123456789abcdefx"))
		}
	}
	return ""
}
