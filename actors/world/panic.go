package world

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// Panic is a panic that was not meant as an error.
type Panic struct {
	// Reason is what there was a panic with, and Where the function, file and line that it came
	// from.
	Reason any
	Where  string
	// Stack is that of the goroutine.
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Reason, p.Stack) }

// PanicError turns what an actor or a job panicked with into an error: the error
// itself if it is of the actor's own making, otherwise a [Panic]. It is called where the panic is
// recovered.
func PanicError(reason any) error {
	if err, ok := reason.(error); ok {
		if _, isRuntime := reason.(runtime.Error); !isRuntime {
			return err
		}
	}
	return &Panic{Reason: reason, Where: origin(), Stack: debug.Stack()}
}

// origin is where the panic under way came from: the first function below it that is not the
// runtime's.
func origin() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf("%s, %s:%d", path.Base(f.Function), path.Base(f.File), f.Line)
		}
		if !more {
			return "a place that is not known"
		}
	}
}

// Recovered turns a panic of the function that defers it into an error.
func Recovered(err *error) {
	if reason := recover(); reason != nil {
		*err = PanicError(reason)
	}
}
