package rt

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// tuned counts what the worlds of this process need, which can live side by side. GOMAXPROCS and
// GOGC belong to the process, and so does this.
var tuned struct {
	sync.Mutex
	before, wanted int // GOMAXPROCS
	garbage        int // GOGC before
}

// garbage is the GOGC of a process with a world in it. A collection stops all threads, and a
// thread of low priority stops only when the kernel runs it, which makes timers late.
const garbage = 400

// Tune changes the Go runtime of the whole process for a world that needs n processors, until
// restore is called. It raises GOMAXPROCS to what all worlds need: a goroutine that finds no
// processor would wait until Go preempts one that computes, which takes 10 ms. It raises GOGC to
// 400, unless that is higher or off. The last restore leaves both as the first Tune found them.
func Tune(n int) (restore func()) {
	tuned.Lock()
	defer tuned.Unlock()
	if tuned.wanted == 0 {
		tuned.before = runtime.GOMAXPROCS(0)
		if tuned.garbage = debug.SetGCPercent(garbage); tuned.garbage < 0 || tuned.garbage > garbage {
			debug.SetGCPercent(tuned.garbage)
		}
	}
	tuned.wanted += n
	runtime.GOMAXPROCS(max(tuned.before, tuned.wanted))
	return func() {
		tuned.Lock()
		defer tuned.Unlock()
		tuned.wanted -= n
		runtime.GOMAXPROCS(max(tuned.before, tuned.wanted))
		if tuned.wanted == 0 {
			debug.SetGCPercent(tuned.garbage)
		}
	}
}
