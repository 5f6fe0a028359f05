package live

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// processors counts what the worlds of this process need, which can live side by
// side. GOMAXPROCS is the process's own, and so is this.
var processors struct {
	sync.Mutex
	before, wanted int
	garbage        int // GOGC before
}

// garbage is the GOGC of a process with a world in it. A collection stops all threads,
// and those that compute stop when the system lets them run, which makes timers late.
const garbage = 400

// takeProcessors sees to it that n more goroutines can run at a time than other worlds
// have asked for. A goroutine that finds no processor waits until Go pre-empts one
// that computes, which takes 10 ms.
func takeProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	if processors.wanted == 0 {
		processors.before = runtime.GOMAXPROCS(0)
		if processors.garbage = debug.SetGCPercent(garbage); processors.garbage < 0 || processors.garbage > garbage {
			debug.SetGCPercent(processors.garbage)
		}
	}
	processors.wanted += n
	runtime.GOMAXPROCS(max(processors.before, processors.wanted))
}

// returnProcessors gives back what takeProcessors took; the last world leaves
// GOMAXPROCS and GOGC as the first one found them.
func returnProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	processors.wanted -= n
	runtime.GOMAXPROCS(max(processors.before, processors.wanted))
	if processors.wanted == 0 {
		debug.SetGCPercent(processors.garbage)
	}
}
