package live

import (
	"runtime"
	"sync"
)

// processors counts what the worlds of this process need, which can live side by
// side. GOMAXPROCS is the process's own, and so is this.
var processors struct {
	sync.Mutex
	before, wanted int
}

// takeProcessors sees to it that n more goroutines can run at a time than other worlds
// have asked for. A goroutine that finds no processor waits until Go pre-empts one
// that computes, which takes 10 ms.
func takeProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	if processors.wanted == 0 {
		processors.before = runtime.GOMAXPROCS(0)
	}
	processors.wanted += n
	runtime.GOMAXPROCS(max(processors.before, processors.wanted))
}

// returnProcessors gives back what takeProcessors took; the last world leaves
// GOMAXPROCS as the first one found it.
func returnProcessors(n int) {
	processors.Lock()
	defer processors.Unlock()
	processors.wanted -= n
	runtime.GOMAXPROCS(max(processors.before, processors.wanted))
}
