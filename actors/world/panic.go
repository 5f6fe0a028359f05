package world

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// PanicError turns what an actor or a job panicked with into an error: the error
// itself if it is of the actor's own making, otherwise one that shows where it happened.
func PanicError(reason any) error {
	if err, ok := reason.(error); ok {
		if _, isRuntime := reason.(runtime.Error); !isRuntime {
			return err
		}
	}
	return fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
}
